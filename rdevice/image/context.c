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
