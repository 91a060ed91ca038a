/* Receives and messages find each other: the stories of MPI's matching rules. Where the story does
 * not depend on how the bytes are cut, it is told three times: whole, byte by byte, at random. */
#include "common/match.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of matching", fixture_end);

#define ANY_SOURCE 0x0000ffffull /* mask of the tests that leaves the upper half open */

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static struct client *const r2 = &f.rank[2];

/* Tells the same story with the bytes cut in every way. */
static void every_feed(void (*story)(void))
{
    for (enum fixture_feed feed = FEED_WHOLE; feed <= FEED_RANDOM; feed++) {
        fixture_init(&f, FIXTURE_MEMORY);
        f.feed = feed;
        f.seed = 1 + (uint64_t)feed;
        f.merged = true;
        fixture_start(&f, 3);
        story();
        fixture_fini(&f);
    }
}

static void tell_expected_message(void)
{
    say_recv(r1, 7, 5);
    say_send(r0, 1, 5, "abc");
    expect(&f, "1 < RECV req 7 tag 5\n"
               "0 < SEND to 1 tag 5 total 3 'abc'\n"
               "1 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n");
}

TEST(expected_message)
{
    every_feed(tell_expected_message);
}

static void tell_unexpected_message(void)
{
    say_send(r0, 1, 5, "abc");
    say_recv(r1, 7, 6);
    say_recv(r1, 8, 5);
    say_send(r2, 1, 6, "late");
    expect(&f, "0 < SEND to 1 tag 5 total 3 'abc'\n"
               "1 < RECV req 7 tag 6\n"
               "1 < RECV req 8 tag 5\n"
               "1 > MESSAGE req 8 tag 5 total 3 FIRST LAST event 1 'abc'\n"
               "2 < SEND to 1 tag 6 total 4 'late'\n"
               "1 > MESSAGE req 7 tag 6 total 4 FIRST LAST event 2 'late'\n");
}

TEST(unexpected_message)
{
    every_feed(tell_unexpected_message);
}

static void tell_message_to_oneself(void)
{
    say_send(r0, 0, 5, "first");
    say_recv(r0, 1, 5);
    say_recv(r0, 2, 5);
    say_send(r0, 0, 5, "second");
    expect(&f, "0 < SEND to 0 tag 5 total 5 'first'\n"
               "0 < RECV req 1 tag 5\n"
               "0 > MESSAGE req 1 tag 5 total 5 FIRST LAST event 1 'first'\n"
               "0 < RECV req 2 tag 5\n"
               "0 < SEND to 0 tag 5 total 6 'second'\n"
               "0 > MESSAGE req 2 tag 5 total 6 FIRST LAST event 2 'second'\n");
}

TEST(message_to_oneself)
{
    every_feed(tell_message_to_oneself);
}

/* The earliest posted receive that matches takes the message, whatever its mask. */
static void tell_receives_in_posting_order(void)
{
    say_recv_mask(r1, 1, 0x10005, ANY_SOURCE, CODEC_ALL);
    say_recv(r1, 2, 0x20005);
    say_recv_mask(r1, 3, 0, 0, CODEC_ALL);
    say_send(r2, 1, 0x20005, "a");
    say_send(r2, 1, 0x20005, "b");
    say_send(r2, 1, 0x20005, "c");
    say_send(r2, 1, 0x20005, "d");
    say_recv_mask(r1, 4, 0, 0, CODEC_ALL);
    expect(&f, "1 < RECV req 1 tag 65541 mask 0xffff\n"
               "1 < RECV req 2 tag 131077\n"
               "1 < RECV req 3 tag 0 mask 0x0\n"
               "2 < SEND to 1 tag 131077 total 1 'a'\n"
               "1 > MESSAGE req 1 tag 131077 total 1 FIRST LAST event 1 'a'\n"
               "2 < SEND to 1 tag 131077 total 1 'b'\n"
               "1 > MESSAGE req 2 tag 131077 total 1 FIRST LAST event 2 'b'\n"
               "2 < SEND to 1 tag 131077 total 1 'c'\n"
               "1 > MESSAGE req 3 tag 131077 total 1 FIRST LAST event 3 'c'\n"
               "2 < SEND to 1 tag 131077 total 1 'd'\n"
               "1 < RECV req 4 tag 0 mask 0x0\n"
               "1 > MESSAGE req 4 tag 131077 total 1 FIRST LAST event 4 'd'\n");
}

TEST(receives_in_posting_order)
{
    every_feed(tell_receives_in_posting_order);
}

/* The earliest message that matches is taken, whoever sent it. */
static void tell_messages_in_order_of_arrival(void)
{
    say_send(r0, 1, 0x00005, "a");
    say_send(r2, 1, 0x20005, "b");
    say_send(r0, 1, 0x00006, "c");
    say_send(r2, 1, 0x20005, "d");
    say_recv_mask(r1, 1, 6, ANY_SOURCE, CODEC_ALL);
    say_recv(r1, 2, 0x20005);
    say_recv_mask(r1, 3, 5, ANY_SOURCE, CODEC_ALL);
    say_recv_mask(r1, 4, 0, 0, CODEC_ALL);
    expect(&f, "0 < SEND to 1 tag 5 total 1 'a'\n"
               "2 < SEND to 1 tag 131077 total 1 'b'\n"
               "0 < SEND to 1 tag 6 total 1 'c'\n"
               "2 < SEND to 1 tag 131077 total 1 'd'\n"
               "1 < RECV req 1 tag 6 mask 0xffff\n"
               "1 > MESSAGE req 1 tag 6 total 1 FIRST LAST event 1 'c'\n"
               "1 < RECV req 2 tag 131077\n"
               "1 > MESSAGE req 2 tag 131077 total 1 FIRST LAST event 2 'b'\n"
               "1 < RECV req 3 tag 5 mask 0xffff\n"
               "1 > MESSAGE req 3 tag 5 total 1 FIRST LAST event 3 'a'\n"
               "1 < RECV req 4 tag 0 mask 0x0\n"
               "1 > MESSAGE req 4 tag 131077 total 1 FIRST LAST event 4 'd'\n");
}

TEST(messages_in_order_of_arrival)
{
    every_feed(tell_messages_in_order_of_arrival);
}

static void tell_truncation(void)
{
    say_recv_mask(r1, 1, 5, CODEC_ALL, 2);
    say_send(r0, 1, 5, "abc");
    say_send(r0, 1, 5, "defg");
    say_recv_mask(r1, 2, 5, CODEC_ALL, 3);
    say_recv_mask(r1, 3, 5, CODEC_ALL, 4);
    say_send(r0, 1, 5, "hijk");
    expect(&f, "1 < RECV req 1 tag 5 capacity 2\n"
               "0 < SEND to 1 tag 5 total 3 'abc'\n"
               "1 > MESSAGE req 1 tag 5 total 3 FIRST LAST TRUNC event 1 'ab'\n"
               "0 < SEND to 1 tag 5 total 4 'defg'\n"
               "1 < RECV req 2 tag 5 capacity 3\n"
               "1 > MESSAGE req 2 tag 5 total 4 FIRST LAST TRUNC event 2 'def'\n"
               "1 < RECV req 3 tag 5 capacity 4\n"
               "0 < SEND to 1 tag 5 total 4 'hijk'\n"
               "1 > MESSAGE req 3 tag 5 total 4 FIRST LAST event 3 'hijk'\n");
}

TEST(truncation)
{
    every_feed(tell_truncation);
}

static void tell_truncation_to_nothing(void)
{
    say_recv_mask(r1, 1, 5, CODEC_ALL, 0);
    say_send(r0, 1, 5, "abc");
    say_send(r0, 1, 5, "defg");
    say_recv_mask(r1, 2, 5, CODEC_ALL, 0);
    say_recv_mask(r1, 3, 5, CODEC_ALL, 0);
    say_send(r0, 1, 5, "");
    expect(&f, "1 < RECV req 1 tag 5 capacity 0\n"
               "0 < SEND to 1 tag 5 total 3 'abc'\n"
               "1 > MESSAGE req 1 tag 5 total 3 FIRST LAST TRUNC event 1\n"
               "0 < SEND to 1 tag 5 total 4 'defg'\n"
               "1 < RECV req 2 tag 5 capacity 0\n"
               "1 > MESSAGE req 2 tag 5 total 4 FIRST LAST TRUNC event 2\n"
               "1 < RECV req 3 tag 5 capacity 0\n"
               "0 < SEND to 1 tag 5 total 0\n"
               "1 > MESSAGE req 3 tag 5 total 0 FIRST LAST event 3\n");
}

TEST(truncation_to_nothing)
{
    every_feed(tell_truncation_to_nothing);
}

static void tell_messages_without_bytes(void)
{
    say_send(r0, 1, 5, "");
    say_send(r0, 1, 6, "x");
    say_recv(r1, 1, 5);
    say_recv(r1, 2, 7);
    say_send(r0, 1, 7, "");
    expect(&f, "0 < SEND to 1 tag 5 total 0\n"
               "0 < SEND to 1 tag 6 total 1 'x'\n"
               "1 < RECV req 1 tag 5\n"
               "1 > MESSAGE req 1 tag 5 total 0 FIRST LAST event 1\n"
               "1 < RECV req 2 tag 7\n"
               "0 < SEND to 1 tag 7 total 0\n"
               "1 > MESSAGE req 2 tag 7 total 0 FIRST LAST event 2\n");
}

TEST(messages_without_bytes)
{
    every_feed(tell_messages_without_bytes);
}

/* A synchronous send is acknowledged by the match, not by the arrival. */
static void tell_synchronous_send_that_waits(void)
{
    say_send_kind(r0, CW_SEND_SYNC, 1, 9, 5, "abc");
    expect(&f, "0 < SEND to 1 SYNC req 9 tag 5 total 3 'abc'\n");
    say_recv(r1, 7, 5);
    expect(&f, "1 < RECV req 7 tag 5\n"
               "1 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n"
               "0 > SENT req 9 event 1\n");
}

TEST(synchronous_send_that_waits)
{
    every_feed(tell_synchronous_send_that_waits);
}

static void tell_synchronous_send_that_is_awaited(void)
{
    say_recv_mask(r1, 7, 5, CODEC_ALL, 1);
    say_send_kind(r0, CW_SEND_SYNC, 1, 9, 5, "");
    say_send_kind(r1, CW_SEND_SYNC, 1, 4, 5, "");
    say_recv(r1, 8, 5);
    expect(&f, "1 < RECV req 7 tag 5 capacity 1\n"
               "0 < SEND to 1 SYNC req 9 tag 5 total 0\n"
               "1 > MESSAGE req 7 tag 5 total 0 FIRST LAST event 1\n"
               "0 > SENT req 9 event 1\n"
               "1 < SEND to 1 SYNC req 4 tag 5 total 0\n"
               "1 < RECV req 8 tag 5\n"
               "1 > MESSAGE req 8 tag 5 total 0 FIRST LAST event 2\n"
               "1 > SENT req 4 event 3\n");
}

TEST(synchronous_send_that_is_awaited)
{
    every_feed(tell_synchronous_send_that_is_awaited);
}

static void tell_cancel(void)
{
    say_recv(r1, 7, 5);
    say_recv(r1, 8, 5);
    say_cancel(r1, 7, 5, CODEC_ALL);
    say_send(r0, 1, 5, "abc");
    expect(&f, "1 < RECV req 7 tag 5\n"
               "1 < RECV req 8 tag 5\n"
               "1 < CANCEL req 7 tag 5\n"
               "1 > CANCELED req 7 event 1\n"
               "0 < SEND to 1 tag 5 total 3 'abc'\n"
               "1 > MESSAGE req 8 tag 5 total 3 FIRST LAST event 2 'abc'\n");
}

TEST(cancel)
{
    every_feed(tell_cancel);
}

/* When the message won, nothing is answered: the device has it already, or will. */
static void tell_cancel_too_late(void)
{
    say_recv(r1, 7, 5);
    say_send(r0, 1, 5, "abc");
    say_cancel(r1, 7, 5, CODEC_ALL);
    say_cancel(r1, 99, 5, CODEC_ALL);
    say_cancel(r1, 7, 0, 0x77);
    expect(&f, "1 < RECV req 7 tag 5\n"
               "0 < SEND to 1 tag 5 total 3 'abc'\n"
               "1 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n"
               "1 < CANCEL req 7 tag 5\n"
               "1 < CANCEL req 99 tag 5\n"
               "1 < CANCEL req 7 tag 0 mask 0x77\n");
}

TEST(cancel_too_late)
{
    every_feed(tell_cancel_too_late);
}

/* Masks beyond those that are indexed are still matched, in order, and canceled. */
static void tell_many_masks(void)
{
    for (uint32_t i = 8 - MATCH_CLASSES; i < 8; i++)
        say_recv_mask(r1, i, 1u << i, 1u << i, CODEC_ALL);
    say_cancel(r1, 6, 1 << 6, 1 << 6);
    fixture_forget(&f);
    say_send(r0, 1, 0xe0, "a");
    say_send(r0, 1, 0xe0, "b");
    say_send(r0, 1, 0xe0, "c");
    say_probe(r1, 0x40, 0x40, false);
    say_recv_mask(r1, 9, 0x40, 0x40, CODEC_ALL);
    expect(&f, "0 < SEND to 1 tag 224 total 1 'a'\n"
               "1 > MESSAGE req 5 tag 224 total 1 FIRST LAST event 2 'a'\n"
               "0 < SEND to 1 tag 224 total 1 'b'\n"
               "1 > MESSAGE req 7 tag 224 total 1 FIRST LAST event 3 'b'\n"
               "0 < SEND to 1 tag 224 total 1 'c'\n"
               "1 < PROBE tag 64 mask 0x40\n"
               "1 > PROBED tag 224 total 1 msg 0 unexpected 1\n"
               "1 < RECV req 9 tag 64 mask 0x40\n"
               "1 > MESSAGE req 9 tag 224 total 1 FIRST LAST event 4 'c'\n");
}

TEST(many_masks)
{
    every_feed(tell_many_masks);
}

/* Two connections are not ordered, but each is: whatever is cut where. */
TEST(bytes_of_two_senders_interleaved)
{
    struct cw_send a = {.dst = 2, .kind = CW_SEND_TAG, .tag = 1, .total = 4};
    struct cw_send b = {.dst = 2, .kind = CW_SEND_TAG, .tag = 2, .total = 4};

    fixture_init(&f, FIXTURE_MEMORY);
    f.merged = true;
    fixture_start(&f, 3);
    codec_send(&r0->codec, &a, "aaaa", 4);
    codec_send(&r1->codec, &b, "bbbb", 4);
    say_recv_mask(r2, 1, 0, 0, CODEC_ALL);
    for (int i = 0; i < CW_FRAME_HEADER + (int)CW_SEND_SIZE + 4; i++) {
        fixture_feed_some(r1, 1);
        fixture_feed_some(r0, 1);
    }
    say_recv_mask(r2, 2, 0, 0, CODEC_ALL);
    expect(&f, "2 < RECV req 1 tag 0 mask 0x0\n"
               "2 > MESSAGE req 1 tag 2 total 4 FIRST LAST event 1 'bbbb'\n"
               "2 < RECV req 2 tag 0 mask 0x0\n"
               "2 > MESSAGE req 2 tag 1 total 4 FIRST LAST event 2 'aaaa'\n");
}

/* Any number of receives of few masks; one mask more is refused before it slows all matching. */
TEST(more_masks_than_there_are)
{
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_start(&f, 3);
    for (uint32_t i = 0; i < 3 * MATCH_CLASSES; i++)
        say_recv_mask(r1, i, 0, i % MATCH_CLASSES, CODEC_ALL);
    say_probe(r1, 0, 0, false);
    expect_has(&f, "1 > PROBED");
    say_recv_mask(r1, 99, 0, UINT64_MAX - 1, CODEC_ALL);
    expect_has(&f, "1 > REFUSED LIMIT rank 1 'receives and probes with more than 6 masks of tags");
}
