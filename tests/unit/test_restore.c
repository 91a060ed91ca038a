/* Memory that is made of a journal again: whatever was going on when power was lost, it is that of
 * one step, no earlier than the last one that had been acknowledged, with every byte of it. */
#include "tests/lib/journals.h"
#include "tests/unit/history.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("restored journals");

static struct history h;

static uint64_t below(uint64_t bound)
{
    return history_below(&h, bound);
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
        history_step(&h);
        serve_some();
    }
}

static void lose_power(void)
{
    struct ledger_memory *left;
    struct journal_saved first = {0};

    fake_disk_lose_power(&h.j.disk);
    history_forget_process(&h);
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
        history_take_up(&h.j, h.owners, &h.moments[first.value]);
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
    history_forget_process(&h);
    journals_find(&h.j.disk, &summary, &h.j.journal);
    journal_site_open(&h.j, left, LOG_MEMORY);
    history_take_up(&h.j, h.owners, &h.moments[h.j.step]);
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
    history_forget_process(&h);
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
