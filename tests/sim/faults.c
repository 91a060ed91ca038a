/* What fails, and when: drawn from the seed. */
#include "tests/sim/dispatch.h"
#include "tests/sim/sim.h"

#include <signal.h>
#include <sys/wait.h>

#define STOP_MAX_NS                                                                                \
    120000000ull          /* longer than the dispatcher waits for a sign of life, at times         \
                           */
#define STORM_ONE_IN 5    /* faults that take several ranks at once */
#define DRILL_ONE_IN 3    /* cuts that a relay is asked for */
#define OUTAGE_ONE_IN 4   /* cuts */
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
        if (p->relay_socket)
            connection_break(p->relay_socket->of);
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

/* --- connections ---------------------------------------------------------------------------------
 */

static bool is_whole(const struct connection *c)
{
    return !c->end[0].closed && !c->end[1].closed && !c->end[0].ended && !c->end[1].ended;
}

static void count_cut(void)
{
    if (sim.cut++ == 0)
        sim.cut_ns = sim.now_ns;
}

static void cut_some(void)
{
    uint32_t count = 0;
    uint64_t at;

    if (sim_one_in(DRILL_ONE_IN)) {
        count_cut();
        dispatch_cut();
        return;
    }
    for (const struct connection *c = sim.connections; c; c = c->next)
        count += is_whole(c);
    if (count == 0)
        return;
    at = sim_below(count);
    for (struct connection *c = sim.connections; c; c = c->next)
        if (is_whole(c) && at-- == 0) {
            count_cut();
            connection_break(c);
            return;
        }
}

/* Longer than sessions are kept for it, at times. */
static void begin_outage(void)
{
    struct sim_relay *relay = sim.relay[sim_below(sim.plan.relays)];
    uint64_t longest_ns = sim.plan.resume_ms * 1000000ull / 2 * (1 + sim_below(3));

    relay->reachable_ns = sim.now_ns + sim_below(longest_ns);
    sim_trace("relay %u cannot be reached until %llu ms", relay->number,
              (unsigned long long)relay->reachable_ns / 1000000);
}

/* While the job is opened, links and dispatcher are not resumed. */
static void cuts_step(void)
{
    if (!sim.ready || sim.cut >= sim.plan.cuts_max || !sim_one_in(sim.plan.cut_one_in))
        return;
    do
        cut_some();
    while (sim_one_in(STORM_ONE_IN) && sim.cut < sim.plan.cuts_max);
    if (sim.plan.outages && sim_one_in(OUTAGE_ONE_IN))
        begin_outage();
    if (sim_one_in(sim.plan.way_one_in))
        ways_fail();
}

static bool is_done(const struct sim_process *p)
{
    return p && p->ended && p->record.whole;
}

/* Who has ended is not started again. */
static bool may_move(uint32_t relay)
{
    bool may = sim.plan.loses_hosts;

    for (uint32_t rank = 0; rank < sim.plan.ranks; rank++)
        may &= sim.plan.homes[rank] != relay || !is_done(sim.rank[rank].process);
    return may;
}

/* The relay, with all ranks of its host and what they had said to each other. */
static void move_host(struct sim_relay *relay)
{
    sim.lost++;
    for (uint32_t rank = 0; rank < sim.plan.ranks; rank++)
        if (sim.plan.homes[rank] == relay->number && sim.rank[rank].process)
            process_kill(sim.rank[rank].process, W_EXITCODE(0, SIGKILL));
    core_move(relay);
}

/* With it go the sessions that were being opened: these are not resumed, and the rank is started
 * again. */
static void kills_step(void)
{
    struct sim_relay *relay;

    if (!sim.ready || sim.killed >= sim.plan.kills_max || !sim_one_in(sim.plan.kill_one_in))
        return;
    relay = sim.relay[sim_below(sim.plan.relays)];
    if (!relay->core)
        return;
    sim.killed++;
    count_cut();
    if (may_move(relay->number) && sim_one_in(2))
        move_host(relay);
    else
        core_kill(relay);
}

/* Two at a time, now and then: then it may be that a log is lost. */
static void losses_step(void)
{
    if (!sim.ready || sim.lost >= sim.plan.losses_max || !sim_one_in(sim.plan.lose_one_in))
        return;
    do {
        if (hosts_lose((uint32_t)sim_below(sim.plan.relays)))
            count_cut();
    } while (sim_one_in(STORM_ONE_IN) && sim.lost < sim.plan.losses_max);
}

void faults_step(void)
{
    cuts_step();
    if (sim.unlogged)
        return; /* who dies now is not started again */
    kills_step();
    losses_step();
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
