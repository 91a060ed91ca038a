/* The monotonic clock, in nanoseconds. For engines and drivers; a core is given its times. */
#ifndef CW_CLOCK_H
#define CW_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t cw_clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

#endif
