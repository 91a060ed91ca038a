/* A rank that crashed comes back: it is told what its predecessors were told, in the order in
 * which they took it, repeats what they did, and goes on. */
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of recovery", fixture_end);

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static struct client *const r2 = &f.rank[2];

static void start(uint32_t ranks, enum fixture_feed feed)
{
    fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    f.feed = feed;
    f.merged = true;
    fixture_start(&f, ranks);
}

static void every_feed(void (*story)(void))
{
    for (enum fixture_feed feed = FEED_WHOLE; feed <= FEED_RANDOM; feed++) {
        start(3, feed);
        story();
        fixture_fini(&f);
    }
}

/* Rank 0 receives "ask", looks at its clock, answers, and posts another receive. */
static void live_a_little(void)
{
    say_recv(r0, 1, 5);
    say_send(r1, 0, 5, "ask");
    say_taken(r0, 1, 10);
    say_readings(r0, "noon");
    say_send(r0, 1, 6, "answer");
    say_recv(r0, 2, 5);
}

static void tell_of_a_life(void)
{
    live_a_little();
    say_recv(r1, 1, 6);
    expect(&f, "0 < RECV req 1 tag 5\n"
               "1 < SEND to 0 tag 5 total 3 'ask'\n"
               "0 > MESSAGE req 1 tag 5 total 3 FIRST LAST event 1 'ask'\n"
               "0 < TAKEN event 1 clock 10\n"
               "0 < READINGS 'noon'\n"
               "0 < SEND to 1 tag 6 total 6 clock 10 'answer'\n"
               "0 < RECV req 2 tag 5 clock 10\n"
               "1 < RECV req 1 tag 6\n"
               "1 > MESSAGE req 1 tag 6 total 6 FIRST LAST event 1 'answer'\n");
    fixture_close(r0, "crash");
    fixture_again(r0);
    expect(&f, "0 ends: crash\n"
               "d > NOTICE RANK_LOST rank 0 incarnation 1 acts 3 event 1 'crash'\n"
               "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 1 acts 3 clock 10 LOG REPLAY\n"
               "0 > TAKEN event 1 clock 10\n"
               "0 > MESSAGE req 1 tag 5 total 3 FIRST LAST event 1 'ask'\n"
               "0 > READINGS 'noon'\n"
               "0 > SEND to 1 tag 6 total 6\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 3 event 1 'connected'\n");
    say_live(r0, 1, 10);
    say_send(r1, 0, 5, "more");
    say_taken(r0, 2, 30);
    say_send(r0, 1, 7, "thanks");
    say_bye(r0);
    expect(&f, "0 < LIVE event 1 clock 10\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 3 event 1 'repeated 1 events'\n"
               "1 < SEND to 0 tag 5 total 4 'more'\n"
               "0 > MESSAGE req 2 tag 5 total 4 FIRST LAST event 2 'more'\n"
               "0 < TAKEN event 2 clock 30\n"
               "0 < SEND to 1 tag 7 total 6 clock 30 'thanks'\n"
               "0 < BYE\n"
               "0 > FAREWELL\n"
               "0 is closed\n"
               "d > NOTICE RANK_BYE rank 0 incarnation 2 acts 4 event 2 'done'\n");
}

TEST(comes_back)
{
    every_feed(tell_of_a_life);
}

static void tell_of_a_meantime(void)
{
    live_a_little();
    fixture_close(r0, "crash");
    say_send(r1, 0, 5, "to its receive");
    say_send(r2, 0, 9, "to nobody yet");
    say_send_kind(r2, CW_SEND_AM, 0, 0, 4, "active");
    expect_has(&f, "d > NOTICE RANK_LOST rank 0 incarnation 1 acts 3 event 1 'crash'\n");
    fixture_again(r0);
    expect(&f, "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 3 acts 3 clock 10 LOG REPLAY\n"
               "0 > TAKEN event 1 clock 10\n"
               "0 > MESSAGE req 1 tag 5 total 3 FIRST LAST event 1 'ask'\n"
               "0 > READINGS 'noon'\n"
               "0 > SEND to 1 tag 6 total 6\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 3 event 1 'connected'\n");
    /* what its predecessor did not take comes when it is live */
    say_live(r0, 1, 12);
    say_recv(r0, 3, 9);
    expect(&f, "0 < LIVE event 1 clock 12\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 3 event 1 'repeated 1 events'\n"
               "0 > MESSAGE req 2 tag 5 total 14 FIRST LAST event 2 'to its receive'\n"
               "0 > MESSAGE req 0 tag 4 total 6 FIRST LAST ACTIVE event 3 'active'\n"
               "0 < RECV req 3 tag 9 clock 12\n"
               "0 > MESSAGE req 3 tag 9 total 13 FIRST LAST event 4 'to nobody yet'\n");
}

TEST(things_happen_meanwhile)
{
    every_feed(tell_of_a_meantime);
}

/* All events up to the one that TAKEN names were taken at its clock; each group stays one. */
static void tell_of_groups(void)
{
    for (uint32_t i = 0; i < 5; i++)
        say_send_kind(r1, CW_SEND_AM, 0, 0, i, "");
    say_taken(r0, 2, 10);
    say_taken(r0, 3, 10);
    say_readings(r0, "a");
    say_readings(r0, "b");
    say_taken(r0, 4, 300);
    fixture_close(r0, "crash");
    fixture_forget(&f);
    fixture_again(r0);
    say_live(r0, 4, 300);
    expect(&f, "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 5 LOG REPLAY\n"
               "0 > TAKEN event 2 clock 10\n"
               "0 > MESSAGE req 0 tag 0 total 0 FIRST LAST ACTIVE event 1\n"
               "0 > MESSAGE req 1 tag 1 total 0 FIRST LAST ACTIVE event 2\n"
               "0 > TAKEN event 3 clock 10\n"
               "0 > MESSAGE req 2 tag 2 total 0 FIRST LAST ACTIVE event 3\n"
               "0 > READINGS 'a'\n"
               "0 > READINGS 'b'\n"
               "0 > TAKEN event 4 clock 300\n"
               "0 > MESSAGE req 3 tag 3 total 0 FIRST LAST ACTIVE event 4\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 0 event 4 'connected'\n"
               "0 < LIVE event 4 clock 300\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 0 event 4 'repeated 4 events'\n"
               "0 > MESSAGE req 4 tag 4 total 0 FIRST LAST ACTIVE event 5\n");
}

TEST(events_taken_together)
{
    every_feed(tell_of_groups);
}

/* Acknowledgements and cancelled receives are events like messages. */
static void tell_of_sync(void)
{
    say_send_kind(r0, CW_SEND_SYNC, 1, 8, 6, "hello");
    say_recv(r0, 2, 7);
    say_cancel(r0, 2, 7, CODEC_ALL);
    say_recv(r1, 1, 6);
    say_taken(r0, 2, 20);
    say_send_kind(r0, CW_SEND_SYNC, 1, 9, 6, "again");
    fixture_close(r0, "crash");
    say_recv(r1, 2, 6);
    fixture_forget(&f);
    fixture_again(r0);
    say_live(r0, 2, 25);
    expect(&f, "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 3 acts 4 clock 20 LOG REPLAY\n"
               "0 > SEND to 1 SYNC req 0 tag 6 total 5\n"
               "0 > TAKEN event 2 clock 20\n"
               "0 > CANCELED req 2 event 1\n"
               "0 > SENT req 8 event 2\n"
               "0 > SEND to 1 SYNC req 0 tag 6 total 5\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 4 event 2 'connected'\n"
               "0 < LIVE event 2 clock 25\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 4 event 2 'repeated 2 events'\n"
               "0 > SENT req 9 event 3\n");
}

TEST(acknowledgements_and_cancels)
{
    every_feed(tell_of_sync);
}

/* A cancel that came too late is an act without an event. */
static void tell_of_a_late_cancel(void)
{
    say_recv(r0, 2, 7);
    say_send(r1, 0, 7, "first");
    say_cancel(r0, 2, 7, CODEC_ALL);
    say_taken(r0, 1, 20);
    fixture_close(r0, "crash");
    fixture_forget(&f);
    fixture_again(r0);
    say_live(r0, 1, 20);
    expect(&f, "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 1 acts 2 LOG REPLAY\n"
               "0 > TAKEN event 1 clock 20\n"
               "0 > MESSAGE req 2 tag 7 total 5 FIRST LAST event 1 'first'\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 2 event 1 'connected'\n"
               "0 < LIVE event 1 clock 20\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 2 event 1 'repeated 1 events'\n");
}

TEST(cancel_that_came_too_late)
{
    every_feed(tell_of_a_late_cancel);
}

/* A probe that found is answered as it was, at its clock; one that did not left no trace. */
static void tell_of_probes(void)
{
    r0->codec.clock = 3;
    say_probe(r0, 5, CODEC_ALL, false);
    say_send(r1, 0, 5, "abc");
    r0->codec.clock = 4;
    say_probe(r0, 5, CODEC_ALL, false);
    say_probe(r0, 0, 0, true);
    say_mrecv(r0, 7, 0, CODEC_ALL);
    say_taken(r0, 1, 6);
    say_send(r1, 0, 9, "defg");
    r0->codec.clock = 8;
    say_probe(r0, 9, CODEC_ALL, true);
    expect(&f, "0 < PROBE tag 5 clock 3\n"
               "0 > PROBED nothing unexpected 0 clock 3\n"
               "1 < SEND to 0 tag 5 total 3 'abc'\n"
               "0 > HINT\n"
               "0 < PROBE tag 5 clock 4\n"
               "0 > PROBED tag 5 total 3 msg 0 unexpected 1 clock 4\n"
               "0 < PROBE tag 0 mask 0x0 remove clock 4\n"
               "0 > PROBED tag 5 total 3 msg 0 unexpected 0 clock 4\n"
               "0 < MRECV req 7 msg 0 clock 4\n"
               "0 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n"
               "0 < TAKEN event 1 clock 6\n"
               "1 < SEND to 0 tag 9 total 4 'defg'\n"
               "0 > HINT\n"
               "0 < PROBE tag 9 remove clock 8\n"
               "0 > PROBED tag 9 total 4 msg 0 unexpected 0 clock 8\n");
    fixture_close(r0, "crash");
    fixture_again(r0);
    say_live(r0, 1, 8);
    say_mrecv(r0, 8, 0, CODEC_ALL);
    expect(&f, "0 ends: crash\n"
               "d > NOTICE RANK_LOST rank 0 incarnation 1 acts 4 event 1 'crash'\n"
               "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 1 acts 4 clock 8 LOG REPLAY\n"
               "0 > PROBED tag 5 total 3 msg 0 unexpected 0 clock 4\n"
               "0 > PROBED tag 5 total 3 msg 0 unexpected 0 clock 4\n"
               "0 > TAKEN event 1 clock 6\n"
               "0 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n"
               "0 > PROBED tag 9 total 4 msg 0 unexpected 0 clock 8\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 4 event 1 'connected'\n"
               "0 < LIVE event 1 clock 8\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 4 event 1 'repeated 1 events'\n"
               "0 < MRECV req 8 msg 0 clock 8\n"
               "0 > MESSAGE req 8 tag 9 total 4 FIRST LAST event 2 'defg'\n");
}

TEST(probes)
{
    every_feed(tell_of_probes);
}

/* A rank that probes while it is told what happened meanwhile gets its hint nonetheless. */
TEST(hint_while_it_catches_up)
{
    start(2, FEED_WHOLE);
    f.mute = true;
    say_recv(r0, 1, 5);
    fixture_close(r0, "crash");
    for (uint32_t i = 0; i < 3; i++)
        say_begin(r1, CW_SEND_AM, 0, i, 200000, 200000);
    fixture_again(r0);
    r0->stalled = true;
    say_live(r0, 0, 0);
    say_probe(r0, 8, CODEC_ALL, false);
    f.mute = false;
    say_send(r1, 0, 8, "unexpected");
    fixture_read(r0);
    expect_has(&f, "0 > HINT\n");
}

/* The hint that was owed to its predecessor is not owed to it. */
TEST(no_hint_for_another_incarnation)
{
    start(2, FEED_WHOLE);
    say_recv(r0, 1, 5);
    say_probe(r0, 8, CODEC_ALL, false);
    fixture_close(r0, "crash");
    fixture_again(r0);
    say_live(r0, 0, 0);
    fixture_forget(&f);
    say_send(r1, 0, 8, "unexpected");
    expect(&f, "1 < SEND to 0 tag 8 total 10 'unexpected'\n");
}

/* --- crashes at every place ------------------------------------------------------------------- */
/* The relay never heard of the first incarnation. */
TEST(before_its_first_hello)
{
    struct client *const x = &f.other[0];

    fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    fixture_connect(&f, &f.dispatcher, "d");
    fixture_hello_dispatcher(&f.dispatcher, 1);
    fixture_connect(&f, x, "x");
    fixture_close(x, "crash");
    fixture_connect(&f, r0, "0");
    fixture_hello_rank(r0, 0, 2);
    expect(&f, "d < HELLO dispatcher of 1 LOG\n"
               "d > WELCOME event 0\n"
               "x ends: crash\n"
               "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 0 LOG\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 0 event 0 'connected'\n");
}

/* Nobody was there when these came; they are events of the first process that is. */
TEST(before_its_first_connection)
{
    fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    fixture_connect(&f, &f.dispatcher, "d");
    fixture_hello_dispatcher(&f.dispatcher, 2);
    fixture_connect(&f, r1, "1");
    fixture_hello_rank(r1, 1, 1);
    say_send_kind(r1, CW_SEND_AM, 0, 0, 5, "early");
    say_begin(r1, CW_SEND_AM, 0, 6, 100000, 40000);
    fixture_forget(&f);
    fixture_connect(&f, r0, "0");
    fixture_hello_rank(r0, 0, 1);
    expect(&f, "0 < HELLO rank 0 incarnation 1\n"
               "0 > WELCOME event 1 LOG\n"
               "0 > MESSAGE req 0 tag 5 total 5 FIRST LAST ACTIVE event 1 'early'\n"
               "0 > MESSAGE req 1 tag 6 total 100000 FIRST ACTIVE (40000 bytes)\n"
               "d > NOTICE RANK_UP rank 0 'connected'\n");
    fixture_close(r0, "crash");
    say_more(r1, 6, 40000, 60000);
    fixture_again(r0);
    expect(&f, "0 ends: crash\n"
               "d > NOTICE RANK_LOST rank 0 'crash'\n"
               "1 < SEND_DATA (60000 bytes)\n"
               "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 2 LOG\n"
               "0 > MESSAGE req 0 tag 5 total 5 FIRST LAST ACTIVE event 1 'early'\n"
               "0 > MESSAGE req 1 tag 6 total 100000 FIRST ACTIVE (40000 bytes)\n"
               "0 > MESSAGE req 1 LAST ACTIVE event 2 (60000 bytes)\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 0 event 0 'connected'\n");
    CU_ASSERT_EQUAL(r0->inbox.count, 2);
    CU_ASSERT_TRUE(codec_pattern_is(r0->inbox.of[1].bytes, 6, 100000));
}

/* It did nothing that anybody could have seen: it is live at once, and told again. */
TEST(before_its_first_act)
{
    start(2, FEED_WHOLE);
    say_send_kind(r1, CW_SEND_AM, 0, 0, 5, "early");
    fixture_close(r0, "crash");
    fixture_again(r0);
    say_taken(r0, 1, 4);
    say_send(r0, 1, 6, "live");
    expect(&f, "1 < SEND to 0 AM tag 5 total 5 'early'\n"
               "0 > MESSAGE req 0 tag 5 total 5 FIRST LAST ACTIVE event 1 'early'\n"
               "0 ends: crash\n"
               "d > NOTICE RANK_LOST rank 0 'crash'\n"
               "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 1 LOG\n"
               "0 > MESSAGE req 0 tag 5 total 5 FIRST LAST ACTIVE event 1 'early'\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 0 event 0 'connected'\n"
               "0 < TAKEN event 1 clock 4\n"
               "0 < SEND to 1 tag 6 total 4 clock 4 'live'\n");
}

/* Each incarnation begins at the beginning, however far the one before it had come. */
static void tell_of_crashes_in_replay(void)
{
    live_a_little();
    fixture_close(r0, "crash");
    fixture_again(r0);
    fixture_close(r0, "crash at once");
    fixture_again(r0);
    fixture_close(r0, "crash after its check");
    say_send(r1, 0, 5, "meanwhile");
    fixture_forget(&f);
    fixture_again(r0);
    say_live(r0, 1, 12);
    say_taken(r0, 2, 13);
    say_send(r0, 1, 7, "further");
    expect(&f, "0 < HELLO rank 0 incarnation 4\n"
               "0 > WELCOME event 2 acts 3 clock 10 LOG REPLAY\n"
               "0 > TAKEN event 1 clock 10\n"
               "0 > MESSAGE req 1 tag 5 total 3 FIRST LAST event 1 'ask'\n"
               "0 > READINGS 'noon'\n"
               "0 > SEND to 1 tag 6 total 6\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 4 acts 3 event 1 'connected'\n"
               "0 < LIVE event 1 clock 12\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 4 acts 3 event 1 'repeated 1 events'\n"
               "0 > MESSAGE req 2 tag 5 total 9 FIRST LAST event 2 'meanwhile'\n"
               "0 < TAKEN event 2 clock 13\n"
               "0 < SEND to 1 tag 7 total 7 clock 13 'further'\n");
    fixture_close(r0, "crash of a live one");
    fixture_again(r0);
    say_live(r0, 2, 13);
    expect(&f, "0 ends: crash of a live one\n"
               "d > NOTICE RANK_LOST rank 0 incarnation 4 acts 4 event 2 'crash of a live one'\n"
               "0 < HELLO rank 0 incarnation 5\n"
               "0 > WELCOME event 2 acts 4 clock 13 LOG REPLAY\n"
               "0 > TAKEN event 1 clock 10\n"
               "0 > MESSAGE req 1 tag 5 total 3 FIRST LAST event 1 'ask'\n"
               "0 > READINGS 'noon'\n"
               "0 > SEND to 1 tag 6 total 6\n"
               "0 > TAKEN event 2 clock 13\n"
               "0 > MESSAGE req 2 tag 5 total 9 FIRST LAST event 2 'meanwhile'\n"
               "0 > SEND to 1 tag 7 total 7\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 5 acts 4 event 2 'connected'\n"
               "0 < LIVE event 2 clock 13\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 5 acts 4 event 2 'repeated 2 events'\n");
}

TEST(during_replay)
{
    every_feed(tell_of_crashes_in_replay);
}

TEST(after_bye)
{
    start(2, FEED_WHOLE);
    live_a_little();
    say_bye(r0);
    say_send(r1, 0, 5, "to nobody");
    fixture_forget(&f);
    fixture_again(r0);
    say_live(r0, 1, 12);
    say_bye(r0);
    expect(&f, "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 2 acts 3 clock 10 LOG REPLAY\n"
               "0 > TAKEN event 1 clock 10\n"
               "0 > MESSAGE req 1 tag 5 total 3 FIRST LAST event 1 'ask'\n"
               "0 > READINGS 'noon'\n"
               "0 > SEND to 1 tag 6 total 6\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 3 event 1 'connected'\n"
               "0 < LIVE event 1 clock 12\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 3 event 1 'repeated 1 events'\n"
               "0 > MESSAGE req 2 tag 5 total 9 FIRST LAST event 2 'to nobody'\n"
               "0 < BYE\n"
               "0 > FAREWELL\n"
               "0 is closed\n"
               "d > NOTICE RANK_BYE rank 0 incarnation 2 acts 3 event 1 'done'\n");
}

/* It is not dead, only slow: the newer one takes over at once, and what it still says is lost. */
TEST(while_it_lives)
{
    struct client *const x = &f.other[0];

    start(2, FEED_WHOLE);
    live_a_little();
    f.lazy = true;
    fixture_forget(&f);
    fixture_connect(&f, x, "x");
    fixture_hello_rank(x, 0, 2);
    say_send(r0, 1, 7, "ghost");
    say_taken(r0, 1, 99);
    say_live(x, 1, 12);
    say_send(r1, 0, 5, "to the living");
    fixture_close(r0, "gone");
    expect(&f, "x < HELLO rank 0 incarnation 2\n"
               "0 > REFUSED FENCED rank 0 'rank 0: incarnation 2 takes its place'\n"
               "x > WELCOME event 1 acts 3 clock 10 LOG REPLAY\n"
               "x > TAKEN event 1 clock 10\n"
               "x > MESSAGE req 1 tag 5 total 3 FIRST LAST event 1 'ask'\n"
               "x > READINGS 'noon'\n"
               "x > SEND to 1 tag 6 total 6\n"
               "x > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 3 event 1 'connected'\n"
               "0 < SEND to 1 tag 7 total 5 clock 10 'ghost'\n"
               "0 < TAKEN event 1 clock 99\n"
               "x < LIVE event 1 clock 12\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 3 event 1 'repeated 1 events'\n"
               "1 < SEND to 0 tag 5 total 13 'to the living'\n"
               "x > MESSAGE req 2 tag 5 total 13 FIRST LAST event 2 'to the living'\n"
               "0 ends: gone\n");
}

/* Both ends of an exchange crash; each comes back without the other's help. */
TEST(both_ranks)
{
    start(2, FEED_WHOLE);
    live_a_little();
    say_recv(r1, 1, 6);
    say_taken(r1, 1, 3);
    say_send(r1, 0, 5, "more");
    fixture_close(r0, "crash");
    fixture_close(r1, "crash");
    fixture_forget(&f);
    fixture_again(r1);
    say_live(r1, 1, 3);
    fixture_again(r0);
    say_live(r0, 1, 12);
    expect(&f, "1 < HELLO rank 1 incarnation 2\n"
               "1 > WELCOME event 1 acts 3 clock 3 LOG REPLAY\n"
               "1 > SEND to 0 tag 5 total 3\n"
               "1 > TAKEN event 1 clock 3\n"
               "1 > MESSAGE req 1 tag 6 total 6 FIRST LAST event 1 'answer'\n"
               "1 > SEND to 0 tag 5 total 4\n"
               "1 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 1 incarnation 2 acts 3 event 1 'connected'\n"
               "1 < LIVE event 1 clock 3\n"
               "d > NOTICE RANK_LIVE rank 1 incarnation 2 acts 3 event 1 'repeated 1 events'\n"
               "0 < HELLO rank 0 incarnation 2\n"
               "0 > WELCOME event 2 acts 3 clock 10 LOG REPLAY\n"
               "0 > TAKEN event 1 clock 10\n"
               "0 > MESSAGE req 1 tag 5 total 3 FIRST LAST event 1 'ask'\n"
               "0 > READINGS 'noon'\n"
               "0 > SEND to 1 tag 6 total 6\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 3 event 1 'connected'\n"
               "0 < LIVE event 1 clock 12\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 3 event 1 'repeated 1 events'\n"
               "0 > MESSAGE req 2 tag 5 total 4 FIRST LAST event 2 'more'\n");
}

TEST(the_job_ends_while_it_is_down)
{
    start(2, FEED_WHOLE);
    live_a_little();
    fixture_close(r0, "crash");
    fixture_forget(&f);
    fixture_close(&f.dispatcher, "gone");
    fixture_again(r0);
    expect(&f, "d ends: gone\n"
               "1 is closed\n"
               "0 < HELLO rank 0 incarnation 2\n"
               "0 > REFUSED JOB 'the relay has no such job (it may have ended)'\n"
               "0 is closed\n");
}

/* --- what the dispatcher hears ---------------------------------------------------------------- */
TEST(statistics)
{
    start(2, FEED_WHOLE);
    live_a_little();
    say_send(r1, 0, 5, "more");
    fixture_close(r0, "crash");
    fixture_again(r0);
    fixture_forget(&f);
    say_frame(&f.dispatcher, CW_FRAME_STATS_ASK, NULL, 0);
    say_live(r0, 1, 12);
    say_taken(r0, 2, 13);
    say_frame(&f.dispatcher, CW_FRAME_STATS_ASK, NULL, 0);
    expect(&f, "d < STATS_ASK\n"
               "d > STATS rank 0 sent 1 (6 bytes) received 2 (7 bytes) unexpected 0 polls 0 events "
               "2 taken 1 replayed 1 acts 3 incarnation 2\n"
               "d > STATS rank 1 sent 2 (7 bytes) received 0 (0 bytes) unexpected 1 polls 0 events "
               "0 taken 0 replayed 0 acts 2 incarnation 1\n"
               "0 < LIVE event 1 clock 12\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 3 event 1 'repeated 1 events'\n"
               "0 > MESSAGE req 2 tag 5 total 4 FIRST LAST event 2 'more'\n"
               "0 < TAKEN event 2 clock 13\n"
               "d < STATS_ASK\n"
               "d > STATS rank 0 sent 1 (6 bytes) received 2 (7 bytes) unexpected 0 polls 0 events "
               "2 taken 2 replayed 2 acts 3 incarnation 2\n"
               "d > STATS rank 1 sent 2 (7 bytes) received 0 (0 bytes) unexpected 1 polls 0 events "
               "0 taken 0 replayed 0 acts 2 incarnation 1\n");
}
