/* Who lives, of the processes and hosts of a job: one kind of event, whoever knows it (signs of
 * life, watchers, nodes, relays), and what only time tells. Pure: times are given. */
#ifndef DISPATCHER_LIVENESS_H
#define DISPATCHER_LIVENESS_H

#include "common/setup.h"

#include <stdbool.h>
#include <stdint.h>

#define LIFE_PERIODS 3 /* signs of life that did not come make a process look hung */
#define LIFE_NO_HOST UINT32_MAX

enum life_what {
    LIFE_SUSPECT, /* a process: it is dead if no more is heard of it soon; a host: nothing is heard
                     of it, which says nothing of its processes */
    LIFE_DEAD,
    LIFE_ENDED, /* a process: it is silent from now on, since it has ended; how is to follow */
    LIFE_BACK,  /* a process: it gives a sign of life; a host: it is heard, or can be used again */
};

struct life_event {
    enum life_what what;
    uint32_t host;             /* LIFE_NO_HOST: it is of this: */
    struct cw_process process; /* another one than runs is of no interest */
    const char *text;          /* SUSPECT, DEAD: goes on "rank R (PROGRAM) ..." */
};

/* What is known of a process. */
struct life {
    uint64_t heard_ns; /* its last sign of life */
    uint64_t dead_ns;  /* when it is taken for dead, being suspect; 0: it is not */
    bool ended;        /* it has, and how is to follow */
};

/* From when on it is dead, unless it is heard of before, or has ended; `timeout_ns`: how long it
 * may be silent, 0: for ever. */
uint64_t life_end_ns(const struct life *life, uint64_t timeout_ns);

/* Signs of life that nobody was there to hear count as given: a dispatcher that was stopped, or had
 * no core, must not take its ranks for dead. It last looked at *looked_ns; returns how long it was
 * away, which each process is then forgiven, or 0. */
uint64_t life_absence_ns(uint64_t *looked_ns, uint64_t timeout_ns, uint64_t now_ns);
void life_forgive(struct life *life, uint64_t absence_ns, uint64_t now_ns);

#endif
