#include "tests/trace/random_program.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#define TAGS 3

struct play play;

void play_check(bool ok, const char *what)
{
    if (ok)
        return;
    if (play.failures++ == 0)
        printf("# %s\n", what);
    CU_FAIL("random recovery");
}

uint64_t play_below(uint64_t bound)
{
    return codec_random_below(&play.seed, bound);
}

static uint64_t mixed(uint64_t hash, uint64_t v)
{
    hash = (hash ^ v) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

/* A decision of the program. */
static uint64_t decide(struct process *p, uint64_t bound)
{
    uint64_t r = codec_random(&p->random);

    return (mixed(r, play.exact ? 0 : p->hash) >> 16) % bound;
}

static struct process *process_of(const struct client *c)
{
    return &play.processes[c - play.f.rank];
}

void program_begin(uint32_t rank)
{
    struct process *p = &play.processes[rank];

    memset(p, 0, sizeof(*p));
    p->random = mixed(play.programs, rank) | 1;
    p->hash = rank;
}

/* --- what the relay says ---------------------------------------------------------------------- */
static struct item *push(struct process *p, uint8_t type)
{
    struct item *item = &p->items[p->item_end++];

    CU_ASSERT_TRUE_FATAL(p->item_end <= 4 * ITEMS_MAX);
    *item = (struct item){.type = type};
    return item;
}

static struct item *first_item(struct process *p)
{
    return p->item_first < p->item_end ? &p->items[p->item_first] : NULL;
}

static bool is_event(const struct item *item)
{
    return item->event && item->type != CW_FRAME_TAKEN;
}

/* An event is the same whenever it is told. */
static void check_witness(uint32_t rank, const struct item *item)
{
    uint64_t hash = mixed(mixed(item->req, item->tag), mixed(item->total, item->flags));

    hash = mixed(hash, item->type) | 1;
    CU_ASSERT_TRUE_FATAL(item->event < ITEMS_MAX);
    play_check(play.witness[rank][item->event] == 0 || play.witness[rank][item->event] == hash,
               "an event does not change");
    play.witness[rank][item->event] = hash;
}

static void hear_message(struct client *c, const struct codec_frame *frame)
{
    struct item *item;

    if (!codec_event(frame))
        return;
    for (size_t i = c->inbox.count; i-- > 0;) {
        const struct codec_received *r = &c->inbox.of[i];

        if (r->event != c->event)
            continue;
        play_check(codec_pattern_is(r->bytes, r->tag, r->size), "a message has its own bytes");
        item = push(process_of(c), CW_FRAME_MESSAGE);
        item->req = r->req;
        item->flags = r->flags & (CW_MESSAGE_TRUNC | CW_MESSAGE_ACTIVE);
        item->tag = r->tag;
        item->total = r->total;
        item->event = r->event;
        item->clock = r->size;
        check_witness((uint32_t)(c - play.f.rank), item);
        return;
    }
}

static void hear_done(struct client *c, const struct codec_frame *frame)
{
    struct item *item = push(process_of(c), frame->header.type);
    struct cw_done done;

    cw_done_get(frame->body, &done);
    item->req = done.req;
    item->event = done.event;
    check_witness((uint32_t)(c - play.f.rank), item);
}

static void hear_probed(struct process *p, const struct codec_frame *frame)
{
    struct cw_probed probed;
    struct item *item;

    play_check(cw_probed_get(frame->body, &probed), "an answer can be read");
    if (!p->repeats) {
        play_check(p->probing && !p->answered, "a probe is answered once");
        p->answer = probed;
        p->answered = true;
        return;
    }
    item = push(p, CW_FRAME_PROBED);
    item->clock = probed.clock;
    item->tag = probed.tag;
    item->total = probed.total;
    item->req = probed.msg;
}

static void hear_readings(struct process *p, const struct codec_frame *frame)
{
    struct cw_reader r = cw_reader(frame->body, frame->header.length);

    while (r.left > 0)
        push(p, CW_FRAME_READINGS)->reading = cw_get_u64(&r);
    play_check(cw_reader_end(&r), "readings come back whole");
}

static void hear_taken(struct process *p, const struct codec_frame *frame)
{
    struct item *item = push(p, CW_FRAME_TAKEN);
    struct cw_taken taken;

    cw_taken_get(frame->body, &taken);
    item->event = taken.event;
    item->clock = taken.clock;
}

static void hear_welcome(struct client *c)
{
    struct process *p = process_of(c);

    p->up = true;
    p->repeats = c->welcome.flags & CW_WELCOME_REPLAY;
    p->repeat_acts = c->welcome.acts;
    p->missing = c->welcome.missing;
}

void program_on_frame(struct client *c, const struct codec_frame *frame)
{
    if (c == &play.f.dispatcher) {
        struct cw_notice_body notice = {0};

        if (frame->header.type == CW_FRAME_NOTICE)
            cw_notice_get(frame->body, frame->header.length, &notice);
        play_check(notice.code != CW_NOTICE_DIVERGED && notice.code != CW_NOTICE_UNLOGGED,
                   notice.text);
        return;
    }
    switch (frame->header.type) {
    case CW_FRAME_WELCOME:
        hear_welcome(c);
        break;
    case CW_FRAME_MESSAGE:
        hear_message(c, frame);
        break;
    case CW_FRAME_SENT:
    case CW_FRAME_CANCELED:
        hear_done(c, frame);
        break;
    case CW_FRAME_PROBED:
        hear_probed(process_of(c), frame);
        break;
    case CW_FRAME_READINGS:
        hear_readings(process_of(c), frame);
        break;
    case CW_FRAME_TAKEN:
        hear_taken(process_of(c), frame);
        break;
    case CW_FRAME_REPLAYED:
        push(process_of(c), CW_FRAME_REPLAYED);
        break;
    case CW_FRAME_REFUSED:
        play_check(false, "nobody is refused");
        break;
    }
}

/* --- what the program sees -------------------------------------------------------------------- */
static void see_message(struct process *p, const struct item *item)
{
    struct request *q = &p->requests[item->req];

    if (item->flags & CW_MESSAGE_ACTIVE) {
        CU_ASSERT_TRUE_FATAL(p->active_count < ITEMS_MAX);
        p->actives[p->active_count++] = item->tag;
        return;
    }
    play_check(item->req < p->request_count && (q->state == POSTED || q->state == CANCELING),
               "a message is for a request, which gets one");
    play_check(((q->tag ^ item->tag) & q->mask) == 0, "a message matches its request");
    play_check(item->clock == (q->capacity < item->total ? q->capacity : item->total) &&
                   !(item->flags & CW_MESSAGE_TRUNC) == (q->capacity >= item->total),
               "a message has the bytes its receive has room for");
    q->state = RECEIVED;
    q->message = item->tag;
}

static void see_event(struct process *p, const struct item *item)
{
    play_check(item->event == p->taken + 1, "events are taken in order");
    p->taken = item->event;
    p->hash = mixed(mixed(p->hash, item->type), mixed(item->req, item->tag));
    if (item->type == CW_FRAME_MESSAGE) {
        see_message(p, item);
    } else if (item->type == CW_FRAME_SENT) {
        play_check(item->req < p->sent_count && p->sent[item->req].acknowledged++ == 0,
                   "a synchronous send is acknowledged once");
    } else {
        play_check(item->req < p->request_count && p->requests[item->req].state == CANCELING,
                   "what was canceled was to be canceled");
        p->requests[item->req].state = CANCELED;
    }
}

/* --- determinants ----------------------------------------------------------------------------- */
static void tell_readings(struct client *c)
{
    struct process *p = process_of(c);

    if (p->reading_count)
        codec_put(&c->codec, CW_FRAME_READINGS, p->readings, p->reading_count * 8);
    p->reading_count = 0;
}

/* What comes next in the log; events follow the TAKEN that they belong to. */
static bool group_is_here(struct process *p, const struct item *taken)
{
    return p->item_end - p->item_first > taken->event - p->taken;
}

static void repeat_poll(struct process *p)
{
    struct item *item = first_item(p);

    if (item->type == CW_FRAME_TAKEN && item->clock == p->polls + 1) {
        if (!group_is_here(p, item))
            return;
        p->item_first++;
        p->polls++;
        for (uint64_t last = item->event; p->taken < last;)
            see_event(p, &p->items[p->item_first++]);
    } else {
        play_check(item->type == CW_FRAME_REPLAYED || item->type == CW_FRAME_READINGS ||
                       item->clock > p->polls + 1,
                   "a determinant is not passed by");
        p->polls++;
    }
    p->polls_left--;
}

/* A call for progress: some of what has come is taken. */
static void poll_once(struct client *c)
{
    struct process *p = process_of(c);
    uint64_t most = play_below(4);
    uint64_t before = p->taken;

    if (p->repeats) {
        repeat_poll(p);
        return;
    }
    p->polls++;
    p->polls_left--;
    while (most-- > 0 && first_item(p)) {
        play_check(is_event(first_item(p)), "one who is live is told events");
        see_event(p, &p->items[p->item_first++]);
    }
    if (p->taken == before)
        return;
    tell_readings(c);
    c->codec.clock = p->polls;
    codec_taken(&c->codec, CW_FRAME_TAKEN, p->taken);
}

static void read_clock(struct process *p)
{
    struct item *item = first_item(p);
    uint64_t value = codec_random(&play.seed);

    if (p->repeats) {
        play_check(item->type == CW_FRAME_READINGS, "a clock says what it said");
        value = item->reading;
        p->item_first++;
    } else if (p->reading_count < ITEMS_MAX) {
        p->readings[p->reading_count++] = value;
    }
    p->hash = mixed(p->hash, value);
}

/* True when the act was made before. */
static bool act(struct client *c)
{
    struct process *p = process_of(c);

    p->acts++;
    c->codec.clock = p->polls;
    if (p->repeats) {
        play_check(p->acts <= p->repeat_acts, "no more acts are repeated than were made");
        return true;
    }
    tell_readings(c);
    return false;
}

/* All is repeated: from here on it is live. */
static void settle(struct client *c)
{
    struct process *p = process_of(c);

    if (p->acts < p->repeat_acts || first_item(p)->type != CW_FRAME_REPLAYED)
        return;
    p->item_first++;
    p->repeats = false;
    c->codec.clock = p->polls;
    codec_taken(&c->codec, CW_FRAME_LIVE, p->taken);
}

/* --- what the program does -------------------------------------------------------------------- */
static uint64_t some_total(struct process *p)
{
    static const uint64_t bounds[] = {1, 20, 300, 5000, 20000, 100000, 600000};

    return decide(p, bounds[decide(p, 100) < 90 ? decide(p, 5) : decide(p, 7)]);
}

bool program_is_sending(const struct process *p)
{
    return p->sent_count && p->out < p->sent[p->sent_count - 1].total;
}

static void send_more(struct client *c)
{
    struct process *p = process_of(c);
    const struct sent *s = &p->sent[p->sent_count - 1];
    uint64_t left = s->total - p->out;
    uint64_t most = left < CW_FRAME_DATA_MAX ? left : CW_FRAME_DATA_MAX;
    uint64_t size = play_below(2) ? most : 1 + play_below(most);

    play_check(!p->repeats, "a message that is not whole is the last act");
    codec_pattern(codec_begin(&c->codec, CW_FRAME_SEND_DATA, size), s->tag, p->out, size);
    p->out += size;
}

static void begin_message(struct client *c, const struct sent *s)
{
    struct process *p = process_of(c);
    uint64_t size = s->total < CW_FRAME_DATA_MAX ? s->total : CW_FRAME_DATA_MAX;
    struct cw_send send = {
        .dst = s->dst, .kind = s->kind, .req = p->sent_count, .tag = s->tag, .total = s->total};
    uint8_t *to;

    p->out = s->total;
    if (act(c)) {
        codec_check(&c->codec, &send);
        if (p->acts == p->repeat_acts)
            p->out -= p->missing;
        return;
    }
    if (size > 1 && play_below(3) == 0)
        size = 1 + play_below(size);
    send.clock = p->polls;
    to = codec_begin(&c->codec, CW_FRAME_SEND, CW_SEND_SIZE + size);
    cw_send_put(to, &send);
    codec_pattern(to + CW_SEND_SIZE, s->tag, 0, size);
    p->out = size;
}

static void send_new(struct client *c)
{
    struct process *p = process_of(c);
    struct sent *s = &p->sent[p->sent_count];
    uint64_t me = (uint64_t)(c - play.f.rank);

    *s = (struct sent){.total = some_total(p),
                       .dst = (uint32_t)decide(p, RANKS),
                       .kind = CW_SEND_TAG + (uint32_t)decide(p, play.exact ? 2 : 3)};
    s->tag = me << 56 | decide(p, TAGS) << 48 | p->sent_count;
    begin_message(c, s);
    p->sent_count++;
}

static struct request *new_request(struct process *p)
{
    static const uint64_t masks[] = {MASK_SOURCE | MASK_TAG,   MASK_SOURCE, MASK_TAG,  0,
                                     MASK_SOURCE | 1ull << 48, 1ull << 49,  1ull << 56};
    struct request *q = &p->requests[p->request_count++];

    *q = (struct request){.tag = decide(p, RANKS) << 56 | decide(p, TAGS) << 48,
                          .mask = masks[play.exact || decide(p, 2) ? 0 : decide(p, 7)],
                          .capacity = decide(p, 8) ? CODEC_ALL : some_total(p)};
    return q;
}

static void post(struct client *c, const struct request *q)
{
    if (!act(c))
        codec_recv(&c->codec, CW_FRAME_RECV, process_of(c)->request_count - 1, q->tag, q->mask,
                   q->capacity);
}

static void probe(struct client *c)
{
    struct process *p = process_of(c);
    struct request *q = new_request(p);
    const struct item *item = first_item(p);

    p->probing = p->request_count;
    p->polls++;
    if (!p->repeats) {
        tell_readings(c);
        c->codec.clock = p->polls;
        codec_probe(&c->codec, q->tag, q->mask, true);
        return;
    }
    p->answered = true;
    p->answer = (struct cw_probed){0};
    if (item->type != CW_FRAME_PROBED || item->clock > p->polls)
        return;
    play_check(item->clock == p->polls, "a probe comes when it had come");
    p->answer = (struct cw_probed){.found = 1, .msg = item->req, .tag = item->tag};
    p->item_first++;
}

static void see_answer(struct process *p)
{
    struct request *q = &p->requests[p->probing - 1];

    p->answered = false;
    p->hash = mixed(p->hash, p->answer.found ? p->answer.tag : 0);
    if (!p->answer.found) {
        q->state = CANCELED;
        p->probing = 0;
        return;
    }
    play_check(((p->answer.tag ^ q->tag) & q->mask) == 0, "a probe finds what it looks for");
    p->acts++;
    p->receives_probed = true;
}

static void receive_probed(struct client *c)
{
    struct process *p = process_of(c);
    uint32_t req = p->probing - 1;

    if (!act(c))
        codec_mrecv(&c->codec, req, p->answer.msg, p->requests[req].capacity);
    p->probing = 0;
    p->receives_probed = false;
}

static void cancel(struct client *c)
{
    struct process *p = process_of(c);
    uint32_t req = p->request_count ? (uint32_t)decide(p, p->request_count) : 0;
    struct request *q = &p->requests[req];

    if (p->request_count == 0 || q->state != POSTED)
        return;
    q->state = CANCELING;
    if (!act(c))
        codec_recv(&c->codec, CW_FRAME_CANCEL, req, q->tag, q->mask, CODEC_ALL);
}

static void operate(struct client *c)
{
    struct process *p = process_of(c);
    uint64_t what = decide(p, 100);

    p->steps++;
    if (what < 30)
        send_new(c);
    else if (what < 60)
        post(c, new_request(p));
    else if (what < 80 || play.exact)
        p->polls_left = 1 + (uint32_t)decide(p, 4);
    else if (what < 88)
        probe(c);
    else if (what < 94)
        read_clock(p);
    else
        cancel(c);
}

void program_advance(struct client *c)
{
    struct process *p = process_of(c);

    if (p->repeats && first_item(p))
        settle(c);
    if (!p->up || (p->repeats && !first_item(p)))
        return;
    if (p->probing && p->answered)
        see_answer(p);
    else if (p->receives_probed)
        receive_probed(c);
    else if (p->probing)
        return;
    else if (program_is_sending(p))
        send_more(c);
    else if (p->polls_left)
        poll_once(c);
    else if (p->steps < STEPS)
        operate(c);
    else if (p->repeats || first_item(p))
        p->polls_left = 1;
}
