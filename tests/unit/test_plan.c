/* Which ranks of a communicator are at one site, and who speaks for them. */
#include "rdevice/collectives/plan.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("plans of collectives");

#define RANKS 64

static struct plan plan;

TEST(text_of_homes)
{
    CU_ASSERT_EQUAL(plan_home("01f", 0), 0);
    CU_ASSERT_EQUAL(plan_home("01f", 1), 1);
    CU_ASSERT_EQUAL(plan_home("01f", 2), 15);
    CU_ASSERT_EQUAL(plan_home("01f", 3), -1);
    CU_ASSERT_EQUAL(plan_home("01f", UINT32_MAX), -1);
    CU_ASSERT_EQUAL(plan_home("", 0), -1);
    CU_ASSERT_EQUAL(plan_home("g/:`", 0), -1);
    CU_ASSERT_EQUAL(plan_home("g/:`", 1), -1);
    CU_ASSERT_EQUAL(plan_home("g/:`", 2), -1);
    CU_ASSERT_EQUAL(plan_home("g/:`", 3), -1);
    CU_ASSERT_EQUAL(plan_home("F", 0), -1);
}

TEST(blocks)
{
    const uint8_t home[] = {7, 7, 2, 2, 2, 0};

    CU_ASSERT_TRUE_FATAL(plan_make(&plan, home, 6, 3));
    CU_ASSERT_EQUAL(plan.sites, 3);
    CU_ASSERT_EQUAL(plan.mine, 1);
    CU_ASSERT_TRUE(plan.blocks);
    CU_ASSERT_TRUE(plan_pays(&plan));
    CU_ASSERT_EQUAL(memcmp(plan.first, (int[]){0, 2, 5}, 3 * sizeof(int)), 0);
    CU_ASSERT_EQUAL(memcmp(plan.size, (int[]){2, 3, 1}, 3 * sizeof(int)), 0);
    CU_ASSERT_EQUAL(memcmp(plan.start, (int[]){0, 2, 5}, 3 * sizeof(int)), 0);
    CU_ASSERT_FALSE(plan_speaks(&plan));
    CU_ASSERT_EQUAL(plan_speaker(&plan, 1, 4), 4);
    CU_ASSERT_EQUAL(plan_speaker(&plan, 0, 4), 0);
    CU_ASSERT_EQUAL(plan_speaker(&plan, 2, 4), 5);
    plan_clear(&plan);
}

TEST(in_turn)
{
    const uint8_t home[] = {1, 0, 1, 0, 1};

    CU_ASSERT_TRUE_FATAL(plan_make(&plan, home, 5, 1));
    CU_ASSERT_EQUAL(plan.sites, 2);
    CU_ASSERT_FALSE(plan.blocks);
    CU_ASSERT_TRUE(plan_speaks(&plan));
    CU_ASSERT_EQUAL(plan_slot(&plan, 0), 0);
    CU_ASSERT_EQUAL(plan_slot(&plan, 2), 1);
    CU_ASSERT_EQUAL(plan_slot(&plan, 4), 2);
    CU_ASSERT_EQUAL(plan_slot(&plan, 1), 3);
    CU_ASSERT_EQUAL(plan_slot(&plan, 3), 4);
    plan_clear(&plan);
}

/* All at one site, or each at one of its own: MPICH's own operations cross no more often. */
TEST(nothing_to_gain)
{
    CU_ASSERT_TRUE_FATAL(plan_make(&plan, (uint8_t[]){3, 3, 3}, 3, 0));
    CU_ASSERT_FALSE(plan_pays(&plan));
    plan_clear(&plan);
    CU_ASSERT_TRUE_FATAL(plan_make(&plan, (uint8_t[]){2, 0, 1}, 3, 0));
    CU_ASSERT_FALSE(plan_pays(&plan));
    plan_clear(&plan);
    CU_ASSERT_TRUE_FATAL(plan_make(&plan, (uint8_t[]){2}, 1, 0));
    CU_ASSERT_FALSE(plan_pays(&plan));
    plan_clear(&plan);
}

/* Whether each slot is one rank's, and those of a site are the plan's. */
static bool is_whole(const struct plan *p, const uint8_t *home)
{
    bool taken[RANKS] = {false};
    int all = 0;

    for (int s = 0; s < p->sites; s++)
        all += p->size[s];
    for (int r = 0; r < p->ranks; r++) {
        int slot = plan_slot(p, r);
        int s = p->site[r];

        if (home[r] != home[p->first[s]] || r < p->first[s] || slot < p->start[s] ||
            slot >= p->start[s] + p->size[s] || taken[slot])
            return false;
        taken[slot] = true;
    }
    return all == p->ranks && p->mine == p->site[p->rank];
}

TEST(any_homes)
{
    uint64_t seed = 11;
    bool well = true;

    for (int round = 0; round < 500; round++) {
        int ranks = 1 + (int)codec_random_below(&seed, RANKS);
        uint32_t relays = 1 + (uint32_t)codec_random_below(&seed, CW_RELAYS_MAX);
        uint8_t home[RANKS];

        for (int r = 0; r < ranks; r++)
            home[r] = (uint8_t)codec_random_below(&seed, relays);
        well = plan_make(&plan, home, ranks, ranks / 2) && is_whole(&plan, home) && well;
        plan_clear(&plan);
    }
    CU_ASSERT_TRUE(well);
}
