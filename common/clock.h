/* The monotonic clock, in nanoseconds. For engines and drivers; a core is given its times. */
#ifndef CW_CLOCK_H
#define CW_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Not inline: common/clock.c asks libc; in librdevice.so, which answers for libc, rdevice/clock.c
 * has another definition that asks the real one. */
uint64_t cw_clock_ns(void);

static inline uint64_t cw_timespec_ns(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * 1000000000ull + (uint64_t)t->tv_nsec;
}

#endif
