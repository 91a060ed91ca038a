/* The routings of detectors against the papers' tables, and what the papers claim of them: how many
 * rounds until a heartbeat has reached all, from whichever round, for all small groups. */
#include "dispatcher/detector/routing.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("detector routing");

#define SMALL 130u /* groups up to this size are looked at whole */

static uint32_t target(enum routing_kind kind, uint32_t s, uint32_t n, uint32_t round)
{
    return routings[kind].target(s, n, round, 0);
}

/* Rounds from `first` on until all know the news of process 0. `late`: a message is known too late
 * to be passed on in the round after that of its sender. */
static uint32_t rounds_to_all(enum routing_kind kind, uint32_t n, uint32_t first, bool late)
{
    uint32_t cycle = routings[kind].cycle(n);
    uint32_t known_from[SMALL] = {0}; /* the round in which it can pass it on; 0: unknown */
    uint32_t knows = 1, round = 0;

    known_from[0] = 1;
    while (knows < n && round < 10 * n) {
        uint32_t next[SMALL];

        round++;
        memcpy(next, known_from, sizeof(next));
        for (uint32_t s = 0; s < n; s++) {
            uint32_t d = target(kind, s, n, 1 + (first + round - 2) % cycle);

            if (known_from[s] == 0 || known_from[s] > round || next[d] != 0)
                continue;
            next[d] = round + (late ? 2 : 1);
            knows++;
        }
        memcpy(known_from, next, sizeof(next));
    }
    return round;
}

TEST(round_robin_is_that_of_figure_2)
{
    /* [FM] figure 2: "Communication pattern in the round-robin protocol (n = 6)." */
    static const uint32_t to[5][2] = {{1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}};

    CU_ASSERT_EQUAL(routings[ROUTING_RR].cycle(6), 5);
    for (uint32_t r = 1; r <= 5; r++)
        for (uint32_t s = 0; s < 2; s++)
            CU_ASSERT_EQUAL(target(ROUTING_RR, s, 6, r), to[r - 1][s]);
    /* "in Figure 2, three rounds are required to inform the six nodes" */
    CU_ASSERT_EQUAL(routings[ROUTING_RR].spread(6), 3);
    CU_ASSERT_EQUAL(rounds_to_all(ROUTING_RR, 6, 1, false), 3);
}

TEST(node_2_of_four_has_two_sources_under_brr)
{
    uint32_t sources = 0;

    CU_ASSERT_EQUAL(routings[ROUTING_BRR].cycle(4), 2);
    for (uint32_t s = 0; s < 4; s++)
        for (uint32_t r = 1; r <= 2; r++)
            sources += target(ROUTING_BRR, s, 4, r) == 2;
    CU_ASSERT_EQUAL(sources, 2);
    /* [FM] 4: "node 2 gets incoming messages from node 1 (in the 1st round) and from node 0 (2nd
     * round) only." */
    CU_ASSERT_EQUAL(target(ROUTING_BRR, 1, 4, 1), 2);
    CU_ASSERT_EQUAL(target(ROUTING_BRR, 0, 4, 2), 2);
}

TEST(double_brr_goes_round_and_back)
{
    static const uint32_t of_3_in_8[] = {4, 5, 7, 2, 1, 7};

    CU_ASSERT_EQUAL(routings[ROUTING_DBRR].cycle(8), 6);
    for (uint32_t r = 1; r <= 6; r++)
        CU_ASSERT_EQUAL(target(ROUTING_DBRR, 3, 8, r), of_3_in_8[r - 1]);
}

TEST(cleanup_times_are_the_papers)
{
    static const uint32_t sizes[] = {2, 3, 4, 5, 8, 9, 16, 255, 256, 257, 4096};
    static const uint32_t logs[] = {1, 2, 2, 3, 3, 4, 4, 8, 8, 9, 12};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        CU_ASSERT_EQUAL(routings[ROUTING_BRR].spread(sizes[i]), logs[i]);
        CU_ASSERT_EQUAL(routings[ROUTING_BRR].cleanup(sizes[i]), 2 * logs[i]);
        CU_ASSERT_EQUAL(routings[ROUTING_DBRR].spread(sizes[i]), 2 * logs[i]);
        CU_ASSERT_EQUAL(routings[ROUTING_DBRR].cleanup(sizes[i]), 3 * logs[i]);
    }
    /* [P2P] 5.1: ⌈(√(1 + 8n) - 1) / 2⌉ */
    CU_ASSERT_EQUAL(routings[ROUTING_RR].spread(256), 23);
    CU_ASSERT_EQUAL(routings[ROUTING_RR].cleanup(256), 46);
    CU_ASSERT_EQUAL(routings[ROUTING_RANDOM].spread(256), 14);
    CU_ASSERT_EQUAL(routings[ROUTING_RANDOM].cleanup(256), 28);
}

/* [FM] 4: "In any one round, each node will receive and send a single gossip message." */
TEST(each_hears_one_other_in_each_round)
{
    for (enum routing_kind kind = ROUTING_RR; kind <= ROUTING_DBRR; kind++)
        for (uint32_t n = 2; n <= SMALL; n++)
            for (uint32_t r = 1; r <= routings[kind].cycle(n); r++) {
                bool heard[SMALL] = {false};
                bool once = true;

                for (uint32_t s = 0; s < n; s++) {
                    uint32_t d = target(kind, s, n, r);

                    once &= d < n && d != s && !heard[d];
                    heard[d % n] = true;
                }
                CU_ASSERT_TRUE(once);
            }
}

TEST(random_gossip_reaches_each_other_equally_often)
{
    uint32_t count[5] = {0};
    uint64_t state = 7;

    for (uint32_t i = 0; i < 40000; i++)
        count[routings[ROUTING_RANDOM].target(3, 5, 1, routing_draw(&state))]++;
    CU_ASSERT_EQUAL(count[3], 0);
    for (uint32_t i = 0; i < 5; i++)
        CU_ASSERT_TRUE(i == 3 || (count[i] > 9500 && count[i] < 10500));
}

/* In step, from whichever round: exactly ⌈log2(n)⌉ rounds under BRR, within its cycle under DBRR.
 */
TEST(binary_round_robin_reaches_all_within_t_cleanup_min)
{
    for (uint32_t n = 2; n <= SMALL; n++) {
        for (uint32_t r = 1; r <= routings[ROUTING_BRR].cycle(n); r++)
            CU_ASSERT_TRUE(rounds_to_all(ROUTING_BRR, n, r, false) <=
                           routings[ROUTING_BRR].spread(n));
        CU_ASSERT_EQUAL(rounds_to_all(ROUTING_BRR, n, 1, false), routings[ROUTING_BRR].spread(n));
        for (uint32_t r = 1; r <= routings[ROUTING_DBRR].cycle(n); r++)
            CU_ASSERT_TRUE(rounds_to_all(ROUTING_DBRR, n, r, false) <=
                           routings[ROUTING_DBRR].spread(n));
    }
}

/* [FM] 4: T_cleanup "allows not to consider a fault, the frequent situation where the last messages
 * sent within a cycle c on source nodes arrive at cycle c + 1 on their corresponding receiver
 * nodes." Where each message comes too late for the round after its own. */
TEST(late_messages_reach_all_within_t_cleanup)
{
    for (enum routing_kind kind = ROUTING_BRR; kind <= ROUTING_DBRR; kind++)
        for (uint32_t n = 2; n <= SMALL; n++)
            for (uint32_t r = 1; r <= routings[kind].cycle(n); r++)
                CU_ASSERT_TRUE(rounds_to_all(kind, n, r, true) <= routings[kind].cleanup(n));
}

/* [FM] derives T_cleanup^min of round robin from the first round; across the end of a cycle it
 * takes more rounds than that, but never T_cleanup. */
TEST(round_robin_takes_longer_across_the_end_of_a_cycle)
{
    bool longer = false;

    for (uint32_t n = 2; n <= SMALL; n++) {
        CU_ASSERT_TRUE(rounds_to_all(ROUTING_RR, n, 1, false) <= routings[ROUTING_RR].spread(n));
        for (uint32_t r = 1; r < n; r++) {
            uint32_t rounds = rounds_to_all(ROUTING_RR, n, r, false);

            longer |= rounds > routings[ROUTING_RR].spread(n);
            CU_ASSERT_TRUE(rounds < routings[ROUTING_RR].cleanup(n));
        }
    }
    CU_ASSERT_TRUE(longer);
}
