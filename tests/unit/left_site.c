#include "tests/unit/left_site.h"

#include <CUnit/CUnit.h>
#include <string.h>

void left_site_open(struct site *s, struct ledger_memory *left, uint64_t log_memory,
                    uint64_t log_disk)
{
    struct relay_region region = {.start = left_region(left), .size = LEFT_REGION};

    memset(s, 0, sizeof(*s));
    s->left = left;
    CU_ASSERT_EQUAL_FATAL(relay_memory_init(&s->memory, SITE_MEMORY, &region, &s->stats), CW_OK);
    s->pool.memory = &s->memory;
    store_init(&s->store, &s->pool, &s->ledger, log_memory, log_disk);
    if (ledger_open(&s->ledger, left, LEFT_REGION)) {
        store_return_begin(&s->store);
        CU_ASSERT_EQUAL(ledger_find_left(&s->ledger, &s->memory.supply), CW_OK);
    }
    s->memory.supply.carved_note = &left->header.carved;
}

void left_site_step(struct site *s)
{
    ledger_step(&s->ledger);
    store_settle(&s->store);
}

void left_site_returned(struct site *s)
{
    ledger_forget_left(&s->ledger, &s->memory.supply);
    store_returned(&s->store);
    left_site_step(s);
}

void left_site_close(struct site *s)
{
    ledger_forget_left(&s->ledger, &s->memory.supply);
    store_fini(&s->store);
    relay_memory_fini(&s->memory);
    CU_ASSERT_EQUAL(s->stats.memory_now, 0);
    CU_ASSERT_EQUAL(s->pool.held, 0);
    left_free(s->left);
}
