/* Which relay keeps copies of which other one's log, and what becomes of it when hosts are lost. */
#include "dispatcher/job/backups.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

SUITE("backups");

#define NOW 5000000000ull
#define LATER (NOW + 1000000000ull)
#define ROOM 16
#define TIGHT 12 /* for three groups */

static struct backups b;
static struct backups_order order;

/* Relay i is on host i, with 4 ranks; those of `spares` behind them have none. */
static void make(uint32_t relays, uint32_t spares, uint32_t copies)
{
    backups_init(&b, copies);
    for (uint32_t i = 0; i < relays + spares; i++)
        backups_add(&b, i, ROOM, i < relays ? 4 : 0);
    backups_begin(&b, NOW);
}

static void is_told(uint32_t relay, uint32_t peers)
{
    uint32_t told = 0;

    CU_ASSERT_EQUAL(backups_next(&b, &order), BACKUPS_COPY);
    CU_ASSERT_EQUAL(order.relay, relay);
    for (uint32_t i = 0; i < order.peers; i++)
        told |= 1u << order.peer[i];
    CU_ASSERT_EQUAL(told, peers);
}

static void is_quiet(void)
{
    CU_ASSERT_EQUAL(backups_next(&b, &order), BACKUPS_NOTHING);
}

static void closes(uint32_t relay, uint32_t at, uint32_t incarnation)
{
    CU_ASSERT_EQUAL(backups_next(&b, &order), BACKUPS_CLOSE);
    CU_ASSERT_EQUAL(order.relay, relay);
    CU_ASSERT_EQUAL(order.at, at);
    CU_ASSERT_EQUAL(order.incarnation, incarnation);
}

static void starts(uint32_t relay, uint32_t at, uint32_t host, uint32_t incarnation)
{
    CU_ASSERT_EQUAL(backups_next(&b, &order), BACKUPS_START);
    CU_ASSERT_EQUAL(order.relay, relay);
    CU_ASSERT_EQUAL(order.at, at);
    CU_ASSERT_EQUAL(order.host, host);
    CU_ASSERT_EQUAL(order.incarnation, incarnation);
}

static void is_lost(uint32_t relay, uint32_t host)
{
    CU_ASSERT_EQUAL(backups_next(&b, &order), BACKUPS_LOST);
    CU_ASSERT_EQUAL(order.relay, relay);
    CU_ASSERT_EQUAL(order.host, host);
}

/* It says that it is covered, or cannot be, by those that it was told last. */
static void is_covered(uint32_t relay)
{
    backups_covered(&b, relay, b.relay[relay].number);
}

static void cannot_be_covered(uint32_t relay)
{
    backups_uncovered(&b, relay, b.relay[relay].number, LATER);
}

static void cover_all(void)
{
    while (backups_next(&b, &order) != BACKUPS_NOTHING)
        ;
    for (uint32_t i = 0; i < b.relays; i++)
        is_covered(i);
}

static void run(uint32_t relays, uint32_t spares, uint32_t copies)
{
    make(relays, spares, copies);
    cover_all();
}

TEST(in_a_ring)
{
    make(3, 0, 1);
    is_told(0, 1u << 1);
    is_told(1, 1u << 2);
    is_told(2, 1u << 0);
    is_quiet();
    CU_ASSERT_FALSE(backups_is_covered(&b, 1));
    CU_ASSERT_TRUE(backups_is_awaited(&b, 1));
    is_covered(1);
    CU_ASSERT_TRUE(backups_is_covered(&b, 1));
    CU_ASSERT_FALSE(backups_is_awaited(&b, 1));
    CU_ASSERT_EQUAL(backups_host_of(&b, 1), 2);
}

TEST(two_of_each)
{
    make(3, 0, 2);
    is_told(0, 1u << 1 | 1u << 2);
    is_told(1, 1u << 2 | 1u << 0);
    is_told(2, 1u << 0 | 1u << 1);
    is_quiet();
}

TEST(spare_hosts_in_turn)
{
    make(3, 2, 1);
    is_told(0, 1u << 3);
    is_told(1, 1u << 4);
    is_told(2, 1u << 3);
    is_quiet(); /* these have nothing of their own */
    CU_ASSERT_FALSE(backups_is_awaited(&b, 3));
}

TEST(nothing_without_copies)
{
    make(3, 1, 0);
    is_quiet();
    backups_host_lost(&b, 1, NOW);
    is_quiet();
    CU_ASSERT_FALSE(backups_is_covered(&b, 0));
}

TEST(one_host_has_no_backup)
{
    make(1, 0, 1);
    is_told(0, 0);
    is_quiet();
    CU_ASSERT_FALSE(backups_is_awaited(&b, 0));
    CU_ASSERT_EQUAL(backups_host_of(&b, 0), BACKUPS_NO_HOST);
}

/* Relay 1 goes to host 2; relay 0, whose backup it was, gets another one at once. */
TEST(lost_host)
{
    run(4, 0, 1);
    backups_host_lost(&b, 1, NOW);
    is_told(0, 1u << 2);
    closes(1, 2, 1);
    is_quiet();
    CU_ASSERT_FALSE(backups_is_covered(&b, 0));
    CU_ASSERT_TRUE(backups_is_moving(&b, 1));
    backups_closed(&b, 1, 2, true, NOW);
    starts(1, 2, 2, 2);
    is_quiet();
    backups_is_up(&b, 1, NOW);
    CU_ASSERT_FALSE(backups_is_moving(&b, 1));
    is_told(1, 1u << 3);
    is_quiet();
    CU_ASSERT_FALSE(backups_is_covered(&b, 1));
    is_covered(1);
    CU_ASSERT_TRUE(backups_is_covered(&b, 1));
    CU_ASSERT_TRUE(backups_is_covered(&b, 2));
}

TEST(one_host_after_the_other)
{
    run(3, 0, 1);
    backups_host_lost(&b, 0, NOW);
    is_told(2, 1u << 1);
    closes(0, 1, 1);
    backups_closed(&b, 0, 1, true, NOW);
    starts(0, 1, 1, 2);
    backups_is_up(&b, 0, NOW);
    cover_all();
    backups_host_lost(&b, 1, LATER);
    is_told(2, 0);
    closes(0, 2, 2);
    closes(1, 2, 1);
    backups_closed(&b, 1, 2, true, LATER);
    starts(1, 2, 2, 2);
    backups_closed(&b, 0, 2, true, LATER);
    starts(0, 2, 2, 3);
    backups_is_up(&b, 0, LATER);
    is_told(0, 0);
    backups_is_up(&b, 1, LATER);
    is_told(1, 0);
    is_quiet();
}

TEST(two_at_once)
{
    run(4, 0, 1);
    backups_host_lost(&b, 1, LATER);
    backups_host_lost(&b, 2, LATER + 1);
    is_told(0, 1u << 3);
    is_lost(1, 1);
    CU_ASSERT_TRUE(order.covered_before);
    CU_ASSERT_FALSE(order.full);
    CU_ASSERT_EQUAL(order.since_ns, LATER + 1);
    closes(2, 3, 1);
    is_quiet();
}

TEST(two_at_once_with_two_copies)
{
    run(4, 0, 2);
    backups_host_lost(&b, 1, LATER);
    backups_host_lost(&b, 2, LATER + 1);
    is_told(0, 1u << 3);
    is_told(3, 1u << 0);
    closes(1, 3, 1);
    closes(2, 0, 1);
    is_quiet();
    CU_ASSERT_FALSE(backups_is_covered(&b, 0));
    CU_ASSERT_TRUE(backups_is_covered(&b, 3));
}

/* Lost while it is started there, it goes on from the other copy. */
TEST(lost_on_the_way)
{
    run(4, 0, 2);
    backups_host_lost(&b, 0, LATER);
    is_told(2, 1u << 1 | 1u << 3);
    is_told(3, 1u << 1 | 1u << 2);
    closes(0, 1, 1);
    backups_closed(&b, 0, 1, true, LATER);
    starts(0, 1, 1, 2);
    backups_host_lost(&b, 1, LATER);
    is_told(2, 1u << 3);
    is_told(3, 1u << 2);
    closes(0, 2, 2);
    closes(1, 2, 1);
    backups_is_up(&b, 0, LATER); /* which is of the one before */
    backups_closed(&b, 0, 1, true, LATER);
    CU_ASSERT_TRUE(backups_is_moving(&b, 0));
    backups_closed(&b, 0, 2, true, LATER);
    CU_ASSERT_EQUAL(b.relay[0].incarnation, 3);
    CU_ASSERT_EQUAL(b.relay[0].host, 2);
}

TEST(never_covered)
{
    make(2, 0, 1);
    is_told(0, 1u << 1);
    is_told(1, 1u << 0);
    backups_host_lost(&b, 1, LATER);
    is_told(0, 0);
    is_lost(1, 1);
    CU_ASSERT_FALSE(order.covered_before);
    CU_ASSERT_EQUAL(order.since_ns, NOW);
}

TEST(backup_that_did_not_have_it)
{
    run(3, 0, 1);
    backups_host_lost(&b, 1, LATER);
    is_told(0, 1u << 2);
    closes(1, 2, 1);
    backups_closed(&b, 1, 2, false, LATER);
    is_lost(1, 1);
    is_quiet();
}

/* The relay of a spare host takes nothing along but copies. */
TEST(lost_spare)
{
    run(2, 1, 1);
    backups_host_lost(&b, 2, LATER);
    is_told(0, 1u << 1);
    is_told(1, 1u << 0);
    is_quiet();
    backups_host_lost(&b, 2, LATER);
    backups_host_lost(&b, 7, LATER); /* no relay is there */
    is_quiet();
}

TEST(room_of_hosts)
{
    run(3, 0, 1);
    b.host[1].room = 7;
    backups_host_lost(&b, 0, LATER);
    is_told(2, 0);
    is_lost(0, 0);
    CU_ASSERT_TRUE(order.full);
    backups_init(&b, 1);
    backups_add(&b, 0, 8, 4);
    backups_add(&b, 1, 7, 4);
    backups_add(&b, 2, 8, 4);
    backups_begin(&b, NOW);
    is_told(0, 1u << 2);
    is_told(1, 1u << 0); /* it is less promised than host 2 */
    is_told(2, 1u << 0); /* where else */
    is_quiet();
}

TEST(backup_without_room_for_a_copy)
{
    run(3, 0, 1);
    cannot_be_covered(0);
    is_told(0, 1u << 2);
    CU_ASSERT_FALSE(backups_is_covered(&b, 0));
    cannot_be_covered(0);
    is_told(0, 0);
    cannot_be_covered(0);
    is_covered(0); /* said of none */
    CU_ASSERT_FALSE(backups_is_covered(&b, 0));
    is_quiet();
}

/* It is told of others meanwhile: what it says is of those before. */
TEST(covered_too_early)
{
    run(3, 0, 1);
    backups_host_lost(&b, 1, LATER);
    is_covered(0);
    CU_ASSERT_FALSE(backups_is_covered(&b, 0));
    is_told(0, 1u << 2);
    CU_ASSERT_EQUAL(order.number, 2);
    backups_covered(&b, 0, 1);
    backups_uncovered(&b, 0, 1, LATER);
    CU_ASSERT_FALSE(backups_is_covered(&b, 0));
    backups_covered(&b, 0, 2);
    CU_ASSERT_TRUE(backups_is_covered(&b, 0));
}

/* --- every order of losses --- */

/* What is so, whatever the core believes. */
struct world {
    struct backups core;
    struct {
        uint32_t copies; /* bits: the relays whose processes have all of it, ... */
        uint32_t told;   /* ... and are to have it */
        bool telling;    /* it has not said yet that they do */
        bool closing;
        bool starting;
        uint32_t at;
    } relay[CW_RELAYS_MAX];
    uint32_t lost_hosts;
    uint32_t losses;
    bool over;
};

static uint64_t worlds;

static bool lives(const struct world *w, uint32_t relay)
{
    return !(w->lost_hosts >> w->core.relay[relay].host & 1);
}

static uint32_t ranks_on(const struct world *w, uint32_t host)
{
    uint32_t ranks = 0;

    for (uint32_t i = 0; i < w->core.relays; i++)
        ranks += w->core.relay[i].host == host ? w->core.relay[i].group : 0;
    return ranks;
}

static void obey(struct world *w)
{
    struct backups_order o;
    enum backups_action action;

    while ((action = backups_next(&w->core, &o)) != BACKUPS_NOTHING) {
        uint32_t host = w->core.relay[o.relay].host;

        switch (action) {
        case BACKUPS_COPY:
            CU_ASSERT_FATAL(lives(w, o.relay) && o.peers <= w->core.copies);
            w->relay[o.relay].told = 0;
            for (uint32_t i = 0; i < o.peers; i++) {
                CU_ASSERT_FATAL(lives(w, o.peer[i]) && w->core.relay[o.peer[i]].host != host);
                w->relay[o.relay].told |= 1u << o.peer[i];
            }
            w->relay[o.relay].copies &= w->relay[o.relay].told;
            w->relay[o.relay].telling = o.peers > 0;
            break;
        case BACKUPS_CLOSE:
            CU_ASSERT_FATAL(!lives(w, o.relay) && lives(w, o.at));
            CU_ASSERT_FATAL(w->relay[o.relay].copies >> o.at & 1);
            w->relay[o.relay].closing = true;
            w->relay[o.relay].at = o.at;
            break;
        case BACKUPS_START:
            CU_ASSERT_FATAL(w->relay[o.relay].copies >> o.at & 1);
            CU_ASSERT_FATAL(o.host == w->core.relay[o.at].host && o.host == host);
            CU_ASSERT_FATAL(ranks_on(w, host) <= TIGHT);
            w->relay[o.relay].starting = true;
            break;
        default:
            /* no copy of it is left, or there is no room */
            CU_ASSERT_FATAL(!lives(w, o.relay));
            for (uint32_t i = 0; i < w->core.relays; i++)
                CU_ASSERT_FATAL(!(w->relay[o.relay].copies >> i & 1) || !lives(w, i) ||
                                !(w->core.relay[o.relay].valid >> i & 1) || o.full);
            w->over = true;
        }
    }
}

static void lose(struct world *w, uint32_t host)
{
    uint32_t down = 0;

    for (uint32_t i = 0; i < w->core.relays; i++)
        if (w->core.relay[i].host == host && (lives(w, i) || w->relay[i].starting)) {
            down |= 1u << i;
            w->relay[i].telling = w->relay[i].starting = false;
        }
    w->lost_hosts |= 1u << host;
    w->losses++;
    for (uint32_t i = 0; i < w->core.relays; i++) {
        w->relay[i].copies &= ~down;
        w->relay[i].telling &= !(w->relay[i].told & down);
        w->relay[i].closing &= !(down >> w->relay[i].at & 1);
    }
    backups_host_lost(&w->core, host, NOW + w->losses);
}

/* What can happen next, by number: of each relay what it is to say, and of each host its loss. */
static bool step(struct world *w, uint32_t what, uint32_t losses_max)
{
    uint32_t relay = what / 2;

    if (relay >= w->core.relays) {
        uint32_t host = what - 2 * w->core.relays;

        if (w->losses == losses_max || w->lost_hosts >> host & 1)
            return false;
        lose(w, host);
    } else if (what % 2 == 0 && w->relay[relay].telling) {
        w->relay[relay].telling = false;
        w->relay[relay].copies = w->relay[relay].told;
        backups_covered(&w->core, relay, w->core.relay[relay].number);
    } else if (what % 2 && w->relay[relay].closing) {
        w->relay[relay].closing = false;
        backups_closed(&w->core, relay, w->relay[relay].at, true, NOW);
    } else if (what % 2 && w->relay[relay].starting) {
        w->relay[relay].starting = false;
        backups_is_up(&w->core, relay, NOW);
        w->relay[relay].copies = 0;
    } else {
        return false;
    }
    obey(w);
    return true;
}

static uint32_t steps_of(const struct world *w)
{
    return 2 * w->core.relays + w->core.hosts;
}

/* Nothing is to be said any more: all run, and who can be covered is. */
static void expect_settled(const struct world *w)
{
    for (uint32_t i = 0; i < w->core.relays; i++) {
        const struct backup *r = &w->core.relay[i];

        if (!r->group)
            continue;
        CU_ASSERT_FATAL(lives(w, i) && r->state == BACKUP_HERE);
        CU_ASSERT_EQUAL_FATAL(r->valid, w->relay[i].copies);
        CU_ASSERT_FATAL(backups_is_covered(&w->core, i) == (r->peers != 0));
        for (uint32_t peer = 0; peer < w->core.relays && !r->peers; peer++)
            CU_ASSERT_FATAL(w->core.relay[peer].state != BACKUP_HERE ||
                            w->core.relay[peer].host == r->host ||
                            ranks_on(w, w->core.relay[peer].host) + r->group > TIGHT);
    }
}

static void explore(const struct world *from, uint32_t losses_max)
{
    bool settled = true;

    worlds++;
    for (uint32_t what = 0; what < steps_of(from); what++) {
        struct world w = *from;

        if (!step(&w, what, losses_max))
            continue;
        settled &= what >= 2 * from->core.relays;
        if (!w.over)
            explore(&w, losses_max);
    }
    if (settled && !from->over)
        expect_settled(from);
}

static struct world world_of(uint32_t relays, uint32_t spares, uint32_t copies)
{
    struct world w = {0};

    backups_init(&w.core, copies);
    for (uint32_t i = 0; i < relays + spares; i++)
        backups_add(&w.core, i, TIGHT, i < relays ? 4 : 0);
    backups_begin(&w.core, NOW);
    obey(&w);
    return w;
}

TEST(every_order)
{
    struct world w = world_of(2, 1, 1);

    explore(&w, 2);
    w = world_of(3, 0, 1);
    explore(&w, 2);
    w = world_of(2, 1, 2);
    explore(&w, 2);
    CU_ASSERT_TRUE(worlds > 10000);
}

TEST(many_orders)
{
    uint32_t seed = 1;

    for (uint32_t run = 0; run < 20000; run++) {
        struct world w = world_of(2 + run % 4, run / 4 % 3, 1 + run / 12 % 2);
        uint32_t vain = 0;

        while (!w.over && vain < 200) {
            seed = seed * 1103515245u + 12345;
            /* losses are rare */
            if ((seed >> 16) % steps_of(&w) >= 2 * w.core.relays && (seed >> 8) % 4)
                continue;
            vain = step(&w, (seed >> 16) % steps_of(&w), 4) ? 0 : vain + 1;
        }
    }
}
