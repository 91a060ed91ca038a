/* What every engine must do, on real sockets. Each engine has a suite, "engine NAME", and further
 * suites for other pools or with rings, "engine NAME, WHICH". */
#include "tests/conformance/suite.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>
#include <stdio.h>
#include <unistd.h>

#define SUITE_PREFIX "engine "
#define ROUNDS 200

const struct relay_engine_ops *engine(void)
{
    char name[64];

    snprintf(name, sizeof(name), "%s", CU_get_current_suite()->pName + strlen(SUITE_PREFIX));
    name[strcspn(name, ",")] = '\0';
    return relay_engine_find(name);
}

static bool all_ranks_up(void)
{
    return peers[0].notices[CW_NOTICE_RANK_UP] == 2;
}

static void handshake(void)
{
    site_start_job(engine(), 2);
    CU_ASSERT_TRUE(pump_until(all_ranks_up));
    for (int listener = SITE_UNIX; listener <= SITE_TCP; listener++) {
        CU_ASSERT_EQUAL(peer_hello_rank(peer_connect(listener), 0, 1), CW_EAUTH);
        CU_ASSERT_EQUAL(peer_hello_dispatcher(peer_connect(listener), 2), CW_EAUTH);
        site.key[0] ^= 1;
        CU_ASSERT_EQUAL(peer_hello_rank(peer_connect(listener), 1, 2), CW_EAUTH);
        site.key[0] ^= 1;
    }
    ping_pong(0, 1, 2, 0);
    site_stop();
}

static void small_messages(void)
{
    site_start_job(engine(), 2);
    ping_pong(0, 1, ROUNDS, 0);
    site_stop();
}

/* --- large messages --------------------------------------------------------------------------- */
static bool both_large_arrived(void)
{
    return rank_of(1)->inbox.complete == 1 && rank_of(0)->inbox.complete == 1;
}

/* From the Unix socket to TCP and back at the same time. */
static void large_messages_cut_through(void)
{
    site_start_job(engine(), 2);
    peer_recv(rank_of(1), 7, 5);
    peer_recv(rank_of(0), 8, 6);
    peer_send(rank_of(0), 1, 5, LARGE);
    peer_send(rank_of(1), 0, 6, LARGE);
    CU_ASSERT_TRUE(pump_until(both_large_arrived));
    CU_ASSERT_TRUE(peer_received(rank_of(1), 7, 5, LARGE));
    CU_ASSERT_TRUE(peer_received(rank_of(0), 8, 6, LARGE));
    site_stop();
}

static bool all_sent(void)
{
    return codec_left(&rank_of(0)->codec.out) == 0;
}

static bool one_arrived(void)
{
    return rank_of(1)->inbox.complete == 1;
}

static void large_message_that_waits(void)
{
    site_start_job(engine(), 2);
    peer_send(rank_of(0), 1, 5, LARGE);
    CU_ASSERT_TRUE(pump_until(all_sent));
    peer_recv(rank_of(1), 7, 5);
    CU_ASSERT_TRUE(pump_until(one_arrived));
    CU_ASSERT_TRUE(peer_received(rank_of(1), 7, 5, LARGE));
    site_stop();
}

/* --- recovery --------------------------------------------------------------------------------- */
static struct peer *again;

static bool again_has_it(void)
{
    return again->inbox.complete == 1;
}

static bool again_has_all(void)
{
    return again->heard[CW_FRAME_REPLAYED] == 1;
}

static bool rank_lost(void)
{
    return peers[0].notices[CW_NOTICE_RANK_LOST] == 1;
}

static bool half_sent(void)
{
    return codec_left(&rank_of(0)->codec.out) < LARGE / 2;
}

/* The next incarnation of the sender sends what the relay does not have yet. */
static void sender_that_comes_back(void)
{
    site_start_job(engine(), 2);
    peer_recv(rank_of(1), 7, 5);
    peer_send(rank_of(0), 1, 5, LARGE);
    CU_ASSERT_TRUE(pump_until(half_sent));
    peer_leave(rank_of(0));
    CU_ASSERT_TRUE(pump_until(rank_lost));
    again = peer_connect(SITE_TCP);
    CU_ASSERT_EQUAL_FATAL(peer_hello_rank(again, 0, 2), CW_OK);
    CU_ASSERT_EQUAL(again->welcome.flags, CW_WELCOME_LOG | CW_WELCOME_REPLAY);
    CU_ASSERT_TRUE(again->welcome.missing > 0 && again->welcome.missing < LARGE);
    codec_taken(&again->codec, CW_FRAME_LIVE, 0);
    peer_send_rest(again, 5, LARGE, LARGE - again->welcome.missing);
    CU_ASSERT_TRUE(pump_until(one_arrived));
    CU_ASSERT_TRUE(peer_received(rank_of(1), 7, 5, LARGE));
    site_stop();
}

/* The next incarnation of the receiver gets the whole message that was being cut through to the one
 * before. */
static void receiver_that_comes_back(void)
{
    site_start_job(engine(), 2);
    peer_recv(rank_of(1), 7, 5);
    peer_send(rank_of(0), 1, 5, LARGE);
    CU_ASSERT_TRUE(pump_until(half_sent));
    peer_leave(rank_of(1));
    CU_ASSERT_TRUE(pump_until(rank_lost));
    again = peer_connect(SITE_UNIX);
    CU_ASSERT_EQUAL_FATAL(peer_hello_rank(again, 1, 2), CW_OK);
    codec_taken(&again->codec, CW_FRAME_LIVE, 0);
    CU_ASSERT_TRUE(pump_until(again_has_it));
    CU_ASSERT_TRUE(peer_received(again, 7, 5, LARGE));
    site_stop();
}

static uint32_t logged;

static bool logged_arrived(void)
{
    return rank_of(0)->inbox.complete == logged;
}

/* A log of many messages is fed through a socket that takes little at a time. */
static void long_log(void)
{
    site_start_job(engine(), 2);
    for (logged = 1; logged <= 30; logged++) {
        peer_recv(rank_of(0), logged, logged);
        peer_send(rank_of(1), 0, logged, 300000 + logged);
        CU_ASSERT_TRUE(pump_until(logged_arrived));
        codec_taken(&rank_of(0)->codec, CW_FRAME_TAKEN, logged);
    }
    CU_ASSERT_TRUE(pump_until(all_sent));
    peer_leave(rank_of(0));
    CU_ASSERT_TRUE(pump_until(rank_lost));
    again = peer_connect(SITE_UNIX);
    CU_ASSERT_EQUAL_FATAL(peer_hello_rank(again, 0, 2), CW_OK);
    CU_ASSERT_EQUAL(again->welcome.acts, 30);
    CU_ASSERT_TRUE(pump_until(again_has_all));
    for (uint32_t i = 1; i <= 30; i++)
        CU_ASSERT_TRUE(peer_received(again, i, i, 300000 + i));
    CU_ASSERT_EQUAL(again->heard[CW_FRAME_TAKEN], 30);
    site_stop();
}

/* --- leaving ---------------------------------------------------------------------------------- */
static bool two_ended(void)
{
    return rank_of(0)->ended && rank_of(1)->ended;
}

static void farewell(void)
{
    site_start_job(engine(), 2);
    codec_bye(&rank_of(0)->codec);
    codec_bye(&rank_of(1)->codec);
    CU_ASSERT_TRUE(pump_until(two_ended));
    CU_ASSERT_EQUAL(rank_of(0)->heard[CW_FRAME_FAREWELL], 1);
    CU_ASSERT_EQUAL(rank_of(1)->heard[CW_FRAME_FAREWELL], 1);
    CU_ASSERT_EQUAL(peers[0].notices[CW_NOTICE_RANK_LOST], 0);
    site_stop();
}

static void dispatcher_that_leaves(void)
{
    site_start_job(engine(), 2);
    peer_leave(&peers[0]);
    CU_ASSERT_TRUE(pump_until(two_ended));
    CU_ASSERT_EQUAL(peer_hello_rank(peer_connect(SITE_TCP), 1, 2), CW_EAUTH);
    site_stop();
}

/* --- stopping --------------------------------------------------------------------------------- */
static void *stop_soon(void *unused)
{
    (void)unused;
    usleep(50000);
    site.ops->stop(site.engine);
    return NULL;
}

static bool everybody_ended(void)
{
    bool ended = true;

    for (int i = 0; i < peer_count; i++)
        ended &= peers[i].ended;
    return ended;
}

static void stop_while_traffic_flows(void)
{
    pthread_t stopper;

    site_start_job(engine(), 4);
    for (uint32_t r = 0; r < 4; r++) {
        for (uint32_t i = 0; i < 8; i++)
            peer_recv(rank_of(r), i, i);
        for (uint32_t i = 0; i < 8; i++)
            peer_send(rank_of(r), r ^ 1, i, LARGE);
    }
    CU_ASSERT_EQUAL_FATAL(pthread_create(&stopper, NULL, stop_soon, NULL), 0);
    pump_for(100);
    CU_ASSERT_EQUAL(pthread_join(stopper, NULL), 0);
    site_join();
    site_close();
}

static bool newest_heard_challenge(void)
{
    return peers[peer_count - 1].heard[CW_FRAME_CHALLENGE] == 1;
}

static void clients_see_the_end(void)
{
    site_start_job(engine(), 2);
    peer_connect(SITE_TCP);
    CU_ASSERT_TRUE(pump_until(newest_heard_challenge)); /* the relay has accepted it */
    site.ops->stop(site.engine);
    site_join();
    CU_ASSERT_TRUE(pump_until(everybody_ended));
    site_close();
}

/* stop() works before run() has begun, and more than once. */
static void stop_at_any_time(void)
{
    for (int i = 0; i < 20; i++) {
        site_start(engine());
        for (int j = 0; j < i % 3; j++)
            site.ops->stop(site.engine);
        if (i % 2)
            peer_connect(i % 3 == 0);
        site_stop();
    }
}

static void names(void)
{
    CU_ASSERT_PTR_NULL(relay_engine_find("no such engine"));
    CU_ASSERT_PTR_NULL(relay_engine_find(""));
    CU_ASSERT_PTR_NOT_NULL_FATAL(engine());
    CU_ASSERT_PTR_NOT_NULL(engine()->summary);
    CU_ASSERT_PTR_NULL(strchr(engine()->summary, '\n'));
}

/* --- suites ----------------------------------------------------------------------------------- */
static int with(struct relay_pools pools, bool rings)
{
    site_pools = pools;
    site_rings = rings;
    return 0;
}

static int with_default_pools(void)
{
    return with(RELAY_POOLS_DEFAULT, false);
}

static int with_one_of_each(void)
{
    return with((struct relay_pools){.threads = 1, .receivers = 1, .loggers = 1, .senders = 1},
                false);
}

static int with_many_of_each(void)
{
    return with((struct relay_pools){.threads = 4, .receivers = 3, .loggers = 2, .senders = 3},
                false);
}

static int with_rings(void)
{
    return with(RELAY_POOLS_DEFAULT, true);
}

static CU_pSuite add_suite(const char *name, CU_InitializeFunc choose)
{
    CU_pSuite suite = CU_add_suite(name, choose, NULL);

    CU_ADD_TEST(suite, names);
    CU_ADD_TEST(suite, handshake);
    CU_ADD_TEST(suite, small_messages);
    CU_ADD_TEST(suite, large_messages_cut_through);
    CU_ADD_TEST(suite, large_message_that_waits);
    CU_ADD_TEST(suite, sender_that_comes_back);
    CU_ADD_TEST(suite, receiver_that_comes_back);
    CU_ADD_TEST(suite, long_log);
    CU_ADD_TEST(suite, farewell);
    CU_ADD_TEST(suite, dispatcher_that_leaves);
    CU_ADD_TEST(suite, stop_while_traffic_flows);
    CU_ADD_TEST(suite, clients_see_the_end);
    CU_ADD_TEST(suite, stop_at_any_time);
    add_client_tests(suite);
    add_exchange_tests(suite);
    add_crowd_tests(suite);
    add_random_exchange_tests(suite);
    add_engine_resume_tests(suite);
    add_engine_disk_tests(suite);
    return suite;
}

static CU_pSuite add_variant(const struct relay_engine_ops *ops, const char *which,
                             CU_InitializeFunc choose)
{
    char name[64];

    snprintf(name, sizeof(name), SUITE_PREFIX "%s%s", ops->name, which);
    return add_suite(name, choose);
}

static void add_suites_of(const struct relay_engine_ops *ops)
{
    bool pools = strcmp(ops->name, "pool") == 0 || strcmp(ops->name, "pipeline") == 0;
    struct cw_err err = {0};

    if (ops->check && ops->check(&err) < 0) {
        printf("# engine %s cannot run here: %s\n", ops->name, err.text);
        return;
    }
    add_variant(ops, "", with_default_pools);
    if (ops == &relay_engine_poll)
        add_ring_client_tests(add_variant(ops, ", rings", with_rings));
    if (!pools)
        return;
    add_variant(ops, ", one of each", with_one_of_each);
    add_variant(ops, ", many of each", with_many_of_each);
}

void add_engine_tests(void)
{
    for (int i = 0; relay_engines[i]; i++)
        add_suites_of(relay_engines[i]);
}
