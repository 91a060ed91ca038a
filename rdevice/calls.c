/* A binding to MPI in front of MPICH: it counts calls for wait.c, and puts collectives that know
 * sites where MPICH's own would be called. It uses fatal.c and collectives/ alone. */
#include "rdevice/calls.h"
#include "rdevice/collectives/collectives.h"
#include "rdevice/fatal.h"

#include <dlfcn.h>
#include <stddef.h>

#define MPICH "libmpich.so.12"

_Thread_local uint64_t calls_made __attribute__((tls_model("initial-exec")));

/* MPICH's is not among the next ones where a language has loaded MPICH for itself, as Python does.
 */
void *calls_find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    void *library = found ? NULL : dlopen(MPICH, RTLD_LAZY | RTLD_NOLOAD);

    return library ? dlsym(library, name) : found;
}

#ifdef __x86_64__
/* A function of MPI: counts, and jumps to the next one of that name, with all arguments as they
 * came. Where that is, calls_resolve() finds out at the first call. rdevice/calls.inc is made of
 * the installed MPICH: CALL(number, name) for each function that may look for progress. */
__asm__(".macro pass_on name, index\n"
        "    .globl \\name\n"
        "    .type \\name, @function\n"
        "\\name:\n"
        "    mov calls_made@gottpoff(%rip), %r11\n"
        "    incq %fs:(%r11)\n"
        "    mov calls_next + 8 * \\index(%rip), %r11\n"
        "    test %r11, %r11\n"
        "    jz 1f\n"
        "    jmp *%r11\n"
        "1:  mov $\\index, %r11d\n"
        "    jmp pass_on_first\n"
        "    .size \\name, . - \\name\n"
        ".endm\n"
        ".text\n"
        "pass_on_first:\n" /* rax: how many vectors a variadic function is given */
        "    push %rax\n"
        "    push %rdi\n"
        "    push %rsi\n"
        "    push %rdx\n"
        "    push %rcx\n"
        "    push %r8\n"
        "    push %r9\n"
        "    mov %r11d, %edi\n"
        "    call calls_resolve\n"
        "    mov %rax, %r11\n"
        "    pop %r9\n"
        "    pop %r8\n"
        "    pop %rcx\n"
        "    pop %rdx\n"
        "    pop %rsi\n"
        "    pop %rdi\n"
        "    pop %rax\n"
        "    jmp *%r11\n");

#define CALL(index, name) __asm__("pass_on " #name ", " #index);
#include "rdevice/calls.inc"
#undef CALL

#define CALL(index, name) #name,
static const char *const names[] = {
#include "rdevice/calls.inc"
};
#undef CALL

void *calls_next[sizeof(names) / sizeof(*names)];

__attribute__((used)) void *calls_resolve(uint32_t index)
{
    void *at = collectives_find(names[index], calls_find);

    if (!at)
        at = calls_find(names[index]);
    if (!at)
        fatal_exit(CW_REPORT_FATAL, "the program calls %s, and no MPICH is loaded that has it",
                   names[index]);
    calls_next[index] = at;
    return at;
}
#endif
