/* Channel memory: pieces come out as they went in, in order, whatever their sizes; a piece that is
 * half written is not there; and nothing that the other side writes makes a reader or a writer
 * leave the memory. */
#include "common/channel.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

SUITE("channel");

#define GUARD 4096u
#define GUARDED 0xa5
#define STEPS 20000
#define THREADED (64u << 20) /* bytes from thread to thread */
#define HOSTILE 20000

static uint8_t *all;
static size_t bytes;
static struct cw_channel channel;
static struct cw_stream writer;
static struct cw_stream reader;
static uint64_t put; /* bytes so far: byte i is that of the pattern */
static uint64_t taken;
static uint64_t seed;

static void start_with(uint32_t ranks, uint64_t log)
{
    bytes = cw_channel_bytes(ranks, log);
    all = mmap(NULL, bytes + 2 * GUARD, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(all, MAP_FAILED);
    memset(all, GUARDED, GUARD);
    memset(all + GUARD + bytes, GUARDED, GUARD);
    CU_ASSERT_TRUE_FATAL(cw_channel_at(&channel, all + GUARD, bytes, ranks));
    writer = reader = cw_channel_stream(&channel, ranks - 1, 0, log > 0);
    put = taken = 0;
    seed = 1;
}

static void start(uint32_t ranks)
{
    start_with(ranks, 0);
}

static void finish(void)
{
    bool whole = true;

    for (size_t i = 0; i < GUARD; i++)
        whole &= all[i] == GUARDED && all[GUARD + bytes + i] == GUARDED;
    CU_ASSERT_TRUE(whole);
    munmap(all, bytes + 2 * GUARD);
}

static uint8_t pattern(uint64_t i)
{
    return (uint8_t)(i * 0x9e3779b97f4a7c15ull >> 56);
}

static uint64_t below(uint64_t bound)
{
    return codec_random_below(&seed, bound);
}

/* One piece from two vectors, behind bytes that are passed over. False: there is no room. */
static bool put_one(uint32_t wanted)
{
    uint8_t from[CW_CHANNEL_PIECE_MAX + 16];
    int32_t room = cw_stream_room(&writer, wanted);
    struct cw_piece piece = {.type = CW_PIECE_MORE, .tag = put, .total = wanted, .req = 7};
    struct iovec parts[2];

    CU_ASSERT_FALSE(writer.broken);
    if (room < 0)
        return false;
    CU_ASSERT_TRUE((uint32_t)room <= wanted && room <= (int32_t)CW_CHANNEL_PIECE_MAX);
    CU_ASSERT_TRUE((uint32_t)room == wanted || room >= (int32_t)CW_CHANNEL_PIECE_MIN);
    piece.size = (uint32_t)room;
    for (int32_t i = 0; i < room; i++)
        from[16 + i] = pattern(put + (uint64_t)i);
    parts[0] = (struct iovec){from, 16 + (size_t)room / 3};
    parts[1] = (struct iovec){from + parts[0].iov_len, 16 + (size_t)room - parts[0].iov_len};
    cw_stream_put(&writer, &piece, parts, 16);
    put += (uint64_t)room;
    return true;
}

static bool take_one(void)
{
    uint8_t to[CW_CHANNEL_PIECE_MAX];
    struct cw_piece piece;
    bool same = true;

    if (!cw_stream_next(&reader, &piece))
        return false;
    CU_ASSERT_TRUE_FATAL(piece.size <= sizeof(to));
    CU_ASSERT_TRUE(piece.type == CW_PIECE_MORE && piece.tag == taken && piece.req == 7);
    memcpy(to, cw_stream_payload(&reader), piece.size);
    for (uint32_t i = 0; i < piece.size; i++)
        same &= to[i] == pattern(taken + i);
    CU_ASSERT_TRUE(same);
    taken += piece.size;
    cw_stream_take(&reader, &piece);
    return true;
}

TEST(pieces_come_as_they_went)
{
    static const uint32_t ranks[] = {2, 64, CW_CHANNEL_RANKS_MAX};

    for (size_t r = 0; r < sizeof(ranks) / sizeof(*ranks); r++) {
        start(ranks[r]);
        for (int step = 0; step < STEPS; step++) {
            uint32_t wanted = (uint32_t)(below(4) ? below(200) : below(2 * CW_CHANNEL_PIECE_MAX));

            if (below(2))
                put_one(wanted);
            else
                take_one();
        }
        while (take_one())
            ;
        CU_ASSERT_TRUE(put == taken && put > 0 && !reader.broken);
        finish();
    }
}

/* However many ranks there are: a message that is larger than a stream goes on in pieces. */
TEST(large_messages_pass_any_stream)
{
    for (uint32_t ranks = 1; ranks <= CW_CHANNEL_RANKS_MAX; ranks *= 2) {
        start(ranks);
        for (int i = 0; i < 100; i++) {
            CU_ASSERT_TRUE_FATAL(put_one(CW_CHANNEL_PIECE_MAX));
            CU_ASSERT_TRUE_FATAL(take_one());
        }
        CU_ASSERT_TRUE(put > (uint64_t)CW_CHANNEL_AHEAD * channel.block_bytes);
        finish();
    }
}

/* A writer that nobody reads is told that there is no room, and has it again afterwards. */
TEST(a_full_stream_has_no_room)
{
    start(2);
    while (put_one(1000))
        ;
    CU_ASSERT_TRUE(put > CW_CHANNEL_BLOCK_MAX && !writer.spent);
    while (take_one())
        ;
    CU_ASSERT_TRUE(put_one(CW_CHANNEL_PIECE_MAX) && take_one());
    finish();
}

/* What lies where the next piece will be is payload of an earlier one, and may look like the stamp
 * of a piece at this place when its block is used again. */
TEST(old_payload_is_no_piece)
{
    uint64_t stamps[CW_CHANNEL_PIECE_MAX / 8];
    struct cw_piece piece = {.size = 0};

    start(2);
    for (int step = 0; step < STEPS; step++) {
        int32_t room = cw_stream_room(&writer, 1 + below(sizeof(stamps)));

        if (room >= 0) {
            for (size_t i = 0; i < sizeof(stamps) / 8; i++)
                stamps[i] = writer.at + sizeof(piece) + 8 * i +
                            (1 + below(CW_CHANNEL_AHEAD)) * channel.block_bytes + 1;
            piece = (struct cw_piece){.size = (uint32_t)room, .type = CW_PIECE_MORE};
            cw_stream_put(&writer, &piece, &(struct iovec){stamps, sizeof(stamps)}, 0);
        }
        while (below(3) && cw_stream_next(&reader, &piece))
            cw_stream_take(&reader, &piece);
        CU_ASSERT_TRUE_FATAL(reader.at <= writer.at && !reader.broken);
    }
    finish();
}

/* docs/protocol.md, Channel memory. */
TEST(memory_has_its_size)
{
    static const struct {
        uint32_t ranks;
        uint32_t block;
    } sizes[] = {{1, 131072}, {22, 131072}, {23, 65536}, {32, 65536}, {33, 32768}, {128, 32768}};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        bytes = cw_channel_bytes(sizes[i].ranks, 0);
        CU_ASSERT_TRUE(cw_channel_at(&channel, NULL, bytes, sizes[i].ranks));
        CU_ASSERT_EQUAL(channel.block_bytes, sizes[i].block);
        CU_ASSERT_EQUAL(channel.blocks, 4 * sizes[i].ranks * sizes[i].ranks);
        CU_ASSERT_FALSE(cw_channel_at(&channel, NULL, bytes - 1, sizes[i].ranks));
    }
    CU_ASSERT_FALSE(cw_channel_at(&channel, NULL, bytes, 0));
    CU_ASSERT_FALSE(cw_channel_at(&channel, NULL, SIZE_MAX / 2, CW_CHANNEL_RANKS_MAX + 1));
    CU_ASSERT_FALSE(cw_channel_at(&channel, NULL, SIZE_MAX / 2, 2)); /* more blocks than numbers */
}

/* A reader says that it has taken what was not put. */
TEST(a_reader_that_is_ahead)
{
    start(2);
    while (put_one(CW_CHANNEL_PIECE_MAX))
        ;
    *(uint64_t *)writer.head = writer.at + 64;
    CU_ASSERT_TRUE(cw_stream_room(&writer, CW_CHANNEL_PIECE_MAX) < 0 && writer.broken);
    finish();
}

static void *write_all(void *arg)
{
    uint64_t random = 5;

    (void)arg;
    while (put < THREADED)
        if (!put_one((uint32_t)codec_random_below(&random, 50000)))
            sched_yield();
    return NULL;
}

TEST(thread_to_thread)
{
    pthread_t thread;

    start(2);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, write_all, NULL), 0);
    while (taken < THREADED)
        if (!take_one())
            sched_yield();
    pthread_join(thread, NULL);
    finish();
}

/* The other side writes anything anywhere in the memory. */
TEST(a_hostile_side_harms_nobody)
{
    static uint8_t to[CW_CHANNEL_PIECE_MAX];
    struct cw_piece piece;

    start(2);
    for (int step = 0; step < HOSTILE; step++) {
        uint64_t *word;

        put_one(100);
        if (cw_stream_readable(&reader))
            cw_stream_next(&reader, &piece);
        word = (uint64_t *)(reader.block + reader.offset);
        for (int i = 1; i < 5; i++)
            word[i] = below(3) ? below(1u << 20) : codec_random_below(&seed, UINT64_MAX);
        if (below(4))
            word[0] = reader.at + 1;
        if (cw_stream_next(&reader, &piece)) {
            CU_ASSERT_TRUE_FATAL(piece.size <= sizeof(to) && piece.type < CW_PIECE_TYPES);
            memcpy(to, cw_stream_payload(&reader), piece.size);
            cw_stream_take(&reader, &piece);
        }
        reader.broken = false;
        if (below(50) == 0) {
            finish();
            start(2);
        }
    }
    finish();
}

TEST(who_sleeps_is_woken_once)
{
    _Atomic uint32_t *futex;

    start(3);
    CU_ASSERT_FALSE(cw_channel_wakes(&channel, 1, &futex));
    CU_ASSERT_EQUAL(*cw_channel_sleep(&channel, 1), 1);
    CU_ASSERT_FALSE(cw_channel_wakes(&channel, 2, &futex));
    CU_ASSERT_TRUE(cw_channel_wakes(&channel, 1, &futex));
    CU_ASSERT_FALSE(cw_channel_wakes(&channel, 1, &futex));
    cw_channel_sleep(&channel, 1);
    cw_channel_woke(&channel, 1);
    CU_ASSERT_FALSE(cw_channel_wakes(&channel, 1, &futex));
    CU_ASSERT_FALSE(cw_stream_is_awaited(&reader));
    cw_stream_wait(&writer);
    CU_ASSERT_TRUE(cw_stream_is_awaited(&reader) && !cw_stream_is_awaited(&reader));
    finish();
}

TEST(ranks_say_where_they_are)
{
    start(3);
    CU_ASSERT_FALSE(cw_channel_come(&channel, 1));
    CU_ASSERT_TRUE(cw_channel_come(&channel, 1) && !cw_channel_come(&channel, 2));
    cw_channel_set_bell(&channel, 1, 17);
    CU_ASSERT_TRUE(cw_channel_bell(&channel, 1) == 17 && cw_channel_bell(&channel, 2) == 0);
    CU_ASSERT_FALSE(cw_channel_shares_cpu(&channel, 2, 0));
    cw_channel_runs_on(&channel, 1, 0);
    cw_channel_runs_on(&channel, 2, 0);
    CU_ASSERT_TRUE(cw_channel_shares_cpu(&channel, 2, 0) && !cw_channel_shares_cpu(&channel, 1, 0));
    cw_channel_runs_on(&channel, 1, 3);
    CU_ASSERT_TRUE(!cw_channel_shares_cpu(&channel, 2, 0) && cw_channel_shares_cpu(&channel, 2, 3));
    finish();
}

/* What was read stays, and an incarnation that begins anew reads it again; its successor as a
 * writer goes on behind the last whole piece. */
TEST(a_kept_stream_is_read_again)
{
    uint64_t before;

    start_with(2, 64u << 20);
    while (put < (8u << 20))
        put_one((uint32_t)below(2 * CW_CHANNEL_PIECE_MAX));
    for (int incarnation = 0; incarnation < 3; incarnation++) {
        reader = cw_channel_stream(&channel, 1, 0, true);
        taken = 0;
        while (take_one())
            ;
        CU_ASSERT_EQUAL(taken, put);
        before = writer.at;
        writer = cw_channel_stream(&channel, 1, 0, true);
        if (incarnation == 1) /* the one before was killed while it noted where it is */
            memset((uint8_t *)writer.head + 64 + 20, 0, 4);
        cw_stream_find_end(&writer);
        CU_ASSERT_EQUAL(writer.at, before);
        put_one(3000);
    }
    finish();
}

/* A piece whose writer died before the end of it was never put. */
TEST(half_a_piece_is_none)
{
    start_with(2, 1u << 20);
    put_one(100);
    put_one(100);
    writer = cw_channel_stream(&channel, 1, 0, true);
    cw_stream_find_end(&writer);
    memset(writer.block + writer.offset + 8, 0x77, 4096);
    CU_ASSERT_TRUE(take_one() && take_one() && !take_one() && !reader.broken);
    CU_ASSERT_TRUE(put_one(5000) && take_one() && !take_one());
    finish();
}

TEST(a_log_without_blocks_is_spent)
{
    start_with(2, 0);
    writer.keeps = reader.keeps = true;
    while (put_one(CW_CHANNEL_PIECE_MAX))
        ;
    CU_ASSERT_TRUE(writer.spent);
    while (take_one())
        ;
    CU_ASSERT_EQUAL(taken, put);
    finish();
}

/* Several streams share the blocks; none is lost, none is used twice. */
/* How many blocks the writer fills until there is none; each piece fills most of one. */
static uint32_t fill_blocks(void)
{
    uint64_t before = writer.at / channel.block_bytes;

    while (put_one(CW_CHANNEL_PIECE_MAX))
        ;
    CU_ASSERT_TRUE(writer.spent);
    return (uint32_t)(writer.at / channel.block_bytes - before);
}

/* Blocks of the file are there once it has them; those of the memory come first, again and again.
 */
TEST(a_file_behind_the_memory)
{
    const uint64_t block = CW_CHANNEL_BLOCK_MAX;
    const uint32_t in_memory = 2 * 2 * CW_CHANNEL_AHEAD + 8;

    start_with(2, 20 * block);
    cw_channel_with_file(&channel, cw_channel_blocks_of(2, 12 * block + 5));
    CU_ASSERT_EQUAL(channel.in_memory, in_memory);
    CU_ASSERT_EQUAL(fill_blocks() + 1, in_memory);
    CU_ASSERT_EQUAL(cw_channel_provided(&channel), 0);
    cw_channel_provide(&channel, 4 * block);
    cw_channel_provide(&channel, 3 * block); /* by one who was late */
    CU_ASSERT_EQUAL(cw_channel_provided(&channel), 4 * block);
    CU_ASSERT_EQUAL(fill_blocks(), 4);
    while (take_one())
        ;
    CU_ASSERT_EQUAL(taken, put);
    cw_stream_free(&reader, reader.at); /* all but the last two */
    CU_ASSERT_EQUAL(fill_blocks(), in_memory + 2);
    cw_channel_provide(&channel, 100 * block); /* no more than there is */
    CU_ASSERT_EQUAL(fill_blocks(), 8);
    finish();
}

TEST(blocks_go_from_stream_to_stream)
{
    struct cw_stream writers[4];
    struct cw_stream readers[4];
    uint64_t put_of[4] = {0};
    uint64_t taken_of[4] = {0};

    start(4);
    for (uint32_t i = 0; i < 4; i++)
        writers[i] = readers[i] = cw_channel_stream(&channel, i, 2, false);
    for (int step = 0; step < STEPS; step++) {
        uint64_t i = below(4);

        writer = writers[i];
        reader = readers[i];
        put = put_of[i];
        taken = taken_of[i];
        if (below(2))
            put_one((uint32_t)below(CW_CHANNEL_PIECE_MAX));
        else
            take_one();
        CU_ASSERT_FALSE_FATAL(writer.spent || reader.broken);
        writers[i] = writer;
        readers[i] = reader;
        put_of[i] = put;
        taken_of[i] = taken;
    }
    finish();
}

/* Whoever decides writes much that is small, and gives it all back when nothing is kept any more; a
 * writer that was far ahead has room then. */
TEST(what_was_decided_is_given_back)
{
    struct cw_piece piece = {.type = CW_PIECE_TOOK};
    uint32_t before;

    start_with(2, 2u << 20);
    writer = reader = cw_channel_decisions(&channel, 0);
    CU_ASSERT_TRUE_FATAL(cw_stream_fits(&writer, 0));
    cw_stream_put(&writer, &piece, NULL, 0);
    CU_ASSERT_EQUAL(writer.at, sizeof(piece));
    while (writer.at < 5ull * channel.block_bytes && cw_stream_fits(&writer, 0))
        cw_stream_put(&writer, &piece, NULL, 0);
    cw_stream_forget(&writer);
    before = *(uint32_t *)(channel.memory + 64); /* blocks that were ever taken */
    writer = reader = cw_channel_stream(&channel, 1, 0, true);
    while (writer.at < 3ull * channel.block_bytes)
        put_one(CW_CHANNEL_PIECE_MAX);
    CU_ASSERT_EQUAL(*(uint32_t *)(channel.memory + 64), before);
    while (take_one())
        ;
    cw_stream_forget(&reader);
    writer.keeps = false;
    before = writer.number;
    while (writer.number == before)
        CU_ASSERT_TRUE_FATAL(put_one(CW_CHANNEL_PIECE_MAX));
    finish();
}

/* A rank has repeated a part of what it decided, and goes on behind all of it. */
TEST(decisions_go_on_behind_the_last)
{
    struct cw_piece piece = {.type = CW_PIECE_TOOK};
    uint32_t count = 0;

    start_with(2, 1u << 20);
    writer = reader = cw_channel_decisions(&channel, 0);
    for (int i = 0; i < 3 && cw_stream_fits(&writer, 0); i++)
        cw_stream_put(&writer, &piece, NULL, 0);
    CU_ASSERT_TRUE_FATAL(cw_stream_next(&reader, &piece));
    cw_stream_take(&reader, &piece);
    cw_stream_find_end(&reader);
    CU_ASSERT_TRUE(reader.at == writer.at && reader.offset == writer.offset);
    CU_ASSERT_TRUE_FATAL(cw_stream_fits(&reader, 0));
    cw_stream_put(&reader, &piece, NULL, 0);
    writer = cw_channel_decisions(&channel, 0);
    for (; cw_stream_next(&writer, &piece); count++)
        cw_stream_take(&writer, &piece);
    CU_ASSERT_EQUAL(count, 4);
    finish();
}

/* A reader that is not started again gives back what it has read, though its writer may be. */
TEST(a_reader_that_forgets_gives_back)
{
    start_with(2, 2u << 20);
    put_one(3000);
    take_one();
    cw_stream_forget(&reader);
    while (put < (64u << 20))
        CU_ASSERT_TRUE_FATAL(put_one(CW_CHANNEL_PIECE_MAX) && take_one());
    CU_ASSERT_EQUAL(taken, put);
    writer = cw_channel_stream(&channel, 1, 0, true);
    cw_stream_find_end(&writer);
    CU_ASSERT_TRUE(put_one(3000) && take_one());
    finish();
}
