/* Memory is bounded, and can be spent at any moment: every failure is clean, told to the
 * dispatcher, and leaks nothing (fixture_fini frees the core, which asserts it). */
#include "relay/memory/block.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of memory", fixture_end);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEP_SMALL 1024u
#define STEP_LARGE 32768u
#else
#define STEP_SMALL 96u
#define STEP_LARGE 4096u
#endif
#define SMALL_MAX (24u << 10) /* the part of a scenario's memory that is looked at closely */
#define SCENARIO_MAX (32u << 20)
#define LOG_MAX (2u << 20) /* given up at last */

static struct fixture f;
static bool logged; /* the scenario is played with logs */
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static struct client *const r2 = &f.rank[2];

/* One memory_max for all: a sender that floods takes the job down, and is told why. */
TEST(flood_of_unexpected_messages)
{
    uint64_t tag = 0;

    fixture_init(&f, RELAY_MEMORY_MIN);
    fixture_start(&f, 2);
    say_recv(r1, 7, 1u << 20);
    while (r0->conn && tag < 100) {
        fixture_forget(&f);
        say_begin(r0, CW_SEND_TAG, 1, tag++, 200000, 200000);
    }
    CU_ASSERT_PTR_NULL(r0->conn);
    CU_ASSERT_TRUE(tag > 50 && tag < 90);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "0 is closed\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "raise --memory-max'\n"));
    expect_has(&f, "d > NOTICE FATAL rank 0 'the relay's memory is spent (");
}

TEST(flood_of_posted_receives)
{
    uint32_t req = 0;

    fixture_init(&f, RELAY_MEMORY_MIN);
    fixture_start(&f, 2);
    while (r0->conn && req < 1000000) {
        fixture_forget(&f);
        say_recv(r0, req, req);
        req++;
    }
    CU_ASSERT_TRUE(req > 1000 && req < 1000000);
    expect_has(&f, "d > NOTICE FATAL rank 0 'the relay's memory is spent (");
}

/* --- a scenario that needs memory in every way ------------------------------------------------ */
static void open_job(void)
{
    fixture_connect(&f, &f.dispatcher, "d");
    fixture_hello_dispatcher(&f.dispatcher, 3);
}

static void open_ranks(void)
{
    fixture_connect(&f, r0, "0");
    fixture_hello_rank(r0, 0, 1);
    fixture_connect(&f, r1, "1");
    fixture_hello_rank(r1, 1, 1);
}

static void open_late(void)
{
    fixture_connect(&f, r2, "2");
    fixture_hello_rank(r2, 2, 1);
}

static void small_unexpected(void)
{
    for (uint32_t i = 0; i < 20; i++)
        say_send_kind(r0, CW_SEND_SYNC, 1, i, i, "small");
}

static void middle_unexpected(void)
{
    say_begin(r0, CW_SEND_TAG, 1, 50, 9000, 9000);
    say_begin(r0, CW_SEND_TAG, 1, 51, 90000, 90000);
}

/* Two interleaved, so that their slices lie apart in the blocks. */
static void large_unexpected(void)
{
    say_begin(r0, CW_SEND_TAG, 1, 60, 60000, 6000);
    say_begin(r1, CW_SEND_TAG, 1, 61, 60000, 6000);
    for (uint64_t at = 6000; at < 60000; at += 6000) {
        say_more(r0, 60, at, 6000);
        say_more(r1, 61, at, 6000);
    }
}

static void many_posted(void)
{
    for (uint32_t i = 0; i < 24; i++)
        say_recv_mask(r0, i, i, ~(uint64_t)(i % 6), CODEC_ALL);
    say_cancel(r0, 3, 3, ~3ull);
}

static void early_active(void)
{
    say_send_kind(r0, CW_SEND_AM, 2, 0, 1, "early");
    say_begin(r0, CW_SEND_AM, 2, 2, 50000, 10000);
    say_more(r0, 2, 10000, 40000);
}

static void probes(void)
{
    say_probe(r1, 1000, CODEC_ALL, false);
    for (uint32_t i = 0; i < 18; i++)
        say_probe(r1, i, i % 2 ? CODEC_ALL : 0xffff, true);
    say_mrecv(r1, 100, 0, CODEC_ALL);
    say_mrecv(r1, 101, 1, 2);
}

static void late_receives(void)
{
    say_recv(r1, 200, 50);
    say_recv(r1, 201, 51);
    say_recv_mask(r1, 202, 60, CODEC_ALL, 20000);
    say_recv(r1, 203, 61);
}

static void cut_through(void)
{
    say_recv(r1, 300, 70);
    r1->stalled = true;
    say_begin(r0, CW_SEND_TAG, 1, 70, 600000, 200000);
    say_more(r0, 70, 200000, 200000);
}

static void cut_through_ends(void)
{
    say_more(r0, 70, 400000, 200000);
    fixture_read(r1);
}

static void answers(void)
{
    say_send(r1, 0, 4, "to a posted receive");
    say_begin(r1, CW_SEND_TAG, 0, 5, 30000, 30000);
    say_frame(&f.dispatcher, CW_FRAME_STATS_ASK, NULL, 0);
}

static void determinants(void)
{
    for (uint32_t i = 0; i < 40; i++)
        say_readings(r1, "what a clock said, and said, and said");
    say_taken(r1, 3, 5);
    say_recv(r1, 400, 62);
}

/* Where there is a log it repeats what rank 1 said, and goes on; else it is refused. */
static void newer_incarnation(void)
{
    struct client *const n = &f.other[0];

    fixture_connect(&f, n, "n");
    fixture_hello_rank(n, 1, 2);
    say_live(n, 3, 5);
    say_begin(r0, CW_SEND_TAG, 1, 62, 30000, 20000);
}

/* It crashes while it is told what to repeat, and while a message comes for it. */
static void newest_incarnation(void)
{
    struct client *const n = &f.other[1];

    fixture_close(&f.other[0], "crash");
    fixture_connect(&f, n, "m");
    n->stalled = true;
    fixture_hello_rank(n, 1, 3);
    say_more(r0, 62, 20000, 10000);
    fixture_close(n, "crash");
}

static void leave(void)
{
    say_bye(r0);
    fixture_close(r2, "crash");
}

static void (*const steps[])(void) = {
    open_job,           open_ranks, small_unexpected, middle_unexpected, large_unexpected,
    many_posted,        probes,     early_active,     late_receives,     open_late,
    cut_through,        answers,    cut_through_ends, determinants,      newer_incarnation,
    newest_incarnation, leave,
};
#define STEPS (sizeof(steps) / sizeof(*steps))

static void prepare(uint64_t memory_max, enum fixture_feed feed)
{
    fixture_init_log(&f, memory_max, LOG_MAX);
    f.log = logged;
    f.mute = true;
    f.feed = feed;
}

/* The whole scenario; returns the most memory it held at once. */
static uint64_t play(uint64_t memory_max, enum fixture_feed feed)
{
    uint64_t held;

    prepare(memory_max, feed);
    for (size_t i = 0; i < STEPS; i++)
        steps[i]();
    held = relay_core_stats(f.core)->memory_max;
    fixture_fini(&f);
    CU_ASSERT_TRUE(held <= memory_max);
    return held;
}

static void try_every_bound(void)
{
    uint64_t needed = play(SCENARIO_MAX, FEED_WHOLE);
    uint64_t step = STEP_SMALL;

    CU_ASSERT_TRUE(needed > (1u << 20) && needed < SCENARIO_MAX);
    for (uint64_t memory_max = 0; memory_max <= needed; memory_max += step) {
        uint64_t over = memory_max % (RELAY_BLOCK_BYTES + 64);

        /* what is no block is small: look closely after every block */
        step = over < SMALL_MAX ? STEP_SMALL : STEP_LARGE;
        play(memory_max, FEED_WHOLE);
    }
}

TEST(every_bound_on_memory)
{
    logged = false;
    try_every_bound();
}

TEST(every_bound_on_memory_with_logs)
{
    logged = true;
    try_every_bound();
}

/* Somebody else takes the memory for one step, but for `room` bytes, and gives it back. When lazy,
 * every connection that failed is closed as late as possible: other clients speak before. */
static void starve(size_t hungry, uint64_t room, bool lazy, enum fixture_feed feed)
{
    prepare(SCENARIO_MAX, feed);
    f.lazy = lazy;
    for (size_t i = 0; i < STEPS; i++) {
        uint64_t taken = i == hungry ? fixture_spend(&f, room) : 0;

        steps[i]();
        relay_core_stats(f.core)->memory_now -= taken;
    }
    fixture_fini(&f);
}

static void starve_every_step(bool lazy, enum fixture_feed feed, bool log)
{
    logged = log;
    for (size_t hungry = 0; hungry < STEPS; hungry++)
        for (uint64_t blocks = 0; blocks < 3; blocks++)
            for (uint64_t room = 0; room < SMALL_MAX; room += room / 8 + STEP_SMALL / 2)
                starve(hungry, room + blocks * sizeof(struct relay_block), lazy, feed);
}

TEST(memory_is_spent_for_a_moment)
{
    starve_every_step(false, FEED_WHOLE, false);
    starve_every_step(false, FEED_WHOLE, true);
}

TEST(memory_is_spent_and_connections_linger)
{
    starve_every_step(true, FEED_WHOLE, false);
    starve_every_step(true, FEED_WHOLE, true);
}

TEST(memory_is_spent_between_bytes)
{
    starve_every_step(true, FEED_RANDOM, true);
}

/* The last bytes of a message find no memory; before the sender's connection is closed, somebody
 * receives the message. */
TEST(message_that_could_not_be_kept_is_received)
{
    uint64_t taken;

    logged = true;
    prepare(SCENARIO_MAX, FEED_WHOLE);
    f.lazy = true;
    fixture_start(&f, 2);
    say_begin(r0, CW_SEND_TAG, 1, 5, 300000, 50000);
    for (uint64_t at = 50000; at < 250000; at += 50000)
        say_more(r0, 5, at, 50000);
    taken = fixture_spend(&f, 0); /* the log has no block for the rest */
    say_more(r0, 5, 250000, 50000);
    relay_core_stats(f.core)->memory_now -= taken;
    CU_ASSERT_TRUE(relay_conn_done(r0->conn));
    say_recv(r1, 7, 5);
    CU_ASSERT_FALSE(fixture_received(r1, 7, 5, 300000));
    fixture_close(r0, "closed by the relay");
}

/* A piece lies in two blocks of the log. Where there is no memory for all of it nothing of it is
 * kept: the sender's next incarnation sends all of it. */
static void play_piece_in_two_blocks(uint64_t room)
{
    const uint32_t four = 4 * RELAY_BLOCK_BYTES; /* as many as are noted at first */
    const uint32_t total = four + 100000;
    uint32_t at;
    uint64_t taken;

    prepare(SCENARIO_MAX, FEED_WHOLE);
    fixture_start(&f, 2);
    say_begin(r0, CW_SEND_TAG, 1, 5, total, 1000);
    for (at = 1000; at + 1000 <= four; at += 1000)
        say_more(r0, 5, at, 1000);
    taken = fixture_spend(&f, room);
    say_more(r0, 5, at, 50000);
    relay_core_stats(f.core)->memory_now -= taken;
    if (r0->conn) {
        at += 50000;
    } else {
        fixture_again(r0);
        CU_ASSERT_EQUAL(r0->welcome.missing, total - at);
        say_live(r0, 0, 0);
    }
    say_more(r0, 5, at, total - at);
    say_recv(r1, 7, 5);
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, total));
    fixture_fini(&f);
}

TEST(piece_in_two_blocks)
{
    logged = true;
    for (uint64_t blocks = 0; blocks < 3; blocks++)
        for (uint64_t room = 0; room < 300; room += 50)
            play_piece_in_two_blocks(room + blocks * sizeof(struct relay_block));
}

/* That memory is spent is said, not that a bound on probed messages is reached. */
TEST(probe_without_memory)
{
    uint64_t taken;

    fixture_init(&f, SCENARIO_MAX);
    fixture_start(&f, 2);
    say_send(r0, 1, 5, "abc");
    say_probe(r1, 5, CODEC_ALL, false);
    fixture_forget(&f);
    taken = fixture_spend(&f, sizeof(struct relay_block)); /* for reading the frame, but no table */
    say_probe(r1, 5, CODEC_ALL, true);
    relay_core_stats(f.core)->memory_now -= taken;
    CU_ASSERT_PTR_NULL(r1->conn);
    CU_ASSERT_PTR_NULL(strstr(f.story, "1 > REFUSED"));
}
