#include "dispatcher/detector/swim.h"
#include "dispatcher/detector/routing.h"
#include "dispatcher/detector/swim_message.h"

#include <math.h>
#include <stdlib.h>

#define HELPERS 3u      /* [SWIM] k: processes that are asked to probe another; memberlist: 3 */
#define SPREAD_FACTOR 4 /* [SWIM] λ: an update is sent on λ log(n) times; memberlist: 4 */
#define SUSPICION_MIN                                                                              \
    5                   /* [Lifeguard] α: suspicion lasts α log10(n) periods; memberlist: 4 to 6 \
                         */
#define SUSPICION_MAX 6 /* [Lifeguard] β: ..., and β times that where nobody confirms it */
#define CONFIRMATIONS 3u /* [Lifeguard] K: confirmations, after which it is at its shortest */
#define ERRANDS_MAX 16u  /* probes for others at a time; the oldest is forgotten */
#define NACK_SHARE(ns) ((ns) / 10 * 8) /* of the time for an answer; memberlist: 80% */

struct member {
    uint64_t since_ns; /* SUSPECT */
    uint16_t incarnation;
    uint8_t state;
    uint8_t to_send; /* how often what is known of it is still to be sent on */
    bool heard;      /* it has started */
    uint8_t accusers;
    uint16_t accuser[CONFIRMATIONS + 1];
};

enum probe_phase { PROBE_NONE, PROBE_DIRECT, PROBE_INDIRECT };

struct probe {
    enum probe_phase phase;
    uint16_t seq, target;
    bool started; /* the target had been heard before */
    bool answered;
    uint32_t helpers, nacks;
    uint64_t helpers_ns; /* DIRECT: when others are asked */
};

/* A probe for another process. */
struct errand {
    uint16_t seq, target;      /* of the probe */
    uint16_t asker, asker_seq; /* who wants it */
    bool waits;
    uint64_t nack_ns;
};

struct swim {
    uint32_t self, n, health_max;
    uint64_t period_ns, answer_ns;
    uint64_t suspicion_ns[CONFIRMATIONS + 1]; /* by how many confirmed it */
    uint64_t next_ns;                         /* the next period */
    uint64_t random;
    uint32_t health; /* [Lifeguard] LHM: 0 is healthy */
    uint16_t last_seq;
    uint32_t spread;            /* how often an update is sent on */
    uint32_t suspects, pending; /* members that are SUSPECT, that have something to send on */
    uint32_t turn;              /* in `order` */
    struct probe probe;
    struct errand errands[ERRANDS_MAX];
    uint32_t next_errand;
    struct detector_out out;
    struct member *members;
    uint16_t *order; /* in which they are probed */
};

/* [Lifeguard] 4.2: timeout = max(Min, Max - (Max - Min) log(C + 1) / log(K + 1)), after C
 * confirmations. Without it suspicion lasts Min. */
static void set_suspicion(struct swim *s, uint64_t hangup_ns)
{
    double least = SUSPICION_MIN * fmax(1, log10(s->n)) * (double)s->period_ns;
    double most = s->health_max ? SUSPICION_MAX * least : least;
    uint32_t k = s->n - 2 < CONFIRMATIONS ? 0 : CONFIRMATIONS;

    for (uint32_t c = 0; c <= CONFIRMATIONS; c++) {
        double share = c < k ? log(c + 1) / log(k + 1) : 1;

        s->suspicion_ns[c] = (uint64_t)(most - (most - least) * share) + hangup_ns;
    }
}

struct swim *swim_new(const struct detector_config *c, const struct detector_out *out,
                      uint64_t now_ns)
{
    struct swim *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->self = c->self;
    s->n = c->n;
    s->health_max = c->health_max;
    s->period_ns = c->gossip_ns;
    s->answer_ns = c->ping_ns;
    s->next_ns = now_ns + c->gossip_ns;
    s->random = c->seed;
    s->spread = SPREAD_FACTOR * (uint32_t)ceil(log10(c->n + 1));
    s->turn = c->n;
    s->out = *out;
    set_suspicion(s, c->hangup_ns);
    s->members = calloc(c->n, sizeof(*s->members));
    s->order = calloc(c->n, sizeof(*s->order));
    for (uint32_t i = 0; s->order && i < c->n; i++)
        s->order[i] = (uint16_t)i;
    if (s->members && s->order)
        return s;
    swim_free(s);
    return NULL;
}

void swim_free(struct swim *s)
{
    if (!s)
        return;
    free(s->members);
    free(s->order);
    free(s);
}

static uint32_t below(struct swim *s, uint32_t bound)
{
    return (uint32_t)((unsigned __int128)routing_draw(&s->random) * bound >> 64);
}

/* [Lifeguard] 4.1: a counter from 0 to a maximum, by which times to wait are multiplied: a process
 * that gets no answers may itself be the one that is slow. */
static void blame_self(struct swim *s, int32_t by)
{
    int32_t health = (int32_t)s->health + by;

    s->health = health < 0 ? 0 : health > (int32_t)s->health_max ? s->health_max : (uint32_t)health;
}

/* --- what is known of the members --- */

/* [SWIM] 4.2: a higher incarnation overrides a lower one; within one, suspicion overrides life, and
 * a failure overrides both. A member that was declared dead, and lives, takes a higher one too. */
static uint32_t rank_of(uint16_t incarnation, uint8_t state)
{
    return incarnation * 3u + state;
}

static void send_on(struct swim *s, struct member *m)
{
    s->pending += m->to_send == 0;
    m->to_send = (uint8_t)s->spread;
}

static void set_state(struct swim *s, const struct swim_update *u, uint64_t now_ns)
{
    struct member *m = &s->members[u->member];
    uint8_t before = m->state;

    s->suspects += u->state == SWIM_SUSPECT;
    s->suspects -= before == SWIM_SUSPECT;
    m->state = u->state;
    m->incarnation = u->incarnation;
    m->since_ns = now_ns;
    m->accusers = 1;
    m->accuser[0] = u->accuser;
    send_on(s, m);
    if (u->state == SWIM_DEAD && before != SWIM_DEAD)
        s->out.verdict(s->out.ctx, u->member, DETECTOR_FAILED);
    if (before == SWIM_DEAD && u->state != SWIM_DEAD)
        s->out.verdict(s->out.ctx, u->member, DETECTOR_BACK);
}

/* Another process suspects it too. */
static void confirm(struct swim *s, struct member *m, uint16_t accuser)
{
    for (uint32_t i = 0; i < m->accusers; i++)
        if (m->accuser[i] == accuser)
            return;
    if (m->accusers > CONFIRMATIONS)
        return;
    m->accuser[m->accusers++] = accuser;
    send_on(s, m);
}

/* [SWIM] 4.2: the member that is suspected takes a higher incarnation, and says that it lives. */
static void refute(struct swim *s, uint16_t incarnation)
{
    struct member *m = &s->members[s->self];

    if (incarnation < m->incarnation || incarnation == UINT16_MAX)
        return;
    m->incarnation = (uint16_t)(incarnation + 1);
    send_on(s, m);
    blame_self(s, 1);
}

static void take_update(struct swim *s, const struct swim_update *u, uint64_t now_ns)
{
    struct member *m = &s->members[u->member];
    uint32_t rank = rank_of(u->incarnation, u->state);
    uint32_t known = rank_of(m->incarnation, m->state);

    if (u->member == s->self) {
        if (u->state != SWIM_ALIVE)
            refute(s, u->incarnation);
    } else if (rank > known) {
        set_state(s, u, now_ns);
    } else if (rank == known && u->state == SWIM_SUSPECT) {
        confirm(s, m, u->accuser);
    }
}

static void accuse(struct swim *s, uint32_t member, uint8_t state, uint64_t now_ns)
{
    struct swim_update u = {.member = (uint16_t)member,
                            .incarnation = s->members[member].incarnation,
                            .accuser = (uint16_t)s->self,
                            .state = state};

    take_update(s, &u, now_ns);
}

/* --- sending --- */

static struct swim_update update_of(const struct swim *s, uint32_t member, uint32_t accuser)
{
    const struct member *m = &s->members[member];

    return (struct swim_update){.member = (uint16_t)member,
                                .incarnation = m->incarnation,
                                .accuser = m->accuser[accuser],
                                .state = m->state};
}

static void add_update(struct swim *s, struct swim_message *m, uint32_t member)
{
    struct member *about = &s->members[member];

    for (uint32_t i = 0; i < m->count; i++)
        if (m->updates[i].member == member)
            return;
    about->to_send--;
    s->pending -= about->to_send == 0;
    /* the accusers by turns */
    m->updates[m->count++] =
        update_of(s, member, about->accusers ? about->to_send % about->accusers : 0);
}

/* [SWIM] 4.1: those that were sent on least often first. */
static void add_updates(struct swim *s, struct swim_message *m)
{
    for (uint32_t most = s->spread; most > 0 && s->pending > 0; most--)
        for (uint32_t i = 0; i < s->n && m->count < SWIM_UPDATES_MAX; i++)
            if (s->members[i].to_send == most)
                add_update(s, m, i);
}

static void send(struct swim *s, uint32_t to, struct swim_message *m)
{
    uint8_t bytes[SWIM_MESSAGE_MAX];
    struct cw_writer w = cw_writer(bytes, sizeof(bytes));
    uint8_t state = s->members[to].state;

    /* [Lifeguard] 4.3, the buddy system: whoever is suspected hears it from the first who speaks to
     * it; and whoever was declared dead hears that. */
    if (state == SWIM_DEAD || (state == SWIM_SUSPECT && s->health_max))
        m->updates[m->count++] = update_of(s, to, 0);
    add_updates(s, m);
    swim_message_write(&w, m);
    s->out.send(s->out.ctx, to, bytes, w.used);
}

static void send_kind(struct swim *s, uint32_t to, enum swim_message_kind kind, uint16_t seq,
                      uint16_t target)
{
    struct swim_message m = {.kind = kind, .seq = seq, .target = target};

    send(s, to, &m);
}

/* --- probing --- */

/* [SWIM] 4.3: each member in turn, in an order that is shuffled after each round. The dead too, so
 * that those who were cut off find each other again. */
static uint16_t next_target(struct swim *s)
{
    for (;;) {
        if (s->turn == s->n) {
            for (uint32_t i = s->n - 1; i > 0; i--) {
                uint32_t j = below(s, i + 1);
                uint16_t moved = s->order[i];

                s->order[i] = s->order[j];
                s->order[j] = moved;
            }
            s->turn = 0;
        }
        if (s->order[s->turn++] != s->self)
            return s->order[s->turn - 1];
    }
}

static void begin_probe(struct swim *s, uint64_t now_ns)
{
    uint16_t target = next_target(s);

    s->probe = (struct probe){.phase = PROBE_DIRECT,
                              .seq = ++s->last_seq,
                              .target = target,
                              .started = s->members[target].heard,
                              .helpers_ns = now_ns + s->answer_ns * (s->health + 1)};
    send_kind(s, s->probe.target, SWIM_PROBE, s->probe.seq, 0);
}

/* [SWIM] 3.1: without an answer, k others are asked to probe it. */
static void ask_helpers(struct swim *s)
{
    struct probe *p = &s->probe;
    uint32_t first = below(s, s->n);

    p->phase = PROBE_INDIRECT;
    for (uint32_t i = 0; i < s->n && p->helpers < HELPERS; i++) {
        uint32_t helper = (first + i) % s->n;

        if (helper == s->self || helper == p->target || s->members[helper].state == SWIM_DEAD)
            continue;
        p->helpers++;
        send_kind(s, helper, SWIM_REQUEST, p->seq, p->target);
    }
}

static void end_probe(struct swim *s, uint64_t now_ns)
{
    const struct probe *p = &s->probe;

    if (p->phase == PROBE_NONE || s->members[p->target].state == SWIM_DEAD || !p->started)
        return;
    if (p->answered) {
        blame_self(s, -1);
        return;
    }
    /* [Lifeguard] 4.1: helpers that cannot reach it say so; those that say nothing are a sign that
     * this process is cut off, or slow */
    blame_self(s, p->helpers ? (int32_t)(p->helpers - p->nacks) : 1);
    accuse(s, p->target, SWIM_SUSPECT, now_ns);
}

/* --- time --- */

/* Those that nobody refuted in time have failed. */
static void end_suspicions(struct swim *s, uint64_t now_ns)
{
    for (uint32_t i = 0; i < s->n && s->suspects > 0; i++) {
        const struct member *m = &s->members[i];

        if (m->state == SWIM_SUSPECT && now_ns >= m->since_ns + s->suspicion_ns[m->accusers - 1])
            accuse(s, i, SWIM_DEAD, now_ns);
    }
}

static void send_nacks(struct swim *s, uint64_t now_ns)
{
    for (uint32_t i = 0; i < ERRANDS_MAX; i++) {
        struct errand *r = &s->errands[i];

        if (!r->waits || now_ns < r->nack_ns)
            continue;
        r->waits = false;
        send_kind(s, r->asker, SWIM_NACK, r->asker_seq, 0);
    }
}

uint64_t swim_due_ns(const struct swim *s)
{
    uint64_t due = s->next_ns;

    if (s->probe.phase == PROBE_DIRECT && !s->probe.answered && s->probe.helpers_ns < due)
        due = s->probe.helpers_ns;
    for (uint32_t i = 0; i < ERRANDS_MAX; i++)
        if (s->errands[i].waits && s->errands[i].nack_ns < due)
            due = s->errands[i].nack_ns;
    for (uint32_t i = 0; i < s->n && s->suspects > 0; i++) {
        const struct member *m = &s->members[i];

        if (m->state == SWIM_SUSPECT && m->since_ns + s->suspicion_ns[m->accusers - 1] < due)
            due = m->since_ns + s->suspicion_ns[m->accusers - 1];
    }
    return due;
}

void swim_advance(struct swim *s, uint64_t now_ns)
{
    end_suspicions(s, now_ns);
    send_nacks(s, now_ns);
    if (s->probe.phase == PROBE_DIRECT && !s->probe.answered && now_ns >= s->probe.helpers_ns)
        ask_helpers(s);
    if (now_ns < s->next_ns)
        return;
    end_probe(s, now_ns);
    begin_probe(s, now_ns);
    /* [Lifeguard] 4.1: the period is longer while this process is not healthy */
    s->next_ns = now_ns + s->period_ns * (s->health + 1);
}

/* Its probe is no evidence, and suspicions last as if they began now. */
void swim_was_away(struct swim *s, uint64_t now_ns)
{
    s->probe.phase = PROBE_NONE;
    s->next_ns = now_ns;
    for (uint32_t i = 0; i < s->n; i++)
        s->members[i].since_ns = now_ns;
    for (uint32_t i = 0; i < ERRANDS_MAX; i++)
        s->errands[i].waits = false;
    blame_self(s, 1);
}

/* --- receiving --- */

/* [SWIM] 3.1: a helper probes it, and sends the answer on. */
static void help(struct swim *s, uint32_t from, const struct swim_message *m, uint64_t now_ns)
{
    s->errands[s->next_errand] = (struct errand){.seq = ++s->last_seq,
                                                 .target = m->target,
                                                 .asker = (uint16_t)from,
                                                 .asker_seq = m->seq,
                                                 .waits = s->health_max > 0,
                                                 .nack_ns = now_ns + NACK_SHARE(s->answer_ns)};
    s->next_errand = (s->next_errand + 1) % ERRANDS_MAX;
    send_kind(s, m->target, SWIM_PROBE, s->last_seq, 0);
}

static void take_ack(struct swim *s, uint32_t from, uint16_t seq)
{
    if (s->probe.phase != PROBE_NONE && seq == s->probe.seq) {
        s->probe.answered = true;
        return;
    }
    for (uint32_t i = 0; i < ERRANDS_MAX; i++) {
        struct errand *r = &s->errands[i];

        if (r->seq != seq || r->target != from || r->asker == from)
            continue;
        r->waits = false;
        send_kind(s, r->asker, SWIM_ACK, r->asker_seq, 0);
        r->asker = (uint16_t)from; /* once */
        return;
    }
}

int swim_receive(struct swim *s, uint32_t from, const void *bytes, size_t size, uint64_t now_ns,
                 struct cw_err *err)
{
    struct swim_message m;

    if (from >= s->n || from == s->self)
        return cw_err_set(err, CW_EPROTO, "there is no process %u", from);
    if (swim_message_read(&m, bytes, size, s->n, err) < 0)
        return cw_err_wrap(err, "process %u", from);
    if (m.kind == SWIM_REQUEST && (m.target == s->self || m.target == from))
        return cw_err_set(err, CW_EPROTO, "process %u wants process %u probed by process %u", from,
                          m.target, s->self);
    s->members[from].heard = true;
    for (uint32_t i = 0; i < m.count; i++)
        take_update(s, &m.updates[i], now_ns);
    if (m.kind == SWIM_PROBE)
        send_kind(s, from, SWIM_ACK, m.seq, 0);
    else if (m.kind == SWIM_REQUEST)
        help(s, from, &m, now_ns);
    else if (m.kind == SWIM_ACK)
        take_ack(s, from, m.seq);
    else if (s->probe.phase == PROBE_INDIRECT && m.seq == s->probe.seq)
        s->probe.nacks += s->probe.nacks < s->probe.helpers;
    return CW_OK;
}
