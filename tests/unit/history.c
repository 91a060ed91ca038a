#include "tests/unit/history.h"
#include "tests/lib/codec.h"

#include <CUnit/CUnit.h>
#include <string.h>

#define MEMORY_NOW_MAX (8u << 20) /* no more is appended */

uint64_t history_below(struct history *h, uint64_t bound)
{
    return codec_random_below(&h->seed, bound);
}

static void note_moment(struct history *h)
{
    struct moment *moment = &h->moments[h->j.step];

    memset(moment, 0, sizeof(*moment));
    for (uint32_t i = 0; i < OWNERS; i++) {
        const struct journal_owner *owner = &h->owners[i];

        if (!owner->entry.ledger)
            continue;
        moment->cell[i] = owner->entry.cell;
        moment->saved[i] = (struct journal_saved){
            .value = owner->value, .content = owner->content, .end = chain_end(&owner->chain)};
    }
}

static void append_some(struct history *h, struct journal_owner *owner)
{
    uint32_t count = history_below(h, 6) ? 1 : (uint32_t)history_below(h, 6);

    for (uint32_t i = 0; i < count; i++)
        journal_owner_append(
            owner, 1 + (uint32_t)history_below(h, history_below(h, 3) ? 3000 : RELAY_BLOCK_BYTES));
}

static void change_some(struct history *h)
{
    struct journal_owner *owner = &h->owners[1 + history_below(h, OWNERS - 1)];

    if (!owner->entry.ledger) {
        journal_owner_enter(&h->j, owner, ++h->contents);
        owner->value = h->contents;
        return;
    }
    switch (history_below(h, 12)) {
    case 0:
        journal_owner_leave(owner);
        *owner = (struct journal_owner){0};
        break;
    case 1:
    case 2:
        chain_trim(&owner->chain,
                   owner->chain.first + (uint32_t)history_below(h, owner->chain.count + 1));
        break;
    case 3:
        journal_owner_set(owner, ++h->contents);
        break;
    default:
        if (h->j.site.store.memory_now < MEMORY_NOW_MAX)
            append_some(h, owner);
        else
            chain_trim(&owner->chain, owner->chain.first + owner->chain.count);
        break;
    }
}

/* The first owner always says which step it is. */
void history_step(struct history *h)
{
    for (uint64_t n = history_below(h, 5); n > 0; n--)
        change_some(h);
    journal_owner_set(&h->owners[0], h->j.step + 1);
    journal_site_step(&h->j);
    note_moment(h);
}

void history_forget_process(struct history *h)
{
    struct journal_site *j = &h->j;

    for (uint32_t i = 0; i < OWNERS; i++)
        journal_owner_leave(&h->owners[i]);
    j->disk.count = 0;
    left_site_step(&j->site);
    left_site_close(&j->site);
}

static bool is_same(const struct journal_saved *a, const struct journal_saved *b)
{
    return a->value == b->value && a->content == b->content && a->end.first == b->end.first &&
           a->end.count == b->end.count && a->end.used == b->end.used;
}

void history_take_up(struct journal_site *j, struct journal_owner owners[OWNERS],
                     const struct moment *moment)
{
    uint32_t count = 0;
    uint32_t left = 0;

    for (uint32_t i = 0; i < OWNERS; i++) {
        struct journal_saved saved;

        memset(&owners[i], 0, sizeof(owners[i]));
        if (moment->saved[i].value == 0)
            continue;
        CU_ASSERT_TRUE_FATAL(journal_owner_left(&j->site, moment->cell[i], &saved));
        CU_ASSERT_TRUE(is_same(&saved, &moment->saved[i]));
        CU_ASSERT_EQUAL_FATAL(journal_owner_return(j, &owners[i], moment->cell[i]), CW_OK);
        count++;
    }
    for (uint32_t cell = 0; cell < j->site.left->header.cells_used; cell++)
        left += ledger_find(&j->site.ledger, cell, LEDGER_RANK) != NULL;
    CU_ASSERT_EQUAL(count, left);
    left_site_returned(&j->site);
    commit_begin(&j->site.store.commit);
    for (uint32_t i = 0; i < OWNERS; i++)
        CU_ASSERT_TRUE(!owners[i].entry.ledger || journal_owner_is_right(j, &owners[i]));
}
