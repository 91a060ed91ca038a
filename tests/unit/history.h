/* A random history of states and chains, and what there was after each of its steps: whoever takes
 * over must find one of these moments, whole. */
#ifndef UNIT_HISTORY_H
#define UNIT_HISTORY_H

#include "tests/unit/journal_site.h"

#define OWNERS 6u
#define STEPS_MAX 6000u /* of one history */
#define LOG_MEMORY (2u << 20)

/* All that there is after a step, by owner; a value of 0: there is nobody. */
struct moment {
    struct journal_saved saved[OWNERS];
    uint32_t cell[OWNERS];
};

struct history {
    struct journal_site j;
    struct journal_owner owners[OWNERS];
    struct moment moments[STEPS_MAX + 1];
    uint64_t contents; /* given so far */
    uint64_t seed;
};

uint64_t history_below(struct history *h, uint64_t bound);
/* Some changes, as one step. */
void history_step(struct history *h);
/* The process is gone, and its memory; what it held of the test's own memory is given back. */
void history_forget_process(struct history *h);
/* A process that has opened `j` finds this moment there, with all of its bytes. */
void history_take_up(struct journal_site *j, struct journal_owner owners[OWNERS],
                     const struct moment *moment);

#endif
