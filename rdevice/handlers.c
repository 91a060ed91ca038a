/* The program's signal handlers are called by on_signal(), so that inputs.c knows that one runs: a
 * signal interrupts the program at another point in each run, so what a handler reads from a clock
 * is no determinant. The functions of libc that set a handler, and those that jump out of one, are
 * replaced here; the program sees its own handlers only. An exception that leaves a handler passes
 * on_signal(), which is compiled with a cleanup; who leaves one otherwise shows by the stack
 * pointer with which it asks next (frames.c).
 *
 * A binding to libc, above inputs.c alone. */
#include "rdevice/inputs.h"
#include "rdevice/next.h"

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>

#define JUMP_STACK 6   /* word of a jump's buffer */
#define JUMP_TURNED 17 /* bits */

typedef void handler(int number, siginfo_t *info, void *context);
typedef sighandler_t setter(int number, sighandler_t to);
typedef void jumper(struct __jmp_buf_tag *to, int value);

static handler *programs[_NSIG];
static struct {
    int (*sigaction)(int number, const struct sigaction *to, struct sigaction *was);
    setter *signal;
    setter *sysv_signal;
    setter *sigset;
    jumper *longjmp;
    jumper *longjmp_checked;
    int (*setcontext)(const ucontext_t *to);
    int (*swapcontext)(ucontext_t *from, const ucontext_t *to);
} real;

/* By the first call, or as a constructor: those of other libraries may run before ours. */
__attribute__((constructor)) static void begin(void)
{
    if (real.swapcontext)
        return;
    next_resolve(&real.sigaction, "sigaction");
    next_resolve(&real.signal, "signal");
    next_resolve(&real.sysv_signal, "sysv_signal");
    next_resolve(&real.sigset, "sigset");
    next_resolve(&real.longjmp, "siglongjmp"); /* all three jumps are one */
    next_resolve(&real.longjmp_checked, "__longjmp_chk");
    next_resolve(&real.setcontext, "setcontext");
    next_resolve(&real.swapcontext, "swapcontext");
}

/* Where the alternate stack ends, if this is on it. */
static uintptr_t alternate_low(const stack_t *stack, uintptr_t top)
{
    uintptr_t low = (uintptr_t)stack->ss_sp;

    return top - low < stack->ss_size ? low : 0;
}

/* The kernel passes all three on this processor, also to a handler that asked for the first alone.
 */
static void on_signal(int number, siginfo_t *info, void *context)
{
    const ucontext_t *interrupted = context;
    handler *program = __atomic_load_n(&programs[number], __ATOMIC_RELAXED);
    uintptr_t top = (uintptr_t)__builtin_frame_address(0);
    __attribute__((cleanup(inputs_handler_ends))) struct inputs_handler call;

    inputs_handler_begins(&call, top, alternate_low(&interrupted->uc_stack, top),
                          (uintptr_t)interrupted->uc_mcontext.gregs[REG_RSP]);
    program(number, info, context);
    call.returned = true;
}

static bool is_signal(int number)
{
    return number > 0 && number < _NSIG;
}

static bool is_function(sighandler_t to)
{
    return to != SIG_DFL && to != SIG_IGN && to != SIG_ERR && to != SIG_HOLD;
}

/* --- setting one ------------------------------------------------------------------------------ */

/* Ours is in the kernel only while the program's is in the table. */
PUBLIC int sigaction(int number, const struct sigaction *restrict to,
                     struct sigaction *restrict was)
{
    struct sigaction ours;
    handler *before;
    int result;

    begin();
    if (!is_signal(number))
        return real.sigaction(number, to, was);
    before = programs[number];
    if (to && is_function(to->sa_handler)) {
        ours = *to;
        ours.sa_sigaction = on_signal;
        __atomic_store_n(&programs[number], to->sa_sigaction, __ATOMIC_RELAXED);
        to = &ours;
    }
    result = real.sigaction(number, to, was);
    if (result < 0)
        __atomic_store_n(&programs[number], before, __ATOMIC_RELAXED);
    else if (was && was->sa_sigaction == on_signal)
        was->sa_sigaction = before;
    return result;
}
ALIAS(__sigaction, sigaction);

static sighandler_t set(setter *const *with, int number, sighandler_t to)
{
    handler *before;
    sighandler_t was;

    begin();
    if (!is_signal(number))
        return (*with)(number, to);
    before = programs[number];
    if (is_function(to)) {
        __atomic_store_n(&programs[number], (handler *)(void *)to, __ATOMIC_RELAXED);
        to = (sighandler_t)(void *)on_signal;
    }
    was = (*with)(number, to);
    if (was == SIG_ERR)
        __atomic_store_n(&programs[number], before, __ATOMIC_RELAXED);
    return was == (sighandler_t)(void *)on_signal ? (sighandler_t)(void *)before : was;
}

#define SETTER(name, with)                                                                         \
    PUBLIC sighandler_t name(int number, sighandler_t to)                                          \
    {                                                                                              \
        return set(&real.with, number, to);                                                        \
    }

SETTER(signal, signal)
SETTER(bsd_signal, signal)
SETTER(ssignal, signal)
SETTER(sysv_signal, sysv_signal)
SETTER(__sysv_signal, sysv_signal)
SETTER(sigset, sigset)

/* --- jumping out of one ----------------------------------------------------------------------- */

/* As glibc keeps it: the seventh word, rotated, with a word of the thread's own over it. */
static uintptr_t stack_of(const struct __jmp_buf_tag *to)
{
    uintptr_t kept = (uintptr_t)to->__jmpbuf[JUMP_STACK], own;

    __asm__("mov %%fs:0x30, %0" : "=r"(own));
    return (kept >> JUMP_TURNED | kept << (64 - JUMP_TURNED)) ^ own;
}

__attribute__((noreturn)) static void jump(jumper *const *with, struct __jmp_buf_tag *to, int value)
{
    begin();
    inputs_go(NULL, NULL, stack_of(to));
    (*with)(to, value);
    __builtin_unreachable();
}

#define JUMPER(name, with)                                                                         \
    PUBLIC void name(struct __jmp_buf_tag to[1], int value)                                        \
    {                                                                                              \
        jump(&real.with, to, value);                                                               \
    }

JUMPER(longjmp, longjmp)
JUMPER(_longjmp, longjmp)
JUMPER(siglongjmp, longjmp)
JUMPER(__longjmp_chk, longjmp_checked)

static uintptr_t stack_in(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
}

PUBLIC int setcontext(const ucontext_t *to)
{
    begin();
    inputs_go(NULL, to, stack_in(to));
    return real.setcontext(to);
}

PUBLIC int swapcontext(ucontext_t *restrict from, const ucontext_t *restrict to)
{
    begin();
    inputs_go(from, to, stack_in(to));
    return real.swapcontext(from, to);
}
