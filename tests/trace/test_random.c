/* Random traffic among four ranks, with bytes cut at random and steps in random order. Whatever
 * the seed: each matched message arrives exactly once and whole, in MPI's order. A seed that fails
 * is printed; CAUSEWAY_TEST_SEED=SEED runs it alone. */
#include "tests/trace/fixture.h"
#include "tests/trace/random_request.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#define RANKS 4
#define ACTIONS 600
#define ITEMS_MAX 1024 /* requests, or messages, of one rank */
#define TAGS 3

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 6
#else
#define SEEDS 40
#endif

struct message {
    uint64_t tag;
    uint64_t total;
    uint32_t dst;
    uint32_t kind;
    uint32_t received; /* times */
    uint32_t acknowledged;
};

struct rank {
    struct request requests[ITEMS_MAX];
    struct message messages[ITEMS_MAX]; /* that it sent */
    uint32_t request_count;
    uint32_t message_count;
    uint64_t sending;            /* bytes of its last message that are out */
    uint32_t probing;            /* the request that its probe is for, + 1 */
    uint32_t active_from[RANKS]; /* serial of the last active message from each, + 1 */
};

static struct fixture f;
static struct rank ranks[RANKS];
static uint64_t seed;
static uint64_t failures;

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    if (failures++ == 0)
        printf("# %s\n", what);
    CU_FAIL("random traffic");
}

static uint64_t below(uint64_t bound)
{
    return codec_random_below(&seed, bound);
}

static uint32_t index_of(const struct client *c)
{
    return (uint32_t)(c - f.rank);
}

static struct message *message_of(uint64_t tag)
{
    uint32_t src = (uint32_t)(tag >> 56);
    uint32_t serial = (uint32_t)(tag & MASK_SERIAL);

    if (src >= RANKS || serial >= ranks[src].message_count)
        return NULL;
    return &ranks[src].messages[serial];
}

/* --- what arrives ----------------------------------------------------------------------------- */
static void take_active(uint32_t rank, const struct codec_received *r, struct message *m)
{
    uint32_t src = (uint32_t)(m->tag >> 56);
    uint32_t serial = (uint32_t)(m->tag & MASK_SERIAL);

    check(m->kind == CW_SEND_AM && r->size == m->total, "an active message is whole");
    check(ranks[rank].active_from[src] <= serial, "active messages of a pair keep their order");
    ranks[rank].active_from[src] = serial + 1;
}

static void take_matched(uint32_t rank, const struct codec_received *r, const struct message *m)
{
    struct request *q = &ranks[rank].requests[r->req];
    uint64_t wanted = m->total;

    check(r->req < ranks[rank].request_count, "a message is for a request");
    check(q->state == POSTED || q->state == CANCELING, "a request gets one message");
    check(((q->tag ^ m->tag) & q->mask) == 0, "a message matches its request");
    check(m->kind != CW_SEND_AM, "a request gets no active message");
    if (wanted > q->capacity)
        wanted = q->capacity;
    check(r->size == wanted, "a message has the bytes its receive has room for");
    check(!(r->flags & CW_MESSAGE_TRUNC) == (q->capacity >= m->total), "truncation is told");
    q->state = RECEIVED;
    q->message = m->tag;
}

static void take_message(uint32_t rank, const struct codec_received *r)
{
    struct message *m = message_of(r->tag);

    check(m && m->tag == r->tag, "a message was sent");
    if (!m)
        return;
    check(m->dst == rank && m->total == r->total, "a message comes to its destination");
    check(codec_pattern_is(r->bytes, r->tag, r->size), "a message has its own bytes");
    check(m->received++ == 0, "a message comes once");
    if (r->flags & CW_MESSAGE_ACTIVE)
        take_active(rank, r, m);
    else
        take_matched(rank, r, m);
}

static void post_mrecv(struct client *c, const struct cw_probed *probed)
{
    struct rank *r = &ranks[index_of(c)];
    uint32_t req = r->probing - 1;

    r->probing = 0;
    check(((probed->tag ^ r->requests[req].tag) & r->requests[req].mask) == 0,
          "a probe finds what it looks for");
    codec_mrecv(&c->codec, req, probed->msg, r->requests[req].capacity);
}

static void take_probed(struct client *c, const struct codec_frame *frame)
{
    struct rank *r = &ranks[index_of(c)];
    struct cw_probed probed;

    check(cw_probed_get(frame->body, &probed) && r->probing, "a probe is answered once");
    if (probed.found) {
        post_mrecv(c, &probed);
    } else {
        r->requests[r->probing - 1].state = CANCELED;
        r->probing = 0;
    }
}

static void take_done(uint32_t rank, const struct codec_frame *frame)
{
    struct rank *r = &ranks[rank];
    struct cw_done done;

    cw_done_get(frame->body, &done);
    if (frame->header.type == CW_FRAME_SENT) {
        check(done.req < r->message_count && r->messages[done.req].kind == CW_SEND_SYNC,
              "a synchronous send is acknowledged");
        check(r->messages[done.req].acknowledged++ == 0, "and once");
    } else {
        check(done.req < r->request_count && r->requests[done.req].state == CANCELING,
              "what was canceled was to be canceled");
        r->requests[done.req].state = CANCELED;
    }
}

static void on_frame(struct client *c, const struct codec_frame *frame)
{
    struct codec_received *r;

    if (frame->header.type == CW_FRAME_MESSAGE) {
        /* the last that got bytes: streams of active messages and requests are told apart */
        for (size_t i = c->inbox.count; i-- > 0;) {
            r = &c->inbox.of[i];
            if (r->event == c->event && codec_event(frame)) {
                take_message(index_of(c), r);
                break;
            }
        }
    } else if (frame->header.type == CW_FRAME_SENT || frame->header.type == CW_FRAME_CANCELED) {
        take_done(index_of(c), frame);
    } else if (frame->header.type == CW_FRAME_PROBED) {
        take_probed(c, frame);
    }
}

/* --- what is done ----------------------------------------------------------------------------- */
static uint64_t some_total(void)
{
    static const uint64_t bounds[] = {1, 20, 300, 5000, 20000, 100000, 600000};

    return below(bounds[below(100) < 90 ? below(5) : below(7)]);
}

static void send_more(struct client *c)
{
    struct rank *r = &ranks[index_of(c)];
    struct message *m = &r->messages[r->message_count - 1];
    uint64_t left = m->total - r->sending;
    uint64_t most = left < CW_FRAME_DATA_MAX ? left : CW_FRAME_DATA_MAX;
    uint64_t size = below(2) ? most : 1 + below(most);

    codec_pattern(codec_begin(&c->codec, CW_FRAME_SEND_DATA, size), m->tag, r->sending, size);
    r->sending += size;
}

static void send_new(struct client *c)
{
    uint32_t me = index_of(c);
    struct rank *r = &ranks[me];
    struct message *m = &r->messages[r->message_count];
    struct cw_send send;
    uint64_t size;

    if (r->message_count == ITEMS_MAX)
        return;
    *m = (struct message){.total = some_total(),
                          .dst = (uint32_t)below(RANKS),
                          .kind = CW_SEND_TAG + (uint32_t)below(3)};
    m->tag = (uint64_t)me << 56 | below(TAGS) << 48 | r->message_count;
    send = (struct cw_send){
        .dst = m->dst, .kind = m->kind, .req = r->message_count, .tag = m->tag, .total = m->total};
    size = m->total < CW_FRAME_DATA_MAX ? m->total : CW_FRAME_DATA_MAX;
    if (size > 1 && below(3) == 0)
        size = 1 + below(size);
    cw_send_put(codec_begin(&c->codec, CW_FRAME_SEND, CW_SEND_SIZE + size), &send);
    codec_pattern(c->codec.out.at + c->codec.out.end - size, m->tag, 0, size);
    r->message_count++;
    r->sending = size;
}

static bool is_sending(const struct rank *r)
{
    return r->message_count && r->sending < r->messages[r->message_count - 1].total;
}

static struct request *new_request(struct rank *r)
{
    static const uint64_t masks[] = {MASK_SOURCE | MASK_TAG,   MASK_SOURCE, MASK_TAG,  0,
                                     MASK_SOURCE | 1ull << 48, 1ull << 49,  1ull << 56};
    struct request *q = &r->requests[r->request_count];

    if (r->request_count == ITEMS_MAX)
        return NULL;
    *q = (struct request){.tag = below(RANKS) << 56 | below(TAGS) << 48,
                          .mask = masks[below(2) ? 0 : below(7)],
                          .capacity = below(8) ? CODEC_ALL : some_total()};
    r->request_count++;
    return q;
}

static void receive(struct client *c, bool any)
{
    struct rank *r = &ranks[index_of(c)];
    struct request *q = new_request(r);

    if (!q)
        return;
    if (any)
        q->mask = 0;
    codec_recv(&c->codec, CW_FRAME_RECV, r->request_count - 1, q->tag, q->mask, q->capacity);
}

/* Takes a message out; the MRECV follows when the answer is there. */
static void probe(struct client *c)
{
    struct rank *r = &ranks[index_of(c)];
    struct request *q = r->probing ? NULL : new_request(r);

    if (!q)
        return;
    r->probing = r->request_count;
    codec_probe(&c->codec, q->tag, q->mask, true);
}

static void cancel(struct client *c)
{
    struct rank *r = &ranks[index_of(c)];
    uint32_t req = r->request_count ? (uint32_t)below(r->request_count) : 0;
    struct request *q = &r->requests[req];

    if (r->request_count == 0 || q->state != POSTED || r->probing)
        return;
    q->state = CANCELING;
    codec_recv(&c->codec, CW_FRAME_CANCEL, req, q->tag, q->mask, CODEC_ALL);
}

static void act(struct client *c)
{
    struct rank *r = &ranks[index_of(c)];
    uint64_t what = below(100);

    if (is_sending(r) && what < 60)
        send_more(c);
    else if (what < 45 && !is_sending(r))
        send_new(c);
    else if (what < 85)
        receive(c, false);
    else if (what < 93)
        probe(c);
    else
        cancel(c);
}

/* Some of what a random rank has to say reaches the relay. */
static void move(void)
{
    struct client *c = &f.rank[below(RANKS)];
    size_t left = codec_left(&c->codec.out);

    if (left)
        fixture_feed_some(c, below(3) ? 1 + below(left) : left);
    if (below(4) == 0)
        c->stalled = !c->stalled;
    if (!c->stalled)
        fixture_read(c);
}

/* --- the end ---------------------------------------------------------------------------------- */
static void settle(void)
{
    bool busy = true;

    for (int i = 0; i < RANKS; i++)
        fixture_read(&f.rank[i]);
    while (busy) {
        busy = false;
        for (int i = 0; i < RANKS; i++) {
            struct client *c = &f.rank[i];

            if (is_sending(&ranks[i]))
                send_more(c);
            busy |= codec_left(&c->codec.out) > 0;
            fixture_feed_some(c, codec_left(&c->codec.out));
        }
    }
}

/* Whatever waits is received. */
static void receive_rest(void)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        uint32_t missing = 0;

        for (uint32_t src = 0; src < RANKS; src++)
            for (uint32_t m = 0; m < ranks[src].message_count; m++)
                missing += ranks[src].messages[m].dst == i && !ranks[src].messages[m].received;
        while (missing-- > 0)
            receive(&f.rank[i], true);
    }
    settle();
}

static void check_all_arrived(void)
{
    for (uint32_t src = 0; src < RANKS; src++) {
        for (uint32_t i = 0; i < ranks[src].message_count; i++) {
            const struct message *m = &ranks[src].messages[i];

            check(m->received == 1, "every message arrives");
            check(m->acknowledged == (m->kind == CW_SEND_SYNC), "every match is acknowledged");
        }
        for (uint32_t i = 0; i < ranks[src].request_count; i++)
            check(ranks[src].requests[i].state != CANCELING,
                  "a cancel ends in CANCELED or a message");
    }
}

/* Of two receives, the earlier one must not have got the later of two messages of one sender, when
 * it matched the earlier one too. */
static void check_order(const struct rank *r)
{
    for (uint32_t i = 0; i < r->request_count; i++)
        for (uint32_t j = i + 1; j < r->request_count; j++) {
            const struct request *a = &r->requests[i];
            const struct request *b = &r->requests[j];

            if (a->state != RECEIVED || b->state != RECEIVED ||
                ((a->message ^ b->message) & MASK_SOURCE) ||
                (a->message & MASK_SERIAL) < (b->message & MASK_SERIAL))
                continue;
            check(((a->tag ^ b->message) & a->mask) != 0, "messages do not overtake");
        }
}

static void play(uint64_t which)
{
    seed = which * 0x9e3779b97f4a7c15ull + 1;
    memset(ranks, 0, sizeof(ranks));
    fixture_init(&f, FIXTURE_MEMORY);
    f.mute = true;
    fixture_start(&f, RANKS);
    f.feed = FEED_RANDOM;
    f.cuts = which % 2;
    f.seed = seed;
    f.on_frame = on_frame;
    for (int i = 0; i < ACTIONS; i++) {
        act(&f.rank[below(RANKS)]);
        for (uint64_t moves = below(4); moves > 0; moves--)
            move();
    }
    settle();
    receive_rest();
    check_all_arrived();
    for (int i = 0; i < RANKS; i++) {
        check(f.rank[i].conn != NULL, "nobody is refused");
        check_order(&ranks[i]);
    }
    fixture_fini(&f);
    if (failures)
        printf("# seed %llu: CAUSEWAY_TEST_SEED=%llu runs it alone\n", (unsigned long long)which,
               (unsigned long long)which);
}

static void random_traffic(void)
{
    const char *one = getenv("CAUSEWAY_TEST_SEED");

    failures = 0;
    if (one) {
        play(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t which = 1; which <= SEEDS && !failures; which++)
        play(which);
}

void add_random_tests(void)
{
    CU_pSuite suite = CU_add_suite("trace of random traffic", NULL, NULL);

    CU_ADD_TEST(suite, random_traffic);
}
