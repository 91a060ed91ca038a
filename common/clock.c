#include "common/clock.h"

uint64_t cw_clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return cw_timespec_ns(&t);
}
