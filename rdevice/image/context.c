#include "rdevice/image/context.h"

#include <stddef.h>

_Static_assert(offsetof(struct cw_image_context, rip) == 56, "as the code below has it");
_Static_assert(offsetof(struct cw_image_context, mxcsr) == 64, "as the code below has it");
_Static_assert(offsetof(struct cw_image_context, fs_base) == 72, "as the code below has it");

/* The restorer jumps to the return address with rax = 1. ARCH_GET_FS is 0x1003, ARCH_GET_GS
 * 0x1004, arch_prctl 158. */
__asm__(".text\n"
        ".globl context_save\n"
        ".hidden context_save\n"
        ".type context_save, @function\n"
        "context_save:\n"
        "    endbr64\n"
        "    mov %rbx, 0(%rdi)\n"
        "    mov %rbp, 8(%rdi)\n"
        "    mov %r12, 16(%rdi)\n"
        "    mov %r13, 24(%rdi)\n"
        "    mov %r14, 32(%rdi)\n"
        "    mov %r15, 40(%rdi)\n"
        "    lea 8(%rsp), %rdx\n"
        "    mov %rdx, 48(%rdi)\n"
        "    mov (%rsp), %rdx\n"
        "    mov %rdx, 56(%rdi)\n"
        "    stmxcsr 64(%rdi)\n"
        "    fnstcw 68(%rdi)\n"
        "    mov %rdi, %rdx\n"
        "    lea 72(%rdx), %rsi\n"
        "    mov $0x1003, %edi\n"
        "    mov $158, %eax\n"
        "    syscall\n"
        "    lea 80(%rdx), %rsi\n"
        "    mov $0x1004, %edi\n"
        "    mov $158, %eax\n"
        "    syscall\n"
        "    xor %eax, %eax\n"
        "    ret\n"
        ".size context_save, .-context_save\n");

/* clone is 56, rt_sigreturn 15. */
__asm__(".text\n"
        ".globl context_clone\n"
        ".hidden context_clone\n"
        ".type context_clone, @function\n"
        "context_clone:\n"
        "    endbr64\n"
        "    mov %r8, %r9\n"
        "    mov %rdx, %r8\n"
        "    mov %rcx, -8(%rsi)\n" /* the new stack begins with the function's address */
        "    lea -16(%rsi), %rsi\n"
        "    xor %edx, %edx\n"
        "    xor %r10d, %r10d\n"
        "    mov $56, %eax\n"
        "    syscall\n"
        "    test %rax, %rax\n"
        "    jz 1f\n"
        "    ret\n"
        "1:  xor %ebp, %ebp\n"
        "    mov %r9, %rdi\n"
        "    call *8(%rsp)\n"
        "    hlt\n"
        ".size context_clone, .-context_clone\n"

        ".globl context_return\n"
        ".hidden context_return\n"
        ".type context_return, @function\n"
        "context_return:\n"
        "    endbr64\n"
        "    mov %rdi, %rsp\n"
        "    mov $15, %eax\n"
        "    syscall\n"
        "    hlt\n"
        ".size context_return, .-context_return\n"

        "    nop\n" /* an unwinder looks at the byte before */
        ".balign 16\n"
        ".globl context_restorer\n"
        ".hidden context_restorer\n"
        ".type context_restorer, @function\n"
        "context_restorer:\n"
        "    mov $15, %rax\n"
        "    syscall\n"
        ".size context_restorer, .-context_restorer\n");
