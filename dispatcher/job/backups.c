#include "dispatcher/job/backups.h"

#include <assert.h>

#define NO_RELAY UINT32_MAX

void backups_init(struct backups *b, uint32_t copies)
{
    assert(copies <= CW_COPIES_MAX);
    *b = (struct backups){.copies = copies};
}

static uint32_t place_of(const struct backups *b, uint32_t host)
{
    uint32_t i = 0;

    while (i < b->hosts && b->host[i].host != host)
        i++;
    return i;
}

void backups_add(struct backups *b, uint32_t host, uint32_t room, uint32_t group)
{
    uint32_t place = place_of(b, host);

    assert(b->relays < CW_RELAYS_MAX && place < CW_RELAYS_MAX);
    if (place == b->hosts) {
        b->host[b->hosts].host = host;
        b->host[b->hosts++].room = room;
    }
    b->relay[b->relays++] = (struct backup){.host = host, .group = group, .incarnation = 1};
}

/* --- which one --- */

/* Where its group is, or will be. */
static uint32_t host_of_group(const struct backups *b, uint32_t relay)
{
    const struct backup *r = &b->relay[relay];

    if (r->state == BACKUP_GONE)
        return BACKUPS_NO_HOST;
    return r->state == BACKUP_CLOSING ? b->relay[r->at].host : r->host;
}

static uint32_t ranks_on(const struct backups *b, uint32_t host)
{
    uint32_t ranks = 0;

    for (uint32_t i = 0; i < b->relays; i++)
        ranks += host_of_group(b, i) == host ? b->relay[i].group : 0;
    return ranks;
}

static bool has_room(const struct backups *b, uint32_t host, uint64_t ranks)
{
    return ranks_on(b, host) + ranks <= b->host[place_of(b, host)].room;
}

/* Ranks of others that would come, too, should their hosts be lost. */
static uint32_t promised_to(const struct backups *b, uint32_t host, uint32_t but)
{
    uint32_t ranks = 0;

    for (uint32_t i = 0; i < b->relays; i++)
        for (uint32_t peer = 0; peer < b->relays && i != but; peer++)
            ranks += b->relay[i].peers >> peer & 1 && b->relay[peer].host == host
                         ? b->relay[i].group
                         : 0;
    return ranks;
}

static bool has_peer_on(const struct backups *b, uint32_t relay, uint32_t host)
{
    for (uint32_t peer = 0; peer < b->relays; peer++)
        if (b->relay[relay].peers >> peer & 1 && b->relay[peer].host == host)
            return true;
    return false;
}

static bool may_be_backup(const struct backups *b, uint32_t relay, uint32_t peer)
{
    const struct backup *r = &b->relay[relay], *p = &b->relay[peer];

    return p->state == BACKUP_HERE && p->host != r->host && !(r->unfit >> peer & 1) &&
           !has_peer_on(b, relay, p->host) && has_room(b, p->host, r->group);
}

/* Lower is better: where there is room also for those that were promised it; spare hosts, of these
 * the one that the fewest are promised; then the next one in the ring. */
static uint64_t cost_of(const struct backups *b, uint32_t relay, uint32_t peer)
{
    uint32_t host = b->relay[peer].host;
    uint32_t group = b->relay[relay].group;
    uint64_t promised = promised_to(b, host, relay);
    uint64_t taken = ranks_on(b, host) > 0;
    uint64_t distance = (peer + b->relays - relay) % b->relays;

    return (uint64_t)!has_room(b, host, promised + group) << 60 | taken << 59 |
           (taken ? 0 : promised) << 8 | distance;
}

/* NO_RELAY: there is none. */
static uint32_t find_backup(const struct backups *b, uint32_t relay)
{
    uint32_t best = NO_RELAY;

    for (uint32_t peer = 0; peer < b->relays; peer++)
        if (may_be_backup(b, relay, peer) &&
            (best == NO_RELAY || cost_of(b, relay, peer) < cost_of(b, relay, best)))
            best = peer;
    return best;
}

static uint32_t count_of(uint32_t peers)
{
    return (uint32_t)__builtin_popcount(peers);
}

static bool wants_backups(const struct backup *r)
{
    return r->state == BACKUP_HERE && r->group;
}

/* Its backups that are left stay, and others come to them. */
static void choose(struct backups *b, uint32_t relay)
{
    struct backup *r = &b->relay[relay];
    uint32_t peer;

    if (!wants_backups(r))
        return;
    while (count_of(r->peers) < b->copies && (peer = find_backup(b, relay)) != NO_RELAY)
        r->peers |= 1u << peer;
}

static void choose_all(struct backups *b)
{
    for (uint32_t relay = 0; b->begun && relay < b->relays; relay++)
        choose(b, relay);
}

/* These are its backups no more. */
static void drop(struct backup *r, uint32_t peers, uint64_t now_ns)
{
    bool covered = r->valid;

    r->peers &= ~peers;
    r->valid &= ~peers;
    if (covered && !r->valid)
        r->since_ns = now_ns;
}

/* --- what is heard --- */

void backups_begin(struct backups *b, uint64_t now_ns)
{
    b->begun = b->copies > 0;
    for (uint32_t relay = 0; relay < b->relays; relay++)
        b->relay[relay].since_ns = now_ns;
    choose_all(b);
}

/* Whether what it says is about the backups that it has now. */
static bool is_of_now(const struct backup *r, uint64_t number)
{
    return wants_backups(r) && r->is_told && r->told == r->peers && r->peers && r->number == number;
}

void backups_covered(struct backups *b, uint32_t relay, uint64_t number)
{
    struct backup *r = &b->relay[relay];

    if (!is_of_now(r, number))
        return;
    r->valid = r->peers;
    r->covered_before = true;
}

void backups_uncovered(struct backups *b, uint32_t relay, uint64_t number, uint64_t now_ns)
{
    struct backup *r = &b->relay[relay];

    if (!is_of_now(r, number))
        return;
    r->unfit |= r->peers;
    drop(r, r->peers, now_ns);
    choose(b, relay);
}

/* Its host is lost: one of the copies is closed, to go on with. The ranks of a group are on one
 * host, which has to have room for all of them. */
static void go_on_elsewhere(struct backups *b, uint32_t relay)
{
    struct backup *r = &b->relay[relay];

    r->state = BACKUP_GONE;
    r->due = true;
    for (uint32_t peer = 0; peer < b->relays; peer++)
        if (r->valid >> peer & 1 && has_room(b, b->relay[peer].host, r->group)) {
            r->state = BACKUP_CLOSING;
            r->at = peer;
            return;
        }
}

/* Bits: the relays whose processes were there. */
static uint32_t standing_on(const struct backups *b, uint32_t host)
{
    uint32_t relays = 0;

    for (uint32_t i = 0; i < b->relays; i++)
        if (b->relay[i].host == host &&
            (b->relay[i].state == BACKUP_HERE || b->relay[i].state == BACKUP_STARTING))
            relays |= 1u << i;
    return relays;
}

/* First all that went with the host is known, then what becomes of it is decided. */
void backups_host_lost(struct backups *b, uint32_t host, uint64_t now_ns)
{
    uint32_t place = place_of(b, host);
    uint32_t down;

    if (!b->begun || place == b->hosts || b->host[place].lost)
        return;
    b->host[place].lost = true;
    down = standing_on(b, host);
    for (uint32_t i = 0; i < b->relays; i++) {
        struct backup *r = &b->relay[i];

        drop(r, down, now_ns);
        if (r->state == BACKUP_CLOSING && down >> r->at & 1)
            down |= 1u << i;
        if (down >> i & 1)
            r->state = BACKUP_GONE;
    }
    for (uint32_t i = 0; i < b->relays; i++)
        if (down >> i & 1 && b->relay[i].group)
            go_on_elsewhere(b, i);
    choose_all(b);
}

void backups_closed(struct backups *b, uint32_t relay, uint32_t at, bool covered, uint64_t now_ns)
{
    struct backup *r = &b->relay[relay];

    if (r->state != BACKUP_CLOSING || r->at != at || r->due)
        return;
    if (!covered) {
        drop(r, 1u << at, now_ns);
        go_on_elsewhere(b, relay);
        return;
    }
    r->state = BACKUP_STARTING;
    r->host = b->relay[at].host;
    r->incarnation++;
    r->due = true;
}

/* The host of its own copy is of no use as a backup. */
void backups_is_up(struct backups *b, uint32_t relay, uint64_t now_ns)
{
    struct backup *r = &b->relay[relay];

    if (r->state != BACKUP_STARTING || r->due)
        return;
    r->state = BACKUP_HERE;
    r->is_told = false;
    r->unfit = 0;
    drop(r, r->peers, now_ns);
    choose_all(b);
}

/* --- orders --- */

static void put_peers(struct backups_order *order, uint32_t peers)
{
    for (uint32_t peer = 0; peer < CW_RELAYS_MAX; peer++)
        if (peers >> peer & 1)
            order->peer[order->peers++] = peer;
}

/* Of one whose backups are others than it was told; one that has none is told so, too. */
static enum backups_action order_copy(struct backup *r, struct backups_order *order)
{
    r->is_told = true;
    r->told = r->peers;
    order->number = ++r->number;
    order->incarnation = r->incarnation;
    put_peers(order, r->peers);
    return BACKUPS_COPY;
}

static enum backups_action order_of_state(const struct backups *b, struct backup *r,
                                          struct backups_order *order)
{
    r->due = false;
    order->at = r->at;
    order->host = r->host;
    order->incarnation = r->incarnation;
    order->full = r->valid;
    order->covered_before = r->covered_before;
    order->since_ns = r->since_ns;
    if (r->state == BACKUP_STARTING)
        return BACKUPS_START;
    if (r->state == BACKUP_GONE)
        return BACKUPS_LOST;
    order->host = b->relay[r->at].host;
    return BACKUPS_CLOSE;
}

static bool is_to_be_told(const struct backup *r)
{
    return wants_backups(r) && (!r->is_told || r->told != r->peers);
}

/* Who has lost its backup holds all back, also its answers to CLOSE: it is told of others first. */
enum backups_action backups_next(struct backups *b, struct backups_order *order)
{
    for (uint32_t relay = 0; b->begun && relay < b->relays; relay++) {
        *order = (struct backups_order){.relay = relay};
        if (is_to_be_told(&b->relay[relay]))
            return order_copy(&b->relay[relay], order);
    }
    for (uint32_t relay = 0; b->begun && relay < b->relays; relay++) {
        *order = (struct backups_order){.relay = relay};
        if (b->relay[relay].due)
            return order_of_state(b, &b->relay[relay], order);
    }
    return BACKUPS_NOTHING;
}

/* --- questions --- */

bool backups_is_covered(const struct backups *b, uint32_t relay)
{
    return b->relay[relay].state == BACKUP_HERE && b->relay[relay].valid;
}

bool backups_is_awaited(const struct backups *b, uint32_t relay)
{
    const struct backup *r = &b->relay[relay];

    return wants_backups(r) && r->peers && !r->valid;
}

bool backups_is_moving(const struct backups *b, uint32_t relay)
{
    return b->relay[relay].state != BACKUP_HERE;
}

uint32_t backups_peers(const struct backups *b, uint32_t relay)
{
    return b->relay[relay].peers;
}

uint32_t backups_host_of(const struct backups *b, uint32_t relay)
{
    uint32_t peers = b->relay[relay].peers;

    return peers ? b->relay[__builtin_ctz(peers)].host : BACKUPS_NO_HOST;
}
