/* Clients that accept rings and misuse them. Other ranks go on, and the relay keeps nothing. */
#include "tests/conformance/suite.h"

#include <CUnit/CUnit.h>
#include <sys/socket.h>

#define BELLS 20000
#define SCRIBBLERS 60
#define WORDS 68     /* of 4 bytes, from the start of the memory: all that both sides read */
#define SCRIBBLES 40 /* words that one client writes */
#define REST 400000  /* bytes: more than one read, less than a ring */
#define JOBS_ENDED 20
#define CALLS_MAX 20000 /* system calls of an engine that sleeps; one that spins makes more */

static void bell(const struct peer *p)
{
    (void)!send(p->wire.fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool rank_lost(void)
{
    return peers[0].notices[CW_NOTICE_RANK_LOST] == 1;
}

/* Rank 0 has rings and does not read. */
static struct peer *start_with_rank_0(void)
{
    struct peer *p;

    site_start_job(engine(), 4);
    p = rank_of(0);
    CU_ASSERT_EQUAL_FATAL(p->wire.mode, CW_WIRE_RINGS);
    p->stalled = true;
    return p;
}

static void rank_0_is_lost(void)
{
    CU_ASSERT_TRUE(pump_until(rank_lost));
    ping_pong(1, 2, 5, 0);
    ping_pong(1, 2, 5, LARGE / 8);
    site_stop();
}

/* --- positions -------------------------------------------------------------------------------- */
static void written_that_cannot_be(void)
{
    struct peer *p = start_with_rank_0();

    atomic_fetch_add(&p->wire.out.shared->written, 1u << 30);
    bell(p);
    rank_0_is_lost();
}

static void taken_that_cannot_be(void)
{
    struct peer *p = start_with_rank_0();

    atomic_fetch_add(&p->wire.in.shared->taken, 1u << 30);
    peer_recv(p, 1, 5);
    peer_send(rank_of(2), 0, 5, 100);
    rank_0_is_lost();
}

/* One incarnation after another writes random words to random places of what both sides read. */
static void scribblers(void)
{
    struct peer *p = start_with_rank_0();
    uint64_t seed = 31;

    for (uint32_t incarnation = 2; incarnation < 2 + SCRIBBLERS; incarnation++) {
        peer_reconnect(p, SITE_UNIX);
        CU_ASSERT_EQUAL_FATAL(peer_hello_rank(p, 0, incarnation), CW_OK);
        CU_ASSERT_EQUAL_FATAL(p->wire.mode, CW_WIRE_RINGS);
        p->stalled = true;
        for (int i = 0; i < SCRIBBLES; i++) {
            _Atomic uint32_t *words = (_Atomic uint32_t *)p->wire.shared;

            atomic_store(&words[codec_random_below(&seed, WORDS)], (uint32_t)codec_random(&seed));
            bell(p);
        }
        ping_pong(1, 2, 1, 1000);
    }
    ping_pong(1, 2, 5, LARGE / 8);
    site_stop();
}

/* --- the socket ------------------------------------------------------------------------------- */
static void bells_without_end(void)
{
    site_start_job(engine(), 4);
    for (int i = 0; i < BELLS; i++) {
        bell(rank_of(0));
        bell(rank_of(2));
        if (i % (BELLS / 10) == 0)
            ping_pong(1, 3, 2, 1000);
    }
    ping_pong(0, 2, 20, 1000);
    CU_ASSERT_FALSE(rank_of(0)->ended || rank_of(2)->ended);
    site_stop();
}

static bool newest_challenged(void)
{
    return peers[peer_count - 1].heard[CW_FRAME_CHALLENGE] == 1;
}

/* After a client has joined, bytes on the socket only wake the relay. Some clients send nothing. */
static void clients_that_join_and_do_not_speak(void)
{
    site_start_job(engine(), 4);
    for (int i = 0; i < 20; i++) {
        struct peer *p = peer_connect(SITE_UNIX);

        CU_ASSERT_TRUE_FATAL(pump_until(newest_challenged));
        cw_wire_join(&p->wire);
        CU_ASSERT_EQUAL(p->wire.mode, CW_WIRE_RINGS);
        for (int b = 0; b < 200 && i % 2; b++)
            bell(p);
        ping_pong(0, 2, 2, 1000);
        CU_ASSERT_FALSE(p->ended);
        if (i % 4 > 1)
            peer_leave(p);
    }
    ping_pong(0, 2, 5, 0);
    site_stop();
}

/* --- clients that vanish --------------------------------------------------------------------- */

static bool rest_came(void)
{
    return peer_received(rank_of(2), 1, 5, REST);
}

/* The relay reads all that a rank had written before it vanished, also if it cannot answer. */
static void one_that_speaks_and_vanishes(void)
{
    struct peer *p = start_with_rank_0();
    struct codec_bytes *out = &p->codec.out;

    peer_recv(rank_of(2), 1, 5);
    pump_for(5);
    peer_recv(p, 1, 9);
    peer_send(p, 0, 9, 1);
    peer_send(p, 2, 5, REST);
    /* all at once, while the relay sleeps */
    CU_ASSERT_EQUAL_FATAL(cw_ring_put(&p->wire.out, out->at + out->start, codec_left(out)),
                          codec_left(out));
    peer_leave(p);
    CU_ASSERT_TRUE(pump_until(rest_came));
    CU_ASSERT_TRUE(pump_until(rank_lost));
    site_stop();
}

static int descriptors_left;

static bool let_go(void)
{
    return site_count_descriptors() == descriptors_left;
}

static bool all_sent(void)
{
    return codec_left(&rank_of(0)->codec.out) == 0 && codec_left(&rank_of(2)->codec.out) == 0;
}

/* A rank is sent more than its ring takes, is refused, and vanishes without reading. The engine
 * closes the connection, and sleeps. */
static void refused_one_that_vanishes(void)
{
    struct peer *p = start_with_rank_0();

    descriptors_left = site_count_descriptors() - 2; /* its socket, and the relay's */
    peer_recv(p, 1, 5);
    peer_send(rank_of(2), 0, 5, LARGE);
    CU_ASSERT_TRUE(pump_until(all_sent));
    codec_begin(&p->codec, CW_FRAME_WELCOME, CW_WELCOME_SIZE);
    CU_ASSERT_TRUE(pump_until(rank_lost));
    peer_leave(p);
    ping_pong(1, 2, 5, 0);
    CU_ASSERT_TRUE(pump_until(let_go));
    site_stop();
    CU_ASSERT_TRUE(site.calls < CALLS_MAX);
}

static bool all_but_first_ended(void)
{
    bool ended = true;

    for (int i = 1; i < peer_count; i++)
        ended &= peers[i].ended;
    return ended;
}

/* The dispatcher breaks the protocol. The relay closes all ranks of the job while it serves one of
 * them, and each has bytes on its socket. */
static void job_that_ends_while_others_are_served(void)
{
    static const uint8_t nonsense[64 << 10];

    for (int i = 0; i < JOBS_ENDED; i++) {
        struct peer *first;

        site_start(engine());
        first = peer_connect(SITE_UNIX);
        CU_ASSERT_TRUE_FATAL(pump_until(newest_challenged));
        CU_ASSERT_EQUAL_FATAL(peer_hello_dispatcher(peer_connect(SITE_UNIX), 4), CW_OK);
        for (uint32_t rank = 0; rank < 4; rank++)
            CU_ASSERT_EQUAL_FATAL(peer_hello_rank(peer_connect(SITE_UNIX), rank, 1), CW_OK);
        peer_leave(
            first); /* a rank takes its place in the poll set, and is served after the dispatcher */
        pump_for(5);
        /* it may end the connection before it has read all */
        CU_ASSERT_TRUE(send(peers[1].wire.fd, nonsense, sizeof(nonsense), MSG_NOSIGNAL) > 0);
        for (int b = 1; b < peer_count; b++)
            bell(&peers[b]);
        CU_ASSERT_TRUE(pump_until(all_but_first_ended));
        site_stop();
    }
}

void add_ring_client_tests(CU_pSuite suite)
{
    CU_ADD_TEST(suite, written_that_cannot_be);
    CU_ADD_TEST(suite, taken_that_cannot_be);
    CU_ADD_TEST(suite, scribblers);
    CU_ADD_TEST(suite, bells_without_end);
    CU_ADD_TEST(suite, clients_that_join_and_do_not_speak);
    CU_ADD_TEST(suite, one_that_speaks_and_vanishes);
    CU_ADD_TEST(suite, refused_one_that_vanishes);
    CU_ADD_TEST(suite, job_that_ends_while_others_are_served);
}
