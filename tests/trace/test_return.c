/* A relay that is killed and comes back: what the clients see in the end is what they would have
 * seen without. */
#include "tests/trace/killed.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of relays that return", fixture_end);

#define RESUME_MS 5000
#define TOTAL 60000u
#define PART 20000u

static struct fixture f;
static struct client *const d = &f.dispatcher;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];

static void start(void)
{
    fixture_init_left(&f, FIXTURE_MEMORY, 0);
    f.resume_ms = RESUME_MS;
    fixture_start(&f, 2);
}

/* Nothing of the job is lost. */
static void check_returned(struct relay_returned returned)
{
    CU_ASSERT_EQUAL(returned.jobs, 1);
    CU_ASSERT_EQUAL(returned.sessions, 3);
    CU_ASSERT_EQUAL(returned.lost, 0);
    CU_ASSERT_STRING_EQUAL(returned.why, "");
}

/* The relay is killed between two steps, and all come back. */
static void kill_it(void)
{
    check_returned(fixture_kill(&f));
    fixture_forget(&f);
    fixture_all_come_back(&f, 2);
    fixture_forget(&f);
}

/* --- sessions -----------------------------------------------------------------------------------
 */
TEST(rank_is_told_where_its_stream_begins)
{
    uint32_t said;

    start();
    say_recv(r0, 7, 5);
    say_send(r1, 0, 5, "abc");
    said = r0->codec.session.in_seq;
    check_returned(fixture_kill(&f));
    fixture_forget(&f);
    fixture_come_back(r0);
    CU_ASSERT_EQUAL(r0->welcome.flags, CW_WELCOME_RESUMED | CW_WELCOME_RETURNED);
    CU_ASSERT_EQUAL(r0->welcome.acts, said);
    CU_ASSERT_EQUAL(r0->welcome.event + CW_FRAME_HEADER + CW_PROBED_SIZE, r0->received);
    CU_ASSERT_EQUAL(r0->welcome.received, r0->log.end);
    CU_ASSERT_PTR_NULL(strstr(f.story, "MESSAGE"));
}

/* The next relay is killed as well, and so on. */
TEST(killed_again_and_again)
{
    start();
    for (uint32_t i = 1; i < 20; i++) {
        say_recv(r0, i, 5);
        if (i % 2)
            kill_it();
        say_send(r1, 0, 5, "abc");
        CU_ASSERT_EQUAL(r0->event, i);
        CU_ASSERT_EQUAL(r0->inbox.complete, i);
        kill_it();
        if (i % 3 == 0)
            check_returned(fixture_kill(&f));
        if (i % 3 == 0)
            fixture_all_come_back(&f, 2);
    }
}

TEST(nobody_comes_back)
{
    start();
    check_returned(fixture_kill(&f));
    fixture_tick(&f, 1);
    fixture_come_back(d);
    fixture_forget(&f);
    fixture_tick(&f, 1 + RESUME_MS * 1000000ull);
    expect_has(&f, "d > NOTICE RANK_LOST rank 1 'its relay was killed; it was not resumed for 5000 "
                   "ms'\n");
}

TEST(dispatcher_does_not_come_back)
{
    start();
    check_returned(fixture_kill(&f));
    fixture_come_back(r0);
    fixture_tick(&f, 1);
    fixture_forget(&f);
    fixture_tick(&f, 1 + RESUME_MS * 1000000ull);
    expect(&f, "0 is closed\n");
}

/* --- events -------------------------------------------------------------------------------------
 */
/* Those after hello.event, and no others. */
TEST(events_come_again)
{
    start();
    for (uint32_t i = 0; i < 4; i++)
        say_recv(r0, i, 5);
    say_send(r1, 0, 5, "one");
    say_send(r1, 0, 5, "two");
    r0->stalled = true; /* the third is lost */
    say_send(r1, 0, 5, "three");
    check_returned(fixture_kill(&f));
    r0->stalled = false;
    fixture_forget(&f);
    fixture_come_back(r0);
    CU_ASSERT_PTR_NULL(strstr(f.story, "'two'"));
    expect_has(&f, "0 > MESSAGE req 2 tag 5 total 5 FIRST LAST event 3 'three'\n");
    fixture_come_back(d);
    fixture_come_back(r1);
    fixture_forget(&f);
    say_send(r1, 0, 5, "four");
    expect_has(&f, "0 > MESSAGE req 3 tag 5 total 4 FIRST LAST event 4 'four'\n");
}

/* What it has said of them before (TAKEN) is where the log begins to be read. */
static void event_that_is_not_possible(bool before)
{
    start();
    say_recv(r0, 1, 5);
    say_recv(r0, 2, 5);
    say_send(r1, 0, 5, "one");
    say_send(r1, 0, 5, "two");
    say_taken(r0, 2, 1);
    check_returned(fixture_kill(&f));
    fixture_come_back(d);
    fixture_forget(&f);
    r0->hello.event = before ? 1 : 3;
    fixture_resume(r0, r0->received);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "0 > REFUSED PROTOCOL 'it has received what was not"));
    expect_has(&f, "d > NOTICE RANK_LOST rank 0");
    fixture_fini(&f);
}

TEST(events_that_are_not_possible)
{
    event_that_is_not_possible(false);
    event_that_is_not_possible(true);
}

TEST(synchronous_send_and_cancel_are_events)
{
    start();
    r0->stalled = true;
    say_send_kind(r0, CW_SEND_SYNC, 1, 9, 5, "abc");
    say_recv(r1, 7, 5);
    say_recv(r0, 8, 6);
    say_cancel(r0, 8, 6, CODEC_ALL);
    check_returned(fixture_kill(&f));
    r0->stalled = false;
    fixture_forget(&f);
    fixture_come_back(r0);
    expect_has(&f, "0 > SENT req 9 event 1\n"
                   "0 > CANCELED req 8 event 2\n");
}

/* --- what waits ---------------------------------------------------------------------------------
 */
TEST(posted_receives_match)
{
    start();
    say_recv_mask(r0, 1, 4, ~1ull, 2);
    say_recv(r0, 2, 5);
    say_recv(r0, 3, 5);
    say_cancel(r0, 2, 5, CODEC_ALL);
    kill_it();
    say_send(r1, 0, 5, "abc");
    say_send(r1, 0, 5, "def");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(f.story, "0 > MESSAGE req 1 tag 5 total 3 FIRST LAST TRUNC event 2 'ab'\n"));
    expect_has(&f, "0 > MESSAGE req 3 tag 5 total 3 FIRST LAST event 3 'def'\n");
}

TEST(unexpected_messages_wait)
{
    start();
    say_send(r1, 0, 5, "abc");
    say_send_kind(r1, CW_SEND_SYNC, 0, 9, 6, "def");
    say_begin(r1, CW_SEND_TAG, 0, 8, TOTAL, TOTAL);
    say_send(r1, 0, 5, "");
    kill_it();
    say_recv(r0, 1, 6);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "1 > SENT req 9 event 1\n"));
    expect_has(&f, "0 > MESSAGE req 1 tag 6 total 3 FIRST LAST event 1 'def'\n");
    kill_it();
    say_recv(r0, 2, 5);
    say_recv(r0, 3, 5);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(f.story, "0 > MESSAGE req 2 tag 5 total 3 FIRST LAST event 2 'abc'\n"));
    expect_has(&f, "0 > MESSAGE req 3 tag 5 total 0 FIRST LAST event 3");
    say_recv(r0, 4, 8);
    CU_ASSERT_TRUE(fixture_received(r0, 4, 8, TOTAL));
}

TEST(messages_that_probes_took_out)
{
    start();
    say_send(r1, 0, 5, "abc");
    say_send(r1, 0, 6, "def");
    say_send(r1, 0, 7, "ghi");
    say_probe(r0, 6, CODEC_ALL, true);
    say_probe(r0, 5, CODEC_ALL, true);
    say_mrecv(r0, 1, 0, CODEC_ALL);
    kill_it();
    say_recv(r0, 2, 5); /* it cannot be received this way */
    CU_ASSERT_PTR_NULL(strstr(f.story, "'abc'"));
    say_mrecv(r0, 3, 1, 2);
    expect_has(&f, "0 > MESSAGE req 3 tag 5 total 3 FIRST LAST TRUNC event 2 'ab'\n");
    say_probe(r0, 7, CODEC_ALL, true);
    expect_has(&f, "0 > PROBED tag 7 total 3 msg 0");
}

/* The rank may not have heard it, and says so; hints, and answers of nothing, are asked again. */
TEST(last_answer_comes_again)
{
    start();
    say_send(r1, 0, 5, "abc");
    r0->codec.clock = 40;
    say_probe(r0, 5, CODEC_ALL, true);
    say_probe(r0, 6, CODEC_ALL, true);
    check_returned(fixture_kill(&f));
    fixture_forget(&f);
    fixture_come_back(r0);
    expect_has(&f, "0 > PROBED tag 5 total 3 msg 0");
    say_mrecv(r0, 1, 0, CODEC_ALL);
    expect_has(&f, "0 > MESSAGE req 1 tag 5 total 3 FIRST LAST event 1 'abc'\n");
    fixture_come_back(d);
    fixture_come_back(r1);
    fixture_forget(&f);
    say_send(r1, 0, 9, "abc");
    expect_has(&f, "0 > HINT\n");
}

TEST(active_messages_are_counted)
{
    start();
    say_send_kind(r1, CW_SEND_AM, 0, 0, 5, "abc");
    say_begin(r1, CW_SEND_AM, 0, 6, TOTAL, PART);
    kill_it();
    say_more(r1, 6, PART, TOTAL - PART);
    say_send_kind(r1, CW_SEND_AM, 0, 0, 7, "def");
    expect_has(&f, "0 > MESSAGE req 2 tag 7 total 3 FIRST LAST ACTIVE event 3 'def'\n");
    CU_ASSERT_EQUAL(r0->inbox.complete, 3);
}

/* --- messages on their way ----------------------------------------------------------------------
 */
/* Of its payload `size` bytes have come, in the middle of a frame, when the relay is killed. */
static void message_goes_on(bool posted, uint64_t capacity, size_t size)
{
    start();
    f.mute = true;
    if (posted)
        say_recv_mask(r0, 7, 5, CODEC_ALL, capacity);
    cw_send_put(codec_begin(&r1->codec, CW_FRAME_SEND, CW_SEND_SIZE + TOTAL),
                &(struct cw_send){.kind = CW_SEND_TAG, .dst = 0, .tag = 5, .total = TOTAL});
    codec_pattern(r1->codec.out.at + r1->codec.out.end - TOTAL, 5, 0, TOTAL);
    fixture_feed_some(r1, size);
    kill_it();
    fixture_feed_some(r1, codec_left(&r1->codec.out));
    if (!posted)
        say_recv_mask(r0, 7, 5, CODEC_ALL, capacity);
    CU_ASSERT_TRUE(fixture_received(r0, 7, 5, TOTAL < capacity ? TOTAL : capacity));
    say_send(r1, 0, 6, "abc"); /* nothing is missing of the one before */
    say_recv(r0, 8, 6);
    CU_ASSERT_EQUAL(r0->inbox.complete, 2);
    fixture_fini(&f);
}

TEST(messages_go_on)
{
    static const size_t sizes[] = {1, 20, 56, 57, 58, 1000, PART, 2 * PART, TOTAL, TOTAL + 55};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        for (int posted = 0; posted < 2; posted++) {
            message_goes_on(posted, CODEC_ALL, sizes[i]);
            message_goes_on(posted, 1000, sizes[i]);
            message_goes_on(posted, 0, sizes[i]);
            message_goes_on(posted, PART + 3, sizes[i]);
        }
}

/* Between frames; the receiver had heard of a part. */
TEST(part_that_was_heard_comes_again)
{
    start();
    say_recv(r0, 7, 5);
    say_begin(r1, CW_SEND_TAG, 0, 5, TOTAL, PART);
    say_more(r1, 5, PART, PART);
    CU_ASSERT_EQUAL(r0->inbox.of[0].size, 2 * PART);
    kill_it();
    CU_ASSERT_EQUAL(r0->inbox.of[0].size, 2 * PART);
    say_more(r1, 5, 2 * PART, PART);
    CU_ASSERT_TRUE(fixture_received(r0, 7, 5, TOTAL));
}

/* The sender's next incarnation sends the rest. */
TEST(sender_is_started_again)
{
    start();
    say_recv(r0, 7, 5);
    say_begin(r1, CW_SEND_TAG, 0, 5, TOTAL, PART);
    check_returned(fixture_kill(&f));
    fixture_come_back(d);
    fixture_come_back(r0);
    fixture_again(r1);
    CU_ASSERT_EQUAL(r1->welcome.missing, TOTAL - PART);
    say_live(r1, 0, 0);
    say_more(r1, 5, PART, TOTAL - PART);
    CU_ASSERT_TRUE(fixture_received(r0, 7, 5, TOTAL));
}
