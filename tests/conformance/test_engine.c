/* What every engine must do, on real sockets. One suite an engine: "engine NAME". */
#include "common/cred.h"
#include "tests/conformance/site.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define LARGE (8u << 20)
#define SUITE_PREFIX "engine "
#define ROUNDS 200
#define CROWD 200
#define SPARE 8 /* descriptors left to the engine when they run short */
#define REFUSED_MAX 20

static const struct relay_engine_ops *engine(void)
{
    return relay_engine_find(CU_get_current_suite()->pName + strlen(SUITE_PREFIX));
}

/* --- exchanges that show that the others go on ------------------------------------------------ */
static uint32_t ping;
static uint32_t pong;
static uint32_t rounds;

static bool pinged(void)
{
    return rank_of(pong)->inbox.complete == rounds;
}

static bool ponged(void)
{
    return rank_of(ping)->inbox.complete == rounds;
}

/* `count` messages there and back between two ranks that have spoken of nothing else. */
static void ping_pong_between(uint32_t a, uint32_t b, uint32_t count)
{
    bool right = true;

    ping = a;
    pong = b;
    for (uint32_t i = 0; i < count && right; i++) {
        rounds = (uint32_t)rank_of(a)->inbox.complete + 1;
        peer_recv(rank_of(b), rounds, 1);
        peer_recv(rank_of(a), rounds, 1);
        peer_send(rank_of(a), b, 1, i);
        right = pump_until(pinged) && peer_received(rank_of(b), rounds, 1, i);
        peer_send(rank_of(b), a, 1, i);
        right = right && pump_until(ponged) && peer_received(rank_of(a), rounds, 1, i);
    }
    CU_ASSERT_TRUE(right);
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
    ping_pong_between(0, 1, 2);
    site_stop();
}

static void small_messages(void)
{
    site_start_job(engine(), 2);
    ping_pong_between(0, 1, ROUNDS);
    site_stop();
}

/* --- large messages --------------------------------------------------------------------------- */
static bool both_large_arrived(void)
{
    return rank_of(1)->inbox.complete == 1 && rank_of(0)->inbox.complete == 1;
}

/* From the Unix socket to TCP and back, at the same time. */
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

/* It does not read what it asked for: its sender gets rid of everything, the others go on. */
static void client_that_stops_reading(void)
{
    site_start_job(engine(), 4);
    peer_recv(rank_of(1), 7, 5);
    rank_of(1)->stalled = true;
    peer_send(rank_of(0), 1, 5, 4 * LARGE);
    ping_pong_between(2, 3, 20);
    CU_ASSERT_TRUE(pump_until(all_sent));
    ping_pong_between(2, 3, 20);
    rank_of(1)->stalled = false;
    CU_ASSERT_TRUE(pump_until(one_arrived));
    CU_ASSERT_TRUE(peer_received(rank_of(1), 7, 5, 4 * LARGE));
    site_stop();
}

static bool rank_lost(void)
{
    return peers[0].notices[CW_NOTICE_RANK_LOST] == 1;
}

static bool half_sent(void)
{
    return codec_left(&rank_of(0)->codec.out) < LARGE / 2;
}

static void client_that_vanishes(void)
{
    site_start_job(engine(), 4);
    peer_recv(rank_of(1), 7, 5);
    peer_send(rank_of(0), 1, 5, LARGE);
    CU_ASSERT_TRUE(pump_until(half_sent));
    peer_close(rank_of(0));
    CU_ASSERT_TRUE(pump_until(rank_lost));
    ping_pong_between(2, 3, 5);
    CU_ASSERT_EQUAL(rank_of(1)->inbox.complete, 0);
    site_stop();
}

/* The receiver vanishes; its sender is not held for ever. */
static void receiver_that_vanishes(void)
{
    site_start_job(engine(), 4);
    peer_recv(rank_of(1), 7, 5);
    rank_of(1)->stalled = true;
    peer_send(rank_of(0), 1, 5, 4 * LARGE);
    CU_ASSERT_TRUE(pump_until(half_sent));
    peer_close(rank_of(1));
    CU_ASSERT_TRUE(pump_until(all_sent));
    CU_ASSERT_TRUE(pump_until(rank_lost));
    ping_pong_between(2, 3, 5);
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

/* The next incarnation sends what the relay does not have yet. */
static void sender_that_comes_back(void)
{
    struct cw_send sent = {.dst = 1, .kind = CW_SEND_TAG, .tag = 5, .total = LARGE};

    site_start_job(engine(), 2);
    peer_recv(rank_of(1), 7, 5);
    peer_send(rank_of(0), 1, 5, LARGE);
    CU_ASSERT_TRUE(pump_until(half_sent));
    peer_close(rank_of(0));
    CU_ASSERT_TRUE(pump_until(rank_lost));
    again = peer_connect(SITE_TCP);
    CU_ASSERT_EQUAL_FATAL(peer_hello_rank(again, 0, 2), CW_OK);
    CU_ASSERT_EQUAL(again->welcome.flags, CW_WELCOME_LOG | CW_WELCOME_REPLAY);
    CU_ASSERT_TRUE(again->welcome.missing > 0 && again->welcome.missing < LARGE);
    codec_check(&again->codec, &sent);
    codec_taken(&again->codec, CW_FRAME_LIVE, 0);
    peer_send_rest(again, 5, LARGE, LARGE - again->welcome.missing);
    CU_ASSERT_TRUE(pump_until(one_arrived));
    CU_ASSERT_TRUE(peer_received(rank_of(1), 7, 5, LARGE));
    site_stop();
}

/* The next incarnation gets from the start what was cut through to the one before it. */
static void receiver_that_comes_back(void)
{
    site_start_job(engine(), 2);
    peer_recv(rank_of(1), 7, 5);
    peer_send(rank_of(0), 1, 5, LARGE);
    CU_ASSERT_TRUE(pump_until(half_sent));
    peer_close(rank_of(1));
    CU_ASSERT_TRUE(pump_until(rank_lost));
    again = peer_connect(SITE_UNIX);
    CU_ASSERT_EQUAL_FATAL(peer_hello_rank(again, 1, 2), CW_OK);
    codec_taken(&again->codec, CW_FRAME_LIVE, 0);
    CU_ASSERT_TRUE(pump_until(again_has_it));
    CU_ASSERT_TRUE(peer_received(again, 7, 5, LARGE));
    site_stop();
}

/* A log of many messages, over a socket that takes little at a time. */
static void long_log(void)
{
    site_start_job(engine(), 2);
    for (rounds = 1; rounds <= 30; rounds++) {
        ping = 1;
        pong = 0;
        peer_recv(rank_of(0), rounds, rounds);
        peer_send(rank_of(1), 0, rounds, 300000 + rounds);
        CU_ASSERT_TRUE(pump_until(pinged));
        codec_taken(&rank_of(0)->codec, CW_FRAME_TAKEN, rounds);
    }
    CU_ASSERT_TRUE(pump_until(all_sent));
    peer_close(rank_of(0));
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

/* --- many, slow and strange clients ----------------------------------------------------------- */
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

static bool byte_by_byte_arrived(void)
{
    return rank_of(0)->inbox.complete == 1 && rank_of(1)->inbox.complete == 1;
}

static bool challenged(void)
{
    return peers[peer_count - 1].codec.in.end >= CW_FRAME_HEADER + CW_CHALLENGE_SIZE;
}

/* Everything it says goes in a packet of its own; the scheduler lets the relay look at each. */
static void say_byte_by_byte(struct peer *p)
{
    while (codec_left(&p->codec.out)) {
        CU_ASSERT_EQUAL_FATAL(send(p->fd, p->codec.out.at + p->codec.out.start, 1, MSG_NOSIGNAL),
                              1);
        codec_take(&p->codec.out, 1);
        sched_yield();
    }
}

static void client_of_single_bytes(void)
{
    struct cw_hello hello = {.role = CW_ROLE_RANK, .rank = 2, .incarnation = 1};
    struct cw_challenge challenge;
    uint8_t key[CW_KEY_SIZE];
    struct peer *p;

    site_start(engine());
    CU_ASSERT_EQUAL_FATAL(peer_hello_dispatcher(peer_connect(SITE_TCP), 3), CW_OK);
    CU_ASSERT_EQUAL_FATAL(peer_hello_rank(peer_connect(SITE_TCP), 0, 1), CW_OK);
    CU_ASSERT_EQUAL_FATAL(peer_hello_rank(peer_connect(SITE_UNIX), 1, 1), CW_OK);
    p = peer_connect(SITE_TCP);
    CU_ASSERT_TRUE_FATAL(pump_until(challenged));
    CU_ASSERT_TRUE(cw_challenge_get(p->codec.in.at + CW_FRAME_HEADER, &challenge));
    memcpy(hello.job, site.job, CW_ID_SIZE);
    cw_cred_job_key(key, site.key, site.job);
    cw_cred_rank_key(key, key, 2, 1);
    codec_hello(&p->codec, &hello, key, &challenge);
    peer_recv(rank_of(0), 1, 5);
    peer_send(p, 0, 5, 300);
    peer_send(p, 1, 6, 300);
    pump_for(1);
    say_byte_by_byte(p);
    peer_recv(rank_of(1), 2, 6);
    CU_ASSERT_TRUE(pump_until(byte_by_byte_arrived));
    CU_ASSERT_TRUE(peer_received(rank_of(0), 1, 5, 300));
    CU_ASSERT_TRUE(peer_received(rank_of(1), 2, 6, 300));
    site_stop();
}

static bool strangers_ended(void)
{
    bool ended = true;

    for (int i = 3; i < peer_count; i++)
        ended &= peers[i].ended;
    return ended;
}

static void garbage(void)
{
    uint64_t seed = 11;

    site_start_job(engine(), 2);
    for (int i = 0; i < 30; i++) {
        struct peer *p = peer_connect(i % 2);
        uint8_t *to = codec_room(&p->codec.out, 3000);

        for (int j = 0; j < 3000; j++)
            to[j] = (uint8_t)codec_random(&seed);
    }
    CU_ASSERT_TRUE(pump_until(strangers_ended));
    for (int i = 3; i < peer_count; i++)
        CU_ASSERT_EQUAL(peers[i].heard[CW_FRAME_REFUSED], 1);
    ping_pong_between(0, 1, 5);
    site_stop();
}

static bool two_ended(void)
{
    return rank_of(0)->ended && rank_of(1)->ended;
}

/* A rank that breaks the protocol is told why, whatever it goes on saying. */
static void reason_of_a_refusal_arrives(void)
{
    site_start_job(engine(), 4);
    for (uint32_t r = 0; r < 2; r++) {
        codec_begin(&rank_of(r)->codec, CW_FRAME_WELCOME, CW_WELCOME_SIZE);
        peer_send(rank_of(r), 3, 5, LARGE);
    }
    CU_ASSERT_TRUE(pump_until(two_ended));
    CU_ASSERT_EQUAL(rank_of(0)->heard[CW_FRAME_REFUSED], 1);
    CU_ASSERT_EQUAL(rank_of(1)->heard[CW_FRAME_REFUSED], 1);
    ping_pong_between(2, 3, 5);
    site_stop();
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
    peer_close(&peers[0]);
    CU_ASSERT_TRUE(pump_until(two_ended));
    CU_ASSERT_EQUAL(peer_hello_rank(peer_connect(SITE_TCP), 1, 2), CW_EAUTH);
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
    ping_pong_between(0, CROWD - 1, 3);
    /* all leave at once, too */
    for (uint32_t r = 2; r < CROWD - 1; r++)
        peer_close(rank_of(r));
    ping_pong_between(0, CROWD - 1, 3);
    site_stop();
}

/* --- limits ----------------------------------------------------------------------------------- */
static bool some_refused(void)
{
    int ended = 0;

    for (int i = 3; i < peer_count; i++)
        ended += peers[i].ended;
    return ended >= peer_count - 3 - SPARE;
}

/* Sockets that are there before the limit falls: client and relay share it in this process. */
static void open_sockets(int *fds)
{
    for (int i = 0; i < REFUSED_MAX; i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        CU_ASSERT_TRUE_FATAL(fds[i] >= 0);
    }
}

static void adopt_and_connect(const int *fds)
{
    const struct cw_address *a = &site.listeners[SITE_UNIX].address;

    for (int i = 0; i < REFUSED_MAX; i++) {
        struct peer *p = &peers[peer_count++];

        memset(p, 0, sizeof(*p));
        p->fd = fds[i];
        CU_ASSERT_EQUAL(connect(p->fd, (const struct sockaddr *)&a->sockaddr, a->sockaddr_size), 0);
    }
}

/* Who comes too many is refused, not left to wait; who is there goes on; later all is well. */
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
    ping_pong_between(0, 1, 20);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &old), 0);
    for (int i = 3; i < peer_count; i++)
        peer_close(&peers[i]);
    CU_ASSERT_EQUAL(peer_hello_rank(peer_connect(SITE_UNIX), 1, 2), CW_OK);
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
    CU_ASSERT_TRUE(pump_until(newest_heard_challenge)); /* it is no longer the listener's */
    site.ops->stop(site.engine);
    site_join();
    CU_ASSERT_TRUE(pump_until(everybody_ended));
    site_close();
}

/* Also before run has begun, and more than once. */
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

static void add_suite_of(const struct relay_engine_ops *ops)
{
    char name[64];
    CU_pSuite suite;

    snprintf(name, sizeof(name), SUITE_PREFIX "%s", ops->name);
    suite = CU_add_suite(name, NULL, NULL);
    CU_ADD_TEST(suite, names);
    CU_ADD_TEST(suite, handshake);
    CU_ADD_TEST(suite, small_messages);
    CU_ADD_TEST(suite, large_messages_cut_through);
    CU_ADD_TEST(suite, large_message_that_waits);
    CU_ADD_TEST(suite, client_that_stops_reading);
    CU_ADD_TEST(suite, client_that_vanishes);
    CU_ADD_TEST(suite, receiver_that_vanishes);
    CU_ADD_TEST(suite, sender_that_comes_back);
    CU_ADD_TEST(suite, receiver_that_comes_back);
    CU_ADD_TEST(suite, long_log);
    CU_ADD_TEST(suite, sixty_four_clients);
    CU_ADD_TEST(suite, client_of_single_bytes);
    CU_ADD_TEST(suite, garbage);
    CU_ADD_TEST(suite, reason_of_a_refusal_arrives);
    CU_ADD_TEST(suite, farewell);
    CU_ADD_TEST(suite, dispatcher_that_leaves);
    CU_ADD_TEST(suite, crowd_that_connects_at_once);
    CU_ADD_TEST(suite, descriptors_run_out);
    CU_ADD_TEST(suite, stop_while_traffic_flows);
    CU_ADD_TEST(suite, clients_see_the_end);
    CU_ADD_TEST(suite, stop_at_any_time);
}

void add_engine_tests(void)
{
    struct cw_err err;

    for (int i = 0; relay_engines[i]; i++)
        if (!relay_engines[i]->check || relay_engines[i]->check(&err) == CW_OK)
            add_suite_of(relay_engines[i]);
        else
            printf("# " SUITE_PREFIX "%s is left out: %s\n", relay_engines[i]->name, err.text);
}
