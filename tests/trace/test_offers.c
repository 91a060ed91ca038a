/* Messages for ranks that are their own mailboxes, of which these get the envelope alone: large
 * ones, and those for which a rank has said no room. It asks for each when it has its receive, and
 * its successors have all of that again in the same order. */
#include "relay/core/bounds.h"
#include "tests/trace/killed.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE_AFTER_EACH("trace of offers", fixture_end);

#define LARGE RELAY_OFFER_MIN /* bytes of a message */
#define HALF (LARGE / 2)

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static struct client *const r2 = &f.rank[2];
static const struct cw_point beginning = {.event = 0};

static void start(bool log)
{
    if (log)
        fixture_init_left(&f, FIXTURE_MEMORY, 0);
    else
        fixture_init(&f, FIXTURE_MEMORY);
    f.resume_ms = 5000;
    f.channel = true;
    fixture_start(&f, 3);
}

/* --- which ones ----------------------------------------------------------------------------------
 */

TEST(large_ones)
{
    start(false);
    say_room(r1, 10 * LARGE);
    say_begin(r0, CW_SEND_TAG, 1, 5, LARGE - 1, LARGE - 1);
    expect_has(&f, "1 > ARRIVAL from 0 tag 5 total 65535 FIRST LAST event 1 (65535 bytes)\n");
    say_begin(r0, CW_SEND_TAG, 1, 6, LARGE, LARGE);
    expect_has(&f, "1 > ARRIVAL from 0 tag 6 total 65536 OFFERED 0 FIRST LAST event 2\n");
    say_begin(r0, CW_SEND_AM, 1, 7, LARGE, LARGE);
    expect_has(&f,
               "1 > ARRIVAL from 0 tag 7 total 65536 FIRST LAST ACTIVE event 3 (65536 bytes)\n");
}

TEST(those_without_room)
{
    start(false);
    say_send(r0, 1, 4, "none yet");
    expect_has(&f, "1 > ARRIVAL from 0 tag 4 total 8 OFFERED 0 FIRST LAST event 1\n");
    say_room(r1, cw_room_taken(3) + cw_room_taken(0));
    say_send(r0, 1, 5, "one");
    expect_has(&f, "1 > ARRIVAL from 0 tag 5 total 3 FIRST LAST event 2 'one'\n");
    say_send(r0, 1, 6, "x");
    expect_has(&f, "1 > ARRIVAL from 0 tag 6 total 1 OFFERED 1 FIRST LAST event 3\n");
    say_send_kind(r0, CW_SEND_AM, 1, 0, 7, "active");
    expect_has(&f, "1 > ARRIVAL from 0 tag 7 total 6 FIRST LAST ACTIVE event 4 'active'\n");
    say_send_kind(r0, CW_SEND_SYNC, 1, 9, 8, "");
    expect_has(&f, "1 > ARRIVAL from 0 tag 8 total 0 SYNC 9 FIRST LAST event 5\n");
    say_send_kind(r0, CW_SEND_SYNC, 1, 10, 9, "");
    expect_has(&f, "1 > ARRIVAL from 0 tag 9 total 0 OFFERED 2 FIRST LAST event 6\n");
    say_mrecv(r1, 70, 2, 0);
    expect_has(&f, "1 > MESSAGE req 70 tag 9 total 0 FIRST LAST event 7\n"
                   "0 > SENT req 10 event 1\n");
    say_room(r1, 3 * cw_room_taken(3));
    say_send(r0, 1, 10, "two");
    expect_has(&f, "1 > ARRIVAL from 0 tag 10 total 3 FIRST LAST event 8 'two'\n");
}

/* What is asked for goes out as it comes, beside others'; the numbers are used again. */
TEST(in_parts)
{
    start(false);
    say_begin(r0, CW_SEND_SYNC, 1, 5, LARGE, HALF);
    expect_has(&f, "1 > ARRIVAL from 0 tag 5 total 65536 OFFERED 0 FIRST LAST event 1\n");
    say_begin(r2, CW_SEND_TAG, 1, 6, LARGE, HALF);
    expect_has(&f, "1 > ARRIVAL from 2 tag 6 total 65536 OFFERED 1 FIRST LAST event 2\n");
    say_mrecv(r1, 70, 0, LARGE);
    expect_has(&f, "1 > MESSAGE req 70 tag 5 total 65536 FIRST (32768 bytes)\n"
                   "0 > SENT req 0 event 1\n");
    say_more(r2, 6, HALF, HALF);
    say_mrecv(r1, 71, 1, 100);
    expect_has(&f, "1 > MESSAGE req 71 tag 6 total 65536 FIRST LAST TRUNC event 3 (100 bytes)\n");
    say_more(r0, 5, HALF, HALF);
    expect_has(&f, "1 > MESSAGE req 70 LAST event 4 (32768 bytes)\n");
    say_begin(r0, CW_SEND_TAG, 1, 7, LARGE, LARGE);
    expect_has(&f, "1 > ARRIVAL from 0 tag 7 total 65536 OFFERED 0 FIRST LAST event 5\n");
}

/* --- those before and after ----------------------------------------------------------------------
 */

static const char *const offered_and_asked =
    "1 > ARRIVAL from 0 tag 5 total 65536 OFFERED 0 FIRST LAST event 1\n"
    "1 > ARRIVAL from 2 tag 6 total 3 OFFERED 1 FIRST LAST event 2\n"
    "1 > ARRIVAL from 2 tag 7 total 65536 OFFERED 2 FIRST LAST event 3\n"
    "1 > MESSAGE req 71 tag 6 total 3 FIRST LAST event 4 'two'\n"
    "1 > MESSAGE req 72 tag 7 total 65536 FIRST (32768 bytes)\n";

/* One that waits, one that was asked for and came whole, one that was and did not. */
static void offer_and_ask(void)
{
    say_begin(r0, CW_SEND_SYNC, 1, 5, LARGE, LARGE);
    say_send(r2, 1, 6, "two");
    say_begin(r2, CW_SEND_TAG, 1, 7, LARGE, HALF);
    say_mrecv(r1, 71, 1, 10);
    say_mrecv(r1, 72, 2, LARGE);
}

/* It makes the acts that were not made, while it repeats; its room stands. */
TEST(to_the_next_incarnation)
{
    for (int killed = 0; killed < 2; killed++) {
        start(true);
        offer_and_ask();
        say_room(r1, cw_room_taken(1));
        if (killed)
            fixture_kill_whole(&f, 3);
        fixture_crash_from(r1, &beginning);
        expect_has(&f, "1 > WELCOME event 4 acts 3 LOG REPLAY\n");
        fixture_crash_from(r1, &beginning);
        expect_has(&f, offered_and_asked);
        say_mrecv(r1, 70, 0, LARGE);
        expect_has(&f, "1 > MESSAGE req 70 tag 5 total 65536 FIRST LAST event 5 (65536 bytes)\n"
                       "0 > SENT req 0 event 1\n");
        say_more(r2, 7, HALF, HALF);
        expect_has(&f, "1 > MESSAGE req 72 LAST event 6 (32768 bytes)\n");
        say_live(r1, 7, 20);
        say_send(r0, 1, 8, "x");
        expect_has(&f, "1 > ARRIVAL from 0 tag 8 total 1 FIRST LAST event 7 'x'\n");
        say_send(r0, 1, 9, "y");
        expect_has(&f, "1 > ARRIVAL from 0 tag 9 total 1 OFFERED 0 FIRST LAST event 8\n");
        if (killed)
            fixture_kill_whole(&f, 3);
        say_mrecv(r1, 73, 0, 5);
        expect_has(&f, "1 > MESSAGE req 73 tag 9 total 1 FIRST LAST event 9 'y'\n");
        fixture_fini(&f);
    }
}

/* What waits, and what is coming, stand in the snapshot. */
TEST(from_a_point)
{
    static const struct cw_point point = {.event = 3, .clock = 15, .acts = 2};

    for (int killed = 0; killed < 3; killed++) {
        start(true);
        offer_and_ask();
        say_taken(r1, 3, 15);
        say_point(r1, &point);
        if (killed == 1)
            fixture_kill_whole(&f, 3);
        say_trim(&f, 1, &point);
        CU_ASSERT_TRUE(f.trimmed.known);
        fixture_crash_from(r1, &point);
        expect_has(&f, "1 > MESSAGE req 71 tag 6 total 3 FIRST LAST event 4 'two'\n"
                       "1 > MESSAGE req 72 tag 7 total 65536 FIRST (32768 bytes)\n");
        say_live(r1, 0, 15);
        if (killed == 2)
            fixture_kill_whole(&f, 3);
        say_more(r2, 7, HALF, HALF);
        say_mrecv(r1, 70, 0, LARGE);
        CU_ASSERT_PTR_NULL(strstr(f.story, "REFUSED"));
        if (killed == 2)
            fixture_kill_whole(&f, 3);
        fixture_crash_from(r1, &point);
        expect_has(&f, "1 > MESSAGE req 71 tag 6 total 3 FIRST LAST event 4 'two'\n"
                       "1 > MESSAGE req 72 tag 7 total 65536 FIRST (32768 bytes)\n"
                       "1 > MESSAGE req 72 LAST event 5 (32768 bytes)\n"
                       "1 > MESSAGE req 70 tag 5 total 65536 FIRST LAST event 6 (65536 bytes)\n");
        fixture_fini(&f);
    }
}

/* Its successor sends the rest, whether it was asked for by then or not. */
TEST(sender_crashes_amid_it)
{
    for (int asked = 0; asked < 2; asked++) {
        start(true);
        say_begin(r0, CW_SEND_TAG, 1, 5, LARGE, HALF);
        if (asked)
            say_mrecv(r1, 70, 0, LARGE);
        fixture_crash_from(r0, &beginning);
        expect_has(&f, "acts 1 missing 32768 LOG REPLAY\n");
        say_more(r0, 5, HALF, HALF);
        if (!asked)
            say_mrecv(r1, 70, 0, LARGE);
        expect_has(&f, "LAST event 2 (");
        CU_ASSERT_PTR_NULL(strstr(f.story, "REFUSED"));
        fixture_forget(&f);
        fixture_fini(&f);
    }
}

/* Nobody needs them any more. */
TEST(their_rank_ends)
{
    for (int log = 0; log < 2; log++) {
        start(log);
        say_begin(r0, CW_SEND_TAG, 1, 5, LARGE, LARGE);
        say_begin(r2, CW_SEND_TAG, 1, 6, LARGE, HALF);
        say_bye(r1);
        expect_has(&f, "1 > FAREWELL\n");
        say_more(r2, 6, HALF, HALF);
        fixture_forget(&f);
        fixture_fini(&f);
    }
}

/* --- what cannot be ------------------------------------------------------------------------------
 */

TEST(refused)
{
    start(false);
    say_mrecv(r1, 70, 0, 10);
    expect_has(&f, "1 > REFUSED PROTOCOL rank 1 'MRECV of a message that was not offered'\n");
    say_room(r0, 100);
    say_room(r0, 99);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'ROOM frame that does not add up'\n");
    say_begin(r0, CW_SEND_TAG, 2, 5, LARGE, LARGE);
    fixture_forget(&f);
    fixture_fini(&f);
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_start(&f, 2);
    say_room(r0, 100);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'ROOM frame is not allowed here'\n");
}
