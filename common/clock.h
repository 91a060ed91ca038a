/* The monotonic clock, in nanoseconds. For engines and drivers; a core gets times as arguments. */
#ifndef CW_CLOCK_H
#define CW_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in ns. Two definitions: common/clock.c calls libc. librdevice.so replaces libc's
 * clock functions, so it has its own definition, which calls the real ones. */
uint64_t cw_clock_ns(void);

static inline uint64_t cw_timespec_ns(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * 1000000000ull + (uint64_t)t->tv_nsec;
}

#endif
