/* Ranks whose logs are mostly on disk: they repeat all that they did, wait for what is being read,
 * and lose nothing; a disk that fails takes only what is on it. */
#include "relay/memory/block.h"
#include "tests/trace/lives.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of logs on disk", fixture_end);

/* of a core with such logs, and with blocks that it keeps for later */
#define MEMORY_BOUND (LOG_MEMORY + RELAY_BLOCKS_KEPT * sizeof(struct relay_block) + (2u << 20))

static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static struct client *const r2 = &f.rank[2];
static struct client *const r3 = &f.rank[3];
static struct life *const one = &lives[0];
static struct life *const two = &lives[1];

/* --- it repeats everything -------------------------------------------------------------------- */
TEST(repeats_from_disk)
{
    uint64_t right = lives_digest_in_memory();

    for (int cuts = 0; cuts < 2; cuts++) {
        lives_start(LOG_DISK);
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

    lives_start(LOG_DISK);
    stats = relay_core_stats(f.core);
    send_many(1, 400);
    CU_ASSERT_TRUE(f.disk.writes > 60);
    CU_ASSERT_TRUE(stats->memory_now < MEMORY_BOUND);
    come_again(one);
    CU_ASSERT_TRUE(has_received_many(r1, 400));
    CU_ASSERT_TRUE(stats->memory_now < MEMORY_BOUND);
}

/* What is kept meanwhile goes nowhere near what is being written: the disk sees to that. */
TEST(written_while_it_lives)
{
    uint64_t right = lives_digest_in_memory();
    uint64_t order = 1;

    for (enum fixture_feed feed = FEED_WHOLE; feed <= FEED_RANDOM; feed += FEED_RANDOM) {
        lives_start_with(2 * LOG_MEMORY, LOG_DISK);
        fixture_start(&f, 4);
        f.cuts = true;
        f.feed = feed;
        f.disk_waits = true;
        for (uint32_t i = 0; i < LIFE_STEPS; i++) {
            live_step(one, i);
            if (codec_random_below(&order, 3) == 0)
                fixture_disk_one(&f);
            if (i % 8 == 7)
                fixture_disk_all(&f);
        }
        CU_ASSERT_TRUE(f.disk.writes > 8);
        break_off(one);
        come_again(one);
        lives_work();
        become_live(one);
        CU_ASSERT_EQUAL(one->digest, right);
        go_on_living(one);
        fixture_fini(&f);
    }
}

/* In pieces of any size, on both ways. */
TEST(repeats_in_random_pieces)
{
    uint64_t right = lives_digest_in_memory();

    lives_start(LOG_DISK);
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
    lives_start(LOG_DISK);
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
TEST(waits_for_its_log)
{
    uint64_t right = lives_digest_in_memory();
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
    uint64_t right = lives_digest_in_memory();
    uint64_t reads;

    start_waiting();
    r1->stalled = true;
    lives_work();
    reads = f.disk.reads;
    CU_ASSERT_FALSE(one->replayed);
    for (int i = 0; i < 1000 && !one->replayed; i++) {
        fixture_read(r1);
        r1->stalled = true;
        lives_work();
    }
    CU_ASSERT_TRUE(f.disk.reads > reads);
    r1->stalled = false;
    become_live(one);
    CU_ASSERT_EQUAL(one->digest, right);
}

/* --- a disk that fails ------------------------------------------------------------------------ */
TEST(log_cannot_be_read)
{
    for (uint64_t good = 1; good < 12; good += 5) {
        start_waiting();
        f.disk.good_reads = f.disk.reads + good;
        f.mute = false;
        fixture_forget(&f);
        lives_work();
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

    lives_start_with(4u << 20, LOG_DISK);
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
    lives_start_with(4u << 20, LOG_DISK);
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

    lives_start_with(4u << 20, 3u << 20);
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

    lives_start(LOG_DISK);
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
    lives_work();
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

    lives_start_with(budget, LOG_DISK);
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
        CU_ASSERT_TRUE(lives_work() < 10000);
        CU_ASSERT_TRUE_FATAL(one->replayed && two->replayed);
        prepare_to_be_live(one);
        prepare_to_be_live(two);
        CU_ASSERT_TRUE(lives_work() < 10000);
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
