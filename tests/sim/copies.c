#include "tests/sim/copies.h"
#include "common/transport.h"
#include "dispatcher/job/backups.h"
#include "tests/sim/sim.h"

#include <stdlib.h>

#define ROOM SIM_RANKS_MAX
#define START_MAX_NS 5000000ull /* for a process of a relay to begin */

static struct {
    struct relays *relays;
    struct job *job;
    struct backups core;
    bool begun;
    uint64_t start_ns[SIM_RELAYS_MAX]; /* a process is to be started then; 0: none */
} c;

/* --- starting them ---------------------------------------------------------------------------- */

static void listens(uint32_t relay)
{
    char address[CW_ADDRESS_MAX];

    relay_address(address, sizeof(address), relay);
    relays_own_listens(c.relays, relay, address, "", true);
}

static int start(void *ctx, uint32_t relay, const uint8_t key[CW_KEY_SIZE], struct cw_err *err)
{
    (void)ctx;
    (void)key;
    (void)err;
    if (c.begun)
        c.start_ns[relay] = sim.now_ns + sim_below(START_MAX_NS);
    else
        listens(relay);
    return CW_OK;
}

static void kill_own(void *ctx, uint32_t relay)
{
    (void)ctx;
    (void)relay;
    abort();
}

const struct relays_own copies_own = {.start = start, .kill = kill_own};

void copies_step(void)
{
    for (uint32_t relay = 0; relay < sim.plan.relays; relay++) {
        uint32_t at = c.core.relay[relay].at;

        if (!c.start_ns[relay] || sim.now_ns < c.start_ns[relay])
            continue;
        c.start_ns[relay] = 0;
        if (!hosts_reach(SIM_HOST_DISPATCHER, sim.relay[at]->host))
            continue; /* it is lost as well */
        core_succeed(relay, at);
        listens(relay);
    }
}

uint64_t copies_deadline_ns(void)
{
    uint64_t first = UINT64_MAX;

    for (uint32_t relay = 0; relay < sim.plan.relays; relay++)
        if (c.start_ns[relay] && c.start_ns[relay] < first)
            first = c.start_ns[relay];
    return first;
}

/* --- orders ----------------------------------------------------------------------------------- */

/* Right only where a second one was lost, or a connection was, before the copies were made again.
 */
static void fail_lost(const struct backups_order *order)
{
    if (sim.lost < 2 && sim.cut < 2)
        sim_fail("relay %u: its log is lost with one host", order->relay);
    sim.given_up = true;
    job_fail(c.job, 1, sim.now_ns, "relay %u: its log is lost", order->relay);
}

static void tell_backups(const struct backups_order *order)
{
    struct cw_copy copy = {
        .number = order->number, .incarnation = order->incarnation, .count = order->peers};

    for (uint32_t i = 0; i < order->peers; i++)
        copy.peer[i] = order->peer[i];
    sim_trace("dispatcher: relay %u has %u backups (%u, %u)", order->relay, copy.count,
              copy.peer[0], copy.peer[1]);
    relays_copy(c.relays, order->relay, &copy);
}

static void close_copy(const struct backups_order *order)
{
    sim_trace("dispatcher: the copy of relay %u at relay %u is closed", order->relay, order->at);
    relays_copy_close(c.relays, order->at,
                      &(struct cw_copy_close){order->relay, order->incarnation});
}

static void start_elsewhere(const struct backups_order *order)
{
    struct cw_err err = {0};

    if (relays_start_again(c.relays, order->relay, &err) < 0)
        sim_fail("%s", err.text);
}

static void carry_out(void)
{
    struct backups_order order;
    enum backups_action action;

    while ((action = backups_next(&c.core, &order)) != BACKUPS_NOTHING) {
        switch (action) {
        case BACKUPS_COPY:
            tell_backups(&order);
            break;
        case BACKUPS_CLOSE:
            close_copy(&order);
            break;
        case BACKUPS_START:
            start_elsewhere(&order);
            break;
        default:
            fail_lost(&order);
        }
    }
}

static void look_whether_ready(void)
{
    for (uint32_t relay = 0; relay < c.core.relays; relay++)
        if (backups_is_awaited(&c.core, relay))
            return;
    sim.ready = true;
}

void copies_open(struct relays *relays, struct job *job)
{
    memset(&c, 0, sizeof(c));
    c.relays = relays;
    c.job = job;
}

void copies_begin(void)
{
    if (sim.plan.copies == 0) {
        sim.ready = true;
        return;
    }
    backups_init(&c.core, sim.plan.copies);
    for (uint32_t relay = 0; relay < sim.plan.relays; relay++) {
        uint32_t group = 0;

        for (uint32_t rank = 0; rank < sim.plan.ranks; rank++)
            group += sim.plan.homes[rank] == relay;
        backups_add(&c.core, relay, ROOM, group);
    }
    c.begun = true;
    backups_begin(&c.core, sim.now_ns);
    carry_out();
    look_whether_ready();
}

/* --- what is heard ---------------------------------------------------------------------------- */

void copies_notice(uint32_t relay, const struct cw_notice_body *notice)
{
    sim_trace("dispatcher hears: relay %u is %s, as of order %llu: %s", relay,
              notice->code == CW_NOTICE_COVERED ? "covered" : "not covered",
              (unsigned long long)notice->acts, notice->text);
    if (notice->code == CW_NOTICE_COVERED)
        backups_covered(&c.core, relay, notice->acts);
    else
        backups_uncovered(&c.core, relay, notice->acts, sim.now_ns);
    carry_out();
    if (!sim.ready)
        look_whether_ready();
}

void copies_closed(uint32_t at, const struct cw_copy_closed *closed)
{
    sim_trace("dispatcher hears: relay %u has closed the copy of relay %u, %s", at, closed->relay,
              closed->covered ? "which is whole" : "which is not whole");
    backups_closed(&c.core, closed->relay, at, closed->covered, sim.now_ns);
    carry_out();
}

void copies_host_lost(uint32_t host)
{
    for (uint32_t relay = 0; relay < sim.plan.relays; relay++) {
        if (c.core.relay[relay].host != host)
            continue;
        c.start_ns[relay] = 0;
        if (c.core.relay[relay].group)
            relays_away(c.relays, relay);
        else
            relays_drop(c.relays, relay);
    }
    backups_host_lost(&c.core, host, sim.now_ns);
    carry_out();
}

bool copies_has_place(uint32_t relay)
{
    return sim.plan.copies == 0 || (!backups_is_moving(&c.core, relay) &&
                                    hosts_reach(sim.relay[relay]->host, SIM_HOST_DISPATCHER));
}

static void end_ranks(uint32_t relay)
{
    for (uint32_t rank = 0; rank < sim.plan.ranks; rank++) {
        const struct job_rank *r = &c.job->rank[rank];

        if (sim.plan.homes[rank] == relay && r->state != JOB_RANK_ENDED && r->incarnation > 0)
            relays_rank_end(c.relays, rank, r->incarnation);
    }
}

void copies_back(uint32_t relay)
{
    if (!c.begun || !backups_is_moving(&c.core, relay))
        return;
    end_ranks(relay);
    backups_is_up(&c.core, relay, sim.now_ns);
    carry_out();
}
