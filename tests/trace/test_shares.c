/* Jobs at one relay share its memory: when it is spent, the one that holds the most gives way, and
 * the others go on. */
#include "relay/core/conn.h"
#include "relay/memory/block.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of shares", fixture_end);

#define LOG_MAX (4u << 20)

static struct fixture f;
static struct client *const r0 = &f.rank[0]; /* of the job that takes much */
static struct client *const r1 = &f.rank[1];
static struct client *const e = &f.other[0]; /* the dispatcher of the other one, and its ranks */
static struct client *const e0 = &f.other[1];
static struct client *const e1 = &f.other[2];

static void start_other(void)
{
    f.job[0] ^= 1;
    fixture_connect(&f, e, "e");
    fixture_hello_dispatcher(e, 2);
    fixture_connect(&f, e0, "e0");
    fixture_hello_rank(e0, 0, 1);
    fixture_connect(&f, e1, "e1");
    fixture_hello_rank(e1, 1, 1);
    f.job[0] ^= 1;
    fixture_forget(&f);
}

static void start(uint64_t memory_max, bool log)
{
    fixture_init_log(&f, memory_max, memory_max);
    f.log = log;
    fixture_start(&f, 2);
    start_other();
}

static uint64_t left(void)
{
    return f.memory_max - relay_core_stats(f.core)->memory_now;
}

/* The greedy job's messages wait, until little memory is left. */
static void take_much(void)
{
    f.mute = true;
    for (uint64_t tag = 0; left() > 3u << 19; tag++)
        say_begin(r0, CW_SEND_TAG, 1, tag, 200000, 200000);
    f.mute = false;
}

/* More than is left; all of it is received. */
static void use_some(void)
{
    f.merged = true;
    for (uint32_t i = 0; i < 16; i++)
        say_begin(e0, CW_SEND_TAG, 1, i, 200000, 200000);
    for (uint32_t i = 0; i < 16; i++) {
        say_recv(e1, i, i);
        CU_ASSERT_TRUE(fixture_received(e1, i, i, 200000));
    }
    CU_ASSERT_PTR_NOT_NULL(e->conn);
    CU_ASSERT_PTR_NOT_NULL(e0->conn);
    CU_ASSERT_PTR_NOT_NULL(e1->conn);
    CU_ASSERT_PTR_NULL(strstr(f.story, "e > NOTICE"));
}

TEST(the_job_that_holds_the_most_ends)
{
    start(RELAY_MEMORY_MIN, false);
    take_much();
    use_some();
    CU_ASSERT_PTR_NULL(r0->conn);
    CU_ASSERT_PTR_NULL(r1->conn);
    CU_ASSERT_PTR_NULL(f.dispatcher.conn);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "d > NOTICE FATAL 'the relay's memory is spent ("));
    expect_has(&f, " bytes, its share being 8388608; receive messages earlier, or raise "
                   "--memory-max'\nd is closed\n");
}

/* It asks itself: that is its own affair. */
TEST(the_job_that_asks_holds_the_most)
{
    start(RELAY_MEMORY_MIN, false);
    take_much();
    for (uint64_t tag = 0; r0->conn && tag < 16; tag++)
        say_begin(r0, CW_SEND_TAG, 1, tag, 200000, 200000);
    CU_ASSERT_PTR_NULL(r0->conn);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(f.story, "d > NOTICE FATAL rank 0 'the relay's memory is spent ("));
    CU_ASSERT_PTR_NULL(strstr(f.story, "e > NOTICE"));
    expect_has(&f, "of them by this job, whose share is 8388608, while ");
    CU_ASSERT_PTR_NOT_NULL(e0->conn);
}

/* Its connections are refused nothing, but it does not read, and its dispatcher has left. */
TEST(what_a_job_that_ended_was_to_be_told)
{
    start(RELAY_MEMORY_MIN, false);
    r1->stalled = true;
    f.mute = true;
    for (uint64_t n = 0; left() > 3u << 19; n++)
        say_begin(r0, CW_SEND_AM, 1, n, 200000, 200000);
    fixture_close(&f.dispatcher, "gone");
    CU_ASSERT_TRUE(left() < 3u << 19);
    f.mute = false;
    use_some();
}

/* Its engine holds the first pieces of what it is to be told: the others go. */
TEST(what_is_being_written_stays)
{
    struct iovec iov[2];
    const uint8_t *at;
    uint8_t first;

    start(RELAY_MEMORY_MIN, false);
    r1->stalled = true;
    f.mute = true;
    say_begin(r0, CW_SEND_AM, 1, 0, 200000, 200000);
    CU_ASSERT_EQUAL(relay_conn_output(r1->conn, iov, 2), 2);
    at = iov[1].iov_base;
    first = *at;
    for (uint64_t n = 1; left() > 3u << 19; n++)
        say_begin(r0, CW_SEND_AM, 1, n, 200000, 200000);
    f.mute = false;
    use_some();
    CU_ASSERT_EQUAL(*at, first);
    relay_conn_written(r1->conn, iov[0].iov_len + 1);
    CU_ASSERT_TRUE(relay_conn_done(r1->conn));
}

/* Memory is spent: a job that holds more than its share makes room for one that begins. */
TEST(a_job_begins_when_memory_is_spent)
{
    uint64_t taken;

    start(RELAY_MEMORY_MIN, false);
    take_much();
    taken = left();
    relay_core_stats(f.core)->memory_now += taken;
    CU_ASSERT_TRUE(fixture_connect(&f, &f.other[3], "x"));
    f.job[0] ^= 2;
    fixture_hello_dispatcher(&f.other[3], 2);
    say_frame(&f.other[3], CW_FRAME_STATS_ASK, NULL, 0);
    relay_core_stats(f.core)->memory_now -= taken;
    CU_ASSERT_PTR_NULL(f.dispatcher.conn);
    CU_ASSERT_PTR_NOT_NULL(e->conn);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "x > WELCOME"));
    expect_has(&f, "x > STATS rank 1");
}

/* --- logs ------------------------------------------------------------------------------------- */
/* Before a job ends for memory, its logs are given up. */
TEST(its_logs_go_first)
{
    start(RELAY_MEMORY_MIN, true);
    f.mute = true;
    for (uint64_t n = 0; left() > 3u << 19; n++)
        say_begin(r0, CW_SEND_AM, 1, n, 200000, 200000);
    f.mute = false;
    use_some();
    expect_has(&f, "d > NOTICE UNLOGGED rank 1 'the relay's memory is spent (--memory-max), this "
                   "job holds the most, ");
    say_send(r0, 1, 5, "abc");
    say_recv(r1, 7, 5);
    expect_has(&f, "1 > MESSAGE req 7 tag 5 total 3 FIRST LAST");
}

/* The logs of a job count together: not the largest log of all is given up. */
TEST(the_logs_of_a_job_count_together)
{
    fixture_init_log(&f, FIXTURE_MEMORY, LOG_MAX);
    fixture_start(&f, 4);
    start_other();
    f.mute = true;
    for (uint32_t i = 0; i < 16; i++)
        say_begin(r0, CW_SEND_AM, i % 4, i, 190000 + 1000 * (i % 4), 190000 + 1000 * (i % 4));
    for (uint32_t i = 0; i < 5; i++)
        say_begin(e0, CW_SEND_AM, 1, 0, 150000, 150000);
    f.mute = false;
    say_begin(e0, CW_SEND_AM, 1, 0, 150000, 150000);
    CU_ASSERT_PTR_NULL(strstr(f.story, "e > NOTICE"));
    expect_has(&f, "d > NOTICE UNLOGGED rank 3 'the logs have used up their memory (4 MiB");
}

/* What is kept for all jobs, like places on disk that are free, is asked for amid anything: also
 * while a log is let go of, or read from disk. When memory is spent no job ends for it. */
TEST(what_nobody_holds_ends_no_job)
{
    struct relay_pool *pool;
    uint64_t taken;

    start(RELAY_MEMORY_MIN, false);
    take_much();
    pool = r0->conn->set->pool;
    taken = left();
    relay_core_stats(f.core)->memory_now += taken;
    CU_ASSERT_PTR_NULL(relay_pool_alloc(pool, FIXTURE_MEMORY)); /* more than all blocks kept */
    relay_core_stats(f.core)->memory_now -= taken;
    CU_ASSERT_PTR_NOT_NULL(r0->conn);
    say_frame(&f.dispatcher, CW_FRAME_STATS_ASK, NULL, 0);
    expect_has(&f, "d > STATS");
}

/* --- what is kept for later ---------------------------------------------------------------------
 */
/* ... is bounded: a job that ended holds nothing. */
TEST(nothing_stays_of_a_job)
{
    uint64_t before;

    start(FIXTURE_MEMORY, false);
    f.mute = true;
    before = relay_core_stats(f.core)->memory_now;
    for (uint32_t req = 0; req < 50000; req++)
        say_recv(r0, req, 5);
    CU_ASSERT_TRUE(relay_core_stats(f.core)->memory_now > before + 50000 * 64);
    fixture_close(&f.dispatcher, "gone");
    CU_ASSERT_TRUE(relay_core_stats(f.core)->memory_now < before + (1u << 20));
}
