/* Clients that are slow, break the protocol or vanish. In each case the other ranks go on, and the
 * relay's memory stays within a bound. */
#include "common/cred.h"
#include "tests/conformance/suite.h"

#include <CUnit/CUnit.h>
#include <sched.h>

#define EXCHANGED (1u << 20) /* bytes of a message that other ranks exchange meanwhile */
#define VANISHING 12
#define SLOW 16
#define SLOW_BYTES 1000
#define COMERS 1000 /* fewer than may wait in a listener's backlog */

static bool all_sent(void)
{
    return codec_left(&rank_of(0)->codec.out) == 0;
}

static bool one_arrived(void)
{
    return rank_of(1)->inbox.complete == 1;
}

/* --- clients that stop, or vanish ------------------------------------------------------------- */

/* A rank does not read what it asked for. Its sender can write all of it, other ranks go on, and
 * the relay keeps nothing of what these exchange. */
static void client_that_stops_reading(void)
{
    site_start_unlogged_job(engine(), 4);
    peer_recv(rank_of(1), 7, 5);
    rank_of(1)->stalled = true;
    peer_send(rank_of(0), 1, 5, 3 * LARGE);
    ping_pong(2, 3, 20, 0);
    CU_ASSERT_TRUE(pump_until(all_sent));
    ping_pong(2, 3, 20, EXCHANGED);
    rank_of(1)->stalled = false;
    CU_ASSERT_TRUE(pump_until(one_arrived));
    CU_ASSERT_TRUE(peer_received(rank_of(1), 7, 5, 3 * LARGE));
    site_stop();
    CU_ASSERT_TRUE(site.memory_max >= 2 * LARGE); /* the message was held */
    CU_ASSERT_TRUE(site.memory_max <= MEMORY_BOUND(3 * LARGE + EXCHANGED + 20, 5));
}

static uint32_t ranks_lost;

static bool rank_lost(void)
{
    return peers[0].notices[CW_NOTICE_RANK_LOST] >= ranks_lost;
}

static struct peer *sender;

static bool half_sent(void)
{
    return codec_left(&sender->codec.out) < LARGE / 2;
}

/* Ranks vanish one after another, each in the middle of a message. The relay keeps nothing of it.
 */
static void clients_that_vanish(void)
{
    uint32_t receiver = VANISHING;

    site_start_unlogged_job(engine(), VANISHING + 3);
    for (ranks_lost = 1; ranks_lost <= VANISHING; ranks_lost++) {
        sender = rank_of(ranks_lost - 1);
        peer_recv(rank_of(receiver), ranks_lost, 5);
        peer_send(sender, receiver, 5, LARGE);
        CU_ASSERT_TRUE(pump_until(half_sent));
        peer_leave(sender);
        CU_ASSERT_TRUE(pump_until(rank_lost));
        ping_pong(VANISHING + 1, VANISHING + 2, 5, 0);
    }
    CU_ASSERT_EQUAL(rank_of(receiver)->inbox.complete, 0);
    site_stop();
    CU_ASSERT_TRUE(site.memory_max <= MEMORY_BOUND(RELAY_CUT_BACKLOG_MAX, VANISHING + 4));
}

/* The receiver vanishes. Its sender does not wait for ever. */
static void receiver_that_vanishes(void)
{
    site_start_job(engine(), 4);
    peer_recv(rank_of(1), 7, 5);
    rank_of(1)->stalled = true;
    sender = rank_of(0);
    peer_send(sender, 1, 5, 4 * LARGE);
    CU_ASSERT_TRUE(pump_until(half_sent));
    peer_leave(rank_of(1));
    CU_ASSERT_TRUE(pump_until(all_sent));
    ranks_lost = 1;
    CU_ASSERT_TRUE(pump_until(rank_lost));
    ping_pong(2, 3, 5, 0);
    site_stop();
}

/* --- clients that are slow -------------------------------------------------------------------- */
static bool byte_by_byte_arrived(void)
{
    return rank_of(0)->inbox.complete == 1 && rank_of(1)->inbox.complete == 1;
}

static bool challenged(void)
{
    return peers[peer_count - 1].codec.in.end >= CW_FRAME_HEADER + CW_CHALLENGE_SIZE;
}

/* Each byte goes in a packet of its own, and the relay gets the processor after each. */
static void say_byte_by_byte(struct peer *p)
{
    while (codec_left(&p->codec.out)) {
        CU_ASSERT_EQUAL_FATAL(
            send(p->wire.fd, p->codec.out.at + p->codec.out.start, 1, MSG_NOSIGNAL), 1);
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

static bool slow_arrived(void)
{
    return rank_of(0)->inbox.complete == SLOW;
}

/* Slow clients are in the middle of a frame nearly always. No other client waits for them. */
static void slow_clients_among_others(void)
{
    site_start_unlogged_job(engine(), 3 + SLOW);
    for (uint32_t r = 3; r < 3 + SLOW; r++) {
        peer_recv(rank_of(0), r, r);
        peer_send(rank_of(r), 0, r, SLOW_BYTES + r);
        rank_of(r)->slow = true;
    }
    for (int i = 0; i < 10 && !slow_arrived(); i++)
        ping_pong(1, 2, 2, EXCHANGED / 4);
    CU_ASSERT_TRUE(pump_until(slow_arrived));
    for (uint32_t r = 3; r < 3 + SLOW; r++)
        CU_ASSERT_TRUE(peer_received(rank_of(0), r, r, SLOW_BYTES + r));
    site_stop();
    CU_ASSERT_TRUE(site.memory_max <= MEMORY_BOUND(EXCHANGED, 4 + SLOW));
}

/* --- clients that do not follow the protocol -------------------------------------------------- */
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
    ping_pong(0, 1, 5, 0);
    site_stop();
}

static bool two_ended(void)
{
    return rank_of(0)->ended && rank_of(1)->ended;
}

/* A rank that breaks the protocol gets the reason, also if it goes on sending. */
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
    ping_pong(2, 3, 5, 0);
    site_stop();
}

/* They send nothing, and most close before the relay has sent CHALLENGE. */
static void clients_that_come_and_go(void)
{
    struct peer *p;

    site_start_job(engine(), 4);
    p = peer_connect(SITE_UNIX);
    for (int i = 0; i < COMERS; i++) {
        peer_reconnect(p, i % 4 ? SITE_UNIX : SITE_TCP);
        if (i % 32 == 0)
            ping_pong(0, 2, 1, 0);
    }
    ping_pong(0, 2, 5, 0);
    site_stop();
}

static bool images_asked_for(void)
{
    for (uint32_t rank = 0; rank < 4; rank++)
        if (rank_of(rank)->heard[CW_FRAME_CHECKPOINT] == 0)
            return false;
    return true;
}

static bool trims_answered(void)
{
    return peers[0].heard[CW_FRAME_TRIMMED] == 4;
}

/* Ranks that are idle are asked for images, and their relay is told to trim. */
static void images_of_idle_ranks(void)
{
    static const struct cw_point point = {.clock = 1};

    site_start_job(engine(), 4);
    for (uint32_t rank = 0; rank < 4; rank++)
        codec_checkpoint(&peers[0].codec, rank, 1, 0);
    CU_ASSERT_TRUE(pump_until(images_asked_for));
    for (uint32_t rank = 0; rank < 4; rank++) {
        rank_of(rank)->codec.clock = 1;
        codec_point(&rank_of(rank)->codec, 0, 0);
        codec_trim(&peers[0].codec, rank, &point);
    }
    CU_ASSERT_TRUE(pump_until(trims_answered));
    ping_pong(0, 2, 5, 0);
    site_stop();
}

void add_client_tests(CU_pSuite suite)
{
    CU_ADD_TEST(suite, images_of_idle_ranks);
    CU_ADD_TEST(suite, client_that_stops_reading);
    CU_ADD_TEST(suite, clients_that_vanish);
    CU_ADD_TEST(suite, receiver_that_vanishes);
    CU_ADD_TEST(suite, clients_that_come_and_go);
    CU_ADD_TEST(suite, client_of_single_bytes);
    CU_ADD_TEST(suite, slow_clients_among_others);
    CU_ADD_TEST(suite, garbage);
    CU_ADD_TEST(suite, reason_of_a_refusal_arrives);
}
