/* Probes: answers, hints, and messages taken out for MRECV. */
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of probes", fixture_end);

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];

static void every_feed(void (*story)(void))
{
    for (enum fixture_feed feed = FEED_WHOLE; feed <= FEED_RANDOM; feed++) {
        fixture_init(&f, FIXTURE_MEMORY);
        f.feed = feed;
        f.merged = true;
        fixture_start(&f, 2);
        story();
        fixture_fini(&f);
    }
}

/* After an answer the device may say "none" by itself until the one HINT that something came. */
static void tell_one_hint(void)
{
    say_send(r0, 1, 1, "before");
    say_probe(r1, 5, CODEC_ALL, false);
    expect(&f, "0 < SEND to 1 tag 1 total 6 'before'\n"
               "1 < PROBE tag 5\n"
               "1 > PROBED nothing unexpected 1\n");
    say_send(r0, 1, 6, "x");
    say_send(r0, 1, 7, "y");
    expect(&f, "0 < SEND to 1 tag 6 total 1 'x'\n"
               "1 > HINT\n"
               "0 < SEND to 1 tag 7 total 1 'y'\n");
    say_probe(r1, 6, CODEC_ALL, false);
    say_send(r0, 1, 8, "z");
    expect(&f, "1 < PROBE tag 6\n"
               "1 > PROBED tag 6 total 1 msg 0 unexpected 3\n"
               "0 < SEND to 1 tag 8 total 1 'z'\n"
               "1 > HINT\n");
}

TEST(one_hint)
{
    every_feed(tell_one_hint);
}

/* A message that was expected is no news for a probe. */
static void tell_no_hint(void)
{
    say_probe(r1, 5, CODEC_ALL, false);
    say_recv(r1, 7, 5);
    say_send(r0, 1, 5, "abc");
    expect(&f, "1 < PROBE tag 5\n"
               "1 > PROBED nothing unexpected 0\n"
               "1 < RECV req 7 tag 5\n"
               "0 < SEND to 1 tag 5 total 3 'abc'\n"
               "1 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n");
}

TEST(no_hint_for_what_is_expected)
{
    every_feed(tell_no_hint);
}

static void tell_found(void)
{
    say_send(r0, 1, 5, "abc");
    say_send(r0, 1, 5, "defg");
    say_probe(r1, 0, 0, false);
    say_probe(r1, 5, CODEC_ALL, false);
    say_recv(r1, 7, 5);
    say_probe(r1, 5, CODEC_ALL, false);
    expect(&f, "0 < SEND to 1 tag 5 total 3 'abc'\n"
               "0 < SEND to 1 tag 5 total 4 'defg'\n"
               "1 < PROBE tag 0 mask 0x0\n"
               "1 > PROBED tag 5 total 3 msg 0 unexpected 2\n"
               "1 < PROBE tag 5\n"
               "1 > PROBED tag 5 total 3 msg 0 unexpected 2\n"
               "1 < RECV req 7 tag 5\n"
               "1 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n"
               "1 < PROBE tag 5\n"
               "1 > PROBED tag 5 total 4 msg 0 unexpected 1\n");
}

TEST(found)
{
    every_feed(tell_found);
}

/* What a probe took out is for MRECV alone. */
static void tell_removal(void)
{
    say_send(r0, 1, 5, "abc");
    say_send(r0, 1, 5, "defg");
    say_probe(r1, 5, CODEC_ALL, true);
    say_recv(r1, 7, 5);
    say_recv(r1, 8, 5);
    say_mrecv(r1, 9, 0, CODEC_ALL);
    expect(&f, "0 < SEND to 1 tag 5 total 3 'abc'\n"
               "0 < SEND to 1 tag 5 total 4 'defg'\n"
               "1 < PROBE tag 5 remove\n"
               "1 > PROBED tag 5 total 3 msg 0 unexpected 1\n"
               "1 < RECV req 7 tag 5\n"
               "1 > MESSAGE req 7 tag 5 total 4 FIRST LAST event 1 'defg'\n"
               "1 < RECV req 8 tag 5\n"
               "1 < MRECV req 9 msg 0\n"
               "1 > MESSAGE req 9 tag 5 total 3 FIRST LAST event 2 'abc'\n");
}

TEST(removal)
{
    every_feed(tell_removal);
}

static void tell_numbers(void)
{
    for (int i = 0; i < 3; i++)
        say_send_kind(r0, CW_SEND_SYNC, 1, (uint32_t)i, 5, "ab");
    for (int i = 0; i < 3; i++)
        say_probe(r1, 5, CODEC_ALL, true);
    fixture_forget(&f);
    say_mrecv(r1, 9, 1, 1);
    say_send(r0, 1, 5, "again");
    say_probe(r1, 5, CODEC_ALL, true);
    say_mrecv(r1, 10, 2, 0);
    say_mrecv(r1, 11, 0, CODEC_ALL);
    say_mrecv(r1, 12, 1, CODEC_ALL);
    expect(&f, "1 < MRECV req 9 msg 1 capacity 1\n"
               "1 > MESSAGE req 9 tag 5 total 2 FIRST LAST TRUNC event 1 'a'\n"
               "0 > SENT req 1 event 1\n"
               "0 < SEND to 1 tag 5 total 5 'again'\n"
               "1 > HINT\n"
               "1 < PROBE tag 5 remove\n"
               "1 > PROBED tag 5 total 5 msg 1 unexpected 0\n"
               "1 < MRECV req 10 msg 2 capacity 0\n"
               "1 > MESSAGE req 10 tag 5 total 2 FIRST LAST TRUNC event 2\n"
               "0 > SENT req 2 event 2\n"
               "1 < MRECV req 11 msg 0\n"
               "1 > MESSAGE req 11 tag 5 total 2 FIRST LAST event 3 'ab'\n"
               "0 > SENT req 0 event 3\n"
               "1 < MRECV req 12 msg 1\n"
               "1 > MESSAGE req 12 tag 5 total 5 FIRST LAST event 4 'again'\n");
}

/* Numbers of removed messages are used again; a synchronous send is acknowledged by MRECV. */
TEST(numbers_of_removed_messages)
{
    every_feed(tell_numbers);
}

static void tell_unknown_number(void)
{
    say_send(r0, 1, 5, "abc");
    say_probe(r1, 5, CODEC_ALL, false);
    say_mrecv(r1, 9, 0, CODEC_ALL);
    expect(&f, "0 < SEND to 1 tag 5 total 3 'abc'\n"
               "1 < PROBE tag 5\n"
               "1 > PROBED tag 5 total 3 msg 0 unexpected 1\n"
               "1 < MRECV req 9 msg 0\n"
               "1 > REFUSED PROTOCOL rank 1 'MRECV of a message that no probe took out'\n"
               "1 is closed\n"
               "d > NOTICE RANK_LOST rank 1 'refused by its relay: MRECV of a message that no "
               "probe took out'\n");
}

TEST(mrecv_of_unknown_number)
{
    every_feed(tell_unknown_number);
}

static void tell_second_mrecv(void)
{
    say_send(r0, 1, 5, "abc");
    say_probe(r1, 5, CODEC_ALL, true);
    say_mrecv(r1, 9, 0, CODEC_ALL);
    fixture_forget(&f);
    say_mrecv(r1, 10, 0, CODEC_ALL);
    expect_has(&f, "1 > REFUSED PROTOCOL rank 1 'MRECV of a message that no probe took out'\n");
}

TEST(mrecv_happens_once)
{
    every_feed(tell_second_mrecv);
}

/* Taken out while its bytes still come: MRECV gets what is there, the rest follows. */
TEST(removal_of_a_message_under_way)
{
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_start(&f, 2);
    say_begin(r0, CW_SEND_TAG, 1, 5, 100000, 1000);
    say_probe(r1, 5, CODEC_ALL, true);
    say_more(r0, 5, 1000, 40000);
    say_mrecv(r1, 9, 0, CODEC_ALL);
    say_more(r0, 5, 41000, 59000);
    expect(&f, "0 < SEND to 1 tag 5 total 100000 (1000 bytes)\n"
               "1 < PROBE tag 5 remove\n"
               "1 > PROBED tag 5 total 100000 msg 0 unexpected 0\n"
               "0 < SEND_DATA (40000 bytes)\n"
               "1 < MRECV req 9 msg 0\n"
               "1 > MESSAGE req 9 tag 5 total 100000 FIRST (1000 bytes)\n"
               "1 > MESSAGE req 9 (40000 bytes)\n"
               "0 < SEND_DATA (59000 bytes)\n"
               "1 > MESSAGE req 9 LAST event 1 (59000 bytes)\n");
    CU_ASSERT_TRUE(fixture_received(r1, 9, 5, 100000));
}

/* What was taken out and never received goes with the job. */
TEST(removed_messages_go_with_the_job)
{
    fixture_init(&f, FIXTURE_MEMORY);
    f.mute = true;
    fixture_start(&f, 2);
    for (int i = 0; i < 40; i++) {
        say_send(r0, 1, 5, "abc");
        say_probe(r1, 5, CODEC_ALL, true);
    }
    say_begin(r0, CW_SEND_TAG, 1, 5, 100000, 50000);
    say_probe(r1, 5, CODEC_ALL, true);
    fixture_close(&f.dispatcher, "gone");
    CU_ASSERT_PTR_NULL(r0->conn);
    CU_ASSERT_PTR_NULL(r1->conn);
}
