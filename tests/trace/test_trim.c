/* What a dispatcher asks for images: CHECKPOINT goes on to the rank, TRIM is done at once or when
 * the rank is not being handed its log, and is answered. */
#include "tests/trace/killed.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of trimming", fixture_end);

#define RESUME_MS 5000

static struct fixture f;
static struct client *const d = &f.dispatcher;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static const struct cw_point beginning;
static const struct cw_point one = {.event = 1, .clock = 15, .acts = 2};
static const struct cw_point two = {.event = 2, .clock = 25, .acts = 3};

static void start(void)
{
    fixture_init_left(&f, FIXTURE_MEMORY, 0);
    f.resume_ms = RESUME_MS;
    fixture_start(&f, 2);
}

/* Rank 0 lives until its two points. */
static void live(void)
{
    say_recv(r0, 1, 5);
    say_send(r1, 0, 5, "ask");
    say_taken(r0, 1, 10);
    say_send(r0, 1, 6, "answer");
    say_point(r0, &one);
    say_recv(r0, 2, 5);
    say_send(r1, 0, 5, "again");
    say_taken(r0, 2, 20);
    say_point(r0, &two);
    fixture_forget(&f);
}

static void die(void)
{
    uint8_t body[CW_RANK_END_SIZE];

    cw_rank_end_put(body, &(struct cw_rank_end){.rank = 0, .incarnation = r0->hello.incarnation});
    fixture_close(r0, "crash");
    say_frame(d, CW_FRAME_RANK_END, body, sizeof(body));
}

static void again(const struct cw_point *from)
{
    die();
    fixture_again_from(r0, from);
    fixture_forget(&f);
}

/* --- CHECKPOINT ---------------------------------------------------------------------------------
 */
TEST(asked_for_an_image)
{
    start();
    say_checkpoint(&f, 0, 1, 0);
    say_checkpoint(&f, 0, 3, 1);
    expect(&f, "d < CHECKPOINT rank 0 number 1\n"
               "0 > CHECKPOINT rank 0 number 1\n"
               "d < CHECKPOINT rank 0 number 3 base 1\n"
               "0 > CHECKPOINT rank 0 number 3 base 1\n");
}

TEST(asked_while_it_repeats)
{
    start();
    live();
    again(&beginning);
    say_checkpoint(&f, 0, 4, 0);
    expect(&f, "d < CHECKPOINT rank 0 number 4\n"
               "0 > CHECKPOINT rank 0 number 4\n");
}

TEST(asked_while_nobody_is_there)
{
    start();
    live();
    die();
    fixture_forget(&f);
    say_checkpoint(&f, 0, 1, 0);
    fixture_again_from(r0, &two);
    CU_ASSERT_PTR_NULL(strstr(f.story, "> CHECKPOINT"));
    say_bye(r1);
    fixture_forget(&f);
    say_checkpoint(&f, 1, 1, 0);
    expect(&f, "d < CHECKPOINT rank 1 number 1\n");
}

/* One that does not read is asked once, also over a connection that breaks. */
TEST(asked_once_while_it_does_not_read)
{
    start();
    r0->stalled = true;
    for (uint32_t i = 1; i <= 100; i++)
        say_checkpoint(&f, 0, i, 0);
    fixture_close(r0, "cut");
    for (uint32_t i = 101; i <= 200; i++)
        say_checkpoint(&f, 0, i, 0);
    fixture_forget(&f);
    r0->stalled = false;
    fixture_resume(r0, r0->received);
    say_checkpoint(&f, 0, 201, 0);
    expect(&f, "0 < HELLO rank 0 incarnation 1 RESUME 0\n"
               "0 > WELCOME event 0 RESUMED 0\n"
               "0 > CHECKPOINT rank 0 number 1\n"
               "d < CHECKPOINT rank 0 number 201\n"
               "0 > CHECKPOINT rank 0 number 201\n");
}

/* A relay that is killed forgets it, and one that is back asks only who has come to it. */
TEST(asked_by_a_relay_that_is_killed)
{
    start();
    live();
    r0->stalled = true;
    say_checkpoint(&f, 0, 1, 0);
    r0->stalled = false;
    CU_ASSERT_EQUAL(fixture_kill(&f).lost, 0);
    fixture_come_back(d);
    say_checkpoint(&f, 0, 2, 0);
    fixture_come_back(r0);
    CU_ASSERT_PTR_NULL(strstr(f.story, "> CHECKPOINT"));
    fixture_forget(&f);
    say_checkpoint(&f, 0, 3, 0);
    expect(&f, "d < CHECKPOINT rank 0 number 3\n"
               "0 > CHECKPOINT rank 0 number 3\n");
}

/* --- TRIM ---------------------------------------------------------------------------------------
 */
/* While the rank is handed its log, all of it is needed. */
TEST(not_while_it_repeats)
{
    start();
    live();
    again(&beginning);
    say_trim(&f, 0, &one);
    expect(&f, "d < TRIM rank 0 event 1 clock 15 acts 2\n");
    say_live(r0, 2, 27);
    expect_has(&f, "d > TRIMMED rank 0 known event 1 clock 15 acts 2\n");
    CU_ASSERT_EQUAL(f.trims, 1);
    again(&beginning);
    CU_ASSERT_PTR_NULL(r0->conn);
}

/* It is live, but does not read what it has not taken. */
TEST(not_while_it_is_handed_the_rest)
{
    static const struct cw_point late = {.event = 1, .clock = 16, .acts = 3};

    start();
    live();
    f.mute = true;
    for (uint32_t i = 0; i < 20; i++)
        say_begin(r1, CW_SEND_AM, 0, i, 60000, 60000);
    f.mute = false;
    again(&two);
    r0->stalled = true;
    say_live(r0, 2, 27);
    say_trim(&f, 0, &two);
    CU_ASSERT_EQUAL(f.trims, 0);
    say_trim(&f, 0, &late);
    CU_ASSERT_EQUAL(f.trims, 1); /* that one is not known, so the other one still counts */
    CU_ASSERT_FALSE(f.trimmed.known);
    f.merged = true;
    while (r0->event < 22)
        fixture_read(r0);
    fixture_collect(&f);
    CU_ASSERT_EQUAL(f.trims, 2);
    CU_ASSERT_TRUE(f.trimmed.known);
}

/* Its next incarnation is killed, too: nobody needs the log now. */
TEST(when_nobody_repeats_any_more)
{
    start();
    live();
    again(&one);
    say_trim(&f, 0, &two);
    CU_ASSERT_EQUAL(f.trims, 0);
    fixture_close(r0, "crash");
    CU_ASSERT_EQUAL(f.trims, 0); /* its session may be resumed */
    die();
    CU_ASSERT_EQUAL(f.trims, 1);
    CU_ASSERT_TRUE(f.trimmed.known);
    fixture_again_from(r0, &one);
    CU_ASSERT_PTR_NULL(r0->conn);
    fixture_again_from(r0, &two);
    CU_ASSERT_PTR_NOT_NULL(r0->conn);
}

/* A process that took its place repeats the log as well. */
TEST(not_while_the_next_one_repeats)
{
    start();
    live();
    again(&one);
    say_trim(&f, 0, &one);
    fixture_again_from(&f.rank[0], &one); /* without a word of the first one's end */
    CU_ASSERT_EQUAL(f.trims, 0);
    say_live(r0, 2, 27);
    CU_ASSERT_EQUAL(f.trims, 1);
    CU_ASSERT_TRUE(f.trimmed.known);
}

/* One waits for each rank: the last. */
TEST(last_one_counts)
{
    start();
    live();
    again(&one);
    say_trim(&f, 0, &one);
    say_trim(&f, 0, &one);
    CU_ASSERT_EQUAL(f.trims, 0);
    say_trim(&f, 0, &two);
    expect_has(&f, "d > TRIMMED rank 0 unknown event 1 clock 15 acts 2\n");
    CU_ASSERT_EQUAL(f.trims, 1);
    say_live(r0, 2, 27);
    expect_has(&f, "d > TRIMMED rank 0 known event 2 clock 25 acts 3\n");
    CU_ASSERT_EQUAL(f.trims, 2);
}

/* The rank went on otherwise before it came to the point. */
TEST(point_that_is_forgotten_meanwhile)
{
    start();
    live();
    again(&one);
    say_trim(&f, 0, &two);
    say_live(r0, 2, 24);
    expect_has(&f, "d > TRIMMED rank 0 unknown event 2 clock 25 acts 3\n");
}

TEST(log_that_is_given_up_meanwhile)
{
    start();
    live();
    again(&one);
    say_trim(&f, 0, &two);
    say_unlogged(r0, CW_UNLOGGED_THREADS);
    expect_has(&f, "d > TRIMMED rank 0 unknown event 2 clock 25 acts 3\n");
}

/* A relay that is back has forgotten that it was asked; and that it had trimmed changes nothing. */
TEST(asked_again_after_the_relay)
{
    for (int amid = 0; amid < 2; amid++) {
        start();
        live();
        if (amid)
            again(&one);
        say_trim(&f, 0, &two);
        CU_ASSERT_EQUAL(f.trims, !amid);
        CU_ASSERT_EQUAL(fixture_kill(&f).lost, 0);
        fixture_come_back(d);
        for (uint32_t i = 1; i <= 2; i++) {
            say_trim(&f, 0, &two);
            CU_ASSERT_EQUAL(f.trims, !amid + i);
            CU_ASSERT_TRUE(f.trimmed.known);
        }
        say_trim(&f, 0, &one);
        CU_ASSERT_FALSE(f.trimmed.known);
        fixture_fini(&f);
    }
}

/* It is acted on, and the answer is not lost with the relay. */
TEST(answer_outlives_the_relay)
{
    for (int acted = 0; acted < 2; acted++) {
        start();
        live();
        codec_trim(&d->codec, 0, &one);
        CU_ASSERT_EQUAL((acted ? fixture_kill_after(d) : fixture_kill_amid(d)).lost, 0);
        CU_ASSERT_EQUAL(f.trims, 0);
        fixture_come_back(d);
        CU_ASSERT_EQUAL(f.trims, 1);
        CU_ASSERT_TRUE(f.trimmed.known);
        fixture_again_from(r0, &beginning);
        CU_ASSERT_PTR_NULL(r0->conn);
        fixture_fini(&f);
    }
}

/* --- what becomes of the memory -----------------------------------------------------------------
 */
static uint64_t log_bytes; /* of rank 0 */

static void note_stats(struct client *c, const struct codec_frame *frame)
{
    struct cw_stats stats;

    (void)c;
    if (frame->header.type == CW_FRAME_STATS && cw_stats_get(frame->body, &stats) &&
        stats.rank == 0)
        log_bytes = stats.of_rank.log_bytes;
}

static uint64_t ask_log_bytes(void)
{
    f.on_frame = note_stats;
    log_bytes = UINT64_MAX;
    say_frame(d, CW_FRAME_STATS_ASK, NULL, 0);
    return log_bytes;
}

/* Its memory is free when it is answered, and is what the next messages are logged in. */
TEST(memory_is_used_again)
{
    uint64_t carved = 0;

    fixture_init_left(&f, FIXTURE_MEMORY, 0);
    fixture_start(&f, 2);
    f.mute = true;
    for (uint64_t i = 1; i <= 20; i++) {
        struct cw_point point = {.clock = 10 + i};

        for (uint32_t k = 0; k < 40; k++)
            say_begin(r1, CW_SEND_AM, 0, k, 60000, 60000);
        say_taken(r0, r0->event, 10 + i);
        point.event = r0->event;
        say_point(r0, &point);
        CU_ASSERT_TRUE(ask_log_bytes() > 40 * 60000);
        say_trim(&f, 0, &point);
        CU_ASSERT_EQUAL(f.trims, i);
        CU_ASSERT_TRUE(ask_log_bytes() < 1u << 20);
        carved = i == 10 ? f.left->header.carved : carved;
    }
    CU_ASSERT_TRUE(carved > 0);
    CU_ASSERT_EQUAL(f.left->header.carved, carved);
}

/* --- what is refused ----------------------------------------------------------------------------
 */
TEST(frames_that_make_no_sense)
{
    static const struct cw_checkpoint checkpoints[] = {
        {.number = 0}, {.number = 1, .base = 1}, {.rank = 2, .number = 1}};
    static const struct cw_trim trims[] = {{0, 1, {1, 15, 2}}, {2, 0, {1, 15, 2}}};
    uint8_t body[CW_TRIM_SIZE];

    for (int i = 0; i < 5; i++) {
        start();
        if (i < 3)
            cw_checkpoint_put(body, &checkpoints[i]);
        else
            cw_trim_put(body, &trims[i - 3]);
        say_frame(d, i < 3 ? CW_FRAME_CHECKPOINT : CW_FRAME_TRIM, body,
                  i < 3 ? CW_CHECKPOINT_SIZE : CW_TRIM_SIZE);
        expect_has(&f, "d > REFUSED PROTOCOL");
        fixture_fini(&f);
    }
}

TEST(frames_of_ranks)
{
    start();
    codec_trim(&r0->codec, 0, &one);
    fixture_feed(r0);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'TRIM frame is not allowed here'");
    codec_checkpoint(&r1->codec, 0, 1, 0);
    fixture_feed(r1);
    expect_has(&f, "1 > REFUSED PROTOCOL rank 1 'CHECKPOINT frame is not allowed here'");
}
