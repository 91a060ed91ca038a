/* Figures are times without the rule divided by those with it: medians of 5 to 18 runs of each kind
 * by turns, on 2 cores (docs/tuning.md). A constant without a figure follows from its reason alone;
 * other values were not measured. */
#include "relay/engine/wait_policy.h"

/* poll() about all connections costs 1 us. Every 50 us instead: no difference of 5% while rings
 * are busy. */
#define ASK_NS 10000u

/* After a byte has moved the next one mostly comes soon, whoever computes. */
#define SOON_NS 3000u

/* Two threads look for both sides of an exchange; more would take the cores from each other. */
#define SPINNERS_MAX 2

/* Whether nobody else needs the core that the relay spins on. With more ranks than cores some of
 * them wait on each core. A relay that always spins needs 1.29 times as long for a stencil of 1 ms
 * a step, 1.05 to 1.12 for a solver of 2048 x 2048, 0.72 for a stencil of 45 us. */
static bool has_spare_core(const struct relay_wait_facts *facts)
{
    return facts->ranks > facts->cores || (facts->computing < facts->cores && !facts->beside);
}

enum relay_wait_step relay_wait_choose(const struct relay_wait_facts *facts)
{
    bool soon = facts->looks && facts->idle_ns < SOON_NS;

    if (facts->idle_ns >= facts->spin_ns)
        return RELAY_WAIT_SLEEP;
    if (!soon && !facts->counted)
        return RELAY_WAIT_COUNT;
    if (!soon && !has_spare_core(facts))
        return RELAY_WAIT_SLEEP;
    return facts->looks && facts->asked_ns < ASK_NS ? RELAY_WAIT_LOOK : RELAY_WAIT_ASK;
}

uint64_t relay_wait_thread_ns(uint64_t spin_ns, int spinners)
{
    return spinners < SPINNERS_MAX ? spin_ns : 0;
}
