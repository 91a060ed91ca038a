/* How likely failures make a detector useless: the papers' formulas and claims. */
#include "dispatcher/detector/failures.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <math.h>

SUITE("detector failures");

#define F 0.05              /* [FM] figure 4 */
#define PAPERS_TRIALS 5.8e9 /* [FM] 5.3, [P2P] 5.2 */

static double deaf(enum routing_kind kind, uint32_t n, double f)
{
    return failures_count(kind, n, f, 1, 1).deaf;
}

/* [FM] 5.2: "the FD failure has probability P_brr(4) = f^4 + 4 f^3 (1 - f) + 4 f^2 (1 - f)^2",
 * which is 0.0095 for f = 0.05 */
TEST(four_processes_under_brr_are_those_of_the_paper)
{
    for (double f = 0.01; f < 1; f += 0.07)
        CU_ASSERT_DOUBLE_EQUAL(deaf(ROUTING_BRR, 4, f),
                               pow(f, 4) + 4 * pow(f, 3) * (1 - f) + 4 * f * f * (1 - f) * (1 - f),
                               1e-12);
    CU_ASSERT_DOUBLE_EQUAL(deaf(ROUTING_BRR, 4, F), 0.0095, 0.00005);
}

/* Of the sets of two, {0,1}, {1,2}, {2,3} and {3,0} leave one process without sources; where one is
 * left alone, nobody is parted from it. */
TEST(four_processes_under_brr_are_parted_by_four_sets_of_two)
{
    struct failures result = failures_count(ROUTING_BRR, 4, F, 1, 1);

    CU_ASSERT_TRUE(result.exact && result.trials == 16);
    CU_ASSERT_DOUBLE_EQUAL(result.parted, 4 * F * F * (1 - F) * (1 - F), 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(failures_count(ROUTING_DBRR, 4, F, 1, 1).parted, 0, 1e-15);
}

/* [FM] 3 and 5.2 */
TEST(applications_are_those_of_the_paper)
{
    CU_ASSERT_DOUBLE_EQUAL(failures_of_application(2, 2, F), 0.005, 0.00005);
    CU_ASSERT_TRUE(failures_of_application(128, 1, F) > 0.99);
    CU_ASSERT_DOUBLE_EQUAL(failures_of_application(128, 2, F), 0.27, 0.005);
    CU_ASSERT_TRUE(failures_of_application(2, 2, F) < deaf(ROUTING_BRR, 4, F));
    CU_ASSERT_TRUE(failures_of_application(2, 2, F) > deaf(ROUTING_DBRR, 4, F));
}

TEST(bounds_hold_what_is_counted)
{
    double bounds[2];

    failures_bounds(ROUTING_BRR, 4, F, bounds); /* no three of four can be deaf at once */
    CU_ASSERT_DOUBLE_EQUAL(bounds[0], deaf(ROUTING_BRR, 4, F), 1e-12);
    for (enum routing_kind kind = ROUTING_BRR; kind <= ROUTING_DBRR; kind++)
        for (uint32_t n = 4; n <= 13; n++) {
            double p = deaf(kind, n, F);

            failures_bounds(kind, n, F, bounds);
            CU_ASSERT_TRUE(bounds[0] <= p * (1 + 1e-9) && p <= bounds[1] * (1 + 1e-9));
            CU_ASSERT_TRUE(n < 10 || bounds[1] < 1.1 * bounds[0]);
        }
}

/* Within five standard deviations of what the bounds say, in a group of more than one word. */
TEST(draws_agree_with_bounds)
{
    static const uint32_t sizes[] = {63, 64, 65, 100, 130};
    const double trials = 100000;
    double bounds[2];

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        struct failures result = failures_count(ROUTING_BRR, sizes[i], 0.25, 100000, 3);
        double spread;

        failures_bounds(ROUTING_BRR, sizes[i], 0.25, bounds);
        spread = 5 * sqrt(bounds[1] / trials);
        CU_ASSERT_FALSE(result.exact);
        CU_ASSERT_TRUE(result.deaf > bounds[0] - spread && result.deaf < bounds[1] + spread);
        CU_ASSERT_TRUE(bounds[0] > 2 * spread);
        CU_ASSERT_TRUE(result.parted > result.deaf);
    }
}

/* [FM] 5.3: "in the DBRR protocol, we could not not find any FD failure when the number of nodes is
 * more than 16", [P2P] 5.2: "more than 64", where each fails with 1 - e^-0.1. */
TEST(papers_found_no_failure_where_none_is_to_be_expected)
{
    double bounds[2];

    failures_bounds(ROUTING_DBRR, 16, F, bounds);
    CU_ASSERT_TRUE(bounds[0] * PAPERS_TRIALS > 1);
    failures_bounds(ROUTING_DBRR, 32, F, bounds);
    CU_ASSERT_TRUE(bounds[1] * PAPERS_TRIALS < 1);
    failures_bounds(ROUTING_DBRR, 64, -expm1(-0.1), bounds);
    CU_ASSERT_TRUE(bounds[0] * PAPERS_TRIALS > 1);
    failures_bounds(ROUTING_DBRR, 128, -expm1(-0.1), bounds);
    CU_ASSERT_TRUE(bounds[1] * PAPERS_TRIALS < 1);
}
