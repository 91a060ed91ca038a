/* Sessions that outlive their connections. A connection is cut at any byte of either stream; what
 * the clients see in the end is what they would have seen without. */
#include "relay/core/conn.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE_AFTER_EACH("trace of sessions that resume", fixture_end);

#define RESUME_MS 5000
#define TOTAL 70000u

static struct fixture f;
static struct client *const d = &f.dispatcher;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];

static void start(bool log)
{
    if (log)
        fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    else
        fixture_init(&f, FIXTURE_MEMORY);
    f.resume_ms = RESUME_MS;
    f.merged = true;
    fixture_start(&f, 2);
}

static void resume(struct client *c)
{
    fixture_resume(c, c->received);
}

TEST(nothing_is_lost)
{
    start(false);
    fixture_close(r0, "cut");
    expect(&f, "0 ends: cut\n");
    say_send(r1, 0, 5, "abc");
    fixture_forget(&f);
    resume(r0);
    expect(&f, "0 < HELLO rank 0 incarnation 1 RESUME 0\n"
               "0 > WELCOME event 0 RESUMED 0\n");
    say_recv(r0, 7, 5);
    expect_has(&f, "0 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n");
}

/* The sender's connection breaks after every byte of its message; the receiver's too. */
static void cut_at_every_byte(bool log, bool receiver)
{
    size_t whole = 2 * CW_FRAME_HEADER + CW_SEND_SIZE + 300;

    for (size_t at = 0; at <= whole; at++) {
        start(log);
        f.mute = true;
        say_recv(r1, 7, 5);
        memset(codec_begin(&r0->codec, CW_FRAME_SEND, CW_SEND_SIZE + 100), 0, CW_SEND_SIZE + 100);
        cw_send_put(r0->codec.out.at + r0->codec.out.start + CW_FRAME_HEADER,
                    &(struct cw_send){.kind = CW_SEND_TAG, .dst = 1, .tag = 5, .total = 300});
        memset(codec_begin(&r0->codec, CW_FRAME_SEND_DATA, 200), 0, 200);
        r1->deaf = receiver;
        fixture_feed_some(r0, at < codec_left(&r0->codec.out) ? at : codec_left(&r0->codec.out));
        fixture_close(r0, "cut");
        if (receiver)
            fixture_close(r1, "cut");
        resume(r0);
        fixture_feed_some(r0, codec_left(&r0->codec.out));
        if (receiver)
            resume(r1);
        CU_ASSERT_EQUAL(r1->event, 1);
        CU_ASSERT_EQUAL_FATAL(r1->inbox.complete, 1);
        CU_ASSERT_EQUAL(r1->inbox.of[0].size, 300);
        fixture_fini(&f);
    }
}

TEST(sender_cut_at_every_byte)
{
    cut_at_every_byte(false, false);
    cut_at_every_byte(true, false);
}

TEST(both_cut_at_every_byte)
{
    cut_at_every_byte(false, true);
    cut_at_every_byte(true, true);
}

/* The receiver has received any part of what was sent when its connection breaks. */
TEST(receiver_that_got_a_part)
{
    for (uint32_t part = 0; part < TOTAL + 200; part += 97) {
        struct iovec iov[8];
        size_t size = 0;

        start(false);
        f.mute = true;
        say_recv(r1, 7, 5);
        r1->stalled = true;
        say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, TOTAL);
        for (int n = relay_conn_output(r1->conn, iov, 8), i = 0; i < n; i++) {
            size_t got = part - size < iov[i].iov_len ? part - size : iov[i].iov_len;

            codec_receive(&r1->codec, iov[i].iov_base, got);
            r1->received += got;
            size += got;
        }
        /* it left the relay, all or as much as arrived */
        relay_conn_written(r1->conn, size);
        fixture_close(r1, "cut");
        r1->stalled = false;
        resume(r1);
        CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
        fixture_fini(&f);
    }
}

TEST(time_that_is_up)
{
    start(false);
    fixture_close(r0, "cut");
    fixture_tick(&f, 1);
    fixture_tick(&f, RESUME_MS * 1000000ull);
    expect(&f, "0 ends: cut\n");
    CU_ASSERT_EQUAL(relay_core_tick_ms(f.core), RELAY_TICK_SUSPENDED_MS);
    fixture_tick(&f, 1);
    expect_has(&f, "d > NOTICE RANK_LOST rank 0 'cut; it was not resumed for 5000 "
                   "ms'\n");
    resume(r0);
    expect_has(&f, "0 > REFUSED JOB 'the relay has no such session (it may have ended)'\n");
    fixture_tick(&f, 1);
    CU_ASSERT_EQUAL(relay_core_tick_ms(f.core), RELAY_TICK_MS);
}

TEST(dispatcher_that_comes_back)
{
    start(true);
    fixture_close(d, "cut");
    say_bye(r0);
    fixture_forget(&f);
    resume(d);
    expect_has(&f, "d > NOTICE RANK_BYE rank 0 'done'\n");
}

TEST(dispatcher_that_does_not)
{
    start(true);
    fixture_close(r1, "cut");
    fixture_close(d, "cut");
    fixture_tick(&f, 1);
    fixture_forget(&f);
    fixture_tick(&f, 1 + RESUME_MS * 1000000ull);
    expect(&f, "0 is closed\n");
}

TEST(job_that_is_ended)
{
    start(false);
    fixture_close(r1, "cut");
    fixture_forget(&f);
    say_frame(d, CW_FRAME_JOB_END, NULL, 0);
    expect(&f, "d < JOB_END\n"
               "0 is closed\n"
               "d is closed\n");
    resume(r1);
    expect_has(&f, "1 > REFUSED JOB");
}

TEST(hostile_positions)
{
    start(false);
    say_send(r1, 0, 5, "abc");
    say_recv(r0, 7, 5);
    fixture_close(r0, "cut");
    fixture_forget(&f);
    fixture_resume(r0, r0->received + 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "0 > REFUSED PROTOCOL 'it has received what was not "
                                           "sent, or less than it said before'\n"));
    expect_has(&f, "d > NOTICE RANK_LOST rank 0");
    fixture_fini(&f);
    start(false);
    say_send(r1, 0, 5, "abc");
    say_recv(r0, 7, 5);
    say_frame(r0, CW_FRAME_ACK, (uint8_t[CW_ACK_SIZE]){(uint8_t)r0->received}, CW_ACK_SIZE);
    fixture_close(r0, "cut");
    fixture_forget(&f);
    fixture_resume(r0, r0->received - 1);
    expect_has(&f, "0 > REFUSED PROTOCOL");
    fixture_fini(&f);
    start(false);
    say_frame(r0, CW_FRAME_ACK, (uint8_t[CW_ACK_SIZE]){1}, CW_ACK_SIZE);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'ACK of what was not sent'\n");
}

/* An engine sends outside of the core's lock: the other side may acknowledge bytes before the
 * engine says that it sent them. */
static void acknowledge_early(uint8_t acked, size_t sent, bool refused)
{
    struct iovec iov[4];

    start(false);
    r0->stalled = true;
    say_send(r1, 0, 5, "abc");
    say_recv(r0, 7, 5);
    CU_ASSERT_TRUE(relay_conn_output(r0->conn, iov, 4) > 0);
    CU_ASSERT_TRUE(iov[0].iov_len > sent);
    fixture_forget(&f);
    acked += (uint8_t)r0->received;
    say_frame(r0, CW_FRAME_ACK, (uint8_t[CW_ACK_SIZE]){acked}, CW_ACK_SIZE);
    relay_conn_written(r0->conn, sent);
    fixture_collect(&f);
    CU_ASSERT_EQUAL(strstr(f.story, "RANK_LOST") != NULL, refused);
    fixture_fini(&f);
}

TEST(early_ack)
{
    acknowledge_early(10, 10, false);
    acknowledge_early(11, 10, true);
    acknowledge_early(255, 10, true);
}

/* The relay has not seen the old connection break yet. */
TEST(resumed_too_early)
{
    struct relay_conn *old;

    start(false);
    old = r0->conn;
    r0->conn = NULL;
    f.lazy = true;
    resume(r0);
    expect_has(&f, "0 > REFUSED BUSY 'the session's old connection is being ended'\n");
    CU_ASSERT_TRUE(relay_conn_done(old));
    relay_conn_broken(old, "closed by the relay", NULL, 0);
    f.lazy = false;
    fixture_close(r0, "refused");
    codec_fini(&r0->codec);
    r0->codec = r0->saved;
    r0->saved = (struct codec){0};
    fixture_resume(r0, 0);
    expect_has(&f, "0 > WELCOME event 0 RESUMED 0\n");
}

TEST(newer_incarnation)
{
    start(true);
    fixture_close(r0, "cut");
    fixture_forget(&f);
    fixture_again(r0);
    expect_has(&f, "d > NOTICE RANK_UP rank 0");
}

/* CUT: of a rank, of the dispatcher; the frames behind it are acted on after all. */
TEST(drills)
{
    uint8_t body[CW_WORD_SIZE];

    start(false);
    cw_word_put(body, 1);
    say_frame(d, CW_FRAME_CUT, body, sizeof(body));
    expect_has(&f, "1 is closed\n");
    resume(r1);
    expect_has(&f, "1 > WELCOME event 0 RESUMED 0\n");
    cw_word_put(body, CW_CUT_DISPATCHER);
    codec_put(&d->codec, CW_FRAME_CUT, body, sizeof(body));
    codec_put(&d->codec, CW_FRAME_STATS_ASK, NULL, 0);
    fixture_forget(&f);
    fixture_feed_some(d, codec_left(&d->codec.out));
    expect(&f, "d is closed\n");
    resume(d);
    expect_has(&f, "d > STATS rank 0");
    cw_word_put(body, 2);
    say_frame(d, CW_FRAME_CUT, body, sizeof(body));
    expect_has(&f, "d > REFUSED PROTOCOL 'CUT of rank 2 in a job of 2 ranks'\n");
}

static void say_rank_end(uint32_t rank, uint32_t incarnation)
{
    uint8_t body[CW_RANK_END_SIZE];

    cw_rank_end_put(body, &(struct cw_rank_end){rank, incarnation});
    say_frame(d, CW_FRAME_RANK_END, body, sizeof(body));
}

/* RANK_END: the session is given up at once, whichever comes first of it and the break. */
TEST(process_that_ended)
{
    start(true);
    fixture_close(r0, "cut");
    expect(&f, "0 ends: cut\n");
    say_rank_end(0, 1);
    expect(&f, "d < RANK_END\n"
               "d > NOTICE RANK_LOST rank 0 'cut'\n");
    say_rank_end(1, 1);
    expect(&f, "d < RANK_END\n");
    fixture_close(r1, "cut");
    expect(&f, "1 ends: cut\n"
               "d > NOTICE RANK_LOST rank 1 'cut'\n");
    fixture_again(r0);
    fixture_forget(&f);
    say_rank_end(0, 1);
    fixture_close(r0, "cut");
    say_rank_end(0, 1);
    expect(&f, "d < RANK_END\n"
               "0 ends: cut\n"
               "d < RANK_END\n");
    say_rank_end(2, 1);
    expect_has(&f, "d > REFUSED PROTOCOL 'RANK_END of rank 2, which is not at home here'\n");
}

/* What is not acknowledged is kept, and no more. */
TEST(what_is_acknowledged_is_let_go)
{
    uint8_t ack[CW_ACK_SIZE] = {0};
    struct cw_session session = {0};

    start(false);
    f.mute = true;
    for (int i = 0; i < 20; i++) {
        say_recv(r1, 7, 5);
        say_begin(r0, CW_SEND_TAG, 1, 5, 200000, 200000);
    }
    CU_ASSERT_EQUAL(r1->conn->out.kept, r1->received);
    CU_ASSERT_TRUE(r1->received > 20 * 200000);
    session.received = r1->received - 100;
    cw_ack_put(ack, &session);
    say_frame(r1, CW_FRAME_ACK, ack, sizeof(ack));
    CU_ASSERT_EQUAL(r1->conn->out.kept, 100);
    CU_ASSERT_EQUAL(r1->conn->out.count, 1);
}

TEST(idle_sessions_are_acknowledged)
{
    start(false);
    fixture_tick(&f, 1);
    expect(&f, "");
    say_recv(r0, 7, 5);
    fixture_tick(&f, 1);
    expect_has(&f, "0 > ACK of 2\n");
    fixture_tick(&f, 1);
    expect(&f, "");
    say_frame(r0, CW_FRAME_ACK, (uint8_t[CW_ACK_SIZE]){(uint8_t)r0->received}, CW_ACK_SIZE);
    fixture_tick(&f, 1);
    expect(&f, "0 < ACK of 3\n");
}
