#include "tests/sim/record.h"
#include "common/frame.h"
#include "tests/sim/program.h"
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <stdlib.h>

static void *grow(void *at, size_t count, size_t *size, size_t each)
{
    if (count < *size)
        return at;
    *size = *size ? *size * 2 : 64;
    at = realloc(at, *size * each);
    if (!at)
        abort();
    return at;
}

static void append_act(struct record *r, const struct record_act *act)
{
    r->acts = grow(r->acts, r->act_count, &r->act_size, sizeof(*act));
    r->acts[r->act_count++] = *act;
}

static void append_event(struct record *r, const struct record_event *event)
{
    r->events = grow(r->events, r->event_count, &r->event_size, sizeof(*event));
    r->events[r->event_count++] = *event;
}

void record_fini(struct record *r)
{
    free(r->acts);
    free(r->events);
    *r = (struct record){0};
}

/* --- a re-execution does what the execution did --------------------------------------------------
 */

static const char *act_text(char text[200], const struct record_act *a)
{
    static const char *const names[] = {"nothing", "SEND", "RECV", "MRECV", "CANCEL", "PROBE"};

    snprintf(text, 200,
             "%s kind %u to %u seq %u tag %#" PRIx64 " mask %#" PRIx64 " size %" PRIu64
             " at poll %" PRIu64 " state %#" PRIx64,
             names[a->type], a->kind, a->dst, a->seq, a->tag, a->mask, a->size, a->clock, a->hash);
    return text;
}

static const char *event_text(char text[200], const struct record_event *e)
{
    static const char *const names[] = {"nothing", "RECEIVED", "ACTIVE", "SENT", "CANCELED"};

    snprintf(text, 200,
             "%s tag %#" PRIx64 " size %" PRIu64 " status %u of act %" PRIu64 " at poll %" PRIu64
             " state %#" PRIx64,
             names[e->type], e->tag, e->size, e->status, e->act, e->clock, e->hash);
    return text;
}

/* What is logged must be repeated. An event's content never changes, logged as taken or not. */
static void compare_act(const struct sim_process *p, size_t i)
{
    struct record *known = &sim.rank[p->rank].known;
    char a[200];
    char b[200];

    if (p->record.altered || p->lost || !p->record.up || i >= p->record.acts_known)
        return;
    /* a probe whose asker died before it was told */
    if (known->acts[i].type == 0 && p->record.acts[i].type == RECORD_PROBE)
        known->acts[i] = p->record.acts[i];
    if (memcmp(&known->acts[i], &p->record.acts[i], sizeof(known->acts[i])) != 0)
        sim_fail("rank %u, incarnation %u, act %zu is %s, and was %s", p->rank, p->incarnation,
                 i + 1, act_text(a, &p->record.acts[i]), act_text(b, &known->acts[i]));
}

static void compare_event(const struct sim_process *p, size_t i)
{
    struct record *known = &sim.rank[p->rank].known;
    struct record_event now = p->record.events[i];
    char a[200];
    char b[200];

    if (p->record.altered || p->lost || !p->record.up || i >= known->event_count)
        return;
    /* an event whose taker died before it was told */
    if (known->events[i].type == 0)
        known->events[i] = now;
    if (i >= p->record.events_known) {
        now.clock = known->events[i].clock;
        now.hash = known->events[i].hash;
    }
    if (memcmp(&known->events[i], &now, sizeof(now)) != 0)
        sim_fail("rank %u, incarnation %u, event %zu is %s, and was %s", p->rank, p->incarnation,
                 i + 1, event_text(a, &p->record.events[i]), event_text(b, &known->events[i]));
}

/* --- the same with channel memory ---
 * While a device repeats, it does what the incarnation before did; from then on it does what all
 * later ones do, as far as it is noted by the time that it dies. */

static bool is_repeated(const struct sim_process *p)
{
    return p->library->device_look().repeats;
}

static void follow_act(const struct sim_process *p, size_t i)
{
    struct record *known = &sim.rank[p->rank].known;
    const struct record_act *act = &p->record.acts[i];
    char a[200];
    char b[200] = "none";

    if (p->record.altered)
        return;
    if (i > known->act_count)
        sim_fail("rank %u, incarnation %u, skips act %zu", p->rank, p->incarnation, i);
    if (!is_repeated(p)) {
        known->act_count = i;
        append_act(known, act);
    } else if (i >= known->act_count || memcmp(&known->acts[i], act, sizeof(*act)) != 0) {
        if (i < known->act_count)
            act_text(b, &known->acts[i]);
        sim_fail("rank %u, incarnation %u, repeats act %zu as %s, and was %s", p->rank,
                 p->incarnation, i + 1, act_text(a, act), b);
    }
}

static void follow_event(const struct sim_process *p, size_t i)
{
    struct record *known = &sim.rank[p->rank].known;
    const struct record_event *event = &p->record.events[i];
    char a[200];
    char b[200] = "none";

    if (p->record.altered)
        return;
    if (i > known->event_count)
        sim_fail("rank %u, incarnation %u, skips event %zu", p->rank, p->incarnation, i);
    if (!is_repeated(p)) {
        known->event_count = i;
        append_event(known, event);
    } else if (i >= known->event_count || memcmp(&known->events[i], event, sizeof(*event)) != 0) {
        if (i < known->event_count)
            event_text(b, &known->events[i]);
        sim_fail("rank %u, incarnation %u, repeats event %zu as %s, and was %s", p->rank,
                 p->incarnation, i + 1, event_text(a, event), b);
    }
}

void record_act(struct sim_process *p, const struct record_act *act)
{
    char text[200];

    append_act(&p->record, act);
    sim_trace("%u.%u act %zu: %s", p->rank, p->incarnation, p->record.act_count,
              act_text(text, act));
    if (sim.plan.channel)
        follow_act(p, p->record.act_count - 1);
    else
        compare_act(p, p->record.act_count - 1);
}

/* --- output: a line of each event, which tells what came and not when. --- */

static uint64_t line_of(const struct record_event *e)
{
    uint64_t line = program_mix(e->type, e->status);

    return program_mix(program_mix(program_mix(line, e->tag), e->size), e->act) | 1;
}

void record_line_seen(struct sim_process *p, const struct process_line *seen)
{
    struct sim_rank *r = &sim.rank[p->rank];

    if (p->record.altered)
        return;
    while (r->line_count <= seen->number) {
        r->lines = grow(r->lines, r->line_count, &r->line_size, sizeof(*r->lines));
        r->lines[r->line_count++] = 0;
    }
    if (r->lines[seen->number] && r->lines[seen->number] != seen->line)
        sim_fail("rank %u, incarnation %u, prints another line %" PRIu64 " than was read before",
                 p->rank, p->incarnation, seen->number + 1);
    r->lines[seen->number] = seen->line;
}

/* The process that came to the end has printed all that was read. */
static void check_lines(uint32_t rank)
{
    const struct sim_rank *r = &sim.rank[rank];
    const struct record *last = &r->process->record;

    for (size_t i = 0; i < r->line_count && !sim.failed; i++)
        if (r->lines[i] && (i >= last->event_count || line_of(&last->events[i]) != r->lines[i]))
            sim_fail("rank %u: its line %zu was read, and is another one at last", rank, i + 1);
}

void record_event(struct sim_process *p, const struct record_event *event)
{
    char text[200];

    append_event(&p->record, event);
    if (!sim.plan.channel) /* else what it took last is not noted yet */
        process_print(p->record.event_count - 1, line_of(event));
    sim_trace("%u.%u event %zu: %s", p->rank, p->incarnation, p->record.event_count,
              event_text(text, event));
    if (sim.plan.channel)
        follow_event(p, p->record.event_count - 1);
    else
        compare_event(p, p->record.event_count - 1);
}

static void learn_events(struct record *known, const struct record *last, bool lost,
                         uint64_t events)
{
    if (lost && known->event_count > events)
        known->event_count = events;
    while (last && (!lost || known->event_count < events) && !last->altered &&
           known->event_count < last->event_count)
        append_event(known, &last->events[known->event_count]);
    while (known->event_count < events)
        append_event(known, &(struct record_event){0});
    /* the last ones may have been taken by one that died before it was told: what an earlier one
     * saw of them, unknown to its relay, does not count */
    for (uint64_t i = known->events_known; i < events; i++)
        known->events[i] = i < last->event_count ? last->events[i] : (struct record_event){0};
}

/* What the last incarnation did, as far as its relay knows of it, is what all later ones do. */
static void learn(struct sim_rank *r, uint32_t rank, uint64_t acts, uint64_t events)
{
    struct record *known = &r->known;
    const struct record *last = r->last_up;

    if (acts < known->act_count || events < known->events_known) {
        sim_fail("rank %u: its relay forgets: %" PRIu64 " acts, %" PRIu64 " events", rank, acts,
                 events);
        return;
    }
    if ((acts > known->act_count || events > known->events_known) &&
        (!last || last->act_count + last->probing < acts ||
         (last->event_count < events && !last->polling))) {
        sim_fail("rank %u: its relay knows of %" PRIu64 " acts and %" PRIu64
                 " events, which it did not make",
                 rank, acts, events);
        return;
    }
    while (known->act_count < acts)
        append_act(known, known->act_count < last->act_count ? &last->acts[known->act_count]
                                                             : &(struct record_act){0});
    learn_events(known, last, r->lost, events);
    r->lost = false;
    known->acts_known = acts;
    known->events_known = events;
}

void record_up(struct sim_process *p, uint64_t acts, uint64_t events)
{
    struct sim_rank *r = &sim.rank[p->rank];

    sim_trace("%u.%u is up: %" PRIu64 " acts and %" PRIu64 " events to repeat", p->rank,
              p->incarnation, acts, events);
    p->record.up = true;
    if (sim.plan.channel) {
        p->record.acts_known = UINT64_MAX;
        return;
    }
    learn(r, p->rank, acts, events);
    r->last_up = &p->record;
    p->record.acts_known = acts;
    p->record.events_known = events;
    for (size_t i = 0; i < p->record.act_count && !sim.failed; i++)
        compare_act(p, i);
    for (size_t i = 0; i < p->record.event_count && !sim.failed; i++)
        compare_event(p, i);
}

void record_live(struct sim_process *p)
{
    p->record.live = true;
    if (p->record.altered && p->record.altered_act < p->record.acts_known)
        sim_fail("rank %u, incarnation %u, changed act %" PRIu64 " of %" PRIu64
                 " that it had to repeat, and was let in",
                 p->rank, p->incarnation, p->record.altered_act + 1, p->record.acts_known);
}

/* --- every message came once ---------------------------------------------------------------------
 */

/* The next message from one rank to another must be that after the last, among those that the same
 * receives match: non-overtaking. */
struct order {
    uint32_t last[SIM_RANKS_MAX][PROGRAM_TAGS];
};

/* A message by its number at its sender. */
struct sent {
    const struct record_act *act;
    uint32_t came;
};

/* Numbers that lack here were active messages to the rank itself. */
static uint32_t last_seq(const struct record *r)
{
    uint32_t last = 0;

    for (size_t i = 0; i < r->act_count; i++)
        if (r->acts[i].type == RECORD_SEND && r->acts[i].seq > last)
            last = r->acts[i].seq;
    return last;
}

/* Its sender's record must hold it. */
static void check_received(uint32_t rank, const struct record_event *e, struct sent **sent)
{
    uint32_t src = program_tag_src(e->tag);
    uint32_t seq = program_tag_seq(e->tag);
    struct sent *s = src < sim.plan.ranks && seq <= last_seq(&sim.rank[src].process->record)
                         ? &sent[src][seq]
                         : NULL;

    if (!s || !s->act || s->act->dst != rank || s->act->size != e->size ||
        (e->type == RECORD_ACTIVE) != (s->act->kind == CW_SEND_AM) ||
        (e->type == RECORD_RECEIVED && s->act->tag != e->tag))
        sim_fail("rank %u received a message that nobody sent: from %u, number %u, %" PRIu64
                 " bytes",
                 rank, src, seq, e->size);
    else if (s->came++)
        sim_fail("rank %u received message %u of rank %u twice", rank, seq, src);
}

static void check_order(uint32_t rank, const struct record *r)
{
    uint64_t *tags = calloc(r->act_count + 1, sizeof(*tags));
    struct order order = {0};
    struct order active = {0};

    if (!tags)
        abort();
    for (size_t i = 0; i < r->event_count; i++) {
        const struct record_event *e = &r->events[i];
        uint32_t *last = &active.last[program_tag_src(e->tag)][0];

        if (e->type == RECORD_RECEIVED && !(e->tag & PROGRAM_TAG_CLOSING))
            tags[e->act] = e->tag;
        if (e->type != RECORD_ACTIVE)
            continue;
        if (program_tag_seq(e->tag) <= *last)
            sim_fail("rank %u: active messages out of order, event %zu", rank, i + 1);
        *last = program_tag_seq(e->tag);
    }
    for (size_t i = 1; i <= r->act_count && !sim.failed; i++) {
        uint32_t *last = &order.last[program_tag_src(tags[i])][program_tag_user(tags[i])];

        if (tags[i] && program_tag_seq(tags[i]) <= *last)
            sim_fail("rank %u: a message has overtaken another, act %zu", rank, i);
        if (tags[i])
            *last = program_tag_seq(tags[i]);
    }
    free(tags);
}

static void check_rank(uint32_t rank, struct sent **sent)
{
    const struct record *r = &sim.rank[rank].process->record;

    for (size_t i = 0; i < r->event_count && !sim.failed; i++) {
        const struct record_event *e = &r->events[i];

        if (e->type == RECORD_RECEIVED || e->type == RECORD_ACTIVE)
            check_received(rank, e, sent);
    }
    if (!sim.failed)
        check_order(rank, r);
}

static struct sent *list_sent(const struct record *r)
{
    struct sent *sent = calloc(last_seq(r) + 1, sizeof(*sent));

    if (!sent)
        abort();
    for (size_t i = 0; i < r->act_count; i++)
        if (r->acts[i].type == RECORD_SEND)
            sent[r->acts[i].seq].act = &r->acts[i];
    return sent;
}

static void check_all_came(uint32_t rank, const struct sent *sent)
{
    for (size_t seq = 1; seq <= last_seq(&sim.rank[rank].process->record); seq++)
        if (sent[seq].act && !sent[seq].came)
            sim_fail("message %zu of rank %u to rank %u never came", seq, rank, sent[seq].act->dst);
}

void record_check_all(void)
{
    struct sent *sent[SIM_RANKS_MAX];

    for (uint32_t i = 0; i < sim.plan.ranks; i++)
        if (!sim.rank[i].process || !sim.rank[i].process->record.whole) {
            sim_fail("rank %u has not come to its end, and the job ended well", i);
            return;
        }
    for (uint32_t i = 0; i < sim.plan.ranks; i++)
        sent[i] = list_sent(&sim.rank[i].process->record);
    for (uint32_t i = 0; i < sim.plan.ranks && !sim.failed; i++) {
        check_rank(i, sent);
        check_lines(i);
    }
    for (uint32_t i = 0; i < sim.plan.ranks && !sim.failed; i++)
        check_all_came(i, sent[i]);
    for (uint32_t i = 0; i < sim.plan.ranks; i++)
        free(sent[i]);
}
