/* Points: a rank is started again from an image of its process, and is told what came after it; its
 * log begins there. What waited at the point is still there, whoever was killed meanwhile. */
#include "tests/trace/killed.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of points", fixture_end);

#define RESUME_MS 5000
#define LARGE 100000u
#define HALF 40000u

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static struct client *const r2 = &f.rank[2];

static void start(void)
{
    fixture_init_left(&f, FIXTURE_MEMORY, 0);
    f.resume_ms = RESUME_MS;
    f.merged = true;
    fixture_start(&f, 3);
}

enum trimmed { UNKNOWN, DONE, LATER };

static enum trimmed trim_rank(uint32_t rank, const struct cw_point *point)
{
    uint32_t answers = f.trims;

    say_trim(&f, rank, point);
    if (f.trims == answers)
        return LATER;
    CU_ASSERT_EQUAL(f.trims, answers + 1);
    CU_ASSERT_EQUAL(f.trimmed.rank, rank);
    CU_ASSERT_EQUAL(memcmp(&f.trimmed.point, point, sizeof(*point)), 0);
    return f.trimmed.known;
}

static enum trimmed trim(const struct cw_point *point)
{
    return trim_rank(0, point);
}

static void crash(struct client *c)
{
    fixture_close(c, "crash");
    fixture_forget(&f);
}

/* Rank 0 is killed, and started again from a point. */
static void again_from(const struct cw_point *point)
{
    crash(r0);
    fixture_again_from(r0, point);
}

static void kill_relay(void)
{
    struct relay_returned returned = fixture_kill(&f);

    CU_ASSERT_EQUAL(returned.lost, 0);
    CU_ASSERT_STRING_EQUAL(returned.why, "");
    fixture_all_come_back(&f, 3);
    fixture_forget(&f);
}

/* --- what is told -------------------------------------------------------------------------------
 */
static const struct cw_point one = {.event = 1, .clock = 15, .acts = 3};

/* Rank 0 receives "ask", looks at its clock and answers; then an image is taken. */
static void live_until_one(void)
{
    say_recv(r0, 1, 5);
    say_send(r1, 0, 5, "ask");
    say_taken(r0, 1, 10);
    say_readings(r0, "noon");
    say_send(r0, 1, 6, "answer");
    say_recv(r0, 2, 5);
    say_point(r0, &one);
}

static void live_on(void)
{
    say_readings(r0, "five");
    say_send(r1, 0, 5, "again");
    say_taken(r0, 2, 20);
    say_send(r0, 1, 6, "well");
    fixture_forget(&f);
}

static void live_again(const char *repeated)
{
    say_live(r0, 2, 25);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, repeated));
    fixture_forget(&f);
}

static const char *const after_one = "0 > READINGS 'five'\n"
                                     "0 > TAKEN event 2 clock 20\n"
                                     "0 > MESSAGE req 2 tag 5 total 5 FIRST LAST event 2 'again'\n"
                                     "0 > SEND to 1 tag 6 total 4\n"
                                     "0 > REPLAYED\n";

TEST(told_what_came_after)
{
    for (int trimmed = 0; trimmed < 2; trimmed++) {
        start();
        live_until_one();
        live_on();
        if (trimmed)
            CU_ASSERT_EQUAL(trim(&one), DONE);
        for (int i = 0; i < 3; i++) {
            if (i == 2)
                kill_relay();
            again_from(&one);
            CU_ASSERT_EQUAL(r0->welcome.acts, 4);
            expect_has(&f, after_one);
            live_again("'repeated 1 events'");
        }
        say_recv(r0, 3, 5);
        say_send(r1, 0, 5, "on");
        expect_has(&f, "0 > MESSAGE req 3 tag 5 total 2 FIRST LAST event 3 'on'\n");
        fixture_fini(&f);
    }
}

/* An event that the rank had, but had not taken. */
TEST(event_that_was_not_taken)
{
    start();
    live_until_one();
    say_send(r1, 0, 5, "early");
    say_recv(r0, 3, 5);
    say_point(r0, &(struct cw_point){.event = 1, .clock = 18, .acts = 4});
    CU_ASSERT_EQUAL(trim(&(struct cw_point){1, 18, 4}), DONE);
    kill_relay();
    again_from(&(struct cw_point){1, 18, 4});
    fixture_forget(&f);
    say_live(r0, 1, 18);
    expect_has(&f, "0 > MESSAGE req 2 tag 5 total 5 FIRST LAST event 2 'early'\n");
}

TEST(nothing_came_after)
{
    start();
    live_until_one();
    again_from(&one);
    expect(&f, "0 < HELLO rank 0 incarnation 2 event 1 clock 15 acts 3\n"
               "0 > WELCOME event 1 acts 3 clock 10 LOG REPLAY\n"
               "0 > REPLAYED\n"
               "d > NOTICE RANK_UP rank 0 incarnation 2 acts 3 event 1 'connected'\n");
    say_live(r0, 1, 15);
}

/* --- what is refused ----------------------------------------------------------------------------
 */
static void refused_from(const struct cw_point *point, const char *text)
{
    struct client *x = &f.other[0];

    fixture_connect(&f, x, "x");
    x->hello.incarnation = 8;
    fixture_again_from(x, point);
    expect_has(&f, text);
}

TEST(point_that_is_not_known)
{
    static const struct cw_point points[] = {{1, 15, 2}, {1, 14, 3}, {2, 15, 3}, {1, 0, 0}};

    start();
    live_until_one();
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(trim(&points[i]), UNKNOWN);
        refused_from(&points[i], "x > REFUSED LIMIT 'rank 0 cannot go on from event");
    }
    CU_ASSERT_EQUAL(trim_rank(1, &one), UNKNOWN);
    CU_ASSERT_PTR_NOT_NULL(r0->conn);
}

TEST(beginning_that_is_gone)
{
    static const struct cw_point beginning = {0};

    start();
    live_until_one();
    again_from(&beginning);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "'ask'"));
    say_live(r0, 1, 15);
    CU_ASSERT_EQUAL(trim(&one), DONE);
    CU_ASSERT_EQUAL(trim(&one), DONE);
    for (int i = 0; i < 2; i++) {
        refused_from(&beginning, "x > REFUSED LIMIT 'rank 0 cannot be started from its beginning");
        kill_relay();
    }
    CU_ASSERT_EQUAL(trim(&one), DONE);
}

TEST(points_that_do_not_add_up)
{
    static const struct cw_point points[] = {{2, 30, 3}, {0, 30, 3}, {1, 30, 2},
                                             {1, 30, 4}, {1, 9, 3},  {1, 15, 3}};

    for (int i = 0; i < 6; i++) {
        start();
        live_until_one();
        say_point(r0, &points[i]);
        expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'POINT frame that does not add up'\n");
        fixture_fini(&f);
    }
}

/* What such a rank took and did is not here; its points, and how much it keeps, are. */
static void come_with_channel(uint32_t incarnation, const struct cw_point *from)
{
    crash(r0);
    CU_ASSERT_TRUE(fixture_connect(&f, r0, "0"));
    r0->hello = (struct cw_hello){
        .role = CW_ROLE_RANK, .incarnation = incarnation, .poll_clock = from->clock};
    fixture_rank_key(r0, 0, incarnation);
    fixture_hello(r0);
}

static void say_counted(uint64_t bytes)
{
    const struct cw_rank_stats counted = {.sent = 3, .log_bytes = bytes};

    say_frame(r0, CW_FRAME_COUNTED, &counted, sizeof(counted));
}

TEST(log_in_channel_memory)
{
    static const struct cw_point beginning = {0}, point = {.clock = 15};

    fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    f.channel = true;
    fixture_start(&f, 2);
    come_with_channel(2, &beginning);
    say_live(r0, 3, 1);
    expect_has(&f, "repeated 3 events");
    say_counted(9000);
    expect_has(&f, "d > GROWN");
    say_point(r0, &point);
    CU_ASSERT_EQUAL(trim(&point), DONE);
    expect_has(&f, "0 > TRIMMED");
    come_with_channel(3, &point);
    say_live(r0, 7, 20);
    expect_has(&f, "repeated 7 events");
    come_with_channel(4, &beginning);
    expect_has(&f, "its log begins at an image");
    fixture_fini(&f);
}

/* Its predecessor's image becomes safe while it repeats: whether it comes to that point is known
 * once it is live. */
TEST(trim_while_a_rank_repeats_from_channel_memory)
{
    static const struct cw_point beginning = {0}, point = {.clock = 15};

    for (uint64_t live = 14; live <= 15; live++) {
        uint32_t answers;

        fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
        f.channel = true;
        fixture_start(&f, 2);
        come_with_channel(2, &beginning);
        say_live(r0, 0, 1);
        say_point(r0, &point);
        come_with_channel(3, &beginning);
        answers = f.trims;
        say_trim(&f, 0, &point);
        CU_ASSERT_EQUAL(f.trims, answers);
        say_live(r0, 0, live);
        CU_ASSERT_EQUAL(f.trims, answers + 1);
        CU_ASSERT_EQUAL(f.trimmed.known, live == 15);
        fixture_fini(&f);
    }
}

TEST(counted_by_a_rank_whose_messages_come_here)
{
    start();
    say_counted(9000);
    expect_has(&f, "COUNTED of a rank whose messages come here");
    fixture_fini(&f);
}

TEST(rank_without_a_log)
{
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_start(&f, 1);
    say_point(r0, &one);
    expect(&f, "0 < POINT event 1 clock 15 acts 3\n");
    CU_ASSERT_EQUAL(trim(&one), UNKNOWN);
}

/* The rank's next incarnation went on before it came to the point: that image has seen polls which
 * the log does not know of. */
TEST(point_that_was_not_reached)
{
    static const struct cw_point late = {.event = 1, .clock = 50, .acts = 3};

    for (int killed = 0; killed < 2; killed++) {
        start();
        live_until_one();
        say_point(r0, &late);
        again_from(&one);
        say_live(r0, 1, 49);
        if (killed)
            kill_relay();
        CU_ASSERT_EQUAL(trim(&late), UNKNOWN);
        live_on();
        if (killed)
            kill_relay();
        CU_ASSERT_EQUAL(trim(&one), DONE);
        again_from(&one);
        expect_has(&f, after_one);
        live_again("'repeated 1 events'");
        fixture_fini(&f);
    }
}

/* It had nothing to repeat, and so it says no LIVE. */
TEST(point_before_the_first_act)
{
    static const struct cw_point first = {.clock = 5};

    start();
    say_point(r0, &first);
    again_from(&(struct cw_point){0});
    CU_ASSERT_EQUAL(trim(&first), UNKNOWN);
    say_point(r0, &first);
    CU_ASSERT_EQUAL(trim(&first), DONE);
    again_from(&first);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "WELCOME"));
    live_on();
}

/* --- what waits at the point --------------------------------------------------------------------
 */
/* Rank 0 was sent much, and has taken all of it: this is what goes. Returns its last event. */
static uint64_t live_long(void)
{
    bool mute = f.mute;

    f.mute = true;
    for (uint32_t i = 0; i < 40; i++) {
        say_begin(r2, CW_SEND_AM, 0, i, 60000, 60000);
        say_begin(r2, CW_SEND_AM, 0, 1000 + i, 500, 500);
    }
    f.mute = mute;
    say_taken(r0, r0->event, 10);
    return r0->event;
}

enum { TAKEN_OUT = 61, WAITS_SMALL, WAITS_LARGE, COMES_IN, CUT_OFF, ACTIVE, TO_BE_POSTED };

/* The mailbox holds one of everything. */
static void hold_much(void)
{
    say_begin(r1, CW_SEND_TAG, 0, TAKEN_OUT, LARGE, LARGE);
    say_probe(r0, TAKEN_OUT, CODEC_ALL, true);
    say_begin(r1, CW_SEND_SYNC, 0, WAITS_SMALL, 3000, 3000);
    say_begin(r1, CW_SEND_TAG, 0, WAITS_LARGE, LARGE, LARGE);
    say_recv(r0, 1, TO_BE_POSTED);
    say_recv(r0, 2, 99);
    say_recv(r0, 3, TO_BE_POSTED);
    say_cancel(r0, 3, TO_BE_POSTED, CODEC_ALL);
    say_recv(r0, 4, COMES_IN);
    say_begin(r1, CW_SEND_TAG, 0, COMES_IN, LARGE, HALF);
    say_recv_mask(r0, 5, CUT_OFF, CODEC_ALL, 1000);
    say_begin(r2, CW_SEND_TAG, 0, CUT_OFF, LARGE, HALF);
}

static void receive_all(void)
{
    say_more(r1, COMES_IN, HALF, LARGE - HALF);
    say_more(r2, CUT_OFF, HALF, LARGE - HALF);
    say_mrecv(r0, 6, 0, CODEC_ALL);
    say_recv(r0, 7, WAITS_SMALL);
    say_recv(r0, 8, WAITS_LARGE);
    say_begin(r1, CW_SEND_TAG, 0, TO_BE_POSTED, 200, 200);
    say_begin(r2, CW_SEND_AM, 0, ACTIVE, LARGE, HALF);
    say_more(r2, ACTIVE, HALF, LARGE - HALF);
}

static void check_received(void)
{
    CU_ASSERT_TRUE(fixture_received(r0, 1, TO_BE_POSTED, 200));
    CU_ASSERT_TRUE(fixture_received(r0, 4, COMES_IN, LARGE));
    CU_ASSERT_TRUE(fixture_received(r0, 5, CUT_OFF, 1000));
    CU_ASSERT_TRUE(fixture_received(r0, 6, TAKEN_OUT, LARGE));
    CU_ASSERT_TRUE(fixture_received(r0, 7, WAITS_SMALL, 3000));
    CU_ASSERT_TRUE(fixture_received(r0, 8, WAITS_LARGE, LARGE));
}

/* `kills`: bits for when the relay is killed: before the point, before the log is trimmed, after
 * that, and when all was received. */
static void all_that_waits(unsigned kills)
{
    struct cw_point point = {.clock = 20, .acts = 7};
    uint64_t events;

    start();
    point.event = live_long();
    hold_much();
    if (kills & 1)
        kill_relay();
    say_point(r0, &point);
    if (kills & 2)
        kill_relay();
    CU_ASSERT_EQUAL(trim(&point), DONE);
    if (kills & 4)
        kill_relay();
    receive_all();
    check_received();
    if (kills & 8)
        kill_relay();
    events = r0->event;
    say_taken(r0, events, 30);
    again_from(&point);
    CU_ASSERT_EQUAL(r0->welcome.acts, 10);
    CU_ASSERT_EQUAL(r0->event, events);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "REPLAYED"));
    check_received();
    say_live(r0, events, 30);
    say_send(r1, 0, 99, "on");
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "0 > MESSAGE req 2 tag 99 total 2"));
    fixture_fini(&f);
}

TEST(what_waits_is_kept)
{
    for (unsigned kills = 0; kills < 16; kills++)
        all_that_waits(kills);
}

/* The relay came back, and the rank has not come to it yet. */
TEST(trimmed_while_it_is_away)
{
    struct cw_point point = {.clock = 20};

    start();
    point.event = live_long();
    say_point(r0, &point);
    CU_ASSERT_EQUAL(fixture_kill(&f).lost, 0);
    fixture_come_back(&f.dispatcher);
    CU_ASSERT_EQUAL(trim(&point), DONE);
    for (int i = 0; i < 3; i++)
        fixture_come_back(&f.rank[i]);
    say_recv(r0, 1, 5);
    say_send(r1, 0, 5, "on");
    CU_ASSERT_EQUAL(r0->event, point.event + 1);
    kill_relay();
    say_taken(r0, point.event + 1, 30);
    again_from(&point);
    expect_has(&f, "FIRST LAST event 81 'on'\n0 > REPLAYED\n");
}

/* Every point has a snapshot of its own: the message that waits moves from one to the next. */
TEST(message_waits_at_many_points)
{
    struct cw_point point = {.acts = 1};
    struct cw_point older;

    start();
    say_begin(r1, CW_SEND_TAG, 0, WAITS_LARGE, LARGE, HALF);
    say_begin(r2, CW_SEND_TAG, 0, TAKEN_OUT, 700, 700);
    say_probe(r0, TAKEN_OUT, CODEC_ALL, true);
    for (uint32_t i = 1; i <= 10; i++) {
        older = point;
        point.event = live_long();
        point.clock = 10 + i;
        say_point(r0, &point);
        if (i % 3 == 0)
            kill_relay();
        if (i > 1)
            CU_ASSERT_EQUAL(trim(&older), DONE);
        if (i % 4 == 0)
            kill_relay();
    }
    say_more(r1, WAITS_LARGE, HALF, LARGE - HALF);
    say_recv(r0, 7, WAITS_LARGE);
    say_mrecv(r0, 8, 0, CODEC_ALL);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_TRUE(fixture_received(r0, 7, WAITS_LARGE, LARGE));
        CU_ASSERT_TRUE(fixture_received(r0, 8, TAKEN_OUT, 700));
        again_from(i ? &older : &point);
        CU_ASSERT_EQUAL(r0->welcome.acts, 3);
        say_live(r0, point.event, 30);
    }
    CU_ASSERT_TRUE(fixture_received(r0, 7, WAITS_LARGE, LARGE));
}

TEST(memory_is_free_at_once)
{
    struct cw_relay_stats *stats;
    uint64_t before = 0;

    fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    fixture_start(&f, 3);
    stats = relay_core_stats(f.core);
    for (uint64_t i = 1; i <= 30; i++) {
        struct cw_point point = {.event = live_long(), .clock = 10 + i};

        say_point(r0, &point);
        CU_ASSERT_EQUAL(trim(&point), DONE);
        before = i <= 10 ? stats->memory_now : before;
    }
    CU_ASSERT_TRUE(r0->event > 2000);
    CU_ASSERT_TRUE(stats->memory_now < before + (1u << 20));
}

/* The sender of a half message comes again, and sends the rest. */
TEST(sender_comes_again)
{
    struct cw_point point = {.clock = 11, .acts = 1};

    start();
    point.event = live_long();
    say_recv(r0, 4, COMES_IN);
    say_begin(r1, CW_SEND_TAG, 0, COMES_IN, LARGE, HALF);
    say_point(r0, &point);
    CU_ASSERT_EQUAL(trim(&point), DONE);
    kill_relay();
    crash(r1);
    fixture_again(r1);
    CU_ASSERT_EQUAL(r1->welcome.missing, LARGE - HALF);
    say_live(r1, 0, 0);
    say_more(r1, COMES_IN, HALF, LARGE - HALF);
    CU_ASSERT_TRUE(fixture_received(r0, 4, COMES_IN, LARGE));
}

/* A snapshot holds all that waits: a rank that comes to point after point does not fill the log
 * with them. After a trim there is room again. */
TEST(points_without_end)
{
    struct cw_point point = {.clock = 15};
    uint32_t known = 0;

    start();
    f.mute = true;
    for (uint32_t i = 0; i < 250; i++)
        say_begin(r1, CW_SEND_TAG, 0, WAITS_SMALL, 4096, 4096);
    for (uint32_t i = 0; i < 200; i++) {
        point.clock++;
        say_point(r0, &point);
    }
    CU_ASSERT_EQUAL(trim(&point), UNKNOWN);
    for (; known == 0 && point.clock > 15; point.clock--)
        known = trim(&point) == DONE;
    CU_ASSERT_EQUAL(known, 1);
    point.clock = 1000;
    say_point(r0, &point);
    CU_ASSERT_EQUAL(trim(&point), DONE);
}
