/* Ranks whose logs are mostly on disk: they repeat all that they did, wait for what is being read,
 * and lose nothing; a disk that fails takes only what is on it. */
#include "relay/memory/block.h"
#include "tests/trace/fixture.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of logs on disk", fixture_end);

#define LOG_MEMORY (1u << 20)
#define LOG_DISK (64u << 20)
/* of a core with such logs, and with blocks that it keeps for later */
#define MEMORY_BOUND (LOG_MEMORY + RELAY_BLOCKS_KEPT * sizeof(struct relay_block) + (2u << 20))
#define STEPS 96
#define SENDS_MAX 1024
#define FIRST_REQ 1000000 /* the numbers of active messages are below */

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static struct client *const r2 = &f.rank[2];
static struct client *const r3 = &f.rank[3];

/* --- a life, and what is told of it ----------------------------------------------------------- */
struct life {
    struct client *c;
    uint32_t rank;
    uint32_t req;
    uint64_t clock;
    uint64_t taken;
    struct cw_send sends[SENDS_MAX];
    uint32_t send_count;
    uint64_t digest; /* of what its last incarnation was told */
    bool replayed;   /* it was told so */
};

static struct life lives[2];
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
    CU_ASSERT_TRUE_FATAL(life->send_count < SENDS_MAX);
    life->sends[life->send_count++] =
        (struct cw_send){.dst = dst, .kind = kind, .tag = tag, .total = strlen(text)};
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

/* One of everything that a log keeps. */
static void live_step(struct life *life, uint32_t i)
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

/* Active messages of 60000 bytes for a rank, and nothing else. */
static void send_many(uint32_t rank, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        say_begin(r0, CW_SEND_AM, rank, i, 60000, 60000);
}

static bool has_received_many(const struct client *c, uint32_t count)
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

static void start_with(uint64_t log_memory, uint64_t log_disk)
{
    fixture_init_log_disk(&f, FIXTURE_MEMORY, log_memory, log_disk);
    f.mute = true;
    f.on_frame = note;
    begin_life(one, 1);
    begin_life(two, 2);
}

static void start(uint64_t log_disk)
{
    start_with(LOG_MEMORY, log_disk);
    fixture_start(&f, 4);
}

/* With a message that is here in part, one that waits, and one that was not taken. */
static void break_off(struct life *life)
{
    say_recv(life->c, life->req++, 77);
    say_begin(r0, CW_SEND_TAG, life->rank, 77, 90000, 40000);
    say_begin(r3, CW_SEND_TAG, life->rank, 78, 30000, 30000);
    say_begin(r3, CW_SEND_AM, life->rank, 79, 30000, 30000);
}

static void live_a_life(struct life *life)
{
    for (uint32_t i = 0; i < STEPS; i++)
        live_step(life, i);
    break_off(life);
}

/* The last incarnation receives the rest of it. */
static void go_on_living(struct life *life)
{
    uint32_t req = life->req++;

    say_more(r0, 77, 40000, 50000);
    say_recv(life->c, req, 78);
    CU_ASSERT_TRUE(fixture_received(life->c, req, 78, 30000));
    CU_ASSERT_TRUE(fixture_received(life->c, req - 1, 77, 90000));
}

static void come_again(struct life *life)
{
    life->digest = 0;
    life->replayed = false;
    fixture_close(life->c, "crash");
    fixture_again(life->c);
}

/* What it sent, and that it has repeated all; to be fed. */
static void prepare_to_be_live(struct life *life)
{
    for (uint32_t i = 0; i < life->send_count; i++)
        codec_check(&life->c->codec, &life->sends[i]);
    life->c->codec.clock = life->clock;
    codec_taken(&life->c->codec, CW_FRAME_LIVE, life->taken);
}

static void feed_rest(struct life *life)
{
    if (life->c && life->c->conn)
        fixture_feed_some(life->c, codec_left(&life->c->codec.out));
}

/* Until the disk has nothing left to do. Returns how many requests that were. */
static uint32_t work(void)
{
    uint32_t count = 0;

    do {
        feed_rest(one);
        feed_rest(two);
    } while (fixture_disk_one(&f) && ++count < 100000);
    return count;
}

static void become_live(struct life *life)
{
    CU_ASSERT_TRUE(life->replayed);
    prepare_to_be_live(life);
    work();
    CU_ASSERT_PTR_NOT_NULL(life->c->conn);
    CU_ASSERT_EQUAL(codec_left(&life->c->codec.out), 0);
}

/* What an incarnation is told that comes from a log in memory. */
static uint64_t digest_in_memory(void)
{
    static uint64_t in_memory;

    if (in_memory)
        return in_memory;
    start_with(FIXTURE_MEMORY, 0);
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

/* --- it repeats everything -------------------------------------------------------------------- */
TEST(repeats_from_disk)
{
    uint64_t right = digest_in_memory();

    for (int cuts = 0; cuts < 2; cuts++) {
        start(LOG_DISK);
        f.cuts = cuts;
        live_a_life(one);
        CU_ASSERT_TRUE(f.disk.writes > 10);
        for (uint64_t seed = 1; seed < 4; seed++) {
            uint64_t reads = f.disk.reads;

            f.disk.seed = seed;
            come_again(one);
            become_live(one);
            CU_ASSERT_EQUAL(one->digest, right);
            CU_ASSERT_TRUE(f.disk.reads > reads + 10);
        }
        go_on_living(one);
        fixture_fini(&f);
    }
}

/* It uses less memory than its log is large. */
TEST(memory_is_bounded)
{
    struct cw_relay_stats *stats;

    start(LOG_DISK);
    stats = relay_core_stats(f.core);
    send_many(1, 400);
    CU_ASSERT_TRUE(f.disk.writes > 60);
    CU_ASSERT_TRUE(stats->memory_now < MEMORY_BOUND);
    come_again(one);
    CU_ASSERT_TRUE(has_received_many(r1, 400));
    CU_ASSERT_TRUE(has_received_many(r1, 400));
    CU_ASSERT_TRUE(stats->memory_now < MEMORY_BOUND);
}

/* What is kept meanwhile goes nowhere near what is being written: the disk sees to that. */
TEST(written_while_it_lives)
{
    uint64_t right = digest_in_memory();
    uint64_t order = 1;

    for (enum fixture_feed feed = FEED_WHOLE; feed <= FEED_RANDOM; feed += FEED_RANDOM) {
        start_with(2 * LOG_MEMORY, LOG_DISK);
        fixture_start(&f, 4);
        f.cuts = true;
        f.feed = feed;
        f.disk_waits = true;
        for (uint32_t i = 0; i < STEPS; i++) {
            live_step(one, i);
            if (codec_random_below(&order, 3) == 0)
                fixture_disk_one(&f);
            if (i % 8 == 7)
                fixture_disk_all(&f);
        }
        CU_ASSERT_TRUE(f.disk.writes > 8);
        break_off(one);
        come_again(one);
        work();
        become_live(one);
        CU_ASSERT_EQUAL(one->digest, right);
        go_on_living(one);
        fixture_fini(&f);
    }
}

/* In pieces of any size, on both ways. */
TEST(repeats_in_random_pieces)
{
    uint64_t right = digest_in_memory();

    start(LOG_DISK);
    f.feed = FEED_RANDOM;
    f.cuts = true;
    live_a_life(one);
    for (uint64_t seed = 1; seed < 4; seed++) {
        f.seed = f.disk.seed = seed;
        come_again(one);
        become_live(one);
        CU_ASSERT_EQUAL(one->digest, right);
    }
    go_on_living(one);
}

/* What waits is read where it was kept, though its record went to disk long ago. */
TEST(waiting_messages_matched_late)
{
    start(LOG_DISK);
    say_begin(r0, CW_SEND_TAG, 1, 500, 100000, 100000);
    say_begin(r3, CW_SEND_TAG, 1, 501, 300, 300);
    say_begin(r0, CW_SEND_TAG, 1, 502, 100000, 50000);
    for (uint32_t i = 0; i < 60; i++)
        say_begin(r3, CW_SEND_AM, 1, i, 60000, 60000);
    for (uint32_t i = 0; i < 3; i++)
        say_recv(r1, FIRST_REQ + i, 500 + i);
    say_more(r0, 502, 50000, 50000);
    for (int again = 0; again < 3; again++) {
        CU_ASSERT_TRUE(fixture_received(r1, FIRST_REQ, 500, 100000));
        CU_ASSERT_TRUE(fixture_received(r1, FIRST_REQ + 1, 501, 300));
        CU_ASSERT_TRUE(fixture_received(r1, FIRST_REQ + 2, 502, 100000));
        CU_ASSERT_EQUAL(r1->inbox.complete, 63);
        come_again(one);
        become_live(one);
    }
}

/* --- it waits for what is being read ---------------------------------------------------------- */
/* One who is to be told its log, the first of which is being read. */
static void start_waiting(void)
{
    start(LOG_DISK);
    live_a_life(one);
    f.disk_waits = true;
    come_again(one);
    CU_ASSERT_FALSE(one->replayed);
    CU_ASSERT_TRUE(f.disk.count > 0);
}

/* One who has been told all, and whose first CHECK waits for what is being read. */
static void start_checking(void)
{
    start_waiting();
    work();
    CU_ASSERT_TRUE(one->replayed);
    fixture_forget(&f);
    f.mute = false;
}

TEST(waits_for_its_log)
{
    uint64_t right = digest_in_memory();
    uint32_t requests = 0;

    start_waiting();
    while (!one->replayed && requests < 1000) {
        uint64_t told = one->digest;

        CU_ASSERT_TRUE(f.disk.count > 0);
        fixture_collect(&f);
        say_send(r3, 0, 5, "somebody else goes on");
        fixture_tick(&f, 1000000);
        CU_ASSERT_EQUAL(one->digest, told);
        CU_ASSERT_TRUE(relay_conn_wants_input(r1->conn, f.now_ns));
        requests += fixture_disk_one(&f);
    }
    CU_ASSERT_TRUE(requests > 10 && requests < 1000);
    become_live(one);
    CU_ASSERT_EQUAL(one->digest, right);
    go_on_living(one);
}

/* Of what it is told little is under way at a time, and no more is read for it. */
TEST(waits_for_a_slow_reader)
{
    uint64_t right = digest_in_memory();
    uint64_t reads;

    start_waiting();
    r1->stalled = true;
    work();
    reads = f.disk.reads;
    CU_ASSERT_FALSE(one->replayed);
    for (int i = 0; i < 1000 && !one->replayed; i++) {
        fixture_read(r1);
        r1->stalled = true;
        work();
    }
    CU_ASSERT_TRUE(f.disk.reads > reads);
    r1->stalled = false;
    become_live(one);
    CU_ASSERT_EQUAL(one->digest, right);
}

/* All frames behind a CHECK that waits have come with it: they wait too, in their order. */
TEST(check_waits)
{
    start_checking();
    prepare_to_be_live(one);
    feed_rest(one);
    CU_ASSERT_FALSE(relay_conn_wants_input(r1->conn, f.now_ns));
    CU_ASSERT_TRUE(relay_conn_wants_input(r3->conn, f.now_ns));
    CU_ASSERT_TRUE(f.disk.count > 0);
    say_begin(r3, CW_SEND_AM, 1, 8, 100, 100);
    expect(&f, "3 < SEND to 1 AM tag 8 total 100 (100 bytes)\n");
    CU_ASSERT_TRUE(work() > 0);
    expect_has(&f, "d > NOTICE RANK_LIVE rank 1 incarnation 2 ");
    CU_ASSERT_TRUE(relay_conn_wants_input(r1->conn, f.now_ns));
    f.mute = true;
    go_on_living(one);
}

/* The first frame that is wrong is found, however long it waited. */
TEST(check_that_diverges)
{
    start_checking();
    one->sends[one->send_count - 1].tag++;
    prepare_to_be_live(one);
    feed_rest(one);
    fixture_forget(&f);
    work();
    expect_has(&f, "d > NOTICE DIVERGED rank 1 ");
    CU_ASSERT_PTR_NULL(r1->conn);
}

/* --- what ends meanwhile ---------------------------------------------------------------------- */
TEST(crash_while_its_log_is_read)
{
    uint64_t right = digest_in_memory();

    start_waiting();
    for (int i = 0; i < 6; i++) {
        for (int n = 0; n < 4 * i; n++)
            fixture_disk_one(&f);
        come_again(one);
    }
    work();
    prepare_to_be_live(one);
    for (int i = 0; i < 3; i++) {
        feed_rest(one);
        come_again(one);
        work();
        prepare_to_be_live(one);
    }
    work();
    CU_ASSERT_EQUAL(one->digest, right);
    go_on_living(one);
}

TEST(crash_and_nobody_comes)
{
    start_waiting();
    fixture_close(r1, "crash");
    work();
    CU_ASSERT_EQUAL(f.disk.count, 0);
}

TEST(job_ends_while_its_log_is_read)
{
    for (int checks = 0; checks < 2; checks++)
        for (int later = 0; later < 2; later++) {
            start_waiting();
            if (checks) {
                work();
                prepare_to_be_live(one);
                feed_rest(one);
            }
            fixture_close(&f.dispatcher, "gone");
            CU_ASSERT_PTR_NULL(r1->conn);
            if (later)
                fixture_disk_all(&f);
            fixture_fini(&f);
        }
}

/* The next job finds all memory and all disk free. */
TEST(jobs_follow_each_other)
{
    start(7u << 20);
    for (int i = 0; i < 3; i++) {
        if (i > 0)
            fixture_start(&f, 4);
        send_many(1, 110);
        CU_ASSERT_TRUE(f.disk.files[STORE_SEGMENTS].high <= 7u << 20);
        come_again(one);
        CU_ASSERT_TRUE(has_received_many(r1, 110));
        fixture_close(&f.dispatcher, "gone");
    }
}

TEST(given_up_while_its_log_is_read)
{
    start_waiting();
    f.mute = false;
    fixture_forget(&f);
    say_unlogged(r1, CW_UNLOGGED_THREADS);
    expect_has(&f, "1 > REFUSED LIMIT rank 1 'rank 1 cannot be started again: it calls MPI from "
                   "more than one thread");
    CU_ASSERT_PTR_NULL(r1->conn);
    f.mute = true;
    fixture_disk_all(&f);
    say_begin(r0, CW_SEND_AM, 3, 8, 100, 100);
}

/* Others need the memory, and the disk takes no more. */
TEST(given_up_while_it_is_told)
{
    uint32_t i = 0;

    start_waiting();
    r1->stalled = true;
    work();
    CU_ASSERT_FALSE(one->replayed);
    f.disk.good_writes = f.disk.writes;
    f.disk_waits = false;
    f.mute = false;
    do {
        fixture_forget(&f);
        say_begin(r3, CW_SEND_AM, 2, i, 20000, 20000);
    } while (++i < 1000 && !strstr(f.story, "NOTICE UNLOGGED"));
    expect_has(&f, "d > NOTICE UNLOGGED rank 1 ");
    fixture_read(r1);
    expect_has(&f, "1 > REFUSED LIMIT rank 1 'rank 1 cannot be started again: the logs have used "
                   "up their memory (1 MiB, --log-memory) and cannot be written to disk");
    CU_ASSERT_PTR_NULL(r1->conn);
    CU_ASSERT_EQUAL(r2->inbox.complete, i);
}

/* It is not dead, only slow, and what it says still waits. */
TEST(another_takes_its_place)
{
    struct client *const x = &f.other[0];

    start_checking();
    prepare_to_be_live(one);
    feed_rest(one);
    fixture_connect(&f, x, "x");
    fixture_hello_rank(x, 1, 3);
    CU_ASSERT_PTR_NULL(r1->conn);
    fixture_disk_all(&f);
    expect_has(&f, "x > REPLAYED\n");
    CU_ASSERT_TRUE(relay_conn_wants_input(x->conn, f.now_ns));
}

/* What is to be read waits until there is memory for it. */
TEST(read_without_memory)
{
    uint64_t right = digest_in_memory();
    uint64_t taken;

    start_waiting();
    taken = fixture_spend(&f, 2 * sizeof(struct relay_block));
    fixture_disk_all(&f);
    CU_ASSERT_PTR_NOT_NULL(r1->conn);
    relay_core_stats(f.core)->memory_now -= taken;
    fixture_collect(&f);
    work();
    become_live(one);
    CU_ASSERT_EQUAL(one->digest, right);
}

/* --- its session is resumed ------------------------------------------------------------------- */
static void start_resuming(void)
{
    start_with(LOG_MEMORY, LOG_DISK);
    f.resume_ms = 1000;
    fixture_start(&f, 4);
    live_a_life(one);
    f.disk_waits = true;
    one->digest = 0;
    fixture_tick(&f, 1000000000);
    fixture_close(r1, "cable");
    fixture_tick(&f, 1);
    fixture_tick(&f, 2000000000);
    fixture_again(r1);
    CU_ASSERT_FALSE(one->replayed);
    CU_ASSERT_TRUE(f.disk.count > 0);
}

TEST(resumed_while_its_log_is_read)
{
    uint64_t right = digest_in_memory();

    for (int reads = 0; reads < 2; reads++) {
        start_resuming();
        for (int i = 0; i < 5; i++) {
            fixture_disk_one(&f);
            fixture_close(r1, "cable");
            if (reads)
                fixture_disk_all(&f);
            fixture_resume(r1, r1->received);
        }
        work();
        CU_ASSERT_TRUE(one->replayed);
        prepare_to_be_live(one);
        for (int i = 0; i < 5; i++) {
            feed_rest(one);
            fixture_close(r1, "cable");
            if (reads)
                fixture_disk_all(&f);
            fixture_resume(r1, r1->received);
        }
        work();
        CU_ASSERT_EQUAL(one->digest, right);
        go_on_living(one);
        fixture_fini(&f);
    }
}

/* --- a disk that fails ------------------------------------------------------------------------ */
TEST(log_cannot_be_read)
{
    for (uint64_t good = 1; good < 12; good += 5) {
        start_waiting();
        f.disk.good_reads = f.disk.reads + good;
        f.mute = false;
        fixture_forget(&f);
        work();
        CU_ASSERT_PTR_NULL(r1->conn);
        fixture_tell(&f, "end\n");
        CU_ASSERT_PTR_NOT_NULL(strstr(
            f.story, "1 > REFUSED LIMIT rank 1 'rank 1 cannot be started again: what the relay's "
                     "log holds on disk cannot be read back (--log-dir)'\n"));
        expect_has(&f, "d > NOTICE UNLOGGED rank 1 ");
        /* the others go on */
        say_recv(r2, 9, 9);
        say_begin(r3, CW_SEND_TAG, 2, 9, 11, 11);
        expect_has(&f, "2 > MESSAGE req 9 tag 9 total 11 FIRST LAST ");
        fixture_fini(&f);
    }
}

TEST(check_cannot_be_read)
{
    start_checking();
    f.disk.good_reads = f.disk.reads;
    prepare_to_be_live(one);
    work();
    CU_ASSERT_PTR_NULL(r1->conn);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "1 > REFUSED LIMIT rank 1 "));
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "cannot be read back (--log-dir)"));
    expect_has(&f, "d > NOTICE UNLOGGED rank 1 ");
}

/* Active messages for rank 1, until its log is given up. Returns how many there were. */
static uint32_t send_until_unlogged(void)
{
    uint32_t i = 0;

    f.mute = false;
    do {
        fixture_forget(&f);
        say_begin(r0, CW_SEND_AM, 1, i, 60000, 60000);
    } while (++i < 1000 && !strstr(f.story, "NOTICE UNLOGGED"));
    CU_ASSERT_TRUE(has_received_many(r1, i));
    return i;
}

TEST(log_cannot_be_written)
{
    uint32_t sent;

    start_with(4u << 20, LOG_DISK);
    fixture_start(&f, 4);
    f.disk.good_writes = 8;
    sent = send_until_unlogged();
    /* what is on disk, the budget and the slack */
    CU_ASSERT_TRUE(sent > (8 + 16) * (256u << 10) / 60000 && sent < 120);
    CU_ASSERT_EQUAL(f.disk.writes, 8);
    expect_has(&f, "d > NOTICE UNLOGGED rank 1 'the logs have used up their memory (4 MiB, "
                   "--log-memory) and cannot be written to disk (--log-dir): No space left on "
                   "device; ");
    /* the next one is kept in memory alone */
    f.mute = true;
    send_many(2, 20);
    come_again(two);
    CU_ASSERT_TRUE(has_received_many(r2, 20));
    CU_ASSERT_EQUAL(f.disk.writes, 8);
}

/* Before that, it comes back, partly from disk. */
TEST(log_is_written_in_part)
{
    start_with(4u << 20, LOG_DISK);
    fixture_start(&f, 4);
    f.disk.good_writes = 8;
    send_many(1, 90);
    come_again(one);
    CU_ASSERT_TRUE(f.disk.reads > 0);
    CU_ASSERT_TRUE(has_received_many(r1, 90));
}

TEST(disk_is_full)
{
    uint32_t sent;

    start_with(4u << 20, 3u << 20);
    fixture_start(&f, 4);
    sent = send_until_unlogged();
    CU_ASSERT_TRUE(sent > (7u << 20) / 60000 && sent < 140);
    CU_ASSERT_EQUAL(f.disk.files[STORE_SEGMENTS].high, 3u << 20);
    expect_has(&f, "d > NOTICE UNLOGGED rank 1 'the logs have used up their memory (4 MiB, "
                   "--log-memory) and their disk (3 MiB, --log-disk); ");
    /* its places are free again */
    f.mute = true;
    send_many(2, 100);
    come_again(two);
    CU_ASSERT_TRUE(has_received_many(r2, 100));
}

/* --- a disk that is slow ---------------------------------------------------------------------- */
TEST(input_waits_for_the_disk)
{
    enum { COUNT = 400 };
    uint32_t waited = 0;
    uint32_t sent = 0;

    start(LOG_DISK);
    f.disk_waits = true;
    for (; sent < COUNT; sent++) {
        while (!relay_conn_wants_input(r0->conn, f.now_ns)) {
            CU_ASSERT_TRUE(f.disk.count > 0);
            CU_ASSERT_FALSE(relay_conn_wants_input(r3->conn, f.now_ns));
            CU_ASSERT_TRUE(relay_conn_wants_input(f.dispatcher.conn, f.now_ns));
            CU_ASSERT_TRUE_FATAL(fixture_disk_one(&f));
            waited++;
        }
        say_begin(r0, CW_SEND_AM, 1, sent, 60000, 60000);
    }
    CU_ASSERT_TRUE(relay_core_stats(f.core)->memory_now < MEMORY_BOUND);
    CU_ASSERT_TRUE(waited > 20);
    work();
    CU_ASSERT_TRUE(relay_conn_wants_input(r0->conn, f.now_ns));
    f.disk_waits = false;
    come_again(one);
    CU_ASSERT_TRUE(has_received_many(r1, COUNT));
}

/* --- several at once -------------------------------------------------------------------------- */
/* Whatever order the disk works in, and however little memory there is for what it reads. */
static void both_come_again(uint64_t budget, uint64_t seeds)
{
    uint64_t right[2] = {0};

    start_with(budget, LOG_DISK);
    fixture_start(&f, 4);
    for (uint32_t i = 0; i < 32; i++) {
        live_step(one, i);
        live_step(two, i);
    }
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        f.disk.seed = seed;
        f.disk_waits = true;
        come_again(one);
        come_again(two);
        CU_ASSERT_TRUE(work() < 10000);
        CU_ASSERT_TRUE_FATAL(one->replayed && two->replayed);
        prepare_to_be_live(one);
        prepare_to_be_live(two);
        CU_ASSERT_TRUE(work() < 10000);
        CU_ASSERT_EQUAL(codec_left(&r1->codec.out) + codec_left(&r2->codec.out), 0);
        if (seed == 1) {
            right[0] = one->digest;
            right[1] = two->digest;
        }
        CU_ASSERT_TRUE(one->digest == right[0] && two->digest == right[1]);
    }
    fixture_fini(&f);
}

TEST(two_at_once)
{
    both_come_again(3u << 19, 25);
    both_come_again(2u << 20, 25);
}

TEST(diverges_while_suspended)
{
    start_resuming();
    work();
    one->sends[one->send_count - 1].tag++;
    prepare_to_be_live(one);
    feed_rest(one);
    CU_ASSERT_FALSE(relay_conn_wants_input(r1->conn, f.now_ns));
    fixture_close(r1, "cable");
    f.mute = false;
    fixture_forget(&f);
    fixture_disk_all(&f);
    fixture_resume(r1, r1->received); /* if it could not be told before */
    work();
    expect_has(&f, "d > NOTICE DIVERGED rank 1 ");
}

TEST(lost_while_suspended)
{
    for (int checks = 0; checks < 2; checks++) {
        start_resuming();
        if (checks) {
            work();
            prepare_to_be_live(one);
            feed_rest(one);
        }
        fixture_close(r1, "cable");
        f.disk.good_reads = 1;
        f.mute = false;
        fixture_forget(&f);
        fixture_disk_all(&f);
        fixture_resume(r1, r1->received); /* if it could not be told before */
        work();
        expect_has(&f, "d > NOTICE UNLOGGED rank 1 ");
        fixture_fini(&f);
    }
}

/* Bytes of a connection may be put where it said while the core does something else. */
TEST(read_ends_while_bytes_arrive)
{
    const size_t size = CW_FRAME_HEADER + CW_SEND_SIZE;
    size_t room;
    void *at;

    start_waiting();
    CU_ASSERT_EQUAL_FATAL(relay_conn_space(r1->conn, &at, &room), 0);
    fixture_disk_all(&f);
    CU_ASSERT_TRUE_FATAL(one->replayed);
    prepare_to_be_live(one);
    memcpy(at, r1->codec.out.at + r1->codec.out.start, size);
    codec_take(&r1->codec.out, size);
    relay_conn_input(r1->conn, size);
    work();
    CU_ASSERT_PTR_NOT_NULL_FATAL(r1->conn);
    go_on_living(one);
}
