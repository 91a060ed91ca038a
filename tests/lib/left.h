/* Memory that outlives a relay, with a region of blocks behind it. */
#ifndef TESTS_LEFT_H
#define TESTS_LEFT_H

#include "relay/log/ledger.h"

#define LEFT_REGION (256ull << 20)

/* Zero; most of it is never touched. */
struct ledger_memory *left_new(void);
/* What another process finds there now. */
struct ledger_memory *left_copy(const struct ledger_memory *left);
/* NULL: nothing happens. */
void left_free(struct ledger_memory *left);
static inline uint8_t *left_region(struct ledger_memory *left)
{
    return (uint8_t *)(left + 1);
}

#endif
