/* Ranks that are their own mailboxes: each gets all messages as they come, in order, and tells what
 * it matched. Those before it have the same messages again, in the same order. */
#include "tests/trace/killed.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE_AFTER_EACH("trace of arrivals", fixture_end);

#define RESUME_MS 5000

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static struct client *const r2 = &f.rank[2];

static void start(void)
{
    fixture_init_left(&f, FIXTURE_MEMORY, 0);
    f.resume_ms = RESUME_MS;
    f.channel = true;
    fixture_start(&f, 3);
    for (int rank = 0; rank < 3; rank++)
        say_room(&f.rank[rank], 1u << 20);
    fixture_forget(&f);
}

static void kill_it(void)
{
    fixture_kill_whole(&f, 3);
    fixture_forget(&f);
}

static const struct cw_point beginning = {.event = 0};

static void say_matched(struct client *c, uint32_t rank, uint32_t req)
{
    uint8_t body[CW_FORWARD_REF_SIZE];

    cw_forward_ref_put(body, &(struct cw_forward_ref){.rank = rank, .req = req});
    say_frame(c, CW_FRAME_MATCHED, body, sizeof(body));
}

static const char *const all_kinds =
    "1 > ARRIVAL from 0 tag 5 total 3 FIRST LAST event 1 'one'\n"
    "1 > ARRIVAL from 2 tag 6 total 3 SYNC 9 FIRST LAST event 2 'two'\n"
    "1 > ARRIVAL from 0 tag 7 total 0 FIRST LAST ACTIVE event 3\n"
    "1 > ARRIVAL from 0 tag 8 total 0 SYNC 3 FIRST LAST event 4\n";

static void send_all_kinds(void)
{
    say_send(r0, 1, 5, "one");
    say_send_kind(r2, CW_SEND_SYNC, 1, 9, 6, "two");
    say_send_kind(r0, CW_SEND_AM, 1, 0, 7, "");
    say_send_kind(r0, CW_SEND_SYNC, 1, 3, 8, "");
}

TEST(as_they_come)
{
    start();
    send_all_kinds();
    expect(&f, "0 < SEND to 1 tag 5 total 3 'one'\n"
               "1 > ARRIVAL from 0 tag 5 total 3 FIRST LAST event 1 'one'\n"
               "2 < SEND to 1 SYNC req 9 tag 6 total 3 'two'\n"
               "1 > ARRIVAL from 2 tag 6 total 3 SYNC 9 FIRST LAST event 2 'two'\n"
               "0 < SEND to 1 AM tag 7 total 0\n"
               "1 > ARRIVAL from 0 tag 7 total 0 FIRST LAST ACTIVE event 3\n"
               "0 < SEND to 1 SYNC req 3 tag 8 total 0\n"
               "1 > ARRIVAL from 0 tag 8 total 0 SYNC 3 FIRST LAST event 4\n");
    say_matched(r1, 2, 9);
    expect(&f, "1 < MATCHED of 2 req 9\n"
               "2 > SENT req 9 event 1\n");
}

/* They come again, whatever became of the relay, before the rank is live; it makes the acts that
 * the relay has not had. */
TEST(to_the_next_incarnation)
{
    for (int killed = 0; killed < 2; killed++) {
        start();
        send_all_kinds();
        say_matched(r1, 0, 3);
        say_send(r1, 0, 1, "x");
        if (killed)
            kill_it();
        fixture_crash_from(r1, &beginning);
        expect_has(&f, "1 > WELCOME event 4 acts 3 LOG REPLAY\n");
        fixture_crash_from(r1, &beginning);
        expect_has(&f, all_kinds);
        say_matched(r1, 2, 9);
        expect_has(&f, "2 > SENT req 9 event 1\n");
        say_send(r1, 0, 1, "y");
        expect_has(&f, "0 > ARRIVAL from 1 tag 1 total 1 FIRST LAST event 3 'y'\n");
        say_live(r1, 7, 20);
        expect_has(&f, "RANK_LIVE rank 1 incarnation 3 acts 1 event 7 'repeated 7 events'");
        say_send(r0, 1, 5, "more");
        expect_has(&f, "1 > ARRIVAL from 0 tag 5 total 4 FIRST LAST event 5 'more'\n");
        fixture_fini(&f);
    }
}

/* What comes in parts is told in parts, beside others'. */
TEST(large_ones)
{
    for (int killed = 0; killed < 2; killed++) {
        start();
        say_begin(r0, CW_SEND_SYNC, 1, 5, 60000, 20000);
        say_begin(r2, CW_SEND_TAG, 1, 6, 60000, 30000);
        fixture_forget(&f);
        if (killed)
            kill_it();
        say_more(r2, 6, 30000, 30000);
        expect_has(&f, "1 > ARRIVAL from 2 LAST event 1 (30000 bytes)\n");
        say_more(r0, 5, 20000, 40000);
        expect_has(&f, "LAST event 2 (40000 bytes)\n");
        fixture_crash_from(r1, &beginning);
        expect_has(&f, "1 > ARRIVAL from 2 tag 6 total 60000 FIRST");
        fixture_fini(&f);
    }
}

/* The request of a synchronous send is told with each frame, also from a snapshot. */
TEST(from_a_point)
{
    static const struct cw_point point = {.event = 1, .clock = 15, .acts = 2};

    for (int killed = 0; killed < 2; killed++) {
        start();
        send_all_kinds();
        say_begin(r0, CW_SEND_SYNC, 1, 9, 60000, 20000);
        say_send(r1, 0, 1, "x");
        say_taken(r1, 1, 15);
        say_point(r1, &point);
        if (killed)
            kill_it();
        say_trim(&f, 1, &point);
        CU_ASSERT_TRUE(f.trimmed.known);
        fixture_crash_from(r1, &point);
        expect_has(&f, "1 > ARRIVAL from 2 tag 6 total 3 SYNC 9 FIRST LAST event 2 'two'\n"
                       "1 > ARRIVAL from 0 tag 7 total 0 FIRST LAST ACTIVE event 3\n"
                       "1 > ARRIVAL from 0 tag 8 total 0 SYNC 3 FIRST LAST event 4\n"
                       "1 > ARRIVAL from 0 tag 9 total 60000 SYNC 0 FIRST (20000 bytes)\n");
        say_live(r1, 0, 15);
        say_taken(r1, 1, 16); /* before it says POINT: no news */
        CU_ASSERT_PTR_NULL(strstr(f.story, "REFUSED"));
        if (killed)
            kill_it();
        else
            say_more(r0, 9, 20000, 40000);
        fixture_forget(&f);
        fixture_fini(&f);
    }
}

/* What a rank told of, when it said what it had taken, its successor comes to before it is live. */
TEST(live_before_what_was_taken)
{
    for (uint64_t live = 14; live <= 15; live++) {
        start();
        send_all_kinds();
        say_taken(r1, 1, 15);
        fixture_crash_from(r1, &beginning);
        say_live(r1, 0, live);
        CU_ASSERT_EQUAL(strstr(f.story, "LIVE before all was repeated") != NULL, live == 14);
        fixture_forget(&f);
        fixture_fini(&f);
    }
}

/* Before the rank is there, and has said what it has room for. */
TEST(early_ones)
{
    for (int log = 0; log < 2; log++) {
        fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
        f.log = log;
        f.channel = true;
        fixture_connect(&f, &f.dispatcher, "d");
        fixture_hello_dispatcher(&f.dispatcher, 3);
        fixture_connect(&f, r0, "0");
        fixture_hello_rank(r0, 0, 1);
        fixture_connect(&f, r2, "2");
        fixture_hello_rank(r2, 2, 1);
        send_all_kinds();
        fixture_forget(&f);
        fixture_connect(&f, r1, "1");
        fixture_hello_rank(r1, 1, 1);
        expect_has(&f, "1 > ARRIVAL from 0 tag 5 total 3 OFFERED 0 FIRST LAST event 1\n"
                       "1 > ARRIVAL from 2 tag 6 total 3 OFFERED 1 FIRST LAST event 2\n"
                       "1 > ARRIVAL from 0 tag 7 total 0 FIRST LAST ACTIVE event 3\n"
                       "1 > ARRIVAL from 0 tag 8 total 0 OFFERED 2 FIRST LAST event 4\n");
        say_mrecv(r1, 70, 1, 10);
        expect_has(&f, "1 > MESSAGE req 70 tag 6 total 3 FIRST LAST event 5 'two'\n"
                       "2 > SENT req 9 event 1\n");
        fixture_fini(&f);
    }
}

TEST(rank_of_another_kind)
{
    start();
    f.channel = false;
    fixture_crash_from(r1, &beginning);
    expect_has(&f, "1 > REFUSED PROTOCOL 'rank 1 has no channel memory");
    fixture_fini(&f);
    start();
    say_matched(r1, 3, 1);
    expect_has(&f, "1 > REFUSED PROTOCOL rank 1 'MATCHED frame that does not add up'\n");
}

/* Of ranks that it matches for, the relay hears it from nobody. */
TEST(matched_by_the_relay)
{
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_start(&f, 3);
    say_matched(r1, 0, 1);
    expect_has(&f, "1 > REFUSED PROTOCOL rank 1 'MATCHED frame is not allowed here'\n");
}
