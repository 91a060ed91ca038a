/* A re-execution that does something else than the first one did is found out, and a rank whose
 * determinants cannot be is refused before they are kept. */
#include "common/readings.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>

SUITE_AFTER_EACH("trace of divergence", fixture_end);

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static struct client *const x = &f.other[0];

static void start(void)
{
    fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    fixture_start(&f, 3);
}

/* Rank 0 sent one message of two kinds, and comes again. */
static void come_again(void)
{
    start();
    say_send(r0, 1, 0x12, "abc");
    say_send_kind(r0, CW_SEND_SYNC, 1, 4, 0x13, "defg");
    fixture_close(r0, "crash");
    fixture_again(r0);
    fixture_forget(&f);
}

/* --- what it sent ----------------------------------------------------------------------------- */
static void say_contents(uint64_t tag, uint64_t contents)
{
    codec_send(&r0->codec,
               &(struct cw_send){
                   .dst = 1, .kind = CW_SEND_TAG, .tag = tag, .total = 3, .contents = contents},
               "abc", 3);
    fixture_feed(r0);
}

/* It is told its sends where they were, without what they carried. */
TEST(sends_between_determinants)
{
    start();
    say_contents(1, 0xaaa);
    say_send_kind(r1, CW_SEND_AM, 0, 0, 0, "");
    say_taken(r0, 1, 2);
    say_send_kind(r0, CW_SEND_SYNC, 2, 4, 0x13, "defg");
    say_readings(r0, "noon");
    say_contents(3, 0);
    fixture_close(r0, "crash");
    fixture_again(r0);
    expect_has(&f, "0 > SEND to 1 tag 1 total 3 contents 2730\n"
                   "0 > TAKEN event 1 clock 2\n"
                   "0 > MESSAGE req 0 tag 0 total 0 FIRST LAST ACTIVE event 1\n"
                   "0 > SEND to 2 SYNC req 0 tag 19 total 4\n"
                   "0 > READINGS 'noon'\n"
                   "0 > SEND to 1 tag 3 total 3\n"
                   "0 > REPLAYED\n");
    say_live(r0, 1, 2);
    expect_has(&f, "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 3 event 1");
}

/* Of the largest that can be, nothing is lost in what is kept. */
TEST(extreme_messages)
{
    struct client *d = &f.other[1];
    uint64_t total = CW_MESSAGE_MAX;

    start();
    f.job[0]++;
    fixture_connect(&f, d, "d");
    fixture_hello_dispatcher(d, CW_RANKS_MAX);
    fixture_connect(&f, x, "x");
    fixture_hello_rank(x, 3, 1);
    say_begin(x, CW_SEND_AM, CW_RANKS_MAX - 1, UINT64_MAX, total, 7);
    fixture_close(x, "crash");
    fixture_again(x);
    CU_ASSERT_EQUAL(x->welcome.missing, total - 7);
    expect_has(&f, "x > SEND to 65535 AM tag 0xffffffffffffffff total 0x10000000000\n");
    say_live(x, 0, 0);
    expect_has(&f, "d > NOTICE RANK_LIVE rank 3 incarnation 2 acts 1 event 0");
    fixture_close(d, "gone");
}

/* --- when it is live -------------------------------------------------------------------------- */
static void live_is_refused(uint64_t event)
{
    say_live(r0, event, 50);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'LIVE before all was repeated'\n0 is closed\n"
                   "d > NOTICE RANK_LOST rank 0 incarnation 2");
    fixture_fini(&f);
}

TEST(live_too_early)
{
    for (uint64_t event = 0; event < 4; event++) {
        if (event == 2)
            continue;
        start();
        for (uint32_t i = 0; i < 3; i++)
            say_send_kind(r1, CW_SEND_AM, 0, 0, i, "");
        say_taken(r0, 2, 3);
        fixture_close(r0, "crash");
        fixture_again(r0);
        live_is_refused(event);
    }
}

/* It says that it has seen it all while the relay still has more to tell. */
TEST(live_before_all_is_told)
{
    start();
    for (uint32_t i = 0; i < 8; i++)
        say_begin(r1, CW_SEND_AM, 0, i, 100000, 100000);
    say_taken(r0, 8, 3);
    fixture_close(r0, "crash");
    fixture_connect(&f, r0, "0");
    r0->stalled = true;
    fixture_hello_rank(r0, 0, 2);
    say_live(r0, 8, 3);
    fixture_forget(&f);
    fixture_read(r0);
    CU_ASSERT_PTR_NULL(strstr(f.story, "REPLAYED"));
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'LIVE before all was repeated'\n");
}

TEST(live_twice)
{
    come_again();
    say_live(r0, 0, 0);
    say_live(r0, 0, 0);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'LIVE frame is not allowed here'\n");
}

TEST(going_on_from_the_middle)
{
    static const struct cw_hello hellos[] = {{.event = 2}, {.poll_clock = 1}, {.acts = 1}};

    for (int i = 0; i < 3; i++) {
        start();
        fixture_connect(&f, x, "x");
        x->hello = hellos[i];
        x->hello.role = CW_ROLE_RANK;
        x->hello.incarnation = 2;
        fixture_rank_key(x, 0, 2);
        fixture_hello(x);
        expect_has(&f, "x > REFUSED LIMIT 'rank 0 cannot go on from event ");
        /* it has fenced nobody */
        say_recv(r0, 1, 5);
        say_send(r1, 0, 5, "on");
        expect_has(&f, "0 > MESSAGE req 1 tag 5 total 2 FIRST LAST event 1 'on'\n");
        fixture_fini(&f);
    }
}

/* --- determinants ----------------------------------------------------------------------------- */
static void taken_is_refused(uint64_t event, uint64_t clock)
{
    start();
    for (uint32_t i = 0; i < 3; i++)
        say_send_kind(r1, CW_SEND_AM, 0, 0, i, "");
    say_taken(r0, 2, 10);
    say_taken(r0, event, clock);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'TAKEN frame that does not add up'\n");
    /* what was kept before is still good */
    fixture_again(r0);
    say_live(r0, 2, 10);
    expect_has(&f, "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 0 event 2");
    fixture_fini(&f);
}

TEST(taken_that_does_not_add_up)
{
    taken_is_refused(0, 11);
    taken_is_refused(1, 11);
    taken_is_refused(2, 11);
    taken_is_refused(4, 11);
    taken_is_refused(UINT64_MAX, 11);
    taken_is_refused(3, 9);
    taken_is_refused(3, 0);
}

TEST(probe_whose_clock_goes_back)
{
    start();
    say_send(r1, 0, 5, "abc");
    r0->codec.clock = 10;
    say_probe(r0, 5, CODEC_ALL, false);
    r0->codec.clock = 9;
    say_probe(r0, 5, CODEC_ALL, false);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'PROBE frame that cannot be read'\n");
}

TEST(clocks_of_any_size)
{
    start();
    say_send_kind(r1, CW_SEND_AM, 0, 0, 5, "");
    say_send_kind(r1, CW_SEND_AM, 0, 0, 5, "");
    say_taken(r0, 1, 1);
    say_taken(r0, 2, UINT64_MAX);
    fixture_close(r0, "crash");
    fixture_again(r0);
    expect_has(&f, "0 > TAKEN event 2 clock 0xffffffffffffffff\n");
}

TEST(readings_of_nothing)
{
    start();
    say_readings(r0, "");
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'READINGS frame without readings'\n");
}

/* The largest comes back as it was, however it is cut. */
TEST(readings_of_every_size)
{
    static const uint32_t sizes[] = {1, 127, 128, 1000, CW_READINGS_MAX};
    static uint8_t bytes[CW_READINGS_MAX];

    for (enum fixture_feed feed = FEED_WHOLE; feed <= FEED_RANDOM; feed++) {
        start();
        f.feed = feed;
        for (int i = 0; i < 5; i++) {
            codec_pattern(bytes, (uint64_t)i, 0, sizes[i]);
            say_frame(r0, CW_FRAME_READINGS, bytes, sizes[i]);
        }
        fixture_close(r0, "crash");
        fixture_forget(&f);
        fixture_again(r0);
        say_live(r0, 0, 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "0 > READINGS (127 bytes)\n"
                                               "0 > READINGS (128 bytes)\n"
                                               "0 > READINGS (1000 bytes)\n"
                                               "0 > READINGS (16384 bytes)\n"
                                               "0 > REPLAYED\n"));
        expect_has(&f, "d > NOTICE RANK_LIVE rank 0");
        fixture_fini(&f);
    }
}

/* A job without log does not want them, and takes them for what they are worth. */
TEST(determinants_in_a_job_without_log)
{
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_start(&f, 2);
    say_taken(r0, 77, 5);
    say_readings(r0, "noon");
    say_unlogged(r0, CW_UNLOGGED_THREADS);
    say_send(r0, 0, 5, "on");
    say_recv(r0, 1, 5);
    expect_has(&f, "0 > MESSAGE req 1 tag 5 total 2 FIRST LAST event 1 'on'\n");
    CU_ASSERT_EQUAL(r0->welcome.flags, 0);
}

/* --- frames of one who repeats ---------------------------------------------------------------- */
TEST(frames_while_it_repeats)
{
    static const uint8_t refused[] = {CW_FRAME_SEND,  CW_FRAME_SEND_DATA, CW_FRAME_RECV,
                                      CW_FRAME_MRECV, CW_FRAME_PROBE,     CW_FRAME_CANCEL,
                                      CW_FRAME_BYE,   CW_FRAME_TAKEN,     CW_FRAME_READINGS,
                                      CW_FRAME_HELLO, CW_FRAME_STATS_ASK};
    static const uint8_t zeros[CW_FRAME_BODY_MAX];
    char text[128];

    for (size_t i = 0; i < sizeof(refused); i++) {
        come_again();
        say_frame(r0, refused[i], zeros, cw_frame_fixed(refused[i]));
        snprintf(text, sizeof(text), "0 > REFUSED PROTOCOL rank 0 '%s frame is not allowed here'\n",
                 cw_frame_name(refused[i]));
        expect_has(&f, text);
        fixture_fini(&f);
    }
    come_again();
    say_frame(r0, CW_FRAME_ACK, (uint8_t[CW_ACK_SIZE]){0}, CW_ACK_SIZE);
    expect(&f, "0 < ACK of 5\n");
}
