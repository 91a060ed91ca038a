/* Sessions that outlive their connection. The connection is cut at each byte of a script of frames,
 * in both directions, and the session is resumed: both sides get what they get without cuts. Then:
 * what ends a suspended session. */
#include "common/cred.h"
#include "tests/conformance/suite.h"

#include <CUnit/CUnit.h>
#include <unistd.h>

#define LONG_MS CW_RESUME_MAX_MS /* no session is given up in a test */
#define SHORT_MS 30              /* a session is given up soon */
#define BIG 300000u              /* bytes of a message that is more than one frame */
#define BIG_CUTS 60
#define IDLE_TAG 77 /* of no message */
#define FORWARDED 60u

#define RANKS 4u
#define RELAYS 2u

/* Every engine but `poll` is tested at every SLICE-th position only. */
#define SLICE 13u

static uint32_t slice(void)
{
    const char *name = CU_get_current_suite()->pName;

    return strcmp(name, "engine poll") == 0 ? 1 : strstr(name, "rings") ? 3 : SLICE;
}

static void say_cut(uint32_t what)
{
    cw_word_put(codec_begin(&peers[0].codec, CW_FRAME_CUT, CW_WORD_SIZE), what);
}

/* --- the script of a rank ----------------------------------------------------------------------
 */
static uint32_t round_number; /* from 1; requests and tags of a round are its own */

static uint32_t number(uint32_t i)
{
    return round_number * 8 + i;
}

static void queue_send(struct peer *p, struct cw_send send, uint32_t first)
{
    uint8_t *to = codec_begin(&p->codec, CW_FRAME_SEND, CW_SEND_SIZE + first);

    cw_send_put(to, &send);
    codec_pattern(to + CW_SEND_SIZE, send.tag, 0, first);
    if (first < send.total)
        peer_send_rest(p, send.tag, send.total, first);
}

/* Rank 0 sends frames of most types. Rank 1 sends to it, and receives from it. */
static void say_script(void)
{
    struct peer *p = rank_of(0);

    round_number++;
    peer_recv(rank_of(1), number(1), number(1));
    if (p->event > p->taken && site.hello_flags & CW_HELLO_LOG) {
        memset(codec_begin(&p->codec, CW_FRAME_READINGS, 3), 1, 3);
        codec_taken(&p->codec, CW_FRAME_TAKEN, p->event);
        p->taken = p->event;
    }
    peer_recv(p, number(2), number(2));
    peer_recv(p, number(3), number(3));
    queue_send(p,
               (struct cw_send){
                   .dst = 0, .kind = CW_SEND_SYNC, .req = number(4), .tag = number(2), .total = 31},
               31);
    queue_send(p, (struct cw_send){.dst = 1, .kind = CW_SEND_TAG, .tag = number(1), .total = 50},
               20);
    peer_recv(p, number(5), IDLE_TAG);
    codec_recv(&p->codec, CW_FRAME_CANCEL, number(5), IDLE_TAG, CODEC_ALL, 0);
    codec_probe(&p->codec, IDLE_TAG, CODEC_ALL, false);
    queue_send(rank_of(1),
               (struct cw_send){.dst = 0, .kind = CW_SEND_TAG, .tag = number(3), .total = 60}, 9);
}

static bool script_heard(void)
{
    struct peer *p = rank_of(0);

    return p->inbox.complete == 2 * round_number && p->heard[CW_FRAME_SENT] == round_number &&
           p->heard[CW_FRAME_CANCELED] == round_number &&
           p->heard[CW_FRAME_PROBED] == round_number && codec_left(&p->codec.out) == 0 &&
           cw_kept_left(&p->kept) == 0 && rank_of(1)->inbox.complete == round_number;
}

static bool script_is_right(void)
{
    return peer_received(rank_of(0), number(2), number(2), 31) &&
           peer_received(rank_of(0), number(3), number(3), 60) &&
           peer_received(rank_of(1), number(1), number(1), 50);
}

/* --- cuts --------------------------------------------------------------------------------------
 */
enum direction { WRITING, READING };

static struct peer *cut; /* its connection is cut */

static bool at_stop(void)
{
    return (cut->write_stop && peer_sent(cut) == cut->write_stop) ||
           (cut->read_stop && peer_received_bytes(cut) == cut->read_stop);
}

static bool (*done)(void);

static bool at_stop_or_done(void)
{
    return at_stop() || done();
}

/* Breaks the connection of `cut` now, and resumes its session. */
static void break_and_resume(int listener)
{
    peer_break(cut);
    cut->write_stop = cut->read_stop = 0;
    CU_ASSERT_EQUAL_FATAL(peer_resume(cut, listener), CW_OK);
}

/* Says a script and breaks the connection of `p` after `at` bytes in this direction. Returns false
 * when the script is done before. */
static bool cut_script(struct peer *p, enum direction direction, uint64_t at, void (*say)(void),
                       bool (*heard)(void))
{
    bool reached;

    cut = p;
    done = heard;
    if (direction == WRITING)
        p->write_stop = peer_sent(p) + at;
    else
        p->read_stop = peer_received_bytes(p) + at;
    say();
    CU_ASSERT_TRUE_FATAL(pump_until(at_stop_or_done));
    reached = at_stop();
    if (reached)
        break_and_resume((int)(at & 1));
    p->write_stop = p->read_stop = 0;
    CU_ASSERT_TRUE_FATAL(pump_until(heard));
    return reached;
}

static void cut_everywhere(struct peer *p, enum direction direction, uint32_t step,
                           void (*say)(void), bool (*heard)(void), bool (*right)(void))
{
    uint64_t at = 1;

    while (cut_script(p, direction, at, say, heard)) {
        CU_ASSERT_TRUE_FATAL(right());
        at += step;
    }
    CU_ASSERT_TRUE(at > step); /* it was cut at least once */
}

static void cut_rank(enum direction direction, uint32_t flags, uint32_t step)
{
    round_number = 0;
    site_start_resuming_job(engine(), RANKS, flags, LONG_MS);
    cut_everywhere(rank_of(0), direction, step, say_script, script_heard, script_is_right);
    ping_pong(2, 3, 5, 1000);
    CU_ASSERT_EQUAL(peers[0].notices[CW_NOTICE_RANK_LOST], 0);
    CU_ASSERT_EQUAL(peers[0].notices[CW_NOTICE_RANK_UP], RANKS);
    site_stop();
}

static void cut_at_each_byte_that_a_rank_writes(void)
{
    cut_rank(WRITING, CW_HELLO_LOG, slice());
}

static void cut_at_each_byte_that_a_rank_reads(void)
{
    cut_rank(READING, CW_HELLO_LOG, slice());
}

static void cut_without_a_log(void)
{
    cut_rank(WRITING, 0, 7 * slice());
    cut_rank(READING, 0, 7 * slice());
}

/* --- large messages --------------------------------------------------------------------------- */
static uint64_t seed;

static void say_big(void)
{
    round_number++;
    peer_recv(rank_of(0), number(1), number(1));
    peer_recv(rank_of(1), number(2), number(2));
    peer_send(rank_of(0), 1, number(2), BIG + round_number);
    peer_send(rank_of(1), 0, number(1), BIG + round_number);
}

static bool big_heard(void)
{
    return rank_of(0)->inbox.complete == round_number && rank_of(1)->inbox.complete == round_number;
}

static bool big_is_right(void)
{
    return peer_received(rank_of(0), number(1), number(1), BIG + round_number) &&
           peer_received(rank_of(1), number(2), number(2), BIG + round_number);
}

/* Both directions are full of payload. What is on its way when the connection breaks is lost. */
static void cut_large_messages(uint32_t flags)
{
    uint32_t cuts = slice() > 3 ? BIG_CUTS / 4 : BIG_CUTS;

    seed = 7;
    round_number = 0;
    site_start_resuming_job(engine(), RANKS, flags, LONG_MS);
    for (uint32_t i = 0; i < cuts; i++) {
        CU_ASSERT_TRUE_FATAL(cut_script(rank_of((i >> 1) & 1), i & 1 ? WRITING : READING,
                                        1 + codec_random_below(&seed, BIG), say_big, big_heard));
        CU_ASSERT_TRUE_FATAL(big_is_right());
    }
    site_stop();
}

static void cut_large_messages_with_a_log(void)
{
    cut_large_messages(CW_HELLO_LOG);
}

static void cut_large_messages_without_a_log(void)
{
    cut_large_messages(0);
}

static bool large_heard(void)
{
    return rank_of(0)->inbox.complete == 1 && rank_of(1)->inbox.complete == 1;
}

/* One message each way; connections of both ranks break many times, also right after they resumed.
 */
static void cut_again_and_again(void)
{
    uint32_t cuts = 0;

    seed = 11;
    site_start_resuming_job(engine(), RANKS, CW_HELLO_LOG, LONG_MS);
    peer_recv(rank_of(0), 1, 5);
    peer_recv(rank_of(1), 1, 6);
    peer_send(rank_of(0), 1, 6, LARGE);
    peer_send(rank_of(1), 0, 5, LARGE);
    for (; !large_heard() && cuts < 100; cuts++) {
        cut = rank_of((uint32_t)codec_random_below(&seed, 2));
        done = large_heard;
        cut->write_stop = peer_sent(cut) + codec_random_below(&seed, 4 * BIG);
        cut->read_stop = peer_received_bytes(cut) + codec_random_below(&seed, 4 * BIG);
        CU_ASSERT_TRUE_FATAL(pump_until(at_stop_or_done));
        break_and_resume((int)codec_random_below(&seed, 2));
        if (codec_random_below(&seed, 2))
            break_and_resume((int)codec_random_below(&seed, 2));
    }
    CU_ASSERT_TRUE(pump_until(large_heard));
    CU_ASSERT_TRUE(peer_received(rank_of(0), 1, 5, LARGE));
    CU_ASSERT_TRUE(peer_received(rank_of(1), 1, 6, LARGE));
    CU_ASSERT_TRUE(cuts > 3);
    site_stop();
}

static bool all_sent(void)
{
    return codec_left(&rank_of(1)->codec.out) == 0;
}

static bool one_arrived(void)
{
    return rank_of(0)->inbox.complete == 1;
}

/* Its sender is not held up, and other ranks exchange messages. */
static void sends_to_a_suspended_rank(void)
{
    site_start_resuming_job(engine(), RANKS, CW_HELLO_LOG, LONG_MS);
    peer_recv(rank_of(0), 1, 5);
    rank_of(0)->stalled = true;
    pump_for(5);
    peer_break(rank_of(0));
    peer_send(rank_of(1), 0, 5, 2 * LARGE);
    CU_ASSERT_TRUE(pump_until(all_sent));
    ping_pong(2, 3, 10, 1000);
    rank_of(0)->stalled = false;
    CU_ASSERT_EQUAL_FATAL(peer_resume(rank_of(0), SITE_TCP), CW_OK);
    CU_ASSERT_TRUE(pump_until(one_arrived));
    CU_ASSERT_TRUE(peer_received(rank_of(0), 1, 5, 2 * LARGE));
    site_stop();
}

/* --- the dispatcher --------------------------------------------------------------------------- */
static void ask_stats(void)
{
    round_number++;
    codec_begin(&peers[0].codec, CW_FRAME_STATS_ASK, 0);
}

static bool stats_heard(void)
{
    return peers[0].heard[CW_FRAME_STATS] == RANKS * round_number;
}

static bool always(void)
{
    return true;
}

static void cut_a_dispatcher(void)
{
    round_number = 0;
    site_start_resuming_job(engine(), RANKS, CW_HELLO_LOG, LONG_MS);
    cut_everywhere(&peers[0], WRITING, 1, ask_stats, stats_heard, always);
    cut_everywhere(&peers[0], READING, slice(), ask_stats, stats_heard, always);
    ping_pong(0, 1, 5, 1000);
    CU_ASSERT_EQUAL(peers[0].notices[CW_NOTICE_RANK_UP], RANKS);
    site_stop();
}

/* --- links ------------------------------------------------------------------------------------ */

static struct peer *link_peer(void)
{
    return &peers[2];
}

static bool route_handled(void)
{
    return peers[0].heard[CW_FRAME_STATS] == RANKS / 2; /* the answer to what follows ROUTE */
}

/* The link's peer is relay 1 of the job, the home of the odd ranks. */
static void start_linked(uint32_t resume_ms)
{
    struct cw_route route = {.self = 0, .relays = RELAYS, .step = 2, .count = RANKS / 2};

    round_number = 0;
    site_start(engine());
    site.hello_flags = CW_HELLO_LOG;
    site.resume_ms = resume_ms;
    CU_ASSERT_EQUAL_FATAL(peer_hello_dispatcher(peer_connect(SITE_UNIX), RANKS), CW_OK);
    peer_keep(&peers[0]);
    for (uint32_t home = 0; home < RELAYS; home++) {
        route.home = route.first = home;
        cw_route_put(codec_begin(&peers[0].codec, CW_FRAME_ROUTE, CW_ROUTE_SIZE), &route);
    }
    codec_begin(&peers[0].codec, CW_FRAME_STATS_ASK, 0);
    CU_ASSERT_TRUE_FATAL(pump_until(route_handled));
    peer_keep(peer_connect(SITE_UNIX));
    CU_ASSERT_EQUAL_FATAL(peer_hello_rank(rank_of(0), 0, 1), CW_OK);
    peer_keep(peer_connect(SITE_TCP));
    CU_ASSERT_EQUAL_FATAL(peer_hello_relay(link_peer(), 1), CW_OK);
}

/* Ranks 0 and 1 send to each other; each message has two frames or more. */
static void say_forwards(void)
{
    struct codec *c = &link_peer()->codec;
    struct cw_forward forward = {.src = 1,
                                 .send = {.dst = 0, .kind = CW_SEND_SYNC, .req = 6, .total = 70}};
    struct cw_forward_ref ref = {.rank = 1};
    uint8_t *to;

    round_number++;
    peer_recv(rank_of(0), number(1), number(1));
    forward.send.tag = number(1);
    to = codec_begin(c, CW_FRAME_FORWARD, CW_FORWARD_SIZE + 30);
    cw_forward_put(to, &forward);
    codec_pattern(to + CW_FORWARD_SIZE, number(1), 0, 30);
    to = codec_begin(c, CW_FRAME_FORWARD_DATA, CW_FORWARD_REF_SIZE + 40);
    cw_forward_ref_put(to, &ref);
    codec_pattern(to + CW_FORWARD_REF_SIZE, number(1), 30, 40);
    queue_send(
        rank_of(0),
        (struct cw_send){.dst = 1, .kind = CW_SEND_TAG, .tag = number(2), .total = FORWARDED}, 25);
}

static bool forwards_heard(void)
{
    return rank_of(0)->inbox.complete == round_number &&
           link_peer()->forwarded == FORWARDED * round_number &&
           link_peer()->heard[CW_FRAME_FORWARD] == round_number &&
           link_peer()->heard[CW_FRAME_FORWARD_SENT] == round_number;
}

static bool forwards_are_right(void)
{
    return peer_received(rank_of(0), number(1), number(1), 70);
}

static void cut_a_link(void)
{
    start_linked(LONG_MS);
    cut_everywhere(link_peer(), WRITING, slice(), say_forwards, forwards_heard, forwards_are_right);
    cut_everywhere(link_peer(), READING, slice(), say_forwards, forwards_heard, forwards_are_right);
    CU_ASSERT_EQUAL(peers[0].notices[CW_NOTICE_LINKED], 1);
    CU_ASSERT_EQUAL(peers[0].notices[CW_NOTICE_UNLINKED], 0);
    site_stop();
}

/* --- how a suspended session ends --------------------------------------------------------------
 */
static bool rank_lost(void)
{
    return peers[0].notices[CW_NOTICE_RANK_LOST] == 1;
}

static void rank_that_does_not_come_back(void)
{
    site_start_resuming_job(engine(), RANKS, CW_HELLO_LOG, SHORT_MS);
    peer_break(rank_of(0));
    CU_ASSERT_TRUE(pump_until(rank_lost));
    CU_ASSERT_EQUAL(peer_resume(rank_of(0), SITE_UNIX), CW_EAUTH);
    ping_pong(1, 2, 5, 1000);
    site_stop();
}

/* An incarnation opens one session, and resumes no other. */
static void sessions_that_are_not_there(void)
{
    struct peer *p;

    site_start_resuming_job(engine(), RANKS, CW_HELLO_LOG, LONG_MS);
    peer_break(rank_of(0));
    p = peer_connect(SITE_UNIX);
    CU_ASSERT_EQUAL(peer_hello_rank(p, 0, 1), CW_EAUTH);
    CU_ASSERT_EQUAL(peer_resume(rank_of(0), SITE_UNIX), CW_OK);
    peer_break(rank_of(1));
    rank_of(1)->hello.incarnation = 2;
    cw_cred_job_key(rank_of(1)->key, site.key, site.job);
    cw_cred_rank_key(rank_of(1)->key, rank_of(1)->key, 1, 2);
    CU_ASSERT_EQUAL(peer_resume(rank_of(1), SITE_UNIX), CW_EAUTH);
    ping_pong(2, 3, 5, 1000);
    site_stop();
}

/* The opener sees the break before the relay does. */
static void connection_that_is_not_known_to_be_broken(void)
{
    int old;

    site_start_resuming_job(engine(), RANKS, CW_HELLO_LOG, LONG_MS);
    pump_for(5);
    old = dup(rank_of(0)->wire.fd); /* for the relay the socket stays open */
    peer_break(rank_of(0));
    CU_ASSERT_EQUAL(peer_resume_once(rank_of(0), SITE_TCP), CW_EBUSY);
    CU_ASSERT_EQUAL(peer_resume(rank_of(0), SITE_TCP), CW_OK);
    close(old);
    ping_pong(0, 1, 5, 1000);
    site_stop();
}

/* A process without the key does not disturb the session. */
static void resuming_without_the_key(void)
{
    struct peer *p;

    site_start_resuming_job(engine(), RANKS, CW_HELLO_LOG, LONG_MS);
    p = peer_connect(SITE_UNIX);
    peer_keep(p);
    peer_break(p);
    p->hello = rank_of(0)->hello;
    memcpy(p->key, rank_of(0)->key, sizeof(p->key));
    p->key[0] ^= 1;
    CU_ASSERT_EQUAL(peer_resume(p, SITE_UNIX), CW_EAUTH);
    ping_pong(0, 1, 5, 1000);
    CU_ASSERT_FALSE(rank_of(0)->ended);
    site_stop();
}

static bool rank_0_ended(void)
{
    return rank_of(0)->ended;
}

/* --- the drill CUT ---------------------------------------------------------------------------- */
static bool link_ended(void)
{
    return link_peer()->ended;
}

static bool dispatcher_ended(void)
{
    return peers[0].ended;
}

static void drills(void)
{
    start_linked(LONG_MS);
    for (int i = 0; i < 5; i++) {
        say_cut(0);
        CU_ASSERT_TRUE_FATAL(pump_until(rank_0_ended));
        cut = rank_of(0);
        break_and_resume(i & 1);
        say_cut(CW_CUT_LINKS);
        CU_ASSERT_TRUE_FATAL(pump_until(link_ended));
        cut = link_peer();
        break_and_resume(SITE_TCP);
        say_cut(CW_CUT_DISPATCHER);
        CU_ASSERT_TRUE_FATAL(pump_until(dispatcher_ended));
        cut = &peers[0];
        break_and_resume(SITE_UNIX);
        say_forwards();
        CU_ASSERT_TRUE_FATAL(pump_until(forwards_heard));
        CU_ASSERT_TRUE(forwards_are_right());
    }
    site_stop();
}

/* A session that ends in an orderly way is not suspended. */
static void farewell_ends_a_session(void)
{
    site_start_resuming_job(engine(), RANKS, CW_HELLO_LOG, LONG_MS);
    codec_bye(&rank_of(0)->codec);
    CU_ASSERT_TRUE(pump_until(rank_0_ended));
    CU_ASSERT_EQUAL(rank_of(0)->heard[CW_FRAME_FAREWELL], 1);
    peer_break(rank_of(0));
    CU_ASSERT_EQUAL(peer_resume(rank_of(0), SITE_TCP), CW_EAUTH);
    CU_ASSERT_EQUAL(peers[0].notices[CW_NOTICE_RANK_LOST], 0);
    site_stop();
}

void add_engine_resume_tests(CU_pSuite suite)
{
    CU_ADD_TEST(suite, cut_at_each_byte_that_a_rank_writes);
    CU_ADD_TEST(suite, cut_at_each_byte_that_a_rank_reads);
    CU_ADD_TEST(suite, cut_without_a_log);
    CU_ADD_TEST(suite, cut_large_messages_with_a_log);
    CU_ADD_TEST(suite, cut_large_messages_without_a_log);
    CU_ADD_TEST(suite, cut_again_and_again);
    CU_ADD_TEST(suite, sends_to_a_suspended_rank);
    CU_ADD_TEST(suite, cut_a_dispatcher);
    CU_ADD_TEST(suite, cut_a_link);
    CU_ADD_TEST(suite, rank_that_does_not_come_back);
    CU_ADD_TEST(suite, sessions_that_are_not_there);
    CU_ADD_TEST(suite, connection_that_is_not_known_to_be_broken);
    CU_ADD_TEST(suite, resuming_without_the_key);
    CU_ADD_TEST(suite, drills);
    CU_ADD_TEST(suite, farewell_ends_a_session);
}
