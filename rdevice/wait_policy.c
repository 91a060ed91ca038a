/* Figures are times without the rule divided by those with it: medians of 5 to 18 runs of each kind
 * by turns, on 2 cores (docs/tuning.md). A constant without a figure follows from its reason alone;
 * other values were not measured. */
#include "rdevice/wait_policy.h"

/* Four ranks of which three wait in MPI_Recv for 60 s use 0.6% of one core together. */
#define SLEEP_MIN_NS 1000000ull
#define SLEEP_MAX_NS 20000000ull
#define SLEEP_SHARE 16 /* a sleep is at most this part of the time waited so far */

#define SLEEP_THREADS_NS 50000ull
#define OTHERS_NS 1000000ull /* a thread that called more lately than this wants the lock */

#define GAP_TALKS_NS 30000ull
#define GAP_MAX_NS 50000ull /* a longer time counts as this */
#define GAP_FADES 4         /* after a shorter time 3 of 4 parts of a long one are left */

/* A yield that takes this long gave the core to a rank that computes. */
#define YIELD_SLOW_NS 40000ull

#define MOVE_NS 5000000ull /* between moves to another core */

enum wait_step wait_choose(const struct wait_facts *facts)
{
    /* a thread that waits holds MPICH's lock, and MPICH releases it only for a moment between two
     * calls for progress: neither yield nor sleep with it */
    if (facts->others_call && facts->others_ns < OTHERS_NS)
        return WAIT_HAND_OVER;
    if (facts->waits && facts->waited_ns >= facts->spin_ns)
        return WAIT_SLEEP;
    /* a call that asks once never sleeps: with sleeps, 20,000 fences on one rank took 100 s instead
     * of 0.003 s. Where ranks share cores only a program that polls by many such calls yields. */
    if (!facts->waits && facts->spin_ns == 0 && !facts->polls)
        return WAIT_LOOK;
    return WAIT_YIELD;
}

uint64_t wait_sleep_ns(uint64_t waited_ns, bool threads)
{
    uint64_t ns = waited_ns / SLEEP_SHARE;

    if (threads)
        return SLEEP_THREADS_NS;
    if (ns < SLEEP_MIN_NS)
        return SLEEP_MIN_NS;
    return ns < SLEEP_MAX_NS ? ns : SLEEP_MAX_NS;
}

bool wait_has_core(uint32_t ranks, uint32_t cores)
{
    return ranks <= cores;
}

/* The kernel would draw a rank that is woken to the core of the relay, which wakes it, and another
 * rank may compute there. Stencil of 1 ms a step: 1.15; of 45 us: 0.93; solvers: 0.94 to 1.04. */
bool wait_keeps_core(uint64_t spin_ns, bool threads, uint32_t ranks, uint32_t cores)
{
    return spin_ns > 0 && !threads && wait_has_core(ranks, cores);
}

uint64_t wait_gap(uint64_t gap_ns, uint64_t outside_ns)
{
    uint64_t gap = outside_ns < GAP_MAX_NS ? outside_ns : GAP_MAX_NS;
    uint64_t faded = gap_ns - gap_ns / GAP_FADES;

    return gap > faded ? gap : faded;
}

bool wait_talks(uint64_t gap_ns)
{
    return gap_ns <= GAP_TALKS_NS;
}

uint32_t wait_slow_yields(uint32_t slow_yields, uint64_t taken_ns)
{
    return taken_ns >= YIELD_SLOW_NS ? slow_yields + 1 : 0;
}

/* A rank that only exchanges messages leaves the relay's core: two such ranks hand their core over
 * for each message if the relay is there as well, and if it is alone they mostly wait for it.
 * NetPIPE, 1 B: 1.66, 1 MiB: 1.36; solver of 128 x 128: 0.77. A rank that computes leaves a core
 * where another rank computes; on the relay's core the first slow yield may have been the relay's
 * work. Stencil of 45 us a step: 1.09, of 200 us and uneven: 1.06; others: 0.94 to 1.01. */
bool wait_is_misplaced(const struct wait_place *place)
{
    if (place->moved_ns < MOVE_NS)
        return false;
    return place->talks ? place->beside_relay : place->slow_yields > place->beside_relay;
}

/* The relay, just woken, may stand behind this rank on its core: the program would compute before
 * the relay passes on what it has sent. Solver of 2048 x 2048: 1.1; other programs: 0.95 to 1.05.
 */
bool wait_lets_relay_on(bool rang, uint64_t spin_ns)
{
    return rang && spin_ns > 0;
}
