/* Logs are given up when they cannot be kept: because the rank says so, because all of them
 * together are too large, because there is no memory. The rank goes on, and is not started again.
 */
#include "relay/memory/block.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of logs given up", fixture_end);

#define LOG_MAX (4u << 20)

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static struct client *const r2 = &f.rank[2];

static void start(uint64_t log_memory)
{
    fixture_init_log(&f, FIXTURE_MEMORY, log_memory);
    fixture_start(&f, 3);
}

static void start_with_images(uint64_t log_memory)
{
    fixture_init_log(&f, FIXTURE_MEMORY, log_memory);
    f.images = true;
    fixture_start(&f, 3);
}

/* --- asking the relay ------------------------------------------------------------------------- */
static uint64_t log_bytes[FIXTURE_RANKS];

static void take_stats(struct client *c, const struct codec_frame *frame)
{
    struct cw_stats stats;

    (void)c;
    if (frame->header.type == CW_FRAME_STATS && cw_stats_get(frame->body, &stats))
        log_bytes[stats.rank] = stats.of_rank.log_bytes;
}

static uint64_t log_bytes_of(uint32_t rank)
{
    bool mute = f.mute;

    f.mute = true;
    f.on_frame = take_stats;
    say_frame(&f.dispatcher, CW_FRAME_STATS_ASK, NULL, 0);
    f.on_frame = NULL;
    f.mute = mute;
    return log_bytes[rank];
}

/* --- the rank says so ------------------------------------------------------------------------- */
TEST(given_up_by_its_rank)
{
    start(FIXTURE_MEMORY);
    say_recv(r0, 1, 5);
    say_send(r1, 0, 5, "abc");
    CU_ASSERT_TRUE(log_bytes_of(0) > 0);
    fixture_forget(&f);
    say_unlogged(r0, CW_UNLOGGED_THREADS);
    CU_ASSERT_EQUAL(log_bytes_of(0), 0);
    say_recv(r0, 2, 6);
    say_send(r1, 0, 6, "def");
    say_taken(r0, 2, 5);
    say_readings(r0, "noon");
    say_unlogged(r0, CW_UNLOGGED_READINGS);
    CU_ASSERT_EQUAL(log_bytes_of(0), 0);
    fixture_close(r0, "crash");
    fixture_again(r0);
    expect(&f,
           "0 < UNLOGGED THREADS\n"
           "d > NOTICE UNLOGGED rank 0 'it calls MPI from more than one thread, and the order of "
           "their calls is not logged'\n"
           "0 < RECV req 2 tag 6\n"
           "1 < SEND to 0 tag 6 total 3 'def'\n"
           "0 > MESSAGE req 2 tag 6 total 3 FIRST LAST event 2 'def'\n"
           "0 < TAKEN event 2 clock 5\n"
           "0 < READINGS 'noon'\n"
           "0 < UNLOGGED READINGS\n"
           "0 ends: crash\n"
           "d > NOTICE RANK_LOST rank 0 'crash'\n"
           "0 < HELLO rank 0 incarnation 2\n"
           "0 > REFUSED LIMIT 'rank 0 cannot be started again: nothing was kept of what it did'\n"
           "0 is closed\n");
}

TEST(every_reason)
{
    start(FIXTURE_MEMORY);
    say_unlogged(r0, CW_UNLOGGED_READINGS);
    expect(&f, "0 < UNLOGGED READINGS\n"
               "d > NOTICE UNLOGGED rank 0 'it asked for the time too often before MPI_Init'\n");
    say_unlogged(r1, CW_UNLOGGED_ADDRESSES);
    expect_has(&f, "d > NOTICE UNLOGGED rank 1 'its memory would lie elsewhere: "
                   "personality(ADDR_NO_RANDOMIZE) is not "
                   "allowed here (causeway doctor)'\n");
    say_unlogged(r1, CW_UNLOGGED_MEMORY + 1);
    expect_has(&f, "1 > REFUSED PROTOCOL rank 1 'UNLOGGED frame that cannot be read'\n");
}

/* What it has not been told yet is gone with its log: it cannot go on either. */
TEST(given_up_while_it_repeats)
{
    start(FIXTURE_MEMORY);
    say_recv(r0, 1, 5);
    fixture_close(r0, "crash");
    fixture_again(r0);
    fixture_forget(&f);
    say_unlogged(r0, CW_UNLOGGED_THREADS);
    expect(&f, "0 < UNLOGGED THREADS\n"
               "d > NOTICE UNLOGGED rank 0 incarnation 2 acts 1 event 0 'it calls MPI from more "
               "than one thread, and the order of their calls is not logged'\n"
               "d > NOTICE RANK_LOST rank 0 incarnation 2 acts 1 event 0 'refused by its relay: "
               "rank 0 cannot be started again: it calls MPI from more than one thread, and the "
               "order of their calls is not logged'\n"
               "0 > REFUSED LIMIT rank 0 'rank 0 cannot be started again: it calls MPI from more "
               "than one thread, and the order of their calls is not logged'\n"
               "0 is closed\n");
}

/* In the middle of messages from it and to it: they are whole nonetheless. */
TEST(given_up_in_the_middle_of_messages)
{
    start(FIXTURE_MEMORY);
    f.mute = true;
    say_recv(r0, 1, 5);
    say_recv(r2, 1, 6);
    say_begin(r1, CW_SEND_TAG, 0, 5, 180000, 60000);
    say_begin(r0, CW_SEND_TAG, 2, 6, 180000, 60000);
    say_unlogged(r0, CW_UNLOGGED_THREADS);
    say_more(r1, 5, 60000, 120000);
    say_more(r0, 6, 60000, 120000);
    CU_ASSERT_TRUE(fixture_received(r0, 1, 5, 180000));
    CU_ASSERT_TRUE(fixture_received(r2, 1, 6, 180000));
}

/* Its sender cannot be started again: what it left half done stays so. */
TEST(sender_that_cannot_come_back)
{
    start(FIXTURE_MEMORY);
    say_unlogged(r0, CW_UNLOGGED_THREADS);
    say_recv(r1, 1, 5);
    say_begin(r0, CW_SEND_TAG, 1, 5, 180000, 60000);
    fixture_close(r0, "crash");
    fixture_again(r0);
    expect_has(&f, "0 > REFUSED LIMIT 'rank 0 cannot be started again: nothing was kept of what it "
                   "did'\n");
    fixture_close(r1, "crash");
    fixture_forget(&f);
    fixture_again(r1);
    say_live(r1, 0, 0);
    CU_ASSERT_FALSE(fixture_received(r1, 1, 5, 180000));
}

/* --- all of them are too large ---------------------------------------------------------------- */
TEST(the_largest_is_given_up)
{
    start(LOG_MAX);
    f.mute = true;
    for (uint32_t i = 0; i < 20; i++) {
        say_recv(r0, i, 5);
        say_begin(r2, CW_SEND_TAG, 0, 5, 120000, 120000);
        say_recv(r1, i, 5);
        say_begin(r2, CW_SEND_TAG, 1, 5, 60000, 60000);
    }
    CU_ASSERT_TRUE(log_bytes_of(0) > 2400000);
    CU_ASSERT_TRUE(log_bytes_of(1) > 1200000);
    f.mute = false;
    say_recv(r1, 77, 5);
    say_begin(r2, CW_SEND_TAG, 1, 5, 180000, 180000);
    expect_has(&f, "d > NOTICE UNLOGGED rank 0 'the logs have used up their memory (4 MiB, "
                   "--log-memory) and have no disk (--log-dir); 3");
    CU_ASSERT_EQUAL(log_bytes_of(0), 0);
    CU_ASSERT_TRUE(log_bytes_of(1) > 1380000);
    CU_ASSERT_TRUE(log_bytes_of(2) > 0);
    /* now there is room again */
    say_begin(r2, CW_SEND_AM, 2, 5, 100000, 100000);
    CU_ASSERT_TRUE(log_bytes_of(1) > 1380000);
    CU_ASSERT_TRUE(log_bytes_of(2) > 100000);
    fixture_close(r0, "crash");
    fixture_again(r0);
    expect_has(&f, "0 > REFUSED LIMIT 'rank 0 cannot be started again: nothing was kept of what it "
                   "did'\n");
    fixture_close(r1, "crash");
    fixture_again(r1);
    say_live(r1, 0, 0);
    CU_ASSERT_TRUE(fixture_received(r1, 77, 5, 180000));
}

/* --- an image is on its way ---------------------------------------------------------------------
 */
static uint32_t grown_count;
static struct cw_grown grown;

static void take_grown(struct client *c, const struct codec_frame *frame)
{
    (void)c;
    if (frame->header.type == CW_FRAME_GROWN && cw_grown_get(frame->body, &grown))
        grown_count++;
}

/* `count` times 100000 bytes for rank 0. */
static void fill(uint32_t count)
{
    for (uint32_t n = 0; n < count; n++)
        say_begin(r2, CW_SEND_AM, 0, n, 100000, 100000);
}

static struct cw_point point_of_r0(uint64_t clock)
{
    struct cw_point point = {.event = r0->event, .clock = clock};

    say_taken(r0, r0->event, clock);
    say_point(r0, &point);
    return point;
}

static bool wants_input(const struct client *c)
{
    return relay_conn_wants_input(c->conn, f.now_ns);
}

/* At every MiB, as the memory is small. */
TEST(the_dispatcher_is_told_that_one_has_grown)
{
    struct cw_point point;

    start(LOG_MAX);
    f.mute = true;
    f.on_frame = take_grown;
    grown_count = 0;
    fill(7);
    CU_ASSERT_EQUAL(grown_count, 0);
    fill(5);
    CU_ASSERT_EQUAL(grown_count, 1);
    CU_ASSERT_EQUAL(grown.rank, 0);
    CU_ASSERT_TRUE(grown.bytes >= 1u << 20 && grown.bytes < 1500000);
    fill(12);
    CU_ASSERT_EQUAL(grown_count, 2);
    point = point_of_r0(10);
    say_trim(&f, 0, &point);
    CU_ASSERT_EQUAL(grown_count, 3); /* what is left */
    CU_ASSERT_TRUE(grown.bytes < 1u << 20);
    fill(5);
    CU_ASSERT_EQUAL(grown_count, 3);
    fill(10);
    CU_ASSERT_EQUAL(grown_count, 4);
    f.on_frame = NULL;
}

TEST(all_wait_for_the_image_that_makes_room)
{
    struct cw_point point;

    start_with_images(LOG_MAX);
    f.mute = true;
    fill(30);
    CU_ASSERT_TRUE(wants_input(r2));
    point = point_of_r0(10);
    fill(13);
    CU_ASSERT_FALSE(wants_input(r0));
    CU_ASSERT_FALSE(wants_input(r2));
    CU_ASSERT_TRUE(wants_input(&f.dispatcher));
    CU_ASSERT_TRUE(log_bytes_of(0) > 4200000);
    say_trim(&f, 0, &point);
    CU_ASSERT_TRUE(f.trimmed.known);
    CU_ASSERT_TRUE(wants_input(r0));
    CU_ASSERT_TRUE(wants_input(r2));
    CU_ASSERT_TRUE(log_bytes_of(0) > 1200000);
}

/* One that repeats what it did adds nothing. */
TEST(one_that_repeats_does_not_wait)
{
    struct cw_point point;

    start_with_images(LOG_MAX);
    f.mute = true;
    say_send(r1, 2, 5, "abc");
    fill(30);
    point = point_of_r0(10);
    fill(13);
    fixture_close(r1, "crash");
    fixture_again(r1);
    CU_ASSERT_TRUE(wants_input(r1));
    CU_ASSERT_FALSE(wants_input(r2));
    say_trim(&f, 0, &point);
    CU_ASSERT_TRUE(wants_input(r2));
}

/* It has to come to its point. */
TEST(one_that_was_asked_goes_on)
{
    struct cw_checkpoint checkpoint = {.rank = 0, .number = 1};
    uint8_t body[CW_CHECKPOINT_SIZE];

    start_with_images(LOG_MAX);
    f.mute = true;
    cw_checkpoint_put(body, &checkpoint);
    say_frame(&f.dispatcher, CW_FRAME_CHECKPOINT, body, sizeof(body));
    fill(44);
    CU_ASSERT_TRUE(wants_input(r0));
    CU_ASSERT_FALSE(wants_input(r2));
    CU_ASSERT_TRUE(log_bytes_of(0) > 4200000);
    point_of_r0(10);
    CU_ASSERT_FALSE(wants_input(r0));
    CU_ASSERT_FALSE(wants_input(r2));
    say_frame(&f.dispatcher, CW_FRAME_CHECKPOINT, body, sizeof(body));
    CU_ASSERT_TRUE(wants_input(r0));
    CU_ASSERT_FALSE(wants_input(r2));
}

/* Whoever does not wait fills what is beyond. */
TEST(more_than_what_waits_is_not_borne)
{
    start_with_images(LOG_MAX);
    f.mute = true;
    fill(30);
    point_of_r0(10);
    fill(150);
    CU_ASSERT_TRUE(log_bytes_of(0) > 17000000);
    fill(80);
    CU_ASSERT_EQUAL(log_bytes_of(0), 0);
}

TEST(an_image_that_does_not_come_is_not_waited_for)
{
    start_with_images(LOG_MAX);
    f.mute = true;
    fill(30);
    point_of_r0(10);
    fill(13);
    CU_ASSERT_FALSE(wants_input(r2));
    f.now_ns += RELAY_TRIM_WAIT_NS - 1;
    CU_ASSERT_FALSE(wants_input(r2));
    f.now_ns++;
    CU_ASSERT_TRUE(wants_input(r2));
    CU_ASSERT_TRUE(wants_input(r0));
    f.mute = false;
    fixture_forget(&f);
    say_recv(r1, 1, 7);
    expect_has(&f, "d > NOTICE UNLOGGED rank 0 incarnation 1 acts 0 event 30 'the logs have used "
                   "up their memory (4 MiB, "
                   "--log-memory) and have no disk (--log-dir); 4");
    CU_ASSERT_TRUE(wants_input(r2));
}

/* The logs of a job that is over do not count. */
TEST(logs_go_with_their_job)
{
    for (int i = 0; i < 3; i++) {
        if (i == 0)
            start(LOG_MAX);
        else
            fixture_start(&f, 3);
        for (uint32_t n = 0; n < 36; n++)
            say_begin(r2, CW_SEND_AM, 0, n, 100000, 100000);
        CU_ASSERT_TRUE(log_bytes_of(0) > 3600000);
        fixture_close(&f.dispatcher, "gone");
    }
}

/* What its receive has no room for is kept nowhere. */
TEST(rest_of_a_truncated_message)
{
    start(FIXTURE_MEMORY);
    f.mute = true;
    say_recv_mask(r0, 1, 5, CODEC_ALL, 10);
    say_begin(r1, CW_SEND_TAG, 0, 5, 30u << 20, 200000);
    for (uint64_t at = 200000; at < 20u << 20; at += 200000)
        say_more(r1, 5, at, 200000);
    CU_ASSERT_TRUE(relay_core_stats(f.core)->memory_now < 4u << 20);
}

/* The one whose event does not fit is the largest itself: it is told all the same. */
TEST(its_own_is_the_largest)
{
    start(LOG_MAX);
    f.mute = true;
    say_recv(r0, 1, 5);
    say_begin(r1, CW_SEND_TAG, 0, 5, 2 * LOG_MAX, CW_FRAME_DATA_MAX);
    for (uint64_t at = CW_FRAME_DATA_MAX; at < 2 * LOG_MAX; at += CW_FRAME_DATA_MAX)
        say_more(r1, 5, at, CW_FRAME_DATA_MAX);
    CU_ASSERT_TRUE(fixture_received(r0, 1, 5, 2 * LOG_MAX));
    CU_ASSERT_EQUAL(log_bytes_of(0), 0);
    CU_ASSERT_TRUE(log_bytes_of(1) > 0);
}

/* What came for a rank that was never there is gone with its log: nobody may come to miss it. */
TEST(given_up_before_its_first_connection)
{
    fixture_init_log(&f, FIXTURE_MEMORY, LOG_MAX);
    fixture_connect(&f, &f.dispatcher, "d");
    fixture_hello_dispatcher(&f.dispatcher, 2);
    fixture_connect(&f, r0, "0");
    fixture_hello_rank(r0, 0, 1);
    for (uint32_t i = 0; i < 44; i++)
        say_begin(r0, CW_SEND_AM, 1, 5, 100000, 100000);
    expect_has(&f, "d > NOTICE UNLOGGED rank 1 'the logs have used up their memory (4 MiB");
    fixture_connect(&f, r1, "1");
    fixture_hello_rank(r1, 1, 1);
    expect_has(&f, "1 > REFUSED LIMIT 'rank 1 cannot be started");
}

/* One that is being told its log loses it. */
TEST(given_up_while_it_is_told)
{
    start(LOG_MAX);
    f.mute = true;
    for (uint32_t i = 0; i < 28; i++)
        say_begin(r2, CW_SEND_AM, 0, i, 100000, 100000);
    say_taken(r0, 28, 3);
    fixture_close(r0, "crash");
    fixture_connect(&f, r0, "0");
    r0->stalled = true;
    fixture_hello_rank(r0, 0, 2);
    for (uint32_t i = 0; i < 16; i++)
        say_begin(r2, CW_SEND_AM, 1, i, 100000, 100000);
    CU_ASSERT_EQUAL(log_bytes_of(0), 0);
    f.mute = false;
    fixture_read(r0);
    expect_has(&f, "0 > REFUSED LIMIT rank 0 'rank 0 cannot be started again: the logs have "
                   "used up");
    CU_ASSERT_PTR_NULL(r0->conn);
}

static uint8_t last_type;

static void take_type(struct client *c, const struct codec_frame *frame)
{
    (void)c;
    last_type = frame->header.type;
}

/* ... also by an act of its own, after which nothing is said to it any more. */
TEST(given_up_by_its_own_act)
{
    start(LOG_MAX);
    f.mute = true;
    say_recv(r0, 1, 77);
    fixture_close(r0, "crash");
    for (uint32_t i = 0; i < 39; i++)
        say_begin(r2, CW_SEND_AM, 0, i, 100000, 100000);
    say_send(r2, 0, 5, "unexpected");
    fixture_again(r0);
    r0->stalled = true;
    say_live(r0, 0, 0);
    for (uint32_t i = 0; i < 20000 && log_bytes_of(0) > 0; i++) {
        r0->codec.clock = i;
        say_probe(r0, 5, CODEC_ALL, false);
    }
    CU_ASSERT_EQUAL(log_bytes_of(0), 0);
    f.on_frame = take_type;
    fixture_read(r0);
    CU_ASSERT_EQUAL(last_type, CW_FRAME_REFUSED);
    CU_ASSERT_PTR_NULL(r0->conn);
}

/* --- there is no memory ----------------------------------------------------------------------- */
/* Payload is held once, by its message or by the log: a rank without log has room for more. */
TEST(logs_of_many_messages)
{
    uint64_t held;

    start(FIXTURE_MEMORY);
    f.mute = true;
    for (uint32_t i = 0; i < 200; i++) {
        say_recv(r0, i, 5);
        say_begin(r1, CW_SEND_TAG, 0, 5, 200000, 200000);
    }
    held = relay_core_stats(f.core)->memory_now;
    CU_ASSERT_TRUE(held > 200 * 200000 && held < 2 * 200 * 200000);
    say_unlogged(r0, CW_UNLOGGED_THREADS);
    /* but for the blocks that the core keeps for later, and those of copies that it owes */
    CU_ASSERT_TRUE(relay_core_stats(f.core)->memory_now < held - 200 * 80000);
}

/* The log of a small message needs memory where the message itself does not: then the log goes,
 * and the job goes on. */
TEST(log_without_memory)
{
    struct cw_relay_stats *stats;
    uint64_t taken;

    start(FIXTURE_MEMORY);
    stats = relay_core_stats(f.core);
    for (uint32_t i = 0; i < 180; i++)
        say_send_kind(r1, CW_SEND_AM, 0, 0, i, "abc");
    fixture_forget(&f);
    /* for what is read and what is written, and less than a segment of the log */
    taken = fixture_spend(&f, 2 * sizeof(struct relay_block) + 500);
    for (uint32_t i = 0; i < 20; i++)
        say_send_kind(r1, CW_SEND_AM, 0, 0, i, "abc");
    stats->memory_now -= taken;
    expect_has(&f, "d > NOTICE UNLOGGED rank 0 'the relay has no memory for its log "
                   "(--memory-max)'\n");
    CU_ASSERT_EQUAL(r0->inbox.complete, 200);
    CU_ASSERT_PTR_NOT_NULL(r0->conn);
    CU_ASSERT_PTR_NOT_NULL(r1->conn);
}
