/* Logs of which a part is on disk only, while the disk takes its time. */
#include "tests/conformance/suite.h"
#include "tests/lib/fake_disk.h"

#include <CUnit/CUnit.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SENT 6000u  /* messages */
#define BYTES 1000u /* of one; with the payload in the records these exceed SITE_LOG_MEMORY */

static struct fake_disk disk;
static atomic_bool held; /* it carries nothing out now */

static void take(void *ctx, const struct relay_log_io *io)
{
    eventfd_t one = 1;

    (void)ctx;
    fake_disk_take(&disk, io);
    CU_ASSERT_EQUAL(eventfd_write(site.listeners[2].fd, one), 0);
}

static bool next_done(void *ctx, struct relay_log_done *done)
{
    eventfd_t count;

    (void)ctx;
    if (eventfd_read(site.listeners[2].fd, &count) < 0)
        count = 0;
    return !atomic_load(&held) && fake_disk_done(&disk, done);
}

static void hold(bool holds)
{
    atomic_store(&held, holds);
    if (!holds)
        CU_ASSERT_EQUAL(eventfd_write(site.listeners[2].fd, 1), 0);
}

static void start_job(uint32_t ranks)
{
    disk = (struct fake_disk){.seed = 1};
    atomic_store(&held, false);
    site_disk = (struct relay_disk){.take = take, .next_done = next_done};
    site_start_job(engine(), ranks);
}

static void stop_job(void)
{
    hold(false);
    site_stop();
    site_disk = (struct relay_disk){0};
    fake_disk_fini(&disk);
}

static bool all_arrived(void)
{
    return rank_of(0)->inbox.complete == SENT;
}

static uint32_t lost;

static bool rank_lost(void)
{
    return peers[0].notices[CW_NOTICE_RANK_LOST] == lost;
}

static void begin_again(struct peer *p, uint32_t incarnation)
{
    lost = incarnation - 1;
    peer_leave(p);
    CU_ASSERT_TRUE_FATAL(pump_until(rank_lost));
    peer_reconnect(p, SITE_UNIX);
    CU_ASSERT_EQUAL_FATAL(peer_hello_rank(p, 0, incarnation), CW_OK);
}

/* A rank repeats itself and dies while what it is to be told is read from disk. */
static void rank_that_dies_while_it_repeats(void)
{
    start_job(3);
    for (uint32_t i = 1; i <= SENT; i++) {
        peer_recv(rank_of(0), i, 5);
        peer_send(rank_of(0), 0, 5, BYTES);
    }
    CU_ASSERT_TRUE_FATAL(pump_until(all_arrived));
    hold(true);
    begin_again(rank_of(0), 2);
    pump_for(50);
    peer_leave(rank_of(0));
    ping_pong(1, 2, 20, 0);
    hold(false);
    lost = 2;
    CU_ASSERT_TRUE(pump_until(rank_lost));
    ping_pong(1, 2, 20, 0);
    stop_job();
}

void add_engine_disk_tests(CU_pSuite suite)
{
    CU_ADD_TEST(suite, rank_that_dies_while_it_repeats);
}
