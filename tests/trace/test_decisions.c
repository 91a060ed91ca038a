/* What ranks decide in channel memory is part of each commit. Where the memory is lost with its
 * host, what goes together of it is handed to their successors, as often as that happens. */
#include "common/decided.h"
#include "tests/trace/killed.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

static void finish(void);
SUITE_AFTER_EACH("trace of decisions", finish);

#define RANKS 3u
#define LOG (4u << 20)
#define RESUME_MS 5000

static struct fixture f;
static uint8_t *bytes;
static size_t size;
static struct cw_channel channel;
static struct cw_stream decisions[RANKS];
static uint64_t handed; /* bytes of DECIDED, and how many decisions these were */
static uint64_t decided;
static uint32_t ends;

/* --- the memory --- */

static uint64_t size_of(void *ctx)
{
    (void)ctx;
    return size;
}

static bool read_bytes(void *ctx, uint64_t at, void *to, size_t n)
{
    (void)ctx;
    if (at > size || n > size - at)
        return false;
    memcpy(to, bytes + at, n);
    return true;
}

/* Another one, of which all is zero. */
static void new_memory(void)
{
    free(bytes);
    size = cw_channel_bytes(RANKS, LOG);
    bytes = calloc(1, size);
    CU_ASSERT_TRUE_FATAL(cw_channel_at(&channel, bytes, size, RANKS));
    for (uint32_t rank = 0; rank < RANKS; rank++)
        decisions[rank] = cw_channel_decisions(&channel, rank);
}

/* A rank decides something: it takes of another one what that put when it had decided so much. */
static void take(uint32_t rank, uint32_t from, uint64_t needs)
{
    struct cw_piece piece = {.type = CW_PIECE_TOOK, .req = from, .more = 1, .total = needs};

    CU_ASSERT_TRUE_FATAL(cw_stream_fits(&decisions[rank], 0));
    cw_stream_put(&decisions[rank], &piece, NULL, 0);
}

static void send(uint32_t rank)
{
    const uint64_t rest[2] = {rank, decisions[rank].at};
    struct cw_piece piece = {.type = CW_PIECE_SEND, .size = sizeof(rest), .more = CW_SEND_TAG};

    CU_ASSERT_TRUE_FATAL(cw_stream_fits(&decisions[rank], sizeof(rest)));
    cw_stream_put(&decisions[rank], &piece, &(struct iovec){(void *)rest, sizeof(rest)}, 0);
}

/* --- the relay and its clients --- */

static void on_frame(struct client *c, const struct codec_frame *frame)
{
    struct cw_reader r = cw_reader(frame->body, frame->header.length);
    const uint8_t *payload;
    struct cw_piece piece;

    (void)c;
    if (frame->header.type != CW_FRAME_DECIDED)
        return;
    handed += frame->header.length;
    ends += frame->header.length == 0;
    while (r.left > 0 && cw_decision_get(&r, &piece, &payload))
        decided++;
    CU_ASSERT_TRUE(cw_reader_end(&r));
}

static void come(uint32_t rank)
{
    cw_channel_come(&channel, rank);
}

static void start(void)
{
    new_memory();
    fixture_init_channel(&f, &(struct relay_channel){.size = size_of, .read = read_bytes});
    f.resume_ms = RESUME_MS;
    f.merged = true;
    f.on_frame = on_frame;
    for (uint32_t rank = 0; rank < RANKS; rank++)
        come(rank);
    fixture_start(&f, RANKS);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        say_room(&f.rank[rank], 1u << 20);
    fixture_forget(&f);
}

static void finish(void)
{
    fixture_end();
    free(bytes);
    bytes = NULL;
}

/* Something is told to others: a commit. */
static void commit(void)
{
    say_send(&f.rank[0], 1, 5, "out");
    fixture_forget(&f);
}

/* The host is lost: another relay goes on with the log, in another memory, and the dispatcher comes
 * to it. */
static void lose(void)
{
    new_memory();
    CU_ASSERT_EQUAL(fixture_kill(&f).lost, 0);
    fixture_come_back(&f.dispatcher);
    fixture_forget(&f);
}

/* The next incarnation of a rank: returns how many decisions it was handed. */
static uint64_t again(uint32_t rank)
{
    handed = decided = ends = 0;
    come(rank);
    fixture_again(&f.rank[rank]);
    CU_ASSERT_EQUAL(!!(f.rank[rank].welcome.flags & CW_WELCOME_DECIDED), ends);
    return decided;
}

/* It writes what it was handed into its memory. */
static void write_again(uint32_t rank, uint64_t count)
{
    while (decisions[rank].sum.messages < count)
        send(rank);
}

TEST(what_was_committed_comes_back)
{
    start();
    send(0);
    send(0);
    take(1, 0, 2);
    commit();
    lose();
    CU_ASSERT_EQUAL(again(0), 2);
    expect_has(&f, "0 > WELCOME event 0 acts 2 LOG REPLAY DECIDED\n");
    CU_ASSERT_EQUAL(again(1), 1);
    CU_ASSERT_TRUE(again(2) == 0 && ends == 1);
}

/* What no commit told of was seen by nobody. */
TEST(what_was_not_committed_is_gone)
{
    start();
    send(0);
    commit();
    send(0);
    lose();
    CU_ASSERT_EQUAL(again(0), 1);
}

/* Rank 1 took what rank 0 had put behind a decision that was not read any more; rank 2 goes on from
 * that. */
TEST(what_does_not_go_together_is_cut)
{
    start();
    send(0);
    send(1);
    take(1, 0, 2);
    send(1);
    take(2, 1, 1);
    take(2, 1, 3);
    commit();
    lose();
    CU_ASSERT_EQUAL(again(0), 1);
    CU_ASSERT_EQUAL(again(1), 1);
    CU_ASSERT_EQUAL(again(2), 1);
}

/* The relay is there before the first rank, for whom the memory is made. */
TEST(a_memory_that_is_not_made_yet)
{
    size_t made;

    start();
    send(0);
    commit();
    new_memory();
    made = size;
    size = 0;
    CU_ASSERT_EQUAL(fixture_kill(&f).lost, 0);
    fixture_come_back(&f.dispatcher);
    say_checkpoint(&f, 0, 1, 0); /* it says something: a commit */
    fixture_disk_all(&f);
    size = made;
    CU_ASSERT_EQUAL(again(0), 1);
}

/* Its memory is there: it reads that itself. */
TEST(a_crash_alone)
{
    start();
    send(0);
    commit();
    fixture_kill_whole(&f, RANKS);
    CU_ASSERT_TRUE(again(0) == 0 && ends == 0);
    say_live(&f.rank[0], 1, 1);
    send(0);
    commit();
    lose();
    CU_ASSERT_EQUAL(again(0), 2);
}

/* A rank that crashes while it repeats is handed them once more; one that is live is not. */
TEST(a_crash_after_a_loss)
{
    start();
    for (int i = 0; i < 10; i++)
        send(0);
    commit();
    lose();
    CU_ASSERT_EQUAL(again(0), 10);
    write_again(0, 4);
    CU_ASSERT_EQUAL(again(0), 10);
    write_again(0, 10);
    say_live(&f.rank[0], 0, 1);
    CU_ASSERT_TRUE(again(0) == 0 && ends == 0);
}

/* What was written again is there already; what comes behind it is not, and what was cut off does
 * not come back. */
TEST(a_second_loss)
{
    start();
    for (int i = 0; i < 10; i++)
        send(0);
    take(1, 0, 5);
    take(1, 0, 11);
    send(1);
    commit();
    for (uint64_t loss = 0; loss < 3; loss++) {
        lose();
        CU_ASSERT_EQUAL(again(0), 10 + loss);
        CU_ASSERT_EQUAL(again(1), 1 + 2 * loss);
        CU_ASSERT_EQUAL(again(2), 0);
        write_again(0, 10 + loss);
        take(1, 0, 5);
        for (uint64_t i = 0; i < loss; i++) {
            send(1);
            take(1, 0, 10);
        }
        for (uint32_t rank = 0; rank < RANKS; rank++)
            say_live(&f.rank[rank], 0, 1);
        send(0);
        send(1);
        take(1, 0, 10);
        take(1, 0, 100); /* which nobody will have */
        send(1);
        commit();
    }
}

/* The relay is killed between: what is lost stays lost until its rank is live, and no more is cut.
 */
TEST(a_relay_killed_after_a_loss)
{
    start();
    send(0);
    send(1);
    commit();
    lose();
    CU_ASSERT_EQUAL(again(0), 1);
    write_again(0, 1);
    say_live(&f.rank[0], 0, 1);
    take(0, 1, 1);
    commit();
    CU_ASSERT_EQUAL(fixture_kill(&f).lost, 0);
    fixture_come_back(&f.dispatcher);
    fixture_come_back(&f.rank[0]);
    CU_ASSERT_EQUAL(again(1), 1);
    CU_ASSERT_TRUE(again(0) == 0 && ends == 0);
    lose();
    CU_ASSERT_EQUAL(again(0), 2);
}

/* More than fits a frame, and what waits to be written at a time. */
TEST(many_decisions)
{
    start();
    for (int i = 0; i < 60000; i++)
        send(0);
    commit();
    lose();
    CU_ASSERT_EQUAL(again(0), 60000);
    CU_ASSERT_TRUE(handed > 1u << 20);
}

/* A rank that writes what cannot be loses its log alone. */
TEST(a_rank_that_writes_anything)
{
    start();
    send(0);
    send(1);
    take(2, 0, 1);
    commit();
    ((struct cw_piece *)(decisions[1].block + decisions[1].offset))->type = CW_PIECE_TAG;
    ((struct cw_piece *)(decisions[1].block + decisions[1].offset))->stamp = decisions[1].at + 1;
    say_send(&f.rank[0], 1, 5, "out");
    expect_has(&f, "d > NOTICE UNLOGGED rank 1 'what it decides cannot be read in the channel "
                   "memory of its host'\n");
    send(0);
    commit();
}

/* From an image a rank cannot go on in a memory that has nothing of what came since. */
TEST(no_image_after_a_loss)
{
    const struct cw_point point = {.event = 0, .clock = 7, .acts = 1};

    start();
    say_point(&f.rank[1], &point);
    send(1);
    commit();
    lose();
    come(1);
    fixture_again_from(&f.rank[1], &point);
    expect_has(&f, "cannot go on from an image");
}
