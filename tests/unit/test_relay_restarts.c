/* When a relay that has ended is started again. */
#include "common/restarts.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE("relay restarts");

#define MS 1000000ull
#define START 7000000000ull

static struct relay_restarts restarts;
static uint64_t at_ns;

/* It ends now, and is started again after this pause. */
static void again(uint64_t now_ns, uint64_t pause_ns)
{
    CU_ASSERT_TRUE(relay_restarts_next(&restarts, now_ns, &at_ns));
    CU_ASSERT_EQUAL(at_ns, now_ns + pause_ns);
}

TEST(the_first_time_at_once)
{
    restarts = (struct relay_restarts){0};
    again(START, 0);
    CU_ASSERT_EQUAL(restarts.count, 1);
}

TEST(pauses_grow)
{
    static const uint64_t pauses_ms[] = {50, 100, 200, 400, 800, 1600, 2000, 2000, 2000};

    restarts = (struct relay_restarts){0};
    again(START, 0);
    for (size_t i = 0; i < sizeof(pauses_ms) / sizeof(*pauses_ms); i++)
        again(at_ns + MS, pauses_ms[i] * MS);
}

/* Its time counts from its start, not from the end before. */
TEST(one_that_was_steady_waits_no_more)
{
    restarts = (struct relay_restarts){0};
    again(START, 0);
    again(at_ns + RELAY_STEADY_NS - 1, RELAY_PAUSE_MIN_NS);
    again(at_ns + RELAY_STEADY_NS - 1, 2 * RELAY_PAUSE_MIN_NS);
    again(at_ns + RELAY_STEADY_NS, 0);
    again(at_ns + MS, RELAY_PAUSE_MIN_NS);
}

TEST(not_for_ever)
{
    restarts = (struct relay_restarts){0};
    at_ns = START;
    for (uint32_t i = 0; i < RELAY_RESTARTS_MAX; i++)
        again(at_ns + RELAY_STEADY_NS, 0);
    CU_ASSERT_FALSE(relay_restarts_next(&restarts, at_ns + 2 * RELAY_STEADY_NS, &at_ns));
    CU_ASSERT_FALSE(relay_restarts_next(&restarts, at_ns + 3 * RELAY_STEADY_NS, &at_ns));
    CU_ASSERT_EQUAL(restarts.count, RELAY_RESTARTS_MAX);
}

/* A relay of months may need more restarts than these, but not soon after each other. */
TEST(one_that_ran_for_long_begins_a_new_row)
{
    restarts = (struct relay_restarts){0};
    at_ns = START;
    for (uint32_t i = 0; i < RELAY_RESTARTS_MAX - 1; i++)
        again(at_ns + RELAY_STEADY_NS, 0);
    again(at_ns + RELAY_FORGET_NS - 1, 0);
    CU_ASSERT_EQUAL(restarts.in_row, RELAY_RESTARTS_MAX);
    again(at_ns + RELAY_FORGET_NS, 0);
    CU_ASSERT_EQUAL(restarts.in_row, 1);
    CU_ASSERT_EQUAL(restarts.count, RELAY_RESTARTS_MAX + 1);
    again(at_ns + MS, RELAY_PAUSE_MIN_NS);
}

/* ... and the time before its first restart is no such time. */
TEST(the_first_row_is_as_long)
{
    restarts = (struct relay_restarts){0};
    at_ns = START + RELAY_FORGET_NS;
    for (uint32_t i = 0; i < RELAY_RESTARTS_MAX; i++)
        again(at_ns + RELAY_STEADY_NS, 0);
    CU_ASSERT_FALSE(relay_restarts_next(&restarts, at_ns + RELAY_FORGET_NS - 1, &at_ns));
}
