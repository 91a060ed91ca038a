/* Messages that wait for their receive while the logs have no memory left: their bytes are on the
 * disk of the logs alone. */
#include "relay/memory/block.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of messages that wait on disk", fixture_end);

#define LOG_MEMORY (1u << 20)
#define LOG_DISK (256ull << 20)
#define WAITING 1000u
#define WAITING_BYTES (64u << 10) /* 62 MiB of them, where there are 16 MiB of memory */

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];

static void start_waiting(void)
{
    fixture_init_log_disk(&f, RELAY_MEMORY_MIN, LOG_MEMORY, LOG_DISK);
    fixture_start(&f, 3);
    f.mute = true;
    for (uint32_t i = 0; i < WAITING; i++)
        say_begin(r0, CW_SEND_TAG, 1, i, WAITING_BYTES, WAITING_BYTES);
    f.mute = false;
    CU_ASSERT_PTR_NOT_NULL_FATAL(r0->conn);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r1->conn);
}

/* In another order than they came, some of them cut short. */
static void receive_waiting(uint32_t from, uint32_t count)
{
    f.mute = true;
    for (uint32_t n = from; n < from + count; n++) {
        uint32_t i = n * 7 % WAITING;

        if (r1->conn)
            say_recv_mask(r1, i, i, CODEC_ALL, i % 5 ? CODEC_ALL : 5000);
    }
    f.mute = false;
}

static void all_waiting_are_here(void)
{
    for (uint32_t i = 0; i < WAITING; i++)
        CU_ASSERT_TRUE(fixture_received(r1, i, i, i % 5 ? WAITING_BYTES : 5000));
    CU_ASSERT_EQUAL(r1->event, WAITING);
}

/* More messages wait than there is memory: their bytes are in the log. */
TEST(waiting_messages_are_in_the_log)
{
    start_waiting();
    CU_ASSERT_TRUE(relay_core_stats(f.core)->memory_max <= RELAY_MEMORY_MIN);
    say_probe(r1, 3, CODEC_ALL, false);
    expect_has(&f, "total 65536");
    receive_waiting(0, WAITING);
    all_waiting_are_here();
}

/* Their rank is restarted while they wait, and while they are being read. */
TEST(rank_restarts_before_it_receives)
{
    start_waiting();
    receive_waiting(0, 10);
    f.mute = true;
    f.disk_waits = true;
    for (uint32_t i = 0; i < 3; i++) {
        receive_waiting(10 + i * 100, 100);
        for (int n = 0; n < 20; n++)
            fixture_disk_one(&f);
        fixture_close(r1, "killed");
        codec_inbox_forget_open(&r1->inbox);
        fixture_again(r1);
        r1->codec.clock = 0;
        fixture_disk_all(&f);
        say_live(r1, 0, 0);
        fixture_disk_all(&f);
    }
    f.disk_waits = false;
    receive_waiting(310, WAITING - 310);
    all_waiting_are_here();
}

/* Its log is trimmed to an image that was taken while they wait; it receives them twice. */
TEST(log_is_trimmed_while_they_wait)
{
    const struct cw_point point = {.clock = 1};

    start_waiting();
    say_point(r1, &point);
    say_trim(&f, 1, &point);
    expect_has(&f, "TRIMMED");
    CU_ASSERT_TRUE(f.trimmed.known);
    receive_waiting(0, WAITING);
    all_waiting_are_here();
    f.mute = true;
    fixture_close(r1, "killed");
    codec_inbox_fini(&r1->inbox);
    r1->event = 0;
    fixture_again_from(r1, &point);
    say_live(r1, 0, 1);
    fixture_disk_all(&f);
    all_waiting_are_here();
}

/* What waits cannot be read back: its rank is told so, and gets nothing wrong. */
TEST(waiting_messages_that_are_lost)
{
    uint32_t right = 0;

    start_waiting();
    f.disk.right_reads = f.disk.reads + 1;
    receive_waiting(0, 1000);
    CU_ASSERT_PTR_NULL(r1->conn);
    for (uint32_t i = 0; i < WAITING; i++)
        right += fixture_received(r1, i, i, i % 5 ? WAITING_BYTES : 5000);
    CU_ASSERT_EQUAL(right, r1->inbox.complete);
}

/* Its log is given up, as the rank wants it. */
TEST(waiting_messages_of_a_log_that_is_given_up)
{
    start_waiting();
    say_unlogged(r1, 1);
    expect_has(&f, "that wait for rank 1 were in its log alone");
}
