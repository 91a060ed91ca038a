#include "tests/trace/lives.h"

#include <CUnit/CUnit.h>

struct fixture f;
struct life lives[2];

static struct client *const r0 = &f.rank[0];
static struct client *const r3 = &f.rank[3];
static struct life *const one = &lives[0];
static struct life *const two = &lives[1];

static void digest(struct life *life, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < size; i++)
        life->digest = (life->digest ^ at[i]) * 0x100000001b3ull;
}

static const struct codec_received *received_as(const struct client *c, uint64_t event)
{
    for (size_t i = c->inbox.count; i-- > 0;)
        if (c->inbox.of[i].event == event)
            return &c->inbox.of[i];
    return NULL;
}

/* In whatever pieces a message comes. */
static void digest_message(struct life *life, const struct codec_frame *frame)
{
    struct cw_message header;
    const struct codec_received *r;

    CU_ASSERT_TRUE(cw_message_get(frame->body, &header));
    digest(life, frame->body + CW_MESSAGE_SIZE, frame->header.length - CW_MESSAGE_SIZE);
    if (!header.event)
        return;
    r = received_as(life->c, header.event);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    header = (struct cw_message){.req = r->req, .tag = r->tag, .total = r->total};
    digest(life, &header.req, sizeof(header.req));
    digest(life, &header.tag, sizeof(header.tag));
    digest(life, &header.total, sizeof(header.total));
    digest(life, &r->size, sizeof(r->size));
    CU_ASSERT_TRUE(codec_pattern_is(r->bytes, r->tag, r->size));
}

static void note(struct client *c, const struct codec_frame *frame)
{
    struct life *life = c == one->c ? one : two;
    uint8_t type = frame->header.type;

    if (c != life->c || type == CW_FRAME_CHALLENGE || type == CW_FRAME_WELCOME ||
        type == CW_FRAME_ACK)
        return;
    life->replayed |= type == CW_FRAME_REPLAYED;
    if (type == CW_FRAME_MESSAGE) {
        digest_message(life, frame);
        return;
    }
    digest(life, &type, 1);
    digest(life, frame->body, frame->header.length);
}

static void life_sends(struct life *life, uint32_t kind, uint32_t dst, uint64_t tag,
                       const char *text)
{
    say_send_kind(life->c, kind, dst, life->req++, tag, text);
}

static void life_takes(struct life *life)
{
    if (life->c->event == life->taken)
        return;
    life->taken = life->c->event;
    say_taken(life->c, life->taken, ++life->clock);
}

static void sends_in_two(struct client *from, const struct life *to, uint32_t kind, uint64_t tag,
                         uint32_t size)
{
    say_begin(from, kind, to->rank, tag, size, size / 3);
    say_more(from, tag, size / 3, size - size / 3);
}

void live_step(struct life *life, uint32_t i)
{
    uint64_t tag = (uint64_t)life->rank << 32 | i;
    struct client *c = life->c;

    c->codec.clock = life->clock;
    switch (i % 8) {
    case 0: /* large, to its receive */
        say_recv(c, life->req++, tag);
        sends_in_two(r0, life, CW_SEND_TAG, tag, 50000);
        break;
    case 1: /* small ones, to their receives */
        for (int n = 0; n < 10; n++) {
            say_recv(c, life->req++, tag);
            say_begin(r0, CW_SEND_TAG, life->rank, tag, 4000, 4000);
        }
        break;
    case 2: /* large and small, which wait */
        sends_in_two(r3, life, CW_SEND_TAG, tag, 60000);
        say_begin(r0, CW_SEND_TAG, life->rank, tag, 400, 400);
        break;
    case 3: /* more than its receive has room for */
        say_recv_mask(c, life->req++, tag, CODEC_ALL, 10000 + i);
        sends_in_two(r0, life, CW_SEND_TAG, tag, 30000);
        break;
    case 4:
        say_begin(r3, CW_SEND_AM, life->rank, tag, 20000, 20000);
        sends_in_two(r0, life, CW_SEND_AM, tag, 70000);
        break;
    case 5: /* probes; and what waited is received */
        say_begin(r3, CW_SEND_TAG, life->rank, tag, 9000, 9000);
        say_probe(c, tag, CODEC_ALL, true);
        say_mrecv(c, life->req++, 0, CODEC_ALL);
        say_recv(c, life->req++, tag - 3);
        say_recv(c, life->req++, tag - 3);
        break;
    case 6:
        say_readings(c, "half past nine, and all is well");
        say_recv(r3, 7, tag);
        life_sends(life, CW_SEND_SYNC, 3, tag, "heard");
        break;
    default:
        say_recv(c, life->req++, tag);
        say_cancel(c, life->req - 1, tag, CODEC_ALL);
    }
    life_takes(life);
    life_sends(life, CW_SEND_TAG, 0, tag, "what it says to others");
}

void send_many(uint32_t rank, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        say_begin(r0, CW_SEND_AM, rank, i, 60000, 60000);
}

bool has_received_many(const struct client *c, uint32_t count)
{
    bool right = c->inbox.count == count && c->inbox.complete == count;

    for (uint32_t i = 0; i < count && right; i++)
        right = c->inbox.of[i].tag == i && c->inbox.of[i].size == 60000 &&
                codec_pattern_is(c->inbox.of[i].bytes, i, 60000);
    return right;
}

static void begin_life(struct life *life, uint32_t rank)
{
    *life = (struct life){.c = &f.rank[rank], .rank = rank, .req = FIRST_REQ};
}

void lives_start_with(uint64_t log_memory, uint64_t log_disk)
{
    fixture_init_log_disk(&f, FIXTURE_MEMORY, log_memory, log_disk);
    f.mute = true;
    f.on_frame = note;
    begin_life(one, 1);
    begin_life(two, 2);
}

void lives_start(uint64_t log_disk)
{
    lives_start_with(LOG_MEMORY, log_disk);
    fixture_start(&f, 4);
}

void break_off(struct life *life)
{
    say_recv(life->c, life->req++, 77);
    say_begin(r0, CW_SEND_TAG, life->rank, 77, 90000, 40000);
    say_begin(r3, CW_SEND_TAG, life->rank, 78, 30000, 30000);
    say_begin(r3, CW_SEND_AM, life->rank, 79, 30000, 30000);
}

void live_a_life(struct life *life)
{
    for (uint32_t i = 0; i < LIFE_STEPS; i++)
        live_step(life, i);
    break_off(life);
}

void go_on_living(struct life *life)
{
    uint32_t req = life->req++;

    say_more(r0, 77, 40000, 50000);
    say_recv(life->c, req, 78);
    CU_ASSERT_TRUE(fixture_received(life->c, req, 78, 30000));
    CU_ASSERT_TRUE(fixture_received(life->c, req - 1, 77, 90000));
}

void come_again(struct life *life)
{
    life->digest = 0;
    life->replayed = false;
    fixture_close(life->c, "crash");
    fixture_again(life->c);
}

void prepare_to_be_live(struct life *life)
{
    life->c->codec.clock = life->clock;
    codec_taken(&life->c->codec, CW_FRAME_LIVE, life->taken);
}

void feed_rest(struct life *life)
{
    if (life->c && life->c->conn)
        fixture_feed_some(life->c, codec_left(&life->c->codec.out));
}

uint32_t lives_work(void)
{
    uint32_t count = 0;

    do {
        feed_rest(one);
        feed_rest(two);
    } while (fixture_disk_one(&f) && ++count < 100000);
    return count;
}

void become_live(struct life *life)
{
    CU_ASSERT_TRUE(life->replayed);
    prepare_to_be_live(life);
    lives_work();
    CU_ASSERT_PTR_NOT_NULL(life->c->conn);
    CU_ASSERT_EQUAL(codec_left(&life->c->codec.out), 0);
}

uint64_t lives_digest_in_memory(void)
{
    static uint64_t in_memory;

    if (in_memory)
        return in_memory;
    lives_start_with(FIXTURE_MEMORY, 0);
    fixture_start(&f, 4);
    live_a_life(one);
    come_again(one);
    become_live(one);
    in_memory = one->digest;
    go_on_living(one);
    CU_ASSERT_EQUAL(f.disk.writes, 0);
    fixture_fini(&f);
    return in_memory;
}

void start_waiting(void)
{
    lives_start(LOG_DISK);
    live_a_life(one);
    f.disk_waits = true;
    come_again(one);
    CU_ASSERT_FALSE(one->replayed);
    CU_ASSERT_TRUE(f.disk.count > 0);
}
