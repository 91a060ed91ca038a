/* What ends, breaks off or is resumed while a log on disk is read. */
#include "relay/memory/block.h"
#include "tests/trace/lives.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of ends while logs are read", fixture_end);

static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static struct client *const r2 = &f.rank[2];
static struct client *const r3 = &f.rank[3];
static struct life *const one = &lives[0];

/* --- what ends meanwhile ---------------------------------------------------------------------- */
TEST(crash_while_its_log_is_read)
{
    uint64_t right = lives_digest_in_memory();

    start_waiting();
    for (int i = 0; i < 6; i++) {
        for (int n = 0; n < 4 * i; n++)
            fixture_disk_one(&f);
        come_again(one);
    }
    lives_work();
    prepare_to_be_live(one);
    for (int i = 0; i < 3; i++) {
        feed_rest(one);
        come_again(one);
        lives_work();
        prepare_to_be_live(one);
    }
    lives_work();
    CU_ASSERT_EQUAL(one->digest, right);
    go_on_living(one);
}

TEST(crash_and_nobody_comes)
{
    start_waiting();
    fixture_close(r1, "crash");
    lives_work();
    CU_ASSERT_EQUAL(f.disk.count, 0);
}

TEST(job_ends_while_its_log_is_read)
{
    for (int later = 0; later < 2; later++) {
        start_waiting();
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
    lives_start(7u << 20);
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
    lives_work();
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

/* It is not dead, only slow. */
TEST(another_takes_its_place)
{
    struct client *const x = &f.other[0];

    start_waiting();
    f.mute = false;
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
    uint64_t right = lives_digest_in_memory();
    uint64_t taken;

    start_waiting();
    taken = fixture_spend(&f, 2 * sizeof(struct relay_block));
    fixture_disk_all(&f);
    CU_ASSERT_PTR_NOT_NULL(r1->conn);
    relay_core_stats(f.core)->memory_now -= taken;
    fixture_collect(&f);
    lives_work();
    become_live(one);
    CU_ASSERT_EQUAL(one->digest, right);
}

/* --- its session is resumed ------------------------------------------------------------------- */
static void start_resuming(void)
{
    lives_start_with(LOG_MEMORY, LOG_DISK);
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
    uint64_t right = lives_digest_in_memory();

    for (int reads = 0; reads < 2; reads++) {
        start_resuming();
        for (int i = 0; i < 5; i++) {
            fixture_disk_one(&f);
            fixture_close(r1, "cable");
            if (reads)
                fixture_disk_all(&f);
            fixture_resume(r1, r1->received);
        }
        lives_work();
        CU_ASSERT_TRUE(one->replayed);
        prepare_to_be_live(one);
        for (int i = 0; i < 5; i++) {
            feed_rest(one);
            fixture_close(r1, "cable");
            if (reads)
                fixture_disk_all(&f);
            fixture_resume(r1, r1->received);
        }
        lives_work();
        CU_ASSERT_EQUAL(one->digest, right);
        go_on_living(one);
        fixture_fini(&f);
    }
}

TEST(lost_while_suspended)
{
    start_resuming();
    fixture_close(r1, "cable");
    f.disk.good_reads = 1;
    f.mute = false;
    fixture_forget(&f);
    fixture_disk_all(&f);
    fixture_resume(r1, r1->received); /* if it could not be told before */
    lives_work();
    expect_has(&f, "d > NOTICE UNLOGGED rank 1 ");
}

/* Bytes of a connection may be put where it said while the core does something else. */
TEST(read_ends_while_bytes_arrive)
{
    const size_t size = CW_FRAME_HEADER + CW_TAKEN_SIZE;
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
    lives_work();
    CU_ASSERT_PTR_NOT_NULL_FATAL(r1->conn);
    go_on_living(one);
}
