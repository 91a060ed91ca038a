/* Times of another machine's CLOCK_MONOTONIC, which began when that was booted. Pure. */
#ifndef DISPATCHER_FAR_CLOCK_H
#define DISPATCHER_FAR_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: nothing is known yet. */
struct far_clock {
    bool known;
    int64_t behind_ns; /* of ours, and how long a message takes: the least that was seen */
};

/* When that was by our clock, of a time that is heard of now: too late by at most what the fastest
 * message took until now. */
uint64_t far_clock_here(struct far_clock *clock, uint64_t now_ns, uint64_t then_ns);

#endif
