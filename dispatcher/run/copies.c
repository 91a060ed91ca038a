#include "dispatcher/run/copies.h"
#include "dispatcher/run/gates.h"

#include <stdio.h>

static uint64_t now_of(const struct copies *c)
{
    return loop_now_ns(c->parts->loop);
}

static const char *address_of(const struct copies *c, uint32_t relay)
{
    return relays_address(c->parts->relays, relay);
}

static const char *name_of(const struct copies *c, uint32_t host)
{
    return nodes_name(c->parts->nodes, host);
}

static bool is_home_of(const struct copies *c, uint32_t relay, uint32_t rank)
{
    return relays_home(c->parts->relays, rank) == relay;
}

static void on_timer(void *ctx)
{
    struct copies *c = ctx;

    for (uint32_t relay = 0; !c->settled && relay < c->core.relays; relay++)
        if (backups_is_awaited(&c->core, relay))
            job_fail(c->job, 1, now_of(c),
                     "relay %s: no copy of its log on another host after %d s",
                     address_of(c, relay), (int)(COPIES_START_NS / 1000000000));
}

void copies_open(struct copies *c, struct parts *parts, struct job *job)
{
    *c = (struct copies){.parts = parts, .job = job};
    loop_timer_add(parts->loop, &c->timer, on_timer, c);
}

void copies_close(struct copies *c)
{
    if (c->parts)
        loop_timer_remove(&c->timer);
}

/* --- orders --- */

static void tell_backups(struct copies *c, const struct backups_order *order)
{
    struct cw_copy copy = {
        .number = order->number, .incarnation = order->incarnation, .count = order->peers};

    for (uint32_t i = 0; i < order->peers; i++)
        copy.peer[i] = order->peer[i];
    relays_copy(c->parts->relays, order->relay, &copy);
    if (order->peers || c->alone >> order->relay & 1)
        return;
    c->alone |= 1u << order->relay;
    log_notice(&c->parts->log,
               "relay %s: no other host can keep a copy of its log, which is lost with host %s",
               address_of(c, order->relay), name_of(c, c->core.relay[order->relay].host));
}

/* There may be more of them now than it has slots. */
static void say_that_they_share(struct copies *c, uint32_t host)
{
    const struct placement *p = &c->parts->layout.placement;
    uint32_t slots = 0, ranks = 0;

    for (uint32_t slot = 0; slot < p->slots; slot++)
        slots += p->slot_host[slot] == host;
    for (uint32_t rank = 0; rank < p->ranks; rank++)
        ranks += c->job->rank[rank].search.bound == host;
    if (c->shares || ranks <= slots)
        return;
    c->shares = true;
    log_notice(&c->parts->log, "host %s has %u slots for %u ranks, which share them",
               name_of(c, host), slots, ranks);
}

/* The ranks go where their relay goes. */
static void close_copy(struct copies *c, const struct backups_order *order)
{
    const struct cw_copy_close close = {.relay = order->relay, .incarnation = order->incarnation};

    relays_copy_close(c->parts->relays, order->at, &close);
    for (uint32_t rank = 0; rank < c->parts->options->ranks; rank++)
        if (is_home_of(c, order->relay, rank))
            job_bind(c->job, rank, order->host);
    log_notice(&c->parts->log,
               "relay %s goes on on host %s, with its ranks, from the copy of its log",
               address_of(c, order->relay), name_of(c, order->host));
    say_that_they_share(c, order->host);
}

static void start_elsewhere(struct copies *c, const struct backups_order *order)
{
    struct cw_err err = {0};

    c->parts->layout.relay_host[order->relay] = order->host;
    if (relays_start_again(c->parts->relays, order->relay, &err) < 0)
        job_fail(c->job, 1, now_of(c), "%s", err.text);
}

static void fail_lost(struct copies *c, const struct backups_order *order)
{
    char why[128] = "no copy of it was made yet";

    if (order->full)
        snprintf(why, sizeof(why), "the host with its copy has no room for its ranks (max_slots)");
    else if (order->covered_before)
        snprintf(why, sizeof(why), "its copy was lost %.1f s before, and was not made again yet",
                 (double)(now_of(c) - order->since_ns) / 1e9);
    job_fail(c->job, 1, now_of(c), "relay %s: its log is lost with host %s: %s (--log-copies %u)",
             address_of(c, order->relay), name_of(c, order->host), why, c->core.copies);
}

static void log_changes(struct copies *c, const char *cause)
{
    for (uint32_t relay = 0; c->logs && relay < c->core.relays; relay++) {
        bool is = backups_is_covered(&c->core, relay);

        if (is == (c->covered >> relay & 1))
            continue;
        c->covered ^= 1u << relay;
        if (is)
            log_covered(&c->parts->log, now_of(c), relay, address_of(c, relay),
                        name_of(c, backups_host_of(&c->core, relay)));
        else
            log_uncovered(&c->parts->log, now_of(c), relay, address_of(c, relay), cause);
    }
}

static void carry_out(struct copies *c, const char *cause)
{
    struct backups_order order;
    enum backups_action action;

    while ((action = backups_next(&c->core, &order)) != BACKUPS_NOTHING) {
        switch (action) {
        case BACKUPS_COPY:
            tell_backups(c, &order);
            break;
        case BACKUPS_CLOSE:
            close_copy(c, &order);
            break;
        case BACKUPS_START:
            start_elsewhere(c, &order);
            break;
        default:
            fail_lost(c, &order);
        }
    }
    log_changes(c, cause);
}

/* --- the first ones --- */

static bool is_any_awaited(const struct copies *c)
{
    for (uint32_t relay = 0; relay < c->core.relays; relay++)
        if (backups_is_awaited(&c->core, relay))
            return true;
    return false;
}

static void look_whether_settled(struct copies *c)
{
    if (c->settled || is_any_awaited(c))
        return;
    c->settled = true;
    loop_timer_set(&c->timer, LOOP_NEVER);
}

static void add_relay(struct copies *c, uint32_t relay)
{
    const struct host_list *hosts = &c->parts->options->hosts.list;
    uint32_t host = c->parts->layout.relay_host[relay];
    uint32_t group = 0;

    for (uint32_t rank = 0; rank < c->parts->options->ranks; rank++)
        if (is_home_of(c, relay, rank)) {
            job_bind(c->job, rank, host);
            group++;
        }
    backups_add(&c->core, host, placement_room(&hosts->host[host]), group);
}

void copies_begin(struct copies *c)
{
    if (c->parts->options->log_copies == 0) {
        c->settled = true;
        return;
    }
    backups_init(&c->core, c->parts->options->log_copies);
    for (uint32_t relay = 0; relay < c->parts->layout.relays; relay++)
        add_relay(c, relay);
    c->begun = true;
    backups_begin(&c->core, now_of(c));
    loop_timer_set(&c->timer, now_of(c) + COPIES_START_NS);
    carry_out(c, NULL);
    look_whether_settled(c);
}

bool copies_are_settled(const struct copies *c)
{
    return c->settled;
}

void copies_begin_events(struct copies *c)
{
    c->logs = true;
    log_changes(c, NULL);
}

/* --- what is heard --- */

/* A relay that holds all back cannot say that it is not covered: its backup does. */
void copies_notice(struct copies *c, const struct cw_notice_body *notice)
{
    uint32_t relay = notice->rank;

    if (!c->begun || relay >= c->core.relays)
        return;
    if (notice->code == CW_NOTICE_COVERED) {
        backups_covered(&c->core, relay, notice->acts);
    } else {
        log_notice(&c->parts->log, "relay %s: %s", address_of(c, relay), notice->text);
        backups_uncovered(&c->core, relay, notice->acts, now_of(c));
    }
    carry_out(c, notice->text);
    look_whether_settled(c);
}

void copies_closed(struct copies *c, uint32_t at, const struct cw_copy_closed *closed)
{
    if (!c->begun || closed->relay >= c->core.relays)
        return;
    backups_closed(&c->core, closed->relay, at, closed->covered, now_of(c));
    carry_out(c, NULL);
}

bool copies_relay_lost(struct copies *c, uint32_t relay)
{
    if (!c->begun)
        return false;
    if (c->core.relay[relay].group)
        relays_away(c->parts->relays, relay);
    else
        relays_drop(c->parts->relays, relay);
    return true;
}

void copies_host_lost(struct copies *c, uint32_t host)
{
    char cause[HOST_NAME_MAX_BYTES + 32];

    if (!c->begun)
        return;
    snprintf(cause, sizeof(cause), "host %s is lost", name_of(c, host));
    backups_host_lost(&c->core, host, now_of(c));
    carry_out(c, cause);
    look_whether_settled(c);
}

/* What its ranks were doing there is over: it may believe that they live. */
static void end_ranks(struct copies *c, uint32_t relay)
{
    for (uint32_t rank = 0; rank < c->parts->options->ranks; rank++) {
        const struct job_rank *r = &c->job->rank[rank];

        if (is_home_of(c, relay, rank) && r->state != JOB_RANK_ENDED && r->incarnation > 0)
            relays_rank_end(c->parts->relays, rank, r->incarnation);
    }
}

void copies_relay_back(struct copies *c, uint32_t relay)
{
    const struct backup *r = &c->core.relay[relay];

    if (!c->begun || !backups_is_moving(&c->core, relay))
        return;
    log_relay_moved(&c->parts->log, now_of(c), relay, address_of(c, relay), name_of(c, r->host),
                    r->incarnation);
    end_ranks(c, relay);
    backups_is_up(&c->core, relay, now_of(c));
    carry_out(c, NULL);
    gates_again(c->parts->gates, relay);
}

bool copies_order(const struct copies *c, struct node_unit *order)
{
    const struct backup *r = &c->core.relay[order->number];
    char incarnation[16];

    if (c->parts->options->log_copies == 0)
        return true;
    order->copies = c->parts->layout.relays;
    if (c->begun) {
        order->flags |= NODE_UNIT_COPIED;
        order->from = r->at;
    }
    snprintf(incarnation, sizeof(incarnation), "%u", c->begun ? r->incarnation : 1);
    return node_unit_option(order, "--incarnation", incarnation);
}
