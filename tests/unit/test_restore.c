/* Memory that is made of a journal again: whatever was going on when power was lost, it is that of
 * one step, no earlier than the last one that had been acknowledged, with every byte of it. */
#include "tests/lib/codec.h"
#include "tests/lib/journals.h"
#include "tests/unit/journal_site.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("restored journals");

#define OWNERS 6u
#define STEPS_MAX 6000u /* of one history */
#define LOG_MEMORY (2u << 20)
#define MEMORY_NOW_MAX (8u << 20) /* no more is appended */

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

static struct history h;

static uint64_t below(uint64_t bound)
{
    return codec_random_below(&h.seed, bound);
}

/* --- what happens -------------------------------------------------------------------------------
 */
static void note_moment(void)
{
    struct moment *moment = &h.moments[h.j.step];

    memset(moment, 0, sizeof(*moment));
    for (uint32_t i = 0; i < OWNERS; i++) {
        const struct journal_owner *owner = &h.owners[i];

        if (!owner->entry.ledger)
            continue;
        moment->cell[i] = owner->entry.cell;
        moment->saved[i] = (struct journal_saved){
            .value = owner->value, .content = owner->content, .end = chain_end(&owner->chain)};
    }
}

/* The first owner always says which step it is. */
static void step(void)
{
    journal_owner_set(&h.owners[0], h.j.step + 1);
    journal_site_step(&h.j);
    note_moment();
}

static void append_some(struct journal_owner *owner)
{
    uint32_t count = below(6) ? 1 : (uint32_t)below(6);

    for (uint32_t i = 0; i < count; i++)
        journal_owner_append(owner, 1 + (uint32_t)below(below(3) ? 3000 : RELAY_BLOCK_BYTES));
}

static void change_some(void)
{
    struct journal_owner *owner = &h.owners[1 + below(OWNERS - 1)];

    if (!owner->entry.ledger) {
        journal_owner_enter(&h.j, owner, ++h.contents);
        owner->value = h.contents;
        return;
    }
    switch (below(12)) {
    case 0:
        journal_owner_leave(owner);
        *owner = (struct journal_owner){0};
        break;
    case 1:
    case 2:
        chain_trim(&owner->chain, owner->chain.first + (uint32_t)below(owner->chain.count + 1));
        break;
    case 3:
        journal_owner_set(owner, ++h.contents);
        break;
    default:
        if (h.j.site.store.memory_now < MEMORY_NOW_MAX)
            append_some(owner);
        else
            chain_trim(&owner->chain, owner->chain.first + owner->chain.count);
        break;
    }
}

/* Sometimes much waits for the disk. */
static void serve_some(void)
{
    uint64_t asked = below(4) ? below(3) : STORE_IO_MAX;

    while (asked-- > 0)
        journal_site_ask(&h.j);
    for (uint64_t n = below(4); n > 0; n--)
        journal_site_done(&h.j);
}

static void go_on(uint32_t steps)
{
    for (uint32_t i = 0; i < steps && h.j.step < STEPS_MAX; i++) {
        for (uint64_t n = below(5); n > 0; n--)
            change_some();
        step();
        serve_some();
    }
}

/* --- and what comes back ------------------------------------------------------------------------
 */
static bool is_same(const struct journal_saved *a, const struct journal_saved *b)
{
    return a->value == b->value && a->content == b->content && a->end.first == b->end.first &&
           a->end.count == b->end.count && a->end.used == b->end.used;
}

static void take_up(const struct moment *moment)
{
    uint32_t count = 0;
    uint32_t left = 0;

    for (uint32_t i = 0; i < OWNERS; i++) {
        struct journal_saved saved;

        memset(&h.owners[i], 0, sizeof(h.owners[i]));
        if (moment->saved[i].value == 0)
            continue;
        CU_ASSERT_TRUE_FATAL(journal_owner_left(&h.j.site, moment->cell[i], &saved));
        CU_ASSERT_TRUE(is_same(&saved, &moment->saved[i]));
        CU_ASSERT_EQUAL_FATAL(journal_owner_return(&h.j, &h.owners[i], moment->cell[i]), CW_OK);
        count++;
    }
    for (uint32_t cell = 0; cell < h.j.site.left->header.cells_used; cell++)
        left += ledger_find(&h.j.site.ledger, cell, LEDGER_RANK) != NULL;
    CU_ASSERT_EQUAL(count, left);
    left_site_returned(&h.j.site);
    commit_begin(&h.j.site.store.commit);
    for (uint32_t i = 0; i < OWNERS; i++)
        CU_ASSERT_TRUE(!h.owners[i].entry.ledger || journal_owner_is_right(&h.j, &h.owners[i]));
}

/* The process is gone, and its memory; what it held of the test's own memory is given back. */
static void forget_process(void)
{
    struct journal_site *j = &h.j;

    for (uint32_t i = 0; i < OWNERS; i++)
        journal_owner_leave(&h.owners[i]);
    j->disk.count = 0;
    left_site_step(&j->site);
    left_site_close(&j->site);
}

static void lose_power(void)
{
    struct ledger_memory *left;
    struct journal_saved first = {0};

    fake_disk_lose_power(&h.j.disk);
    forget_process();
    left = journal_site_restore(&h.j);
    if (!left) {
        CU_ASSERT_EQUAL(h.j.acked, 0);
        left = left_new();
        h.j.journal = (struct relay_journal){.number = 1};
    }
    journal_site_open(&h.j, left, LOG_MEMORY);
    journal_owner_left(&h.j.site, h.moments[1].cell[0], &first);
    CU_ASSERT_TRUE_FATAL(first.value >= h.j.acked && first.value <= h.j.given);
    h.j.step = h.j.acked = h.j.given = first.value;
    if (first.value > 0)
        take_up(&h.moments[first.value]);
    else
        journal_owner_enter(&h.j, &h.owners[0], 0);
}

/* It is killed, and its memory is there: what was done last counts. */
static void kill_it(void)
{
    struct ledger_memory *left = left_copy(h.j.site.left);
    struct journal_summary summary;
    struct relay_log_done done;

    while (h.j.disk.count > 0 && below(2))
        fake_disk_done(&h.j.disk, &done);
    forget_process();
    journals_find(&h.j.disk, &summary, &h.j.journal);
    journal_site_open(&h.j, left, LOG_MEMORY);
    take_up(&h.moments[h.j.step]);
}

static void begin(uint64_t seed)
{
    memset(&h, 0, sizeof(h));
    h.seed = seed;
    journal_site_start(&h.j, LOG_MEMORY, seed);
    journal_owner_enter(&h.j, &h.owners[0], 0);
}

static void end(void)
{
    forget_process();
    fake_disk_fini(&h.j.disk);
}

TEST(power_is_lost_at_any_time)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        begin(seed);
        for (int life = 0; life < 12; life++) {
            go_on(1 + (uint32_t)below(60));
            lose_power();
        }
        end();
    }
}

TEST(kills_and_power)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        begin(100 + seed);
        for (int life = 0; life < 12; life++) {
            go_on(1 + (uint32_t)below(40));
            if (below(2))
                lose_power();
            else
                kill_it();
        }
        end();
    }
}

/* Until another journal has begun, and once more for a while: power is lost at any time of that. */
static void go_on_to_another_journal(void)
{
    uint64_t number = h.j.journal.number;

    while (h.j.site.store.commit.journal == number && h.j.step < STEPS_MAX)
        go_on(1);
    CU_ASSERT_NOT_EQUAL(h.j.site.store.commit.journal, number);
    go_on((uint32_t)below(20));
}

TEST(power_is_lost_when_another_journal_begins)
{
    begin(1000);
    for (int life = 0; life < 3; life++) {
        go_on_to_another_journal();
        lose_power();
        go_on((uint32_t)below(10));
        lose_power();
    }
    end();
}
