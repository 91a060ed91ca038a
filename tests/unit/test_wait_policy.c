/* The policies of waiting, as tables: facts, and what is decided. */
#include "common/spin.h"
#include "rdevice/wait_policy.h"
#include "relay/engine/wait_policy.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stddef.h>

SUITE("wait_policy");

#define US 1000ull
#define MS 1000000ull
#define SPIN (200 * US)
#define LONG_AGO (1000 * MS)
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* --- yields ----------------------------------------------------------------------------------- */
TEST(a_core_that_is_ours_alone_is_not_given_away_at_once)
{
    struct cw_spin spin = {.alone = 0};
    uint64_t now = MS;

    cw_spin_begin(&spin, now);
    CU_ASSERT_TRUE(cw_spin_is_due(&spin, now)); /* others may want it */
    for (uint32_t i = 0; i < CW_SPIN_ALONE_MIN; i++)
        cw_spin_yielded(&spin, now, now + CW_SPIN_ALONE_NS - 1);
    CU_ASSERT_FALSE(cw_spin_is_due(&spin, now + CW_SPIN_EVERY_NS));
    CU_ASSERT_TRUE(cw_spin_is_due(&spin, now + CW_SPIN_EVERY_NS + CW_SPIN_ALONE_NS));
    cw_spin_begin(&spin, now + CW_SPIN_EVERY_NS);
    CU_ASSERT_FALSE(cw_spin_is_due(&spin, now + 2 * CW_SPIN_EVERY_NS - 1));
    CU_ASSERT_TRUE(cw_spin_is_due(&spin, now + 2 * CW_SPIN_EVERY_NS));
    cw_spin_yielded(&spin, now, now + CW_SPIN_ALONE_MAX_NS);
    CU_ASSERT_TRUE(cw_spin_is_due(&spin, now + CW_SPIN_ALONE_MAX_NS));
}

TEST(a_slow_yield_gave_the_core_away)
{
    struct cw_spin slow = {.alone = 0};
    struct cw_spin fast = {.alone = 0};

    cw_spin_yielded(&slow, MS, MS + 4 * US);
    CU_ASSERT_EQUAL(slow.alone, 0);
    cw_spin_yielded(&slow, MS, MS + CW_SPIN_ALONE_MAX_NS);
    CU_ASSERT_EQUAL(slow.alone, 0);
    cw_spin_yielded(&slow, MS, MS + CW_SPIN_ALONE_MAX_NS - 1);
    CU_ASSERT_EQUAL(slow.alone, 1);
    cw_spin_yielded(&slow, MS, MS + 600); /* as a machine does where yields take long */
    cw_spin_yielded(&slow, MS, MS + 2 * 600 - 1);
    CU_ASSERT_EQUAL(slow.alone, 3);
    cw_spin_yielded(&slow, MS, MS + 2 * 600);
    CU_ASSERT_EQUAL(slow.alone, 0);

    cw_spin_yielded(&fast, MS, MS + 200);
    cw_spin_yielded(&fast, MS, MS + CW_SPIN_ALONE_NS - 1);
    CU_ASSERT_EQUAL(fast.alone, 2);
    cw_spin_yielded(&fast, MS, MS + CW_SPIN_ALONE_NS);
    CU_ASSERT_EQUAL(fast.alone, 0);
}

/* --- a rank ----------------------------------------------------------------------------------- */
TEST(a_rank_that_found_nothing)
{
    static const struct {
        struct wait_facts facts;
        enum wait_step step;
    } table[] = {
        /* a call that asked once may return */
        {{.spin_ns = SPIN}, WAIT_YIELD},
        {{.spin_ns = SPIN, .waited_ns = LONG_AGO}, WAIT_YIELD},
        {{.spin_ns = 0}, WAIT_LOOK},
        {{.spin_ns = 0, .polls = true}, WAIT_YIELD},
        {{.spin_ns = 0, .polls = true, .waited_ns = LONG_AGO}, WAIT_YIELD},
        /* one that waits yields for a while, then it sleeps */
        {{.spin_ns = SPIN, .waits = true}, WAIT_YIELD},
        {{.spin_ns = SPIN, .waits = true, .waited_ns = SPIN - 1}, WAIT_YIELD},
        {{.spin_ns = SPIN, .waits = true, .waited_ns = SPIN}, WAIT_SLEEP},
        {{.spin_ns = 0, .waits = true}, WAIT_SLEEP},
        /* another thread wants MPICH's lock */
        {{.spin_ns = SPIN, .waits = true, .others_call = true}, WAIT_HAND_OVER},
        {{.spin_ns = SPIN, .others_call = true}, WAIT_HAND_OVER},
        {{.spin_ns = 0, .waits = true, .others_call = true, .others_ns = MS - 1}, WAIT_HAND_OVER},
        {{.spin_ns = 0, .waits = true, .others_call = true, .others_ns = MS}, WAIT_SLEEP},
        {{.spin_ns = SPIN, .waits = true, .others_call = true, .others_ns = MS}, WAIT_YIELD},
    };

    for (size_t i = 0; i < COUNT(table); i++)
        CU_ASSERT_EQUAL(wait_choose(&table[i].facts), table[i].step);
}

TEST(how_long_a_rank_sleeps)
{
    static const struct {
        uint64_t waited_ns;
        bool threads;
        uint64_t ns;
    } table[] = {
        {0, false, MS},
        {16 * MS, false, MS},
        {32 * MS, false, 2 * MS},
        {320 * MS, false, 20 * MS},
        {UINT64_MAX, false, 20 * MS},
        {0, true, 50 * US},
        {LONG_AGO, true, 50 * US},
    };

    for (size_t i = 0; i < COUNT(table); i++)
        CU_ASSERT_EQUAL(wait_sleep_ns(table[i].waited_ns, table[i].threads), table[i].ns);
}

TEST(a_rank_that_should_move)
{
    static const struct {
        struct wait_place place;
        bool moves;
    } table[] = {
        {{.talks = true, .beside_relay = true, .moved_ns = 5 * MS}, true},
        {{.talks = true, .beside_relay = true, .moved_ns = 5 * MS - 1}, false},
        {{.talks = true, .beside_relay = false, .moved_ns = LONG_AGO}, false},
        {{.talks = true, .slow_yields = 9, .moved_ns = LONG_AGO}, false},
        {{.slow_yields = 0, .moved_ns = LONG_AGO}, false},
        {{.slow_yields = 1, .moved_ns = LONG_AGO}, true},
        {{.slow_yields = 1, .moved_ns = 5 * MS - 1}, false},
        /* the first slow yield may have been the relay's work */
        {{.beside_relay = true, .slow_yields = 0, .moved_ns = LONG_AGO}, false},
        {{.beside_relay = true, .slow_yields = 1, .moved_ns = LONG_AGO}, false},
        {{.beside_relay = true, .slow_yields = 2, .moved_ns = LONG_AGO}, true},
    };

    for (size_t i = 0; i < COUNT(table); i++)
        CU_ASSERT_EQUAL(wait_is_misplaced(&table[i].place), table[i].moves);
}

TEST(a_rank_that_sleeps)
{
    static const struct {
        uint64_t spin_ns;
        bool threads;
        uint32_t ranks, cores;
        bool keeps;
    } table[] = {
        {SPIN, false, 2, 2, true},  {SPIN, false, 1, 2, true},
        {SPIN, false, 3, 2, false}, {SPIN, false, 2, 0, false}, /* not known */
        {0, false, 2, 2, false},    {SPIN, true, 2, 2, false},
    };

    for (size_t i = 0; i < COUNT(table); i++)
        CU_ASSERT_EQUAL(
            wait_keeps_core(table[i].spin_ns, table[i].threads, table[i].ranks, table[i].cores),
            table[i].keeps);
}

TEST(the_relay_goes_on_first)
{
    CU_ASSERT_TRUE(wait_lets_relay_on(true, SPIN));
    CU_ASSERT_FALSE(wait_lets_relay_on(false, SPIN));
    CU_ASSERT_FALSE(wait_lets_relay_on(true, 0));
}

TEST(slow_yields_are_counted_in_a_row)
{
    CU_ASSERT_EQUAL(wait_slow_yields(0, 40 * US - 1), 0);
    CU_ASSERT_EQUAL(wait_slow_yields(0, 40 * US), 1);
    CU_ASSERT_EQUAL(wait_slow_yields(1, LONG_AGO), 2);
    CU_ASSERT_EQUAL(wait_slow_yields(7, 0), 0);
}

TEST(a_core_for_each_rank)
{
    CU_ASSERT_TRUE(wait_has_core(2, 2));
    CU_ASSERT_TRUE(wait_has_core(1, 2));
    CU_ASSERT_FALSE(wait_has_core(3, 2));
    CU_ASSERT_FALSE(wait_has_core(1, 0)); /* not known */
}

/* One long time outside of MPI counts for some short ones after it. */
TEST(a_program_that_talks)
{
    uint64_t gap = 0;
    int fading = 0;

    CU_ASSERT_TRUE(wait_talks(gap));
    gap = wait_gap(gap, 30 * US);
    CU_ASSERT_TRUE(wait_talks(gap));
    gap = wait_gap(gap, LONG_AGO);
    CU_ASSERT_FALSE(wait_talks(gap));
    while (!wait_talks(gap) && fading < 100) {
        gap = wait_gap(gap, US);
        fading++;
    }
    CU_ASSERT_EQUAL(fading, 2);
    CU_ASSERT_EQUAL(wait_gap(gap, 31 * US), 31 * US);
}

/* --- the relay -------------------------------------------------------------------------------- */
TEST(a_relay_that_found_nothing)
{
    static const struct {
        struct relay_wait_facts facts;
        enum relay_wait_step step;
    } table[] = {
        /* nothing for long, or not to spin at all */
        {{.spin_ns = SPIN, .idle_ns = SPIN}, RELAY_WAIT_SLEEP},
        {{.spin_ns = SPIN, .idle_ns = SPIN, .looks = true}, RELAY_WAIT_SLEEP},
        {{.spin_ns = 0}, RELAY_WAIT_SLEEP},
        {{.spin_ns = 0, .looks = true}, RELAY_WAIT_SLEEP},
        /* soon after a byte has moved, clients do not matter */
        {{.spin_ns = SPIN, .idle_ns = 2999, .looks = true}, RELAY_WAIT_LOOK},
        {{.spin_ns = SPIN, .idle_ns = 2999, .looks = true, .asked_ns = 10 * US}, RELAY_WAIT_ASK},
        /* else they do */
        {{.spin_ns = SPIN}, RELAY_WAIT_COUNT},
        {{.spin_ns = SPIN, .idle_ns = 3000, .looks = true}, RELAY_WAIT_COUNT},
        {{.spin_ns = SPIN, .counted = true, .cores = 2}, RELAY_WAIT_ASK},
        {{.spin_ns = SPIN, .counted = true, .cores = 2, .ranks = 2}, RELAY_WAIT_ASK},
        {{.spin_ns = SPIN, .counted = true, .cores = 2, .ranks = 2, .computing = 1},
         RELAY_WAIT_ASK},
        {{.spin_ns = SPIN, .counted = true, .cores = 2, .ranks = 2, .computing = 1, .beside = true},
         RELAY_WAIT_SLEEP},
        {{.spin_ns = SPIN, .counted = true, .cores = 2, .ranks = 2, .computing = 2},
         RELAY_WAIT_SLEEP},
        {{.spin_ns = SPIN, .counted = true, .cores = 2, .ranks = 3, .computing = 3, .beside = true},
         RELAY_WAIT_ASK},
        {{.spin_ns = SPIN, .idle_ns = 3000, .looks = true, .counted = true, .cores = 2},
         RELAY_WAIT_LOOK},
        {{.spin_ns = SPIN,
          .idle_ns = 3000,
          .looks = true,
          .counted = true,
          .cores = 2,
          .asked_ns = 10 * US},
         RELAY_WAIT_ASK},
    };

    for (size_t i = 0; i < COUNT(table); i++)
        CU_ASSERT_EQUAL(relay_wait_choose(&table[i].facts), table[i].step);
}

TEST(few_threads_look_again)
{
    CU_ASSERT_EQUAL(relay_wait_thread_ns(SPIN, 0), SPIN);
    CU_ASSERT_EQUAL(relay_wait_thread_ns(SPIN, 1), SPIN);
    CU_ASSERT_EQUAL(relay_wait_thread_ns(SPIN, 2), 0);
    CU_ASSERT_EQUAL(relay_wait_thread_ns(0, 0), 0);
}
