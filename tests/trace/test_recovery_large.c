/* Messages of many frames, and crashes in their middle: of the sender, of the receiver, of both. */
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of recovery in large messages", fixture_end);

#define TOTAL 180000u
#define PIECE 60000u

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static struct client *const r2 = &f.rank[2];

static void start(enum fixture_feed feed)
{
    fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    f.feed = feed;
    fixture_start(&f, 3);
}

static void every_feed(void (*story)(void))
{
    for (int cuts = 0; cuts < 2; cuts++)
        for (enum fixture_feed feed = FEED_WHOLE; feed <= FEED_RANDOM; feed++) {
            start(feed);
            f.merged = true;
            f.cuts = cuts;
            story();
            fixture_fini(&f);
        }
}

/* --- the sender crashes ----------------------------------------------------------------------- */
/* The header of a SEND, with none of the bytes that it announces. */
static void say_header_of(struct client *c, uint64_t tag, uint32_t announced, size_t there)
{
    struct cw_send send = {.dst = 1, .kind = CW_SEND_TAG, .tag = tag, .total = TOTAL};
    uint8_t *to = codec_begin(&c->codec, CW_FRAME_SEND, CW_SEND_SIZE + announced);

    cw_send_put(to, &send);
    codec_pattern(to + CW_SEND_SIZE, tag, 0, announced);
    fixture_tell(&f, "%s < SEND with %zu of %u bytes\n", c->name, there, announced);
    fixture_feed_some(c, CW_FRAME_HEADER + CW_SEND_SIZE + there);
}

static void tell_of_a_header(void)
{
    say_recv(r1, 7, 5);
    say_header_of(r0, 5, PIECE, 0);
    fixture_close(r0, "crash");
    fixture_again(r0);
    say_live(r0, 0, 0);
    say_more(r0, 5, 0, PIECE);
    say_more(r0, 5, PIECE, 2 * PIECE);
    expect(&f, "1 < RECV req 7 tag 5\n"
               "0 < SEND with 0 of 60000 bytes\n"
               "0 ends: crash\n"
               "d > NOTICE RANK_LOST rank 0 'crash'\n"
               "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 0 acts 1 missing 180000 LOG REPLAY\n"
               "0 > SEND to 1 tag 5 total 180000\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 1 event 0 'connected'\n"
               "0 < LIVE event 0 clock 0\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 1 event 0 'repeated 0 events'\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "0 < SEND_DATA (120000 bytes)\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST LAST event 1 (180000 bytes)\n");
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
}

TEST(sender_after_the_header)
{
    every_feed(tell_of_a_header);
}

static void tell_of_half_a_frame(void)
{
    say_header_of(r0, 5, PIECE, 1001);
    fixture_close(r0, "crash");
    say_recv(r1, 7, 5);
    fixture_again(r0);
    say_live(r0, 0, 0);
    say_more(r0, 5, 1001, TOTAL - 1001);
    say_send(r0, 1, 6, "next");
    expect(&f, "0 < SEND with 1001 of 60000 bytes\n"
               "0 ends: crash\n"
               "d > NOTICE RANK_LOST rank 0 'crash'\n"
               "1 < RECV req 7 tag 5\n"
               "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 0 acts 1 missing 178999 LOG REPLAY\n"
               "0 > SEND to 1 tag 5 total 180000\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 1 event 0 'connected'\n"
               "0 < LIVE event 0 clock 0\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 1 event 0 'repeated 0 events'\n"
               "0 < SEND_DATA (178999 bytes)\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST LAST event 1 (180000 bytes)\n"
               "0 < SEND to 1 tag 6 total 4 'next'\n");
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
}

TEST(sender_in_the_middle_of_a_frame)
{
    every_feed(tell_of_half_a_frame);
}

/* Less than a header of SEND is no act: the message was never begun. */
static void tell_of_no_act(void)
{
    struct cw_send send = {.dst = 1, .kind = CW_SEND_TAG, .tag = 5, .total = 3};

    say_recv(r0, 1, 9);
    codec_send(&r0->codec, &send, "abc", 3);
    fixture_feed_some(r0, CW_FRAME_HEADER + CW_SEND_SIZE - 1);
    fixture_close(r0, "crash");
    fixture_again(r0);
    say_live(r0, 0, 0);
    say_send(r0, 1, 5, "abc");
    say_recv(r1, 7, 5);
    expect(&f, "0 < RECV req 1 tag 9\n"
               "0 ends: crash\n"
               "d > NOTICE RANK_LOST rank 0 'crash'\n"
               "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 0 acts 1 LOG REPLAY\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 1 event 0 'connected'\n"
               "0 < LIVE event 0 clock 0\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 1 event 0 'repeated 0 events'\n"
               "0 < SEND to 1 tag 5 total 3 'abc'\n"
               "1 < RECV req 7 tag 5\n"
               "1 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n");
}

TEST(sender_before_the_header)
{
    every_feed(tell_of_no_act);
}

/* Each of several incarnations sends some more of it. */
static void tell_of_pieces(void)
{
    say_recv(r1, 7, 5);
    say_begin(r0, CW_SEND_SYNC, 1, 5, TOTAL, PIECE);
    say_more(r0, 5, PIECE, PIECE / 2);
    fixture_close(r0, "crash");
    fixture_again(r0);
    fixture_close(r0, "crash in replay");
    fixture_again(r0);
    say_live(r0, 0, 0);
    say_more(r0, 5, PIECE + PIECE / 2, PIECE / 2);
    fixture_close(r0, "crash");
    fixture_forget(&f);
    fixture_again(r0);
    say_live(r0, 0, 0);
    say_more(r0, 5, 2 * PIECE, PIECE);
    expect(&f, "0 < HELLO rank 0 incarnation 4\n"
               "0 > WELCOME event 1 acts 1 missing 60000 LOG REPLAY\n"
               "0 > SEND to 1 SYNC req 0 tag 5 total 180000\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 4 acts 1 event 0 'connected'\n"
               "0 < LIVE event 0 clock 0\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 4 acts 1 event 0 'repeated 0 events'\n"
               "0 > SENT req 0 event 1\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST LAST event 1 (180000 bytes)\n");
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
}

TEST(sender_several_times)
{
    every_feed(tell_of_pieces);
}

/* The rest of the message comes before anything else, and not more than the rest. */
TEST(sender_that_forgets_the_rest)
{
    start(FEED_WHOLE);
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    fixture_close(r0, "crash");
    fixture_again(r0);
    say_live(r0, 0, 0);
    say_send(r0, 1, 6, "next");
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'SEND frame that does not add up'\n");
    fixture_again(r0);
    say_live(r0, 0, 0);
    say_more(r0, 5, PIECE, 2 * PIECE + 1);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 '120001 bytes of a message of which 120000 "
                   "are missing'\n");
}

/* The sender is down, or repeating: its receiver may look, take out, receive and cancel. */
TEST(receiver_of_a_message_whose_sender_is_down)
{
    start(FEED_WHOLE);
    f.merged = true;
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    fixture_close(r0, "crash");
    fixture_forget(&f);
    say_probe(r1, 5, CODEC_ALL, true);
    say_mrecv(r1, 9, 0, PIECE + 1);
    fixture_again(r0);
    say_live(r0, 0, 0);
    say_more(r0, 5, PIECE, PIECE);
    say_more(r0, 5, 2 * PIECE, PIECE);
    say_bye(r0);
    expect(&f, "1 < PROBE tag 5 remove\n"
               "1 > PROBED tag 5 total 180000 msg 0 unexpected 0\n"
               "1 < MRECV req 9 msg 0 capacity 60001\n"
               "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 0 acts 1 missing 120000 LOG REPLAY\n"
               "0 > SEND to 1 tag 5 total 180000\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 1 event 0 'connected'\n"
               "0 < LIVE event 0 clock 0\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 1 event 0 'repeated 0 events'\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "1 > MESSAGE req 9 tag 5 total 180000 FIRST LAST TRUNC event 1 (60001 bytes)\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "0 < BYE\n"
               "0 > FAREWELL\n"
               "0 is closed\n"
               "d > NOTICE RANK_BYE rank 0 incarnation 2 acts 1 event 0 'done'\n");
    CU_ASSERT_TRUE(fixture_received(r1, 9, 5, PIECE + 1));
}

TEST(sender_never_comes_back)
{
    start(FEED_WHOLE);
    f.mute = true;
    say_recv(r1, 7, 5);
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    say_begin(r2, CW_SEND_TAG, 1, 6, TOTAL, PIECE);
    say_begin(r1, CW_SEND_AM, 2, 6, TOTAL, PIECE);
    fixture_close(r0, "crash");
    fixture_close(r1, "crash");
    fixture_close(r2, "crash");
}

/* --- the receiver crashes --------------------------------------------------------------------- */
/* Cut through to one that crashes: the next one gets it from its first byte. */
TEST(receiver_in_the_middle)
{
    start(FEED_WHOLE);
    say_recv(r1, 7, 5);
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    fixture_close(r1, "crash");
    say_more(r0, 5, PIECE, PIECE);
    fixture_forget(&f);
    fixture_again(r1);
    say_live(r1, 0, 0);
    say_more(r0, 5, 2 * PIECE, PIECE);
    expect(&f, "1 < HELLO rank 1 incarnation 2\n"
               "1 > WELCOME event 0 acts 1 LOG REPLAY\n"
               "1 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 1 incarnation 2 acts 1 event 0 'connected'\n"
               "1 < LIVE event 0 clock 0\n"
               "d > NOTICE RANK_LIVE rank 1 incarnation 2 acts 1 event 0 'repeated 0 events'\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST (120000 bytes)\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "1 > MESSAGE req 7 LAST event 1 (60000 bytes)\n");
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
}

/* ... or whole, when it became whole meanwhile. */
TEST(receiver_until_it_is_whole)
{
    start(FEED_WHOLE);
    say_recv(r1, 7, 5);
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    fixture_close(r1, "crash");
    say_more(r0, 5, PIECE, 2 * PIECE);
    fixture_forget(&f);
    fixture_again(r1);
    say_live(r1, 0, 0);
    expect(&f, "1 < HELLO rank 1 incarnation 2\n"
               "1 > WELCOME event 1 acts 1 LOG REPLAY\n"
               "1 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 1 incarnation 2 acts 1 event 0 'connected'\n"
               "1 < LIVE event 0 clock 0\n"
               "d > NOTICE RANK_LIVE rank 1 incarnation 2 acts 1 event 0 'repeated 0 events'\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST (60000 bytes)\n"
               "1 > MESSAGE req 7 LAST event 1 (120000 bytes)\n");
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
    fixture_close(r1, "crash");
    fixture_again(r1);
    say_live(r1, 0, 0);
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
}

/* The pieces that a repeating rank is not yet told of are told once it is live. */
TEST(receiver_that_repeats)
{
    start(FEED_WHOLE);
    say_recv(r1, 7, 5);
    say_recv(r1, 8, 6);
    say_send(r2, 1, 6, "small");
    say_taken(r1, 1, 4);
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    fixture_close(r1, "crash");
    fixture_again(r1);
    fixture_forget(&f);
    say_more(r0, 5, PIECE, PIECE);
    say_live(r1, 1, 4);
    say_more(r0, 5, 2 * PIECE, PIECE);
    expect(&f, "0 < SEND_DATA (60000 bytes)\n"
               "1 < LIVE event 1 clock 4\n"
               "d > NOTICE RANK_LIVE rank 1 incarnation 2 acts 2 event 1 'repeated 1 events'\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST (120000 bytes)\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "1 > MESSAGE req 7 LAST event 2 (60000 bytes)\n");
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
}

/* Taken by the one that crashed: it comes again with its determinant. */
static void tell_of_a_taken_one(void)
{
    say_recv(r1, 7, 5);
    say_recv_mask(r1, 8, 5, CODEC_ALL, PIECE + 1);
    for (int i = 0; i < 2; i++) {
        say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
        say_more(r0, 5, PIECE, 2 * PIECE);
    }
    say_taken(r1, 2, 9);
    say_send(r1, 0, 9, "thanks");
    fixture_close(r1, "crash");
    fixture_forget(&f);
    fixture_again(r1);
    say_live(r1, 2, 9);
    expect(&f, "1 < HELLO rank 1 incarnation 2\n"
               "1 > WELCOME event 2 acts 3 clock 9 LOG REPLAY\n"
               "1 > TAKEN event 2 clock 9\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST LAST event 1 (180000 bytes)\n"
               "1 > MESSAGE req 8 tag 5 total 180000 FIRST LAST TRUNC event 2 (60001 bytes)\n"
               "1 > SEND to 0 tag 9 total 6\n"
               "1 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 1 incarnation 2 acts 3 event 2 'connected'\n"
               "1 < LIVE event 2 clock 9\n"
               "d > NOTICE RANK_LIVE rank 1 incarnation 2 acts 3 event 2 'repeated 2 events'\n");
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
    CU_ASSERT_TRUE(fixture_received(r1, 8, 5, PIECE + 1));
}

TEST(receiver_that_took_it)
{
    every_feed(tell_of_a_taken_one);
}

/* Truncated, the message is an event before its sender is done with it. */
TEST(receiver_of_a_truncated_message)
{
    start(FEED_WHOLE);
    say_recv_mask(r1, 7, 5, CODEC_ALL, PIECE + 1);
    say_recv_mask(r1, 8, 6, CODEC_ALL, 0);
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    say_begin(r2, CW_SEND_TAG, 1, 6, TOTAL, PIECE);
    say_more(r0, 5, PIECE, PIECE);
    fixture_close(r1, "crash");
    fixture_forget(&f);
    fixture_again(r1);
    say_live(r1, 0, 0);
    say_more(r0, 5, 2 * PIECE, PIECE);
    expect(&f, "1 < HELLO rank 1 incarnation 2\n"
               "1 > WELCOME event 2 acts 2 LOG REPLAY\n"
               "1 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 1 incarnation 2 acts 2 event 0 'connected'\n"
               "1 < LIVE event 0 clock 0\n"
               "d > NOTICE RANK_LIVE rank 1 incarnation 2 acts 2 event 0 'repeated 0 events'\n"
               "1 > MESSAGE req 8 tag 6 total 180000 FIRST LAST TRUNC event 1\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST TRUNC (60000 bytes)\n"
               "1 > MESSAGE req 7 LAST TRUNC event 2 '^'\n"
               "0 < SEND_DATA (60000 bytes)\n");
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, PIECE + 1));
}

/* An active message begins anew under its stream number, also before its first byte is there. */
TEST(receiver_of_active_messages)
{
    start(FEED_WHOLE);
    say_begin(r0, CW_SEND_AM, 1, 5, TOTAL, PIECE);
    say_send_kind(r2, CW_SEND_AM, 1, 0, 6, "between");
    fixture_close(r1, "crash");
    fixture_forget(&f);
    fixture_again(r1);
    say_more(r0, 5, PIECE, 2 * PIECE);
    say_send_kind(r2, CW_SEND_AM, 1, 0, 7, "after");
    expect(&f, "1 < HELLO rank 1 incarnation 2\n"
               "1 > WELCOME event 1 LOG\n"
               "1 > MESSAGE req 1 tag 6 total 7 FIRST LAST ACTIVE event 1 'between'\n"
               "1 > MESSAGE req 0 tag 5 total 180000 FIRST ACTIVE (60000 bytes)\n"
               "d > NOTICE RANK_UP rank 1 incarnation 2 acts 0 event 0 'connected'\n"
               "0 < SEND_DATA (120000 bytes)\n"
               "1 > MESSAGE req 0 LAST ACTIVE event 2 (120000 bytes)\n"
               "2 < SEND to 1 AM tag 7 total 5 'after'\n"
               "1 > MESSAGE req 2 tag 7 total 5 FIRST LAST ACTIVE event 3 'after'\n");
    CU_ASSERT_EQUAL(r1->inbox.complete, 3);
}

/* Whatever its size, and in whatever pieces it came. */
TEST(every_size)
{
    static const uint32_t totals[] = {0, 1, 255, 257, 2048, 2049, 16384, 16385, 65536, 300000};
    enum { COUNT = sizeof(totals) / sizeof(*totals) };

    for (uint32_t late = 0; late < 3; late++) {
        start(FEED_RANDOM);
        f.mute = true;
        f.seed = 5 + late;
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t half = (totals[i] + 1) / 2;

            if (late == 0)
                say_recv(r1, i, i);
            say_begin(r0, CW_SEND_TAG, 1, i, totals[i], half);
            if (late == 1)
                say_recv(r1, i, i);
            if (totals[i] > half)
                say_more(r0, i, half, totals[i] - half);
            if (late == 2)
                say_recv(r1, i, i);
        }
        say_taken(r1, COUNT / 2, 3);
        for (int again = 0; again < 2; again++) {
            fixture_close(r1, "crash");
            fixture_again(r1);
            CU_ASSERT_EQUAL(r1->inbox.complete, COUNT / 2);
            say_live(r1, COUNT / 2, 3);
            for (uint32_t i = 0; i < COUNT; i++)
                CU_ASSERT_TRUE(fixture_received(r1, i, i, totals[i]));
        }
        fixture_fini(&f);
    }
}

/* A log is handed out a part at a time, as fast as it is read. */
TEST(slow_reader_of_its_log)
{
    start(FEED_WHOLE);
    f.mute = true;
    for (uint32_t i = 0; i < 40; i++) {
        say_recv(r1, i, i);
        say_begin(r0, CW_SEND_TAG, 1, i, 100000, 100000);
        say_taken(r1, i + 1, i);
    }
    for (uint32_t i = 40; i < 80; i++) {
        say_recv(r1, i, i);
        say_begin(r0, CW_SEND_TAG, 1, i, 100000, 100000);
    }
    fixture_close(r1, "crash");
    fixture_connect(&f, r1, "1");
    r1->stalled = true;
    fixture_hello_rank(r1, 1, 2);
    CU_ASSERT_TRUE(relay_core_stats(f.core)->memory_now < 20u << 20);
    CU_ASSERT_EQUAL(r1->inbox.count, 0);
    fixture_read(r1);
    CU_ASSERT_EQUAL(r1->inbox.complete, 40);
    r1->stalled = true;
    say_live(r1, 40, 40);
    say_send_kind(r0, CW_SEND_AM, 1, 0, 7, "the last");
    fixture_read(r1);
    CU_ASSERT_EQUAL(r1->inbox.complete, 81);
    for (uint32_t i = 0; i < 80; i++)
        CU_ASSERT_TRUE(fixture_received(r1, i, i, 100000));
}

/* It crashes before it has been told all that was taken at one poll. */
TEST(crash_within_a_group)
{
    start(FEED_WHOLE);
    f.mute = true;
    for (uint32_t i = 0; i < 20; i++)
        say_begin(r0, CW_SEND_AM, 1, i, 100000, 100000);
    say_taken(r1, 20, 3);
    fixture_close(r1, "crash");
    fixture_connect(&f, r1, "1");
    r1->stalled = true;
    fixture_hello_rank(r1, 1, 2);
    fixture_close(r1, "crash");
    fixture_connect(&f, r1, "1");
    fixture_hello_rank(r1, 1, 3);
    CU_ASSERT_EQUAL(r1->inbox.complete, 20);
    say_live(r1, 20, 3);
    CU_ASSERT_EQUAL(r1->inbox.complete, 20);
    CU_ASSERT_PTR_NOT_NULL(r1->conn);
}

/* --- both crash ------------------------------------------------------------------------------- */
static void tell_of_both(void)
{
    say_recv(r1, 7, 5);
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    fixture_close(r0, "crash");
    fixture_close(r1, "crash");
    fixture_forget(&f);
    fixture_again(r0);
    say_live(r0, 0, 0);
    say_more(r0, 5, PIECE, PIECE);
    fixture_again(r1);
    say_live(r1, 0, 0);
    say_more(r0, 5, 2 * PIECE, PIECE);
    expect(&f, "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 0 acts 1 missing 120000 LOG REPLAY\n"
               "0 > SEND to 1 tag 5 total 180000\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 1 event 0 'connected'\n"
               "0 < LIVE event 0 clock 0\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 1 event 0 'repeated 0 events'\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "1 < HELLO rank 1 incarnation 2\n"
               "1 > WELCOME event 0 acts 1 LOG REPLAY\n"
               "1 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 1 incarnation 2 acts 1 event 0 'connected'\n"
               "1 < LIVE event 0 clock 0\n"
               "d > NOTICE RANK_LIVE rank 1 incarnation 2 acts 1 event 0 'repeated 0 events'\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST LAST event 1 (180000 bytes)\n");
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
}

TEST(both)
{
    every_feed(tell_of_both);
}

/* A rank sends to itself, and crashes in the middle of it. */
TEST(message_to_itself)
{
    start(FEED_WHOLE);
    f.merged = true;
    say_recv(r0, 7, 5);
    say_begin(r0, CW_SEND_SYNC, 0, 5, TOTAL, PIECE);
    fixture_close(r0, "crash");
    fixture_forget(&f);
    fixture_again(r0);
    say_live(r0, 0, 0);
    say_more(r0, 5, PIECE, 2 * PIECE);
    say_taken(r0, 2, 2);
    expect(&f, "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 1 acts 2 missing 120000 LOG REPLAY\n"
               "0 > SEND to 0 SYNC req 0 tag 5 total 180000\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 2 event 0 'connected'\n"
               "0 < LIVE event 0 clock 0\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 2 event 0 'repeated 0 events'\n"
               "0 > SENT req 0 event 1\n"
               "0 < SEND_DATA (120000 bytes)\n"
               "0 > MESSAGE req 7 tag 5 total 180000 FIRST LAST event 2 (180000 bytes)\n"
               "0 < TAKEN event 2 clock 2\n");
    CU_ASSERT_TRUE(fixture_received(r0, 7, 5, TOTAL));
    fixture_close(r0, "crash");
    fixture_again(r0);
    CU_ASSERT_TRUE(fixture_received(r0, 7, 5, TOTAL));
}

/* The job ends while a message has neither end. */
TEST(job_ends_in_the_middle)
{
    start(FEED_WHOLE);
    f.mute = true;
    say_recv(r1, 7, 5);
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    say_begin(r2, CW_SEND_TAG, 1, 6, TOTAL, PIECE);
    fixture_close(r0, "crash");
    fixture_close(r1, "crash");
    fixture_again(r0);
    fixture_again(r1);
    fixture_close(&f.dispatcher, "gone");
    for (int i = 0; i < 3; i++)
        CU_ASSERT_PTR_NULL(f.rank[i].conn);
}
