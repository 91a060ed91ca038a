#include "common/clock.h"

#include <sched.h>

uint64_t cw_clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return cw_timespec_ns(&t);
}

int cw_cpu(void)
{
    return sched_getcpu();
}
