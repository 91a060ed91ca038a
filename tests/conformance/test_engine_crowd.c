/* Many clients at once, and more clients than descriptors. */
#include "common/stranger.h"
#include "tests/conformance/suite.h"

#include <CUnit/CUnit.h>
#include <sys/resource.h>

#define CROWD 200
#define BURST 1000
#define IDLE 1024
#define IDLE_BYTES_MAX 4096 /* of the core for a connection that is idle */
#define SPARE 8             /* descriptors left to the engine when they run short */
#define REFUSED_MAX 20

#define RING 64u

static bool ring_complete(void)
{
    bool complete = true;

    for (uint32_t r = 0; r < RING; r++)
        complete &= rank_of(r)->inbox.complete == 3;
    return complete;
}

static void sixty_four_clients(void)
{
    site_start_job(engine(), RING);
    for (uint32_t r = 0; r < RING; r++)
        for (uint32_t i = 0; i < 3; i++) {
            peer_send(rank_of(r), (r + 1) % RING, i, 10 + r * 1000 * i);
            peer_recv(rank_of(r), i, i);
        }
    CU_ASSERT_TRUE(pump_until(ring_complete));
    for (uint32_t r = 0; r < RING; r++)
        for (uint32_t i = 0; i < 3; i++)
            CU_ASSERT_TRUE(peer_received(rank_of(r), i, i, 10 + (r + RING - 1) % RING * 1000 * i));
    site_stop();
}

static void crowd_that_connects_at_once(void)
{
    site_start(engine());
    for (int i = 0; i <= CROWD; i++)
        peer_connect(i % 2);
    CU_ASSERT_EQUAL(peer_hello_dispatcher(&peers[0], CROWD), CW_OK);
    for (uint32_t r = 0; r < CROWD; r++)
        CU_ASSERT_EQUAL(peer_hello_rank(rank_of(r), r, 1), CW_OK);
    ping_pong(0, CROWD - 1, 3, 0);
    /* all leave at once */
    for (uint32_t r = 2; r < CROWD - 1; r++)
        peer_leave(rank_of(r));
    ping_pong(0, CROWD - 1, 3, 0);
    site_stop();
}

static bool all_challenged(void)
{
    bool all = true;

    for (int i = 0; i < peer_count; i++)
        all &= peers[i].heard[CW_FRAME_CHALLENGE] == 1;
    return all;
}

/* Each connection is accepted, and none is refused. */
static void burst_of_connects(int listener)
{
    site_raise_descriptors();
    site_start(engine());
    for (int i = 0; i < BURST; i++)
        peer_connect(listener);
    CU_ASSERT_TRUE(pump_until(all_challenged));
    for (int i = 0; i < peer_count; i++)
        CU_ASSERT_FALSE(peers[i].ended);
    CU_ASSERT_EQUAL(peer_hello_dispatcher(peer_connect(listener), 1), CW_OK);
    site_stop();
}

static void burst_of_connects_unix(void)
{
    burst_of_connects(SITE_UNIX);
}

static void burst_of_connects_tcp(void)
{
    burst_of_connects(SITE_TCP);
}

static bool idle_are_up(void)
{
    return peers[0].notices[CW_NOTICE_RANK_UP] == IDLE + 2;
}

static bool idle_are_lost(void)
{
    return peers[0].notices[CW_NOTICE_RANK_LOST] == IDLE;
}

/* Two ranks exchange messages while many others are idle. Then the idle ranks vanish at once. */
static void idle_crowd(void)
{
    site_raise_descriptors();
    site_start_job(engine(), IDLE + 2);
    CU_ASSERT_TRUE(pump_until(idle_are_up));
    ping_pong(0, IDLE + 1, 20, 1000);
    for (uint32_t r = 1; r <= IDLE; r++)
        peer_leave(rank_of(r));
    ping_pong(0, IDLE + 1, 20, 1000);
    CU_ASSERT_TRUE(pump_until(idle_are_lost));
    ping_pong(0, IDLE + 1, 20, 1000);
    site_stop();
    CU_ASSERT_TRUE(site.memory_max <= MEMORY_BOUND(0, 3) + IDLE * IDLE_BYTES_MAX);
}

/* --- clients that send no HELLO ----------------------------------------------------------------
 */
#define STRANGERS 1090
#define STRANGERS_LEFT ((int)CW_STRANGERS_MAX + 2) /* with a job of 2 ranks */

static int strangers_ended(void)
{
    int ended = 0;

    for (int i = 3; i < peer_count; i++)
        ended += peers[i].ended;
    return ended;
}

static bool strangers_are_there(void)
{
    int challenged = 0;

    for (int i = 3; i < peer_count; i++)
        challenged += peers[i].heard[CW_FRAME_CHALLENGE] == 1;
    return challenged == STRANGERS && strangers_ended() >= STRANGERS - STRANGERS_LEFT;
}

/* Each sends one byte, or none. The job goes on, new ranks can connect, and the memory of jobs is
 * not used. */
static void strangers_beside_a_job(void)
{
    site_raise_descriptors();
    site_start_job(engine(), 2);
    for (int i = 0; i < STRANGERS; i++) {
        struct peer *p = peer_connect(i % 2);

        if (i % 4 < 3)
            *codec_room(&p->codec.out, 1) = 1;
    }
    CU_ASSERT_TRUE(pump_until(strangers_are_there));
    ping_pong(0, 1, 5, 100000);
    CU_ASSERT_EQUAL(peer_hello_rank(peer_connect(SITE_UNIX), 1, 2), CW_OK);
    site_stop();
    CU_ASSERT_TRUE(site.memory_max <= MEMORY_BOUND(10 * 100020, 4));
}

/* --- limits ----------------------------------------------------------------------------------- */
static bool some_refused(void)
{
    int ended = 0;

    for (int i = 3; i < peer_count; i++)
        ended += peers[i].ended;
    return ended >= peer_count - 3 - SPARE;
}

/* Opens sockets before the limit is lowered: clients and relay share it in this process. */
static void open_sockets(int *fds)
{
    for (int i = 0; i < REFUSED_MAX; i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        CU_ASSERT_TRUE_FATAL(fds[i] >= 0);
    }
}

static void adopt_and_connect(const int *fds)
{
    const struct cw_sockaddr *at = &site.listeners[SITE_UNIX].address.at[0];

    for (int i = 0; i < REFUSED_MAX; i++) {
        struct peer *p = &peers[peer_count++];

        memset(p, 0, sizeof(*p));
        p->wire.fd = fds[i];
        CU_ASSERT_EQUAL(connect(p->wire.fd, (const struct sockaddr *)&at->storage, at->size), 0);
    }
}

/* Connections beyond the limit are refused and do not wait. Open connections go on. When
 * descriptors are free again, new connections are accepted. */
static void descriptors_run_out(void)
{
    struct rlimit old;
    struct rlimit low;
    int fds[REFUSED_MAX];

    site_start_job(engine(), 2);
    open_sockets(fds);
    CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = (struct rlimit){.rlim_cur = (rlim_t)fds[REFUSED_MAX - 1] + SPARE + 1,
                          .rlim_max = old.rlim_max};
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &low), 0);
    adopt_and_connect(fds);
    CU_ASSERT_TRUE(pump_until(some_refused));
    ping_pong(0, 1, 20, 0);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &old), 0);
    for (int i = 3; i < peer_count; i++)
        peer_leave(&peers[i]);
    CU_ASSERT_EQUAL(peer_hello_rank(peer_connect(SITE_UNIX), 1, 2), CW_OK);
    site_stop();
}

void add_crowd_tests(CU_pSuite suite)
{
    CU_ADD_TEST(suite, sixty_four_clients);
    CU_ADD_TEST(suite, crowd_that_connects_at_once);
    CU_ADD_TEST(suite, burst_of_connects_unix);
    CU_ADD_TEST(suite, burst_of_connects_tcp);
    CU_ADD_TEST(suite, idle_crowd);
    CU_ADD_TEST(suite, strangers_beside_a_job);
    CU_ADD_TEST(suite, descriptors_run_out);
}
