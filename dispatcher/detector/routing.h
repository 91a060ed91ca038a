/* To whom a process sends its heartbeat table in each round, and how long a heartbeat may take to
 * reach all: the four gossip protocols of [FM], Genaud and Rattanapoka, "Fault Management in
 * P2P-MPI" (2007), sections 4 and 5.3. Pure functions. */
#ifndef DISPATCHER_DETECTOR_ROUTING_H
#define DISPATCHER_DETECTOR_ROUTING_H

#include <stdbool.h>
#include <stdint.h>

enum routing_kind { ROUTING_RANDOM, ROUTING_RR, ROUTING_BRR, ROUTING_DBRR, ROUTINGS };

/* Times are in rounds; a round takes T_gossip. `n`: processes, at least 2; they are numbered from
 * 0. Rounds of a cycle are numbered from 1, as in the paper. */
struct routing {
    const char *name;
    uint32_t (*cycle)(uint32_t n);
    /* `draw`: any number, evenly distributed; only ROUTING_RANDOM looks at it. */
    uint32_t (*target)(uint32_t s, uint32_t n, uint32_t round, uint64_t draw);
    uint32_t (*spread)(uint32_t n);  /* T_cleanup^min: a heartbeat has reached all processes */
    uint32_t (*cleanup)(uint32_t n); /* T_cleanup: one that has not risen for so long is silent */
    /* Every round of the cycle has the same target again, and there are few: the sender remembers
     * what each of them has, and sends differences. */
    bool lanes;
};

extern const struct routing routings[ROUTINGS];

/* ⌈log2(n)⌉ */
uint32_t routing_log2(uint32_t n);

/* The next number of a generator with this state; the same everywhere. */
uint64_t routing_draw(uint64_t *state);

#endif
