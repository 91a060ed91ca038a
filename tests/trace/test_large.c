/* Messages of many frames: cut through to a matched receiver, kept otherwise, throttled when the
 * receiver is slow, abandoned when their sender vanishes. */
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of large messages", fixture_end);

#define TOTAL 180000u
#define PIECE 60000u

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static struct client *const r2 = &f.rank[2];

static void start(void)
{
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_start(&f, 3);
}

TEST(cut_through)
{
    start();
    say_recv(r1, 7, 5);
    say_recv(r1, 8, 6);
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    say_begin(r2, CW_SEND_TAG, 1, 6, TOTAL, PIECE);
    say_more(r2, 6, PIECE, PIECE);
    say_more(r0, 5, PIECE, PIECE);
    say_more(r2, 6, 2 * PIECE, PIECE);
    say_more(r0, 5, 2 * PIECE, PIECE);
    expect(&f, "1 < RECV req 7 tag 5\n"
               "1 < RECV req 8 tag 6\n"
               "0 < SEND to 1 tag 5 total 180000 (60000 bytes)\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST (60000 bytes)\n"
               "2 < SEND to 1 tag 6 total 180000 (60000 bytes)\n"
               "1 > MESSAGE req 8 tag 6 total 180000 FIRST (60000 bytes)\n"
               "2 < SEND_DATA (60000 bytes)\n"
               "1 > MESSAGE req 8 (60000 bytes)\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "1 > MESSAGE req 7 (60000 bytes)\n"
               "2 < SEND_DATA (60000 bytes)\n"
               "1 > MESSAGE req 8 LAST event 1 (60000 bytes)\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "1 > MESSAGE req 7 LAST event 2 (60000 bytes)\n");
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
    CU_ASSERT_TRUE(fixture_received(r1, 8, 6, TOTAL));
}

/* A message is whole whatever is cut where, and whenever its receive comes. */
TEST(cut_anywhere)
{
    static const uint32_t totals[] = {2047, 2048, 2049, 16384, 16385, 65536, 300000};

    for (uint32_t how = 0; how < 6; how++) {
        uint32_t late = how / 2;

        fixture_init(&f, FIXTURE_MEMORY);
        f.cuts = how % 2;
        f.mute = true;
        f.feed = FEED_RANDOM;
        f.seed = 5 + late;
        fixture_start(&f, 2);
        for (uint32_t i = 0; i < sizeof(totals) / sizeof(*totals); i++) {
            uint32_t half = totals[i] / 2;

            if (late == 0)
                say_recv(r1, i, i);
            say_begin(r0, CW_SEND_TAG, 1, i, totals[i], half);
            if (late == 1)
                say_recv(r1, i, i);
            say_more(r0, i, half, totals[i] - half);
            if (late == 2)
                say_recv(r1, i, i);
            CU_ASSERT_TRUE(fixture_received(r1, i, i, totals[i]));
        }
        fixture_fini(&f);
    }
}

TEST(other_frames_between_its_pieces)
{
    start();
    f.merged = true;
    say_recv(r1, 7, 5);
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    say_recv(r0, 1, 9);
    say_probe(r0, 9, CODEC_ALL, false);
    say_more(r0, 5, PIECE, PIECE);
    say_send(r1, 0, 9, "back");
    say_more(r0, 5, 2 * PIECE, PIECE);
    expect(&f, "1 < RECV req 7 tag 5\n"
               "0 < SEND to 1 tag 5 total 180000 (60000 bytes)\n"
               "0 < RECV req 1 tag 9\n"
               "0 < PROBE tag 9\n"
               "0 > PROBED nothing unexpected 0\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "1 < SEND to 0 tag 9 total 4 'back'\n"
               "0 > MESSAGE req 1 tag 9 total 4 FIRST LAST event 1 'back'\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST LAST event 1 (180000 bytes)\n");
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
}

/* The receive comes in the middle: what is there goes at once, the rest as it comes. */
TEST(received_in_the_middle)
{
    start();
    say_begin(r0, CW_SEND_SYNC, 1, 5, TOTAL, PIECE);
    say_more(r0, 5, PIECE, PIECE);
    say_recv(r1, 7, 5);
    say_more(r0, 5, 2 * PIECE, PIECE);
    expect(&f, "0 < SEND to 1 SYNC req 0 tag 5 total 180000 (60000 bytes)\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "1 < RECV req 7 tag 5\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST (60000 bytes)\n"
               "1 > MESSAGE req 7 (60000 bytes)\n"
               "0 > SENT req 0 event 1\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "1 > MESSAGE req 7 LAST event 1 (60000 bytes)\n");
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
}

/* The event is complete with the last byte that the receive has room for. */
TEST(truncated_while_it_comes)
{
    start();
    f.merged = true;
    say_recv_mask(r1, 7, 5, CODEC_ALL, PIECE + 1);
    say_recv_mask(r1, 8, 5, CODEC_ALL, 0);
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    say_more(r0, 5, PIECE, PIECE);
    say_send(r2, 1, 5, "next");
    say_more(r0, 5, 2 * PIECE, PIECE);
    expect(&f, "1 < RECV req 7 tag 5 capacity 60001\n"
               "1 < RECV req 8 tag 5 capacity 0\n"
               "0 < SEND to 1 tag 5 total 180000 (60000 bytes)\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST LAST TRUNC event 1 (60001 bytes)\n"
               "2 < SEND to 1 tag 5 total 4 'next'\n"
               "1 > MESSAGE req 8 tag 5 total 4 FIRST LAST TRUNC event 2\n"
               "0 < SEND_DATA (60000 bytes)\n");
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, PIECE + 1));
}

TEST(truncated_after_it_came)
{
    start();
    f.merged = true;
    for (int i = 0; i < 2; i++) {
        say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
        say_more(r0, 5, PIECE, PIECE);
        say_more(r0, 5, 2 * PIECE, PIECE);
    }
    fixture_forget(&f);
    say_recv_mask(r1, 7, 5, CODEC_ALL, PIECE + 1);
    say_recv_mask(r1, 8, 5, CODEC_ALL, 0);
    expect(&f, "1 < RECV req 7 tag 5 capacity 60001\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST LAST TRUNC event 1 (60001 bytes)\n"
               "1 < RECV req 8 tag 5 capacity 0\n"
               "1 > MESSAGE req 8 tag 5 total 180000 FIRST LAST TRUNC event 2\n");
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, PIECE + 1));
}

TEST(sender_vanishes_after_the_match)
{
    start();
    say_recv(r1, 7, 5);
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    fixture_close(r0, "crash");
    say_cancel(r1, 7, 5, CODEC_ALL);
    expect(&f, "1 < RECV req 7 tag 5\n"
               "0 < SEND to 1 tag 5 total 180000 (60000 bytes)\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST (60000 bytes)\n"
               "0 ends: crash\n"
               "d > NOTICE RANK_LOST rank 0 'crash'\n"
               "1 < CANCEL req 7 tag 5\n");
}

TEST(sender_vanishes_before_the_match)
{
    start();
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    say_begin(r2, CW_SEND_TAG, 1, 6, TOTAL, PIECE);
    fixture_close(r0, "crash");
    fixture_close(r2, "crash");
    fixture_forget(&f);
    say_probe(r1, 5, CODEC_ALL, false);
    say_recv(r1, 7, 5);
    expect(&f, "1 < PROBE tag 5\n"
               "1 > PROBED tag 5 total 180000 msg 0 unexpected 2\n"
               "1 < RECV req 7 tag 5\n"
               "1 > MESSAGE req 7 tag 5 total 180000 FIRST (60000 bytes)\n");
}

/* The receiver ends while bytes are under way: they are dropped, the sender goes on. */
TEST(receiver_vanishes)
{
    start();
    say_recv(r1, 7, 5);
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    fixture_close(r1, "crash");
    fixture_forget(&f);
    say_more(r0, 5, PIECE, PIECE);
    say_more(r0, 5, 2 * PIECE, PIECE);
    say_recv(r2, 1, 9);
    say_send(r0, 2, 9, "next");
    expect(&f, "0 < SEND_DATA (60000 bytes)\n"
               "0 < SEND_DATA (60000 bytes)\n"
               "2 < RECV req 1 tag 9\n"
               "0 < SEND to 2 tag 9 total 4 'next'\n"
               "2 > MESSAGE req 1 tag 9 total 4 FIRST LAST event 1 'next'\n");
}

TEST(job_ends_in_the_middle)
{
    start();
    f.mute = true;
    say_recv(r1, 7, 5);
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PIECE);
    say_begin(r1, CW_SEND_TAG, 2, 5, TOTAL, PIECE);
    say_begin(r2, CW_SEND_SYNC, 2, 6, 10000, 5000);
    fixture_close(&f.dispatcher, "gone");
    for (int i = 0; i < 3; i++)
        CU_ASSERT_PTR_NULL(f.rank[i].conn);
}

/* --- a slow receiver -------------------------------------------------------------------------- */
/* Sends to the stalled rank 1 until its sender is to wait; returns the bytes sent. */
static uint64_t send_until_held(uint64_t total)
{
    uint64_t sent = CW_FRAME_DATA_MAX;

    f.mute = true;
    say_recv(r1, 7, 5);
    r1->stalled = true;
    say_begin(r0, CW_SEND_TAG, 1, 5, total, CW_FRAME_DATA_MAX);
    while (sent < total && relay_conn_wants_input(r0->conn, f.now_ns)) {
        say_more(r0, 5, sent, CW_FRAME_DATA_MAX);
        sent += CW_FRAME_DATA_MAX;
    }
    return sent;
}

static void finish(uint64_t sent, uint64_t total)
{
    for (; sent < total; sent += CW_FRAME_DATA_MAX)
        say_more(r0, 5, sent, CW_FRAME_DATA_MAX);
    fixture_read(r1);
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, total));
}

/* After a moment the relay stores: it never stops reading a rank because another is slow. */
TEST(slow_receiver_holds_its_sender_for_a_moment)
{
    uint64_t total = 4 * RELAY_CUT_BACKLOG_MAX;
    uint64_t sent;

    start();
    sent = send_until_held(total);
    CU_ASSERT_TRUE(sent >= RELAY_CUT_BACKLOG_MAX && sent < RELAY_CUT_BACKLOG_MAX + (1 << 20));
    CU_ASSERT_TRUE(relay_conn_wants_input(r1->conn, f.now_ns));
    CU_ASSERT_TRUE(relay_conn_wants_input(r2->conn, f.now_ns));
    CU_ASSERT_FALSE(relay_conn_wants_input(r0->conn, f.now_ns + RELAY_CUT_WAIT_NS - 1));
    CU_ASSERT_TRUE(relay_conn_wants_input(r0->conn, f.now_ns + RELAY_CUT_WAIT_NS));
    /* this message has waited enough */
    CU_ASSERT_TRUE(relay_conn_wants_input(r0->conn, f.now_ns + RELAY_CUT_WAIT_NS));
    finish(sent, total);
}

TEST(slow_receiver_that_drains)
{
    uint64_t total = 4 * RELAY_CUT_BACKLOG_MAX;
    uint64_t sent;

    start();
    sent = send_until_held(total);
    CU_ASSERT_TRUE(sent < total);
    fixture_read(r1);
    CU_ASSERT_TRUE(relay_conn_wants_input(r0->conn, f.now_ns));
    r1->stalled = true;
    /* having drained, it may be slow again and its sender gets the full wait again */
    for (; sent < total && relay_conn_wants_input(r0->conn, f.now_ns); sent += CW_FRAME_DATA_MAX)
        say_more(r0, 5, sent, CW_FRAME_DATA_MAX);
    CU_ASSERT_TRUE(sent < total);
    CU_ASSERT_FALSE(relay_conn_wants_input(r0->conn, f.now_ns + RELAY_CUT_WAIT_NS - 1));
    finish(sent, total);
}

TEST(slow_receiver_that_ends)
{
    uint64_t total = 4 * RELAY_CUT_BACKLOG_MAX;

    start();
    CU_ASSERT_TRUE(send_until_held(total) < total);
    fixture_close(r1, "crash");
    CU_ASSERT_TRUE(relay_conn_wants_input(r0->conn, f.now_ns));
}

/* What nobody has asked for is stored: its sender never waits. */
TEST(unexpected_bytes_hold_nobody)
{
    uint64_t total = 2 * RELAY_CUT_BACKLOG_MAX;

    start();
    f.mute = true;
    r1->stalled = true;
    say_begin(r0, CW_SEND_TAG, 1, 5, total, CW_FRAME_DATA_MAX);
    for (uint64_t sent = CW_FRAME_DATA_MAX; sent < total; sent += CW_FRAME_DATA_MAX) {
        CU_ASSERT_TRUE(relay_conn_wants_input(r0->conn, f.now_ns));
        say_more(r0, 5, sent, CW_FRAME_DATA_MAX);
    }
    say_recv(r1, 7, 5);
    fixture_read(r1);
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, total));
}
