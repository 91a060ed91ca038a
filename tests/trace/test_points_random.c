/* Random lives of a rank, of which images are taken: its log is trimmed to any of them, relay and
 * rank are killed at any moment, and each incarnation is told exactly what the ones before had been
 * told after the point that it starts from. */
#include "relay/log/point.h"
#include "tests/trace/killed.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE_AFTER_EACH("trace of random points", fixture_end);

#define STEPS 1000u
#define LIVES 20u
#define OPEN_MAX 16u
#define FIRST_REQ 1000000u /* active messages have numbers below */
#define MASK_USER 0xffull
#define USERS 3u
#define RESUME_MS 5000

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static uint64_t seed;

struct event {
    uint8_t type;
    uint32_t req;
    uint64_t tag;
    uint64_t size;
};

struct determinant {
    uint8_t type;
    uint32_t size;
    uint8_t body[CW_SEND_SIZE];
};

struct image {
    struct cw_point at;
    uint32_t determinants;
};

/* The message that a rank is sending to rank 0. */
struct sender {
    struct client *c;
    uint64_t tag;
    uint64_t total;
    uint64_t said;
};

/* All that rank 0 did and was told, over all its incarnations. */
static struct {
    struct event events[STEPS * 2];
    uint64_t event_count;
    struct determinant determinants[STEPS];
    uint32_t determinant_count;
    uint64_t acts;
    uint64_t taken;
    uint64_t clock;
    uint64_t logged; /* the clock of the last thing that the relay knows of */
    uint32_t req;
    struct cw_recv posted[OPEN_MAX];
    uint32_t posted_count;
    uint32_t out[OPEN_MAX]; /* taken out by probes */
    uint32_t out_count;
    struct image images[LOG_POINTS_MAX];
    uint32_t image_count;
    bool trimmed;
    bool replaying;
    bool probing;
    uint32_t next; /* determinant that is to be told */
    struct sender senders[2];
    uint64_t tags;
} life;

static uint64_t below(uint64_t bound)
{
    return codec_random_below(&seed, bound);
}

/* --- what it is told ----------------------------------------------------------------------------
 */
static void hear_event(struct event event, uint64_t number)
{
    const struct event *known = &life.events[number - 1];

    CU_ASSERT_TRUE_FATAL(number <= life.event_count + 1 && number <= STEPS * 2);
    if (number > life.event_count)
        life.events[life.event_count++] = event;
    else
        CU_ASSERT_TRUE(known->type == event.type && known->req == event.req &&
                       known->tag == event.tag && known->size == event.size);
}

static void hear_message(const struct codec_frame *frame)
{
    struct cw_message header;

    CU_ASSERT_TRUE(cw_message_get(frame->body, &header));
    for (size_t i = r0->inbox.count; header.event && i-- > 0;) {
        const struct codec_received *r = &r0->inbox.of[i];

        if (r->event != header.event)
            continue;
        CU_ASSERT_TRUE(codec_pattern_is(r->bytes, r->tag, r->size));
        hear_event((struct event){CW_FRAME_MESSAGE, r->req, r->tag, r->size}, header.event);
        return;
    }
    CU_ASSERT_EQUAL(header.event, 0);
}

static void note_determinant(uint8_t type, const void *body, uint32_t size)
{
    struct determinant *d = &life.determinants[life.determinant_count++];

    CU_ASSERT_TRUE_FATAL(life.determinant_count <= STEPS && size <= sizeof(d->body));
    *d = (struct determinant){.type = type, .size = size};
    memcpy(d->body, body, size);
}

static void hear_determinant(const struct codec_frame *frame)
{
    const struct determinant *d = &life.determinants[life.next++];

    CU_ASSERT_TRUE_FATAL(life.next <= life.determinant_count);
    CU_ASSERT_TRUE(frame->header.type == d->type && frame->header.length == d->size &&
                   memcmp(frame->body, d->body, d->size) == 0);
}

static void hear_answer(const struct codec_frame *frame)
{
    struct cw_probed answer;

    CU_ASSERT_TRUE(cw_probed_get(frame->body, &answer));
    if (!life.probing || !answer.found) /* a relay that came back says the last one again */
        return;
    CU_ASSERT_EQUAL(answer.clock, life.clock);
    life.acts++;
    life.logged = life.clock;
    life.out[life.out_count] = answer.msg;
    answer.unexpected = 0; /* no part of what is logged */
    cw_probed_put((uint8_t *)frame->body, &answer);
    note_determinant(CW_FRAME_PROBED, frame->body, CW_PROBED_SIZE);
    life.probing = false;
}

static void hear(struct client *c, const struct codec_frame *frame)
{
    uint8_t type = frame->header.type;
    struct cw_done done;

    if (c != r0)
        return;
    if (type == CW_FRAME_MESSAGE)
        hear_message(frame);
    if (type == CW_FRAME_SENT || type == CW_FRAME_CANCELED) {
        CU_ASSERT_TRUE(cw_done_get(frame->body, &done));
        hear_event((struct event){.type = type, .req = done.req}, done.event);
    }
    if (type == CW_FRAME_PROBED && !life.replaying)
        hear_answer(frame);
    else if (type == CW_FRAME_PROBED || type == CW_FRAME_TAKEN || type == CW_FRAME_READINGS ||
             type == CW_FRAME_SEND)
        hear_determinant(frame);
    if (type == CW_FRAME_REPLAYED) {
        CU_ASSERT_TRUE(life.replaying && life.next == life.determinant_count);
        life.replaying = false;
    }
}

/* --- what it does -------------------------------------------------------------------------------
 */
static void act(void)
{
    life.acts++;
    life.logged = r0->codec.clock = ++life.clock;
}

static void receive(void)
{
    uint64_t tag = below(USERS);
    uint64_t mask = below(4) ? MASK_USER : 0;
    uint64_t room = below(3) ? CODEC_ALL : 1000;

    act();
    if (life.posted_count < OPEN_MAX)
        life.posted[life.posted_count++] =
            (struct cw_recv){.req = life.req, .tag = tag, .mask = mask};
    say_recv_mask(r0, life.req++, tag, mask, room);
}

/* It may have its message already. */
static void cancel(void)
{
    struct cw_recv *recv;

    if (life.posted_count == 0)
        return;
    act();
    recv = &life.posted[below(life.posted_count)];
    say_cancel(r0, recv->req, recv->tag, recv->mask);
    *recv = life.posted[--life.posted_count];
}

static void probe(bool take)
{
    uint64_t tag = below(USERS);
    uint32_t before = life.determinant_count;

    if (life.out_count == OPEN_MAX)
        return;
    r0->codec.clock = ++life.clock;
    life.probing = true;
    say_probe(r0, tag, MASK_USER, take);
    life.probing = false;
    life.out_count += take && life.determinant_count > before;
}

static void receive_out(void)
{
    uint32_t at;

    if (life.out_count == 0)
        return;
    at = (uint32_t)below(life.out_count);
    act();
    say_mrecv(r0, life.req++, life.out[at], below(3) ? CODEC_ALL : 1000);
    life.out[at] = life.out[--life.out_count];
}

static void take(void)
{
    uint64_t most = r0->event - life.taken;
    struct cw_taken taken = {.event = life.taken + (below(2) ? most : below(most + 1)),
                             .clock = ++life.clock};
    uint8_t body[CW_TAKEN_SIZE];

    if (taken.event == life.taken)
        return;
    cw_taken_put(body, &taken);
    note_determinant(CW_FRAME_TAKEN, body, sizeof(body));
    life.taken = taken.event;
    life.logged = life.clock;
    say_taken(r0, taken.event, taken.clock);
}

static void read_clock(void)
{
    note_determinant(CW_FRAME_READINGS, "quarter past six", 16);
    say_readings(r0, "quarter past six");
}

static void send_on(void)
{
    struct cw_send send = {
        .dst = 1, .kind = below(2) ? CW_SEND_SYNC : CW_SEND_TAG, .tag = life.acts, .total = 4};

    act();
    note_determinant(CW_FRAME_SEND, &send, sizeof(send));
    say_send_kind(r0, send.kind, 1, life.req++, send.tag, "well");
    say_recv(&f.rank[1], life.req, send.tag);
}

/* What the others send to it. */
static void speak(struct sender *s)
{
    static const uint64_t most[] = {1, 500, 10000, 200000};
    uint32_t kind = below(4) ? CW_SEND_TAG : CW_SEND_AM;
    uint64_t size;

    if (s->said == s->total) {
        s->tag = ++life.tags << 8 | below(USERS);
        s->total = 1 + below(most[below(4)]);
        s->said = 1 + below(s->total);
        say_begin(s->c, kind, 0, s->tag, s->total, s->said);
        return;
    }
    size = below(2) ? s->total - s->said : 1 + below(s->total - s->said);
    say_more(s->c, s->tag, s->said, size);
    s->said += size;
}

/* --- images -------------------------------------------------------------------------------------
 */
static void forget_image(uint32_t at)
{
    life.image_count--;
    memmove(&life.images[at], &life.images[at + 1], (life.image_count - at) * sizeof(*life.images));
}

static void take_image(void)
{
    struct image image = {.at = {life.taken, ++life.clock, life.acts},
                          .determinants = life.determinant_count};

    if (life.image_count == LOG_POINTS_MAX)
        forget_image(life.trimmed);
    life.images[life.image_count++] = image;
    say_point(r0, &image.at);
}

static void trim(void)
{
    uint32_t at;

    if (life.image_count == 0)
        return;
    at = (uint32_t)below(life.image_count);
    say_trim(&f, 0, &life.images[at].at);
    CU_ASSERT_TRUE(f.trimmed.known);
    f.trimmed.known = 0;
    while (at-- > 0)
        forget_image(0);
    life.trimmed = true;
}

static struct image where_to_start(void)
{
    uint64_t at = below(life.image_count + !life.trimmed);

    return at < life.image_count ? life.images[at] : (struct image){0};
}

/* The rank is killed, and repeats what came after an image. It may not come to the last ones. */
static void restart(void)
{
    struct image from = where_to_start();
    uint64_t live = below(2) ? life.clock : life.logged;

    if (live < from.at.clock)
        live = from.at.clock;
    fixture_close(r0, "crash");
    life.next = from.determinants;
    life.replaying = life.acts > 0 || life.determinant_count > 0;
    fixture_again_from(r0, &from.at);
    CU_ASSERT_EQUAL(r0->welcome.acts, life.acts);
    CU_ASSERT_FALSE_FATAL(life.replaying);
    if (r0->welcome.flags & CW_WELCOME_REPLAY)
        say_live(r0, life.taken, live);
    else
        live = from.at.clock;
    while (life.image_count > life.trimmed && life.images[life.image_count - 1].at.clock > live)
        life.image_count--;
    life.clock = live;
    CU_ASSERT_EQUAL(r0->event, life.event_count);
}

/* What rank 0 is told meanwhile is lost on the way. */
static void kill_relay(void)
{
    r0->deaf = below(2);
    speak(&life.senders[0]);
    speak(&life.senders[1]);
    r0->deaf = false;
    CU_ASSERT_EQUAL_FATAL(fixture_kill(&f).lost, 0);
    fixture_all_come_back(&f, 3);
    CU_ASSERT_EQUAL(r0->event, life.event_count);
}

static void cut(struct client *c)
{
    c->deaf = c == r0;
    speak(&life.senders[0]);
    fixture_close(c, "cut");
    speak(&life.senders[c == life.senders[0].c]);
    fixture_resume(c, c->received);
    CU_ASSERT_TRUE_FATAL(c->open);
    CU_ASSERT_EQUAL(r0->event, life.event_count);
}

/* The next one sends the rest of its message. */
static void restart_sender(struct sender *s)
{
    fixture_close(s->c, "crash");
    fixture_again(s->c);
    CU_ASSERT_EQUAL(s->c->welcome.missing, s->total - s->said);
    if (s->c->welcome.flags & CW_WELCOME_REPLAY)
        say_live(s->c, 0, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->c->conn);
}

/* --- lives --------------------------------------------------------------------------------------
 */
static void step(void)
{

    void (*const often[])(void) = {receive, receive,    receive, cancel,    receive_out,
                                   take,    read_clock, send_on, take_image};

    switch (below(40)) {
    case 0:
        if (f.left)
            kill_relay();
        break;
    case 1:
        restart();
        break;
    case 2:
    case 3:
        trim();
        break;
    case 4:
    case 5:
    case 6:
        probe(below(2));
        break;
    case 7:
        cut(below(2) ? r0 : life.senders[below(2)].c);
        break;
    case 8:
        restart_sender(&life.senders[below(2)]);
        break;
    default:
        if (below(2))
            speak(&life.senders[below(2)]);
        else
            often[below(sizeof(often) / sizeof(*often))]();
    }
}

static void live(uint64_t from)
{
    unsigned failed = CU_get_number_of_failure_records();

    seed = from;
    memset(&life, 0, sizeof(life));
    life.req = FIRST_REQ;
    life.senders[0].c = &f.rank[1];
    life.senders[1].c = &f.rank[2];
    f.on_frame = hear;
    f.mute = true;
    f.resume_ms = RESUME_MS;
    f.seed = f.disk.seed = from;
    f.cuts = from % 3 == 0;
    f.feed = from % 4 == 0 ? FEED_RANDOM : FEED_WHOLE;
    fixture_start(&f, 3);
    for (uint32_t i = 0; i < STEPS && CU_get_number_of_failure_records() == failed; i++)
        step();
    restart();
    fixture_fini(&f);
}

TEST(relay_that_lives)
{
    for (uint64_t i = 1; i <= LIVES; i++) {
        fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
        live(i);
    }
}

TEST(relay_that_is_killed)
{
    for (uint64_t i = 1; i <= LIVES; i++) {
        fixture_init_left(&f, FIXTURE_MEMORY, 0);
        live(i);
    }
}

TEST(logs_on_disk)
{
    for (uint64_t i = 1; i <= LIVES; i++) {
        fixture_init_left(&f, 5u << 19, 64u << 20);
        live(i);
    }
}
