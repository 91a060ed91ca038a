/* Cut-through as an engine sees it: when payload may go past the core's blocks, how much, and that
 * the log has it whoever vanishes meanwhile. What it brings to whom is told by the stories of
 * test_large.c, test_recovery_large.c and the random ones, which are told with it too. */
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE_AFTER_EACH("trace of cut-through", fixture_end);

#define TOTAL 180000u
#define PIECE 60000u
#define SEND_FIXED (CW_FRAME_HEADER + CW_SEND_SIZE)

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];

/* Rank 0 says the header of a message for rank 1, and none of its payload. */
static void say_header(uint64_t tag, uint64_t total, uint32_t size)
{
    struct cw_send send = {.dst = 1, .kind = CW_SEND_TAG, .tag = tag, .total = total};
    uint8_t *to = codec_begin(&r0->codec, CW_FRAME_SEND, CW_SEND_SIZE + size);

    cw_send_put(to, &send);
    codec_pattern(to + CW_SEND_SIZE, tag, 0, size);
    fixture_feed_some(r0, SEND_FIXED);
}

/* A job of which rank 1 waits for message 5 if `posted`. */
static void start_job(bool log, bool posted)
{
    if (log)
        fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    else
        fixture_init(&f, FIXTURE_MEMORY);
    fixture_start(&f, 3);
    f.mute = true;
    if (posted)
        say_recv(r1, 7, 5);
}

static void start(bool log, bool posted)
{
    start_job(log, posted);
    say_header(5, TOTAL, PIECE);
}

static const uint8_t *said(void)
{
    return r0->codec.out.at + r0->codec.out.start;
}

/* What the engine does with it, but for passing it on. */
static void log_cut(const struct relay_cut *cut)
{
    memcpy(cut->log, said(), cut->size);
    codec_take(&r0->codec.out, cut->size);
    relay_cut_done(cut);
}

TEST(to_whom)
{
    start(false, true);
    CU_ASSERT_PTR_EQUAL(relay_conn_cut_to(r0->conn), r1->conn);
    CU_ASSERT_PTR_NULL(relay_conn_cut_to(r1->conn));
    CU_ASSERT_PTR_NULL(relay_conn_cut_to(f.dispatcher.conn));
    fixture_feed_some(r0, PIECE);
    CU_ASSERT_PTR_NULL(relay_conn_cut_to(r0->conn)); /* between two frames */
}

TEST(not_while_nobody_waits_for_it)
{
    start(false, false);
    CU_ASSERT_PTR_NULL(relay_conn_cut_to(r0->conn));
    say_recv(r1, 7, 5);
    CU_ASSERT_PTR_EQUAL(relay_conn_cut_to(r0->conn), r1->conn);
}

TEST(not_behind_what_is_queued)
{
    start(false, true);
    r1->stalled = true;
    say_send(&f.rank[2], 1, 9, "");
    say_recv(r1, 8, 9);
    CU_ASSERT_EQUAL(relay_conn_cut(r0->conn, PIECE).size, 0);
    fixture_read(r1);
    CU_ASSERT_NOT_EQUAL(relay_conn_cut(r0->conn, PIECE).size, 0);
}

TEST(not_to_one_that_repeats)
{
    start(true, true);
    fixture_close(r1, "crash");
    CU_ASSERT_PTR_NULL(relay_conn_cut_to(r0->conn));
    fixture_again(r1);
    CU_ASSERT_PTR_NULL(relay_conn_cut_to(r0->conn));
    say_live(r1, 0, 0);
    CU_ASSERT_PTR_EQUAL(relay_conn_cut_to(r0->conn), r1->conn);
}

TEST(no_more_than_the_frame)
{
    struct relay_cut cut;

    start(false, true);
    cut = relay_conn_cut(r0->conn, 10 * PIECE);
    CU_ASSERT_EQUAL(cut.size, PIECE);
    CU_ASSERT_PTR_NULL(cut.log);
    CU_ASSERT_PTR_EQUAL(cut.to, r1->conn);
    CU_ASSERT_TRUE(relay_conn_has_output(r1->conn));
    relay_cut_done(&cut);
}

/* The rest of a message that is longer than its receive goes nowhere. */
TEST(no_more_than_the_receive)
{
    struct relay_cut cut;

    start(false, false);
    say_recv_mask(r1, 7, 5, CODEC_ALL, 100);
    cut = relay_conn_cut(r0->conn, PIECE);
    CU_ASSERT_EQUAL(cut.size, 100);
    relay_cut_done(&cut);
    CU_ASSERT_PTR_NULL(relay_conn_cut_to(r0->conn));
}

/* No block is taken but the log's. */
TEST(takes_no_memory)
{
    uint64_t before;
    struct relay_cut cut;

    start(false, true);
    before = relay_core_stats(f.core)->memory_now;
    cut = relay_conn_cut(r0->conn, PIECE);
    CU_ASSERT_EQUAL(cut.size, PIECE);
    CU_ASSERT_TRUE(relay_core_stats(f.core)->memory_now <= before + sizeof(struct relay_block));
    relay_cut_done(&cut);
}

/* The receiver vanishes after its share was promised: the next incarnation gets it from the log. */
TEST(receiver_vanishes_meanwhile)
{
    struct relay_cut cut;

    start(true, true);
    cut = relay_conn_cut(r0->conn, PIECE);
    CU_ASSERT_PTR_EQUAL(cut.to, r1->conn);
    fixture_close(r1, "crash");
    log_cut(&cut);
    fixture_again(r1);
    say_live(r1, 0, 0);
    say_more(r0, 5, PIECE, TOTAL - PIECE);
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
}

/* The log is given up while the engine still copies into it. */
TEST(job_ends_meanwhile)
{
    struct relay_cut cut;

    start(true, true);
    cut = relay_conn_cut(r0->conn, PIECE);
    fixture_close(&f.dispatcher, "crash");
    memset(cut.log, 1, cut.size);
    relay_cut_done(&cut);
}

/* Without memory for the log's block nothing happens; the way through blocks says why. */
TEST(no_memory)
{
    uint64_t spent;
    struct relay_cut cut;

    start(true, true);
    spent = fixture_spend(&f, 100);
    cut = relay_conn_cut(r0->conn, PIECE);
    CU_ASSERT_EQUAL(cut.size, 0);
    CU_ASSERT_FALSE(relay_conn_has_output(r1->conn));
    relay_core_stats(f.core)->memory_now -= spent;
    fixture_feed_some(r0, PIECE);
    say_more(r0, 5, PIECE, TOTAL - PIECE);
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
}

/* --- what to read before ---------------------------------------------------------------------- */
struct bytes {
    uint8_t at[1 << 16];
    size_t size;
};

static void peek(void *ctx, size_t skip, void *to, size_t size)
{
    const struct bytes *bytes = ctx;

    CU_ASSERT_TRUE_FATAL(skip + size <= bytes->size);
    memcpy(to, bytes->at + skip, size);
}

static void add_frame(struct bytes *bytes, uint8_t type, uint32_t length, uint32_t there)
{
    struct cw_writer w = cw_writer(bytes->at + bytes->size, CW_FRAME_HEADER);

    memset(bytes->at + bytes->size, 0, CW_FRAME_HEADER + there);
    cw_put_u32(&w, length);
    cw_put_u32(&w, type);
    bytes->size += CW_FRAME_HEADER + there;
}

static size_t before(struct bytes *bytes)
{
    return relay_conn_before_cut(r1->conn, bytes->size, peek, bytes);
}

TEST(up_to_the_payload)
{
    struct bytes bytes = {.size = 0};

    start(false, true);
    CU_ASSERT_EQUAL(before(&bytes), 0);
    add_frame(&bytes, CW_FRAME_SEND, CW_SEND_SIZE + 100, CW_SEND_SIZE + 100);
    CU_ASSERT_EQUAL(before(&bytes), 0);
    add_frame(&bytes, CW_FRAME_SEND, CW_SEND_SIZE + PIECE, CW_SEND_SIZE);
    CU_ASSERT_EQUAL(before(&bytes), 0); /* no payload is there */
    bytes.size += 10;
    CU_ASSERT_EQUAL(before(&bytes), bytes.size - 10);
    /* in the middle of payload everything may be read */
    CU_ASSERT_EQUAL(relay_conn_before_cut(r0->conn, bytes.size, peek, &bytes), 0);
}

/* A stream of small frames is read at once. */
TEST(many_small_frames)
{
    struct bytes bytes = {.size = 0};

    start(false, true);
    for (int i = 0; i < 100; i++)
        add_frame(&bytes, CW_FRAME_SEND, CW_SEND_SIZE + 8, CW_SEND_SIZE + 8);
    add_frame(&bytes, CW_FRAME_SEND, CW_SEND_SIZE + PIECE, CW_SEND_SIZE + 100);
    CU_ASSERT_EQUAL(before(&bytes), 0);
}

TEST(lengths_that_cannot_be)
{
    static const uint32_t lengths[] = {UINT32_MAX, UINT32_MAX - CW_FRAME_HEADER, 1u << 31, 0, 1};
    static const uint8_t types[] = {CW_FRAME_SEND, CW_FRAME_RECV, 0, 200, 255};

    start(false, true);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
        for (size_t k = 0; k < sizeof(types); k++) {
            struct bytes bytes = {.size = 0};

            add_frame(&bytes, types[k], lengths[i], 3);
            CU_ASSERT_TRUE(before(&bytes) <= bytes.size);
            add_frame(&bytes, CW_FRAME_SEND, CW_SEND_SIZE + PIECE, CW_SEND_SIZE + 1);
            CU_ASSERT_TRUE(before(&bytes) <= bytes.size);
        }
}
