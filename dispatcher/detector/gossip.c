#include "dispatcher/detector/gossip.h"
#include "dispatcher/detector/routing.h"
#include "dispatcher/detector/table_message.h"

#include <stdlib.h>
#include <string.h>

enum peer_state {
    PEER_ALIVE,
    PEER_ASKED, /* it was silent, and a ping is on its way */
    PEER_FAILED,
};

struct peer {
    uint64_t
        since_ns; /* ALIVE: when it was last known to live; ASKED: when it is to have answered */
    uint32_t heartbeat; /* the highest that was heard; 0: none yet */
    enum peer_state state;
};

/* What was last sent, or received, in one round of the cycle. */
struct lane {
    uint8_t *codes;
    uint16_t number; /* of the table */
    bool there;
};

struct gossip {
    const struct routing *routing;
    uint64_t gossip_ns, cleanup_ns, answer_ns;
    uint64_t tick_ns; /* the next round */
    uint64_t random;
    uint32_t self, n;
    uint32_t heartbeat; /* this process's */
    uint32_t asked;     /* how many peers are ASKED */
    struct detector_out out;
    struct peer *peers;
    struct lane *sent, *received; /* of each round of a cycle; NULL: the routing has no lanes */
    uint8_t *codes;               /* of the table at hand */
    uint8_t message[DETECTOR_MESSAGE_MAX];
};

static struct lane *new_lanes(uint32_t rounds, uint32_t n)
{
    struct lane *lanes = calloc(rounds, sizeof(*lanes));
    uint8_t *codes = malloc((size_t)rounds * n);

    if (!lanes || !codes) {
        free(lanes);
        free(codes);
        return NULL;
    }
    for (uint32_t i = 0; i < rounds; i++)
        lanes[i].codes = codes + (size_t)i * n;
    return lanes;
}

static void free_lanes(struct lane *lanes)
{
    if (lanes)
        free(lanes->codes); /* of all */
    free(lanes);
}

struct gossip *gossip_new(const struct detector_config *c, const struct detector_out *out,
                          uint64_t now_ns)
{
    const struct routing *routing = &routings[(int)c->kind];
    struct gossip *g = calloc(1, sizeof(*g));

    if (!g)
        return NULL;
    g->routing = routing;
    g->gossip_ns = c->gossip_ns;
    /* [FM] 5.1: "actually Tcleanup is increased by Tmax hangup in the implementation" */
    g->cleanup_ns = routing->cleanup(c->n) * c->gossip_ns + c->hangup_ns;
    g->answer_ns = c->ping_ns + c->hangup_ns;
    g->tick_ns = now_ns + c->gossip_ns;
    g->random = c->seed;
    g->self = c->self;
    g->n = c->n;
    g->heartbeat = c->heartbeat;
    g->out = *out;
    g->peers = calloc(c->n, sizeof(*g->peers));
    g->codes = calloc(c->n, 1);
    if (routing->lanes) {
        g->sent = new_lanes(routing->cycle(c->n), c->n);
        g->received = new_lanes(routing->cycle(c->n), c->n);
    }
    if (g->peers && g->codes && (!routing->lanes || (g->sent && g->received)))
        return g;
    gossip_free(g);
    return NULL;
}

void gossip_free(struct gossip *g)
{
    if (!g)
        return;
    free_lanes(g->sent);
    free_lanes(g->received);
    free(g->peers);
    free(g->codes);
    free(g);
}

/* --- what is known of the others --- */

/* A heartbeat is as old as it is behind that of this process, for all count from the same start:
 * so a failure is found T_cleanup after it, however long the last heartbeat was on its way ([FM] 6
 * names the rounding of equation 4 as a part of its detection times). */
static void rise(struct gossip *g, uint32_t process, uint64_t now_ns)
{
    struct peer *p = &g->peers[process];
    uint64_t behind = g->heartbeat > p->heartbeat ? g->heartbeat - p->heartbeat : 0;
    uint64_t age_ns = behind * g->gossip_ns;
    enum peer_state state = p->state;

    if (state == PEER_ALIVE) {
        if (age_ns < now_ns - p->since_ns)
            p->since_ns = now_ns - age_ns;
        return;
    }
    if (age_ns > g->cleanup_ns) /* old news */
        return;
    p->state = PEER_ALIVE;
    p->since_ns = now_ns - age_ns;
    g->asked -= state == PEER_ASKED;
    if (state == PEER_FAILED)
        g->out.verdict(g->out.ctx, process, DETECTOR_BACK);
}

/* [FM] 4: "it merges its local table with all received tables and adopts for each host the maximum
 * heartbeat found." Heartbeats count the rounds since the start of the group, so that all are in
 * the same round of a cycle; a process whose clock is slow, or that was started again, finds that
 * it is behind, and counts on from there. */
static void merge(struct gossip *g, uint32_t process, uint32_t heartbeat, uint64_t now_ns)
{
    struct peer *p = &g->peers[process];

    if (process == g->self) {
        if (heartbeat > g->heartbeat)
            g->heartbeat = heartbeat;
        return;
    }
    if (heartbeat <= p->heartbeat)
        return;
    p->heartbeat = heartbeat;
    if (heartbeat > g->heartbeat + 1)
        g->heartbeat = heartbeat - 1;
    rise(g, process, now_ns);
}

static void merge_table(struct gossip *g, uint32_t from, uint32_t heartbeat, const uint8_t *codes,
                        uint64_t now_ns)
{
    for (uint32_t d = 1, i = from; d < g->n; d++) {
        if (++i == g->n)
            i = 0;
        if (codes[d] != TABLE_UNKNOWN && codes[d] <= heartbeat)
            merge(g, i, heartbeat + 1 - codes[d], now_ns);
    }
}

/* --- sending --- */

static void send_short(struct gossip *g, uint32_t to, enum table_message_kind kind, uint8_t lane)
{
    struct table_message m = {.kind = kind, .lane = lane, .heartbeat = g->heartbeat};
    struct cw_writer w = cw_writer(g->message, sizeof(g->message));

    table_message_write_short(&w, &m);
    g->out.send(g->out.ctx, to, g->message, w.used);
}

static uint8_t code_of(const struct gossip *g, const struct peer *p)
{
    uint32_t code = g->heartbeat + 1 - p->heartbeat;

    return p->heartbeat == 0 || code > TABLE_UNKNOWN ? TABLE_UNKNOWN : (uint8_t)code;
}

/* As a difference to the one before on that lane, where there is one. `lane`: NULL: none. */
static void send_table(struct gossip *g, uint32_t to, uint8_t round, struct lane *lane)
{
    struct table_message m = {.lane = round, .heartbeat = g->heartbeat};
    struct cw_writer w = cw_writer(g->message, sizeof(g->message));
    uint8_t *codes = g->codes;

    for (uint32_t d = 1, i = g->self; d < g->n; d++) {
        if (++i == g->n)
            i = 0;
        codes[d] = code_of(g, &g->peers[i]);
    }
    m.number = lane ? ++lane->number : 0;
    table_message_write(&w, &m, codes, lane && lane->there ? lane->codes : NULL, g->n);
    if (lane) {
        memcpy(lane->codes, codes, g->n);
        lane->there = true;
    }
    g->out.send(g->out.ctx, to, g->message, w.used);
}

/* The round of its cycle that a process is in, from 0. */
static uint32_t round_of(const struct gossip *g)
{
    return (g->heartbeat - 1) % g->routing->cycle(g->n);
}

static void count_on(struct gossip *g, uint64_t rounds)
{
    uint64_t heartbeat = g->heartbeat + rounds;

    g->tick_ns += rounds * g->gossip_ns;
    g->heartbeat =
        heartbeat < DETECTOR_HEARTBEAT_MAX ? (uint32_t)heartbeat : DETECTOR_HEARTBEAT_MAX;
}

/* Rounds in which it was away count, for it is to be in step with the others: before it hears of
 * their heartbeats, which would count the same rounds again. */
static void count_missed(struct gossip *g, uint64_t now_ns)
{
    if (now_ns >= g->tick_ns)
        count_on(g, (now_ns - g->tick_ns) / g->gossip_ns);
}

/* [FM] 4: "sends them a gossip message consisting in its table with its heartbeat incremented." */
static void tick(struct gossip *g)
{
    struct lane *lane = NULL;
    uint32_t round, to;

    count_on(g, 1);
    round = round_of(g);
    to = g->routing->target(g->self, g->n, round + 1, routing_draw(&g->random));
    if (g->sent)
        lane = &g->sent[round];
    send_table(g, to, lane ? (uint8_t)round : 0, lane);
}

/* --- judging --- */

/* [FM] 4: "If a heartbeat for a host A which is maintained by a failure detector at host B has not
 * increased after a certain timeout, host B suspects that host A has crashed." 5: "a node
 * suspecting another node to have failed, directly ping this node to confirm the failure." One that
 * was never heard has not started yet (5.3). */
static void ask_the_silent(struct gossip *g, uint64_t now_ns)
{
    for (uint32_t i = 0; i < g->n; i++) {
        struct peer *p = &g->peers[i];

        if (p->heartbeat == 0 || p->state != PEER_ALIVE || now_ns - p->since_ns <= g->cleanup_ns)
            continue;
        p->state = PEER_ASKED;
        p->since_ns = now_ns + g->answer_ns;
        g->asked++;
        send_short(g, i, TABLE_PING, 0);
    }
}

static void judge_the_asked(struct gossip *g, uint64_t now_ns)
{
    for (uint32_t i = 0; i < g->n && g->asked > 0; i++) {
        struct peer *p = &g->peers[i];

        if (p->state != PEER_ASKED || p->since_ns > now_ns)
            continue;
        p->state = PEER_FAILED;
        g->asked--;
        g->out.verdict(g->out.ctx, i, DETECTOR_FAILED);
    }
}

uint64_t gossip_due_ns(const struct gossip *g)
{
    uint64_t due = g->tick_ns;

    for (uint32_t i = 0; i < g->n && g->asked > 0; i++)
        if (g->peers[i].state == PEER_ASKED && g->peers[i].since_ns < due)
            due = g->peers[i].since_ns;
    return due;
}

void gossip_advance(struct gossip *g, uint64_t now_ns)
{
    judge_the_asked(g, now_ns);
    if (now_ns < g->tick_ns)
        return;
    count_missed(g, now_ns);
    tick(g);
    ask_the_silent(g, now_ns);
}

void gossip_was_away(struct gossip *g, uint64_t now_ns)
{
    for (uint32_t i = 0; i < g->n; i++) {
        struct peer *p = &g->peers[i];

        if (p->state == PEER_FAILED)
            continue;
        p->state = PEER_ALIVE;
        p->since_ns = now_ns;
    }
    g->asked = 0;
}

/* --- receiving --- */

/* Whether messages of that process come to this one in that round. */
static bool is_lane(const struct gossip *g, uint32_t from, uint32_t to, uint8_t round)
{
    return g->routing->lanes && round < g->routing->cycle(g->n) &&
           g->routing->target(from, g->n, round + 1u, 0) == to;
}

/* Its table, as it is after this message; NULL: the one before did not come. */
static const uint8_t *apply(struct lane *lane, const struct table_message *m, uint32_t n)
{
    struct cw_reader entries = m->entries;
    uint32_t distance = 0;
    uint8_t code;

    if (m->kind == TABLE_WHOLE) {
        cw_get_copy(&entries, lane->codes + 1, n - 1);
        lane->there = true;
    } else if (!lane->there || (uint16_t)(lane->number + 1) != m->number) {
        return NULL;
    }
    lane->number = m->number;
    while (m->kind == TABLE_DIFFERENCE && table_next_change(&entries, &distance, &code))
        lane->codes[distance] = code;
    return lane->codes;
}

static int take_table(struct gossip *g, uint32_t from, const struct table_message *m,
                      uint64_t now_ns, struct cw_err *err)
{
    struct cw_reader entries = m->entries;
    const uint8_t *codes = g->codes;

    if (is_lane(g, from, g->self, m->lane))
        codes = apply(&g->received[m->lane], m, g->n);
    else if (!g->routing->lanes && m->kind == TABLE_WHOLE)
        cw_get_copy(&entries, g->codes + 1, g->n - 1);
    else
        return cw_err_set(err, CW_EPROTO, "process %u sent a table in round %u, which is not ours",
                          from, m->lane);
    merge(g, from, m->heartbeat, now_ns);
    if (codes)
        merge_table(g, from, m->heartbeat, codes, now_ns);
    else
        send_short(g, from, TABLE_WANTED, m->lane);
    return CW_OK;
}

static int send_whole(struct gossip *g, uint32_t to, uint8_t round, struct cw_err *err)
{
    if (!is_lane(g, g->self, to, round))
        return cw_err_set(err, CW_EPROTO, "process %u wants a table of round %u, which is not its",
                          to, round);
    g->sent[round].there = false;
    send_table(g, to, round, &g->sent[round]);
    return CW_OK;
}

/* [FM] 5: "If the node is alive, it answers to the ping by returning its current heartbeat." That
 * has not risen yet where the process was stopped until now. */
static void take_pong(struct gossip *g, uint32_t from, uint32_t heartbeat, uint64_t now_ns)
{
    struct peer *p = &g->peers[from];

    if (p->state == PEER_ASKED) {
        p->state = PEER_ALIVE;
        p->since_ns = now_ns;
        g->asked--;
    }
    merge(g, from, heartbeat, now_ns);
}

int gossip_receive(struct gossip *g, uint32_t from, const void *bytes, size_t size, uint64_t now_ns,
                   struct cw_err *err)
{
    struct table_message m;

    if (from >= g->n || from == g->self)
        return cw_err_set(err, CW_EPROTO, "there is no process %u", from);
    if (table_message_read(&m, bytes, size, g->n, err) < 0)
        return cw_err_wrap(err, "process %u", from);
    count_missed(g, now_ns);
    switch (m.kind) {
    case TABLE_WHOLE:
    case TABLE_DIFFERENCE:
        return take_table(g, from, &m, now_ns, err);
    case TABLE_WANTED:
        return send_whole(g, from, m.lane, err);
    case TABLE_PING:
        send_short(g, from, TABLE_PONG, 0);
        return CW_OK;
    case TABLE_PONG:
        take_pong(g, from, m.heartbeat, now_ns);
        return CW_OK;
    }
    return CW_OK;
}
