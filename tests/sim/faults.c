/* What fails, and when: drawn from the seed. */
#include "tests/sim/sim.h"

#include <signal.h>
#include <sys/wait.h>

#define STOP_MAX_NS                                                                                \
    120000000ull          /* longer than the dispatcher waits for a sign of life, at times         \
                           */
#define STORM_ONE_IN 5    /* faults that take several ranks at once */
#define REPLAY_ONE_IN 400 /* steps: a rank that repeats dies */

static struct sim_process *some_process(void)
{
    struct sim_process *p = sim.rank[sim_below(sim.plan.ranks)].process;

    return p && !p->ended ? p : NULL;
}

/* An abort of the program's own comes once, or the job would end with it. */
static int some_signal(const struct sim_process *p)
{
    return p->incarnation == 1 && sim_one_in(4) ? SIGSEGV : SIGKILL;
}

static void strike(void)
{
    struct sim_process *p = some_process();

    if (!p)
        return;
    switch (sim_below(8)) {
    case 0:
        if (p->link)
            link_break(p->link);
        break;
    case 1:
        p->stopped_ns = sim.now_ns + sim_below(STOP_MAX_NS);
        sim_trace("%u.%u is stopped until %llu", p->rank, p->incarnation,
                  (unsigned long long)p->stopped_ns);
        break;
    default:
        process_kill(p, W_EXITCODE(0, some_signal(p)));
    }
}

/* Ranks that repeat are struck more often than chance would. */
static void strike_replaying(void)
{
    struct sim_process *p = some_process();

    if (p && p->incarnation > 1 && p->record.up && !p->record.live)
        process_kill(p, W_EXITCODE(0, SIGKILL));
    else
        sim.faults--;
}

void faults_step(void)
{
    if (!sim.plan.fault_one_in || sim.faults >= sim.plan.faults_max)
        return;
    if (sim_one_in(REPLAY_ONE_IN)) {
        sim.faults++;
        strike_replaying();
    }
    if (!sim_one_in(sim.plan.fault_one_in))
        return;
    sim.faults++;
    strike();
    while (sim_one_in(STORM_ONE_IN) && sim.faults < sim.plan.faults_max) {
        sim.faults++;
        strike();
    }
}
