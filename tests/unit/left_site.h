/* What a core has below it, over memory that outlives it. */
#ifndef UNIT_LEFT_SITE_H
#define UNIT_LEFT_SITE_H

#include "relay/log/chain.h"
#include "tests/lib/left.h"

#define SITE_MEMORY (64u << 20)

struct site {
    struct ledger_memory *left;
    struct cw_relay_stats stats;
    struct relay_memory memory;
    struct relay_pool pool;
    struct ledger ledger;
    struct log_store store;
};

/* What was left there is found. It owns `left`. */
void left_site_open(struct site *s, struct ledger_memory *left, uint64_t log_memory,
                    uint64_t log_disk);
/* All that was left is taken, as relay_core_return ends. */
void left_site_returned(struct site *s);
void left_site_step(struct site *s);
/* Nothing is held any more. */
void left_site_close(struct site *s);

#endif
