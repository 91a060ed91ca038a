/* Random programs on four ranks, which crash at random and are executed again by a client that
 * repeats as a device does. Whatever the seed: an event never changes, a re-execution never
 * diverges, each message arrives exactly once and whole, in MPI's order; and a program whose
 * receives leave no choice gets what it gets without crashes. A seed that fails is printed;
 * CAUSEWAY_TEST_SEED=SEED runs it alone. */
#include "tests/trace/fixture.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#define RANKS 4
#define STEPS 150 /* operations of a program */
#define ITEMS_MAX 512
#define TAGS 3
#define TURNS_MAX 200000 /* a play that needs more hangs */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 10
#else
#define SEEDS 60
#endif

#define MASK_SOURCE 0xff00000000000000ull
#define MASK_TAG 0x00ff000000000000ull
#define MASK_SERIAL 0x00000000ffffffffull

enum request_state { POSTED, CANCELING, CANCELED, RECEIVED };

struct request {
    enum request_state state;
    uint64_t tag;
    uint64_t mask;
    uint64_t capacity;
    uint64_t message; /* the tag of what it got */
};

struct sent {
    uint64_t tag;
    uint64_t total;
    uint32_t dst;
    uint32_t kind;
    uint32_t acknowledged;
};

/* What the relay said and the program has not seen yet; events, and the log's other items. */
struct item {
    uint8_t type; /* of its frame */
    uint32_t req;
    uint32_t flags;
    uint64_t tag;
    uint64_t total;
    uint64_t event;
    uint64_t clock;
    uint64_t reading;
};

/* A program and its device; a crash takes all of it. */
struct process {
    uint64_t random; /* the program's own */
    uint64_t hash;   /* of all it has seen: what it does depends on it */
    uint64_t polls;
    uint64_t acts;
    uint64_t taken;
    uint32_t steps;
    uint32_t polls_left; /* of the operation at hand */
    struct request requests[ITEMS_MAX];
    struct sent sent[ITEMS_MAX];
    uint64_t actives[ITEMS_MAX]; /* tags of active messages that came */
    uint32_t request_count;
    uint32_t sent_count;
    uint32_t active_count;
    uint64_t out;         /* bytes of its last message that are out */
    uint32_t probing;     /* the request that its probe is for, + 1 */
    bool answered;        /* the probe */
    bool receives_probed; /* what the probe took out is to be received */
    struct cw_probed answer;
    uint64_t readings[ITEMS_MAX]; /* not told to the relay yet */
    uint32_t reading_count;
    bool up; /* WELCOME has come */
    bool repeats;
    uint64_t repeat_acts;
    uint64_t missing;
    struct item items[4 * ITEMS_MAX];
    uint32_t item_first;
    uint32_t item_end;
};

static struct fixture f;
static struct process processes[RANKS];
static uint64_t witness[RANKS][ITEMS_MAX]; /* of each event */
static uint64_t play_seed;
static uint64_t seed; /* of everything that a program does not decide */
static bool exact;    /* receives that leave no choice */
static uint64_t failures;

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    if (failures++ == 0)
        printf("# %s\n", what);
    CU_FAIL("random recovery");
}

static uint64_t below(uint64_t bound)
{
    return codec_random_below(&seed, bound);
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

    return (mixed(r, exact ? 0 : p->hash) >> 16) % bound;
}

static struct process *process_of(const struct client *c)
{
    return &processes[c - f.rank];
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
    check(witness[rank][item->event] == 0 || witness[rank][item->event] == hash,
          "an event does not change");
    witness[rank][item->event] = hash;
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
        check(codec_pattern_is(r->bytes, r->tag, r->size), "a message has its own bytes");
        item = push(process_of(c), CW_FRAME_MESSAGE);
        item->req = r->req;
        item->flags = r->flags & (CW_MESSAGE_TRUNC | CW_MESSAGE_ACTIVE);
        item->tag = r->tag;
        item->total = r->total;
        item->event = r->event;
        item->clock = r->size;
        check_witness((uint32_t)(c - f.rank), item);
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
    check_witness((uint32_t)(c - f.rank), item);
}

static void hear_probed(struct process *p, const struct codec_frame *frame)
{
    struct cw_probed probed;
    struct item *item;

    check(cw_probed_get(frame->body, &probed), "an answer can be read");
    if (!p->repeats) {
        check(p->probing && !p->answered, "a probe is answered once");
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
    check(cw_reader_end(&r), "readings come back whole");
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

static void on_frame(struct client *c, const struct codec_frame *frame)
{
    if (c == &f.dispatcher) {
        struct cw_notice_body notice = {0};

        if (frame->header.type == CW_FRAME_NOTICE)
            cw_notice_get(frame->body, frame->header.length, &notice);
        check(notice.code != CW_NOTICE_DIVERGED && notice.code != CW_NOTICE_UNLOGGED, notice.text);
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
        check(false, "nobody is refused");
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
    check(item->req < p->request_count && (q->state == POSTED || q->state == CANCELING),
          "a message is for a request, which gets one");
    check(((q->tag ^ item->tag) & q->mask) == 0, "a message matches its request");
    check(item->clock == (q->capacity < item->total ? q->capacity : item->total) &&
              !(item->flags & CW_MESSAGE_TRUNC) == (q->capacity >= item->total),
          "a message has the bytes its receive has room for");
    q->state = RECEIVED;
    q->message = item->tag;
}

static void see_event(struct process *p, const struct item *item)
{
    check(item->event == p->taken + 1, "events are taken in order");
    p->taken = item->event;
    p->hash = mixed(mixed(p->hash, item->type), mixed(item->req, item->tag));
    if (item->type == CW_FRAME_MESSAGE) {
        see_message(p, item);
    } else if (item->type == CW_FRAME_SENT) {
        check(item->req < p->sent_count && p->sent[item->req].acknowledged++ == 0,
              "a synchronous send is acknowledged once");
    } else {
        check(item->req < p->request_count && p->requests[item->req].state == CANCELING,
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
        check(item->type == CW_FRAME_REPLAYED || item->type == CW_FRAME_READINGS ||
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
    uint64_t most = below(4);
    uint64_t before = p->taken;

    if (p->repeats) {
        repeat_poll(p);
        return;
    }
    p->polls++;
    p->polls_left--;
    while (most-- > 0 && first_item(p)) {
        check(is_event(first_item(p)), "one who is live is told events");
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
    uint64_t value = codec_random(&seed);

    if (p->repeats) {
        check(item->type == CW_FRAME_READINGS, "a clock says what it said");
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
        check(p->acts <= p->repeat_acts, "no more acts are repeated than were made");
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

static bool is_sending(const struct process *p)
{
    return p->sent_count && p->out < p->sent[p->sent_count - 1].total;
}

static void send_more(struct client *c)
{
    struct process *p = process_of(c);
    const struct sent *s = &p->sent[p->sent_count - 1];
    uint64_t left = s->total - p->out;
    uint64_t most = left < CW_FRAME_DATA_MAX ? left : CW_FRAME_DATA_MAX;
    uint64_t size = below(2) ? most : 1 + below(most);

    check(!p->repeats, "a message that is not whole is the last act");
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
    if (size > 1 && below(3) == 0)
        size = 1 + below(size);
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
    uint64_t me = (uint64_t)(c - f.rank);

    *s = (struct sent){.total = some_total(p),
                       .dst = (uint32_t)decide(p, RANKS),
                       .kind = CW_SEND_TAG + (uint32_t)decide(p, exact ? 2 : 3)};
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
                          .mask = masks[exact || decide(p, 2) ? 0 : decide(p, 7)],
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
    check(item->clock == p->polls, "a probe comes when it had come");
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
    check(((p->answer.tag ^ q->tag) & q->mask) == 0, "a probe finds what it looks for");
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
    else if (what < 80 || exact)
        p->polls_left = 1 + (uint32_t)decide(p, 4);
    else if (what < 88)
        probe(c);
    else if (what < 94)
        read_clock(p);
    else
        cancel(c);
}

/* One thing that the process does next; nothing when it waits for the relay. */
static void advance(struct client *c)
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
    else if (is_sending(p))
        send_more(c);
    else if (p->polls_left)
        poll_once(c);
    else if (p->steps < STEPS)
        operate(c);
    else if (p->repeats || first_item(p))
        p->polls_left = 1;
}

/* --- the play --------------------------------------------------------------------------------- */
static void be_born(uint32_t rank)
{
    struct process *p = &processes[rank];

    memset(p, 0, sizeof(*p));
    p->random = mixed(play_seed, rank) | 1;
    p->hash = rank;
}

static void crash(struct client *c)
{
    fixture_close(c, "crash");
    be_born((uint32_t)(c - f.rank));
    fixture_again(c);
}

static void move(struct client *c)
{
    size_t left = codec_left(&c->codec.out);

    if (left)
        fixture_feed_some(c, below(3) ? 1 + below(left) : left);
    if (below(4) == 0)
        c->stalled = !c->stalled;
    if (!c->stalled)
        fixture_read(c);
}

static bool has_ended(uint32_t rank)
{
    const struct process *p = &processes[rank];

    return p->up && p->steps == STEPS && !p->repeats && !p->probing && !p->polls_left &&
           !is_sending(p) && p->item_first == p->item_end &&
           codec_left(&f.rank[rank].codec.out) == 0 && !f.rank[rank].stalled;
}

static bool all_have_ended(void)
{
    bool ended = true;

    for (uint32_t i = 0; i < RANKS; i++)
        ended = ended && has_ended(i);
    return ended;
}

/* Every `1 / crashes` of the turns somebody crashes, while the programs are young. */
static void run(uint64_t crashes)
{
    uint64_t turn = 0;

    while (!all_have_ended() && turn < TURNS_MAX && !failures) {
        struct client *c = &f.rank[below(RANKS)];

        advance(c);
        if (below(2))
            move(c);
        if (crashes && turn++ < 20 * crashes && below(crashes) == 0)
            crash(&f.rank[below(RANKS)]);
        turn += !crashes;
    }
    check(all_have_ended(), "the programs end");
}

/* --- what came of it -------------------------------------------------------------------------- */
static const struct sent *sent_of(uint64_t tag)
{
    uint64_t src = tag >> 56;
    uint64_t serial = tag & MASK_SERIAL;

    if (src >= RANKS || serial >= processes[src].sent_count ||
        processes[src].sent[serial].tag != tag)
        return NULL;
    return &processes[src].sent[serial];
}

static void count_received(uint32_t rank, uint64_t tag, uint32_t counts[RANKS][ITEMS_MAX])
{
    const struct sent *s = sent_of(tag);

    check(s && s->dst == rank, "what was received was sent to its receiver");
    if (s)
        check(counts[tag >> 56][tag & MASK_SERIAL]++ == 0, "a message comes once");
}

/* Active messages come in any case; what was matched, and only that, was received. */
static void check_messages(void)
{
    static uint32_t counts[RANKS][ITEMS_MAX];

    memset(counts, 0, sizeof(counts));
    for (uint32_t i = 0; i < RANKS; i++) {
        const struct process *p = &processes[i];

        for (uint32_t n = 0; n < p->active_count; n++)
            count_received(i, p->actives[n], counts);
        for (uint32_t n = 0; n < p->request_count; n++)
            if (p->requests[n].state == RECEIVED)
                count_received(i, p->requests[n].message, counts);
    }
    for (uint32_t i = 0; i < RANKS; i++)
        for (uint32_t n = 0; n < processes[i].sent_count; n++) {
            const struct sent *s = &processes[i].sent[n];

            check(s->kind != CW_SEND_AM || counts[i][n] == 1, "every active message comes");
            check(s->acknowledged == (s->kind == CW_SEND_SYNC && counts[i][n] == 1),
                  "what was matched was acknowledged");
        }
}

/* Of two receives, the earlier one must not have got the later of two messages of one sender, when
 * it matched the earlier one too. */
static void check_order(const struct process *p)
{
    for (uint32_t i = 0; i < p->request_count; i++) {
        check(p->requests[i].state != CANCELING, "a cancel ends in CANCELED or a message");
        for (uint32_t j = i + 1; j < p->request_count; j++) {
            const struct request *a = &p->requests[i];
            const struct request *b = &p->requests[j];

            if (a->state != RECEIVED || b->state != RECEIVED ||
                ((a->message ^ b->message) & MASK_SOURCE) ||
                (a->message & MASK_SERIAL) < (b->message & MASK_SERIAL))
                continue;
            check(((a->tag ^ b->message) & a->mask) != 0, "messages do not overtake");
        }
    }
}

static void play(uint64_t which, uint64_t crashes)
{
    play_seed = seed = which * 0x9e3779b97f4a7c15ull + 1;
    memset(witness, 0, sizeof(witness));
    fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    f.mute = true;
    f.seed = seed;
    for (uint32_t i = 0; i < RANKS; i++)
        be_born(i);
    f.on_frame = on_frame;
    fixture_start(&f, RANKS);
    f.feed = FEED_RANDOM;
    f.cuts = which % 2;
    run(crashes);
    check_messages();
    for (uint32_t i = 0; i < RANKS; i++)
        check_order(&processes[i]);
    fixture_fini(&f);
    if (failures)
        printf("# seed %llu: CAUSEWAY_TEST_SEED=%llu runs it alone\n", (unsigned long long)which,
               (unsigned long long)which);
}

static void every_seed(void (*of)(uint64_t which))
{
    const char *one = getenv("CAUSEWAY_TEST_SEED");

    failures = 0;
    if (one) {
        of(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t which = 1; which <= SEEDS && !failures; which++)
        of(which);
}

static void play_any(uint64_t which)
{
    exact = false;
    play(which, 40 + 200 * (which % 4));
}

static void any_program(void)
{
    every_seed(play_any);
}

static void play_twice(uint64_t which)
{
    static struct process before[RANKS];

    exact = true;
    play(which, 0);
    memcpy(before, processes, sizeof(before));
    play(which, 40 + 200 * (which % 4));
    for (uint32_t i = 0; i < RANKS && !failures; i++) {
        check(processes[i].request_count == before[i].request_count &&
                  processes[i].sent_count == before[i].sent_count,
              "it did the same");
        for (uint32_t n = 0; n < before[i].request_count; n++)
            check(processes[i].requests[n].state == before[i].requests[n].state &&
                      processes[i].requests[n].message == before[i].requests[n].message,
                  "it received the same");
    }
}

static void same_as_without_crashes(void)
{
    every_seed(play_twice);
}

void add_random_recovery_tests(void)
{
    CU_pSuite suite = CU_add_suite("trace of random recovery", NULL, NULL);

    CU_ADD_TEST(suite, any_program);
    CU_ADD_TEST(suite, same_as_without_crashes);
}
