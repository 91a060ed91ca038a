/* Messages in all directions at once, while ranks come, go and are replaced. */
#include "tests/conformance/suite.h"

#include <CUnit/CUnit.h>

#define MESH 8u
#define MESH_BYTES (512u << 10)
#define MESH_ROUNDS 2u
#define COMINGS 100
#define REPLACED_BYTES LARGE

/* --- large messages among all ----------------------------------------------------------------- */
static uint64_t mesh_tag(uint32_t from, uint32_t to, uint32_t round)
{
    return (uint64_t)from << 32 | (uint64_t)to << 16 | round;
}

static uint64_t mesh_size(uint32_t from, uint32_t to)
{
    return MESH_BYTES + from * 1000 + to;
}

/* Each rank sends to each, itself included. Half of the receives are posted before the sends. */
static void mesh_begin(uint32_t round)
{
    for (uint32_t i = 0; i < MESH * MESH; i++) {
        uint32_t from = i / MESH;
        uint32_t to = (from + i) % MESH;

        if (i % 2)
            peer_recv(rank_of(to), round * MESH + from, mesh_tag(from, to, round));
        peer_send(rank_of(from), to, mesh_tag(from, to, round), mesh_size(from, to));
    }
}

static void mesh_receive(uint32_t round)
{
    for (uint32_t i = 0; i < MESH * MESH; i += 2) {
        uint32_t from = i / MESH;
        uint32_t to = (from + i) % MESH;

        peer_recv(rank_of(to), round * MESH + from, mesh_tag(from, to, round));
    }
}

static bool mesh_arrived(void)
{
    bool all = true;

    for (uint32_t r = 0; r < MESH; r++)
        all &= rank_of(r)->inbox.complete == MESH * MESH_ROUNDS;
    return all;
}

static void mesh_check(void)
{
    for (uint32_t i = 0; i < MESH * MESH * MESH_ROUNDS; i++) {
        uint32_t from = i % MESH;
        uint32_t to = i / MESH % MESH;
        uint32_t round = i / (MESH * MESH);

        CU_ASSERT_TRUE(peer_received(rank_of(to), round * MESH + from, mesh_tag(from, to, round),
                                     mesh_size(from, to)));
    }
}

static void large_messages_among_all(void)
{
    site_start_unlogged_job(engine(), MESH);
    for (uint32_t round = 0; round < MESH_ROUNDS; round++)
        mesh_begin(round);
    pump_for(20);
    for (uint32_t round = 0; round < MESH_ROUNDS; round++)
        mesh_receive(round);
    CU_ASSERT_TRUE(pump_until(mesh_arrived));
    mesh_check();
    site_stop();
    CU_ASSERT_TRUE(site.memory_max <=
                   MEMORY_BOUND(MESH_ROUNDS * MESH * MESH * mesh_size(MESH, MESH), MESH + 1));
}

/* --- to oneself ------------------------------------------------------------------------------- */
static bool own_arrived(void)
{
    return rank_of(0)->inbox.complete == 3;
}

static void rank_that_sends_to_itself(void)
{
    site_start_job(engine(), 2);
    peer_send(rank_of(0), 0, 1, 0);
    peer_recv(rank_of(0), 1, 1);
    peer_recv(rank_of(0), 2, 2);
    peer_send(rank_of(0), 0, 2, LARGE);
    peer_send(rank_of(0), 0, 3, LARGE);
    peer_recv(rank_of(0), 3, 3);
    CU_ASSERT_TRUE(pump_until(own_arrived));
    CU_ASSERT_TRUE(peer_received(rank_of(0), 1, 1, 0));
    CU_ASSERT_TRUE(peer_received(rank_of(0), 2, 2, LARGE));
    CU_ASSERT_TRUE(peer_received(rank_of(0), 3, 3, LARGE));
    site_stop();
}

/* --- ranks that come and go ------------------------------------------------------------------- */
static bool both_ended(void)
{
    return rank_of(2)->ended && rank_of(3)->ended;
}

/* Each rank says BYE right after WELCOME, and its next incarnation comes right after FAREWELL. */
static void ranks_that_come_and_go(void)
{
    site_start_job(engine(), 4);
    for (uint32_t incarnation = 2; incarnation < 2 + COMINGS; incarnation++) {
        codec_bye(&rank_of(2)->codec);
        codec_bye(&rank_of(3)->codec);
        ping_pong(0, 1, 1, 1000);
        CU_ASSERT_TRUE_FATAL(pump_until(both_ended));
        for (uint32_t r = 2; r < 4; r++) {
            CU_ASSERT_EQUAL(rank_of(r)->heard[CW_FRAME_FAREWELL], 1);
            peer_reconnect(rank_of(r), (int)(incarnation + r) % 2);
            CU_ASSERT_EQUAL_FATAL(peer_hello_rank(rank_of(r), r, incarnation), CW_OK);
        }
    }
    CU_ASSERT_EQUAL(peers[0].notices[CW_NOTICE_RANK_LOST], 0);
    site_stop();
}

/* --- a rank that is replaced ------------------------------------------------------------------ */
static struct peer *newer;

static bool both_directions_flow(void)
{
    return codec_left(&rank_of(1)->codec.out) < REPLACED_BYTES / 2 &&
           rank_of(1)->heard[CW_FRAME_MESSAGE] > 0;
}

static bool older_ended(void)
{
    return rank_of(1)->ended;
}

static bool newer_repeated(void)
{
    return newer->heard[CW_FRAME_REPLAYED] == 1;
}

static bool replaced_arrived(void)
{
    return newer->inbox.complete == 1 && rank_of(0)->inbox.complete == 1;
}

/* A newer incarnation takes the place of one that lives, sends and receives. `stalled`: the older
 * one does not read, so that the relay is in the middle of writing to it. */
static void replace_busy(bool stalled)
{
    site_start_job(engine(), 4);
    peer_recv(rank_of(1), 7, 5);
    peer_recv(rank_of(0), 8, 6);
    peer_send(rank_of(1), 0, 6, REPLACED_BYTES);
    peer_send(rank_of(0), 1, 5, REPLACED_BYTES);
    CU_ASSERT_TRUE(pump_until(both_directions_flow));
    rank_of(1)->stalled = stalled;
    if (stalled)
        pump_for(20);
    newer = peer_connect(SITE_UNIX);
    CU_ASSERT_EQUAL_FATAL(peer_hello_rank(newer, 1, 2), CW_OK);
    rank_of(1)->stalled = false;
    CU_ASSERT_EQUAL(newer->welcome.acts, 2);
    CU_ASSERT_TRUE(pump_until(newer_repeated));
    codec_taken(&newer->codec, CW_FRAME_LIVE, 0);
    peer_send_rest(newer, 6, REPLACED_BYTES, REPLACED_BYTES - newer->welcome.missing);
    CU_ASSERT_TRUE(pump_until(replaced_arrived));
    CU_ASSERT_TRUE(peer_received(newer, 7, 5, REPLACED_BYTES));
    CU_ASSERT_TRUE(peer_received(rank_of(0), 8, 6, REPLACED_BYTES));
    CU_ASSERT_TRUE(pump_until(older_ended));
    ping_pong(2, 3, 5, 0);
    site_stop();
}

static void newer_incarnation_of_a_busy_rank(void)
{
    replace_busy(false);
}

static void newer_incarnation_of_a_rank_that_does_not_read(void)
{
    replace_busy(true);
}

/* --- the end of a job in full flow ------------------------------------------------------------ */
static bool mesh_flows(void)
{
    bool flows = true;

    for (uint32_t r = 0; r < MESH; r++)
        flows &= rank_of(r)->heard[CW_FRAME_MESSAGE] > 0;
    return flows;
}

static bool mesh_ended(void)
{
    bool ended = true;

    for (uint32_t r = 0; r < MESH; r++)
        ended &= rank_of(r)->ended;
    return ended;
}

static void job_in_full_flow(void)
{
    site_start_job(engine(), MESH);
    mesh_begin(0);
    mesh_begin(1);
    CU_ASSERT_TRUE(pump_until(mesh_flows));
    peer_leave(&peers[0]);
}

static void dispatcher_that_leaves_in_full_flow(void)
{
    job_in_full_flow();
    CU_ASSERT_TRUE(pump_until(mesh_ended));
    site_stop();
}

static void stop_when_the_dispatcher_has_left(void)
{
    job_in_full_flow();
    site_stop();
}

void add_exchange_tests(CU_pSuite suite)
{
    CU_ADD_TEST(suite, large_messages_among_all);
    CU_ADD_TEST(suite, rank_that_sends_to_itself);
    CU_ADD_TEST(suite, ranks_that_come_and_go);
    CU_ADD_TEST(suite, newer_incarnation_of_a_busy_rank);
    CU_ADD_TEST(suite, newer_incarnation_of_a_rank_that_does_not_read);
    CU_ADD_TEST(suite, dispatcher_that_leaves_in_full_flow);
    CU_ADD_TEST(suite, stop_when_the_dispatcher_has_left);
}
