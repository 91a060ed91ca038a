/* The monotonic clock, in nanoseconds. For engines and drivers; a core gets times as arguments. */
#ifndef CW_CLOCK_H
#define CW_CLOCK_H

#include <limits.h>
#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in ns. Two definitions: common/clock.c calls libc. librdevice.so replaces libc's
 * clock functions, so it has its own definition, which calls the real ones. */
uint64_t cw_clock_ns(void);

/* The processor at hand; -1: not known. */
int cw_cpu(void);

static inline uint64_t cw_timespec_ns(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * 1000000000ull + (uint64_t)t->tv_nsec;
}

/* How long poll() is to wait until then, in ms, rounded up. Where that is no int (24.8 days) it
 * waits less. */
static inline int cw_clock_wait_ms(uint64_t now_ns, uint64_t until_ns)
{
    uint64_t ms = until_ns <= now_ns ? 0 : (until_ns - now_ns) / 1000000 + 1;

    return ms < INT_MAX ? (int)ms : INT_MAX;
}

#endif
