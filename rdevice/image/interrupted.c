#include "rdevice/image/interrupted.h"

#include "rdevice/image/system.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LINE_BYTES 256u
#define NAME_BYTES 48u
#define SYSCALL_BYTES 2 /* of the instruction */
#define MOVE_BYTES 5    /* of the one before it */
#define SLEEP_BYTES (MOVE_BYTES + SYSCALL_BYTES)
#define PAGE_BYTES 4096

/* The next number, of hexadecimal digits after 0x, or of others. */
static bool next_number(const char **at, uint64_t *value)
{
    const char *p = *at;
    bool hex;

    while (*p == ' ')
        p++;
    hex = p[0] == '0' && p[1] == 'x';
    if (hex)
        p += 2;
    if (*p < '0' || (*p > '9' && !hex))
        return false;
    for (*value = 0; *p != ' ' && *p != '\n' && *p != '\0'; p++) {
        unsigned digit = *p <= '9' ? (unsigned)*p - '0' : (unsigned)(*p | 0x20) - 'a' + 10;

        *value = hex ? *value << 4 | digit : *value * 10 + digit;
    }
    *at = p;
    return true;
}

/* "NUMBER 0xARGUMENT... 0xSP 0xPC", "-1 0xSP 0xPC" of a thread that waits outside of a call, or
 * "running". */
void interrupted_look(int32_t tid, struct interrupted *call)
{
    char name[NAME_BYTES], line[LINE_BYTES];
    const char *at = line;
    uint64_t number;

    call->known = false;
    snprintf(name, sizeof(name), "/proc/self/task/%d/syscall", tid);
    if (system_read_file(name, line, sizeof(line)) <= 0 || !next_number(&at, &number))
        return;
    call->number = (long)number;
    for (int i = 0; i < 6; i++)
        if (!next_number(&at, &call->argument[i]))
            return;
    call->known = next_number(&at, &call->sp) && next_number(&at, &call->pc);
}

static bool is_same(const struct interrupted *call, const greg_t *r)
{
    const uint64_t *a = call->argument;

    return (uint64_t)r[REG_RIP] == call->pc && (uint64_t)r[REG_RSP] == call->sp &&
           (uint64_t)r[REG_RDI] == a[0] && (uint64_t)r[REG_RSI] == a[1] &&
           (uint64_t)r[REG_RDX] == a[2] && (uint64_t)r[REG_R10] == a[3] &&
           (uint64_t)r[REG_R8] == a[4] && (uint64_t)r[REG_R9] == a[5];
}

static bool futex_can_be_again(const uint64_t *a)
{
    int operation = (int)a[1] & FUTEX_CMD_MASK;

    return a[3] == 0 || operation == FUTEX_WAIT_BITSET || operation == FUTEX_LOCK_PI ||
           operation == FUTEX_LOCK_PI2 || operation == FUTEX_WAIT_REQUEUE_PI;
}

/* Waits without end, until a moment, or whose remaining time the kernel leaves where it has read
 * the time. */
static bool can_be_again(const struct interrupted *call)
{
    const uint64_t *a = call->argument;

    switch (call->number) {
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_semop:
    case SYS_select:
    case SYS_pselect6:
    case SYS_ppoll:
        return true;
    case SYS_futex:
        return futex_can_be_again(a);
    case SYS_poll:
        return (int)a[2] < 0;
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
        return (int)a[3] < 0;
    case SYS_epoll_pwait2:
    case SYS_semtimedop:
        return a[3] == 0;
    case SYS_rt_sigtimedwait:
        return a[2] == 0;
    case SYS_nanosleep:
        return a[0] == a[1];
    case SYS_clock_nanosleep:
        return ((int)a[1] & TIMER_ABSTIME) || a[2] == a[3];
    }
    return false;
}

static bool is_call(uint64_t address)
{
    static const uint8_t instruction[SYSCALL_BYTES] = {0x0f, 0x05};

    return memcmp((const void *)(uintptr_t)address, instruction, SYSCALL_BYTES) == 0;
}

/* How glibc comes to the number of a call that can be cancelled, by the instruction before the
 * call: it is part of that; or, from 2.41 on, on the stack, where __internal_syscall_cancel() was
 * given it: of a process with one thread, or below the frame of __syscall_cancel_arch(). */
static bool find_number(const greg_t *r, const uint8_t *code, uint64_t *number)
{
    static const uint8_t from_stack[MOVE_BYTES] = {0x48, 0x8b, 0x44, 0x24, 0x10};
    static const uint8_t in_frame[MOVE_BYTES] = {0x4c, 0x89, 0x5c, 0x24, 0x08};
    const uint64_t *stack = (const uint64_t *)(uintptr_t)r[REG_RSP];
    uint32_t moved;

    memcpy(&moved, code + 1, sizeof(moved));
    if (code[0] == 0xb8)
        *number = moved;
    else if (memcmp(code, from_stack, sizeof(from_stack)) == 0)
        *number = stack[2];
    else if (memcmp(code, in_frame, sizeof(in_frame)) == 0)
        *number = stack[5];
    else
        return false;
    return true;
}

/* A sleep that began after we had looked. Only sleeps, which have an end: that of another call may
 * be a signal of the program's, whose handler has just returned. */
static bool find_sleep(struct interrupted *call, const greg_t *r)
{
    uint64_t at = (uint64_t)r[REG_RIP];
    const uint8_t *code = (const uint8_t *)(uintptr_t)(at - SLEEP_BYTES);
    uint64_t number;

    if (at % PAGE_BYTES < SLEEP_BYTES) /* before it there may be no memory */
        return false;
    if (!is_call(at - SYSCALL_BYTES) || !find_number(r, code, &number))
        return false;
    call->number = (long)number;
    call->argument[0] = (uint64_t)r[REG_RDI];
    call->argument[1] = (uint64_t)r[REG_RSI];
    call->argument[2] = (uint64_t)r[REG_RDX];
    call->argument[3] = (uint64_t)r[REG_R10];
    return number == SYS_nanosleep || number == SYS_clock_nanosleep;
}

void interrupted_again(const struct interrupted *looked, ucontext_t *frame)
{
    greg_t *r = frame->uc_mcontext.gregs;
    struct interrupted call = *looked;

    if (r[REG_RAX] != -EINTR || (!(call.known && is_same(&call, r)) && !find_sleep(&call, r)) ||
        !can_be_again(&call))
        return;
    r[REG_RAX] = call.number;
    r[REG_RIP] -= SYSCALL_BYTES;
}

/* The kernel makes the call again, or ends it with EINTR. */
bool interrupted_sleeps(const ucontext_t *frame)
{
    const greg_t *r = frame->uc_mcontext.gregs;
    uint64_t at = (uint64_t)r[REG_RIP];

    return (r[REG_RAX] == SYS_futex && is_call(at)) ||
           (r[REG_RAX] == -EINTR && is_call(at - SYSCALL_BYTES));
}
