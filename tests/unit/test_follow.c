/* Decisions are read from channel memory as they were made, while they are made, by one who reads
 * it as a file; whatever others write there, and wherever the file ends, he reads no more than
 * that. */
#include "common/follow.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void finish(void);
SUITE_AFTER_EACH("follow", finish);

#define RANKS 3u
#define LOG (8u << 20)
#define DECISIONS 20000u
#define HOSTILE 3000

static int fd = -1;
static size_t bytes;
static uint8_t *all;
static struct cw_channel channel;
static struct cw_stream writer;
static struct cw_followed memory;
static struct cw_follow follow;
static uint64_t seed;
static uint64_t put; /* decisions */
static uint64_t taken;
static uint64_t refused; /* the one that is not taken, 1 + its number; 0: none */
static bool wrong;

static bool read_file(void *ctx, uint64_t at, void *to, size_t size)
{
    return pread(*(int *)ctx, to, size, (off_t)at) == (ssize_t)size;
}

static void start(void)
{
    bytes = cw_channel_bytes(RANKS, LOG);
    fd = memfd_create("follow", 0);
    CU_ASSERT_TRUE_FATAL(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(all, MAP_FAILED);
    CU_ASSERT_TRUE_FATAL(cw_channel_at(&channel, all, bytes, RANKS));
    memory = (struct cw_followed){.read = read_file, .ctx = &fd};
    CU_ASSERT_TRUE_FATAL(cw_channel_at(&memory.channel, NULL, bytes, RANKS));
    writer = cw_channel_decisions(&channel, 1);
    follow = (struct cw_follow){.at = 0};
    put = taken = refused = 0;
    seed = 1;
    wrong = false;
}

static void finish(void)
{
    munmap(all, bytes);
    close(fd);
}

/* The n-th one. */
static struct cw_piece decision(uint64_t number)
{
    uint64_t random = number + 1;
    uint64_t size = codec_random_below(&random, 100) ? 40 : CW_CHANNEL_NOTE_MAX;
    static const uint16_t types[] = {CW_PIECE_TOOK, CW_PIECE_INPUTS, CW_PIECE_SEND};

    return (struct cw_piece){.type = types[number % 3],
                             .size = (uint16_t)codec_random_below(&random, size + 1),
                             .req = (uint32_t)number,
                             .tag = number * 3,
                             .total = number * 5,
                             .more = number * 7};
}

static bool put_one(void)
{
    static uint8_t payload[CW_CHANNEL_NOTE_MAX];
    struct cw_piece piece = decision(put);

    if (!cw_stream_fits(&writer, piece.size))
        return false;
    memset(payload, (int)put, piece.size);
    cw_stream_put(&writer, &piece, &(struct iovec){payload, piece.size}, 0);
    put++;
    return true;
}

static bool take(void *ctx, const struct cw_piece *piece, const uint8_t *payload)
{
    struct cw_piece was = decision(taken);

    CU_ASSERT_PTR_EQUAL(ctx, &taken);
    if (taken + 1 == refused)
        return false;
    wrong |= piece->type != was.type || piece->size != was.size || piece->req != was.req ||
             piece->tag != was.tag || piece->total != was.total || piece->more != was.more;
    for (uint32_t i = 0; i < piece->size; i++)
        wrong |= payload[i] != (uint8_t)taken;
    taken++;
    return true;
}

static int read_on(void)
{
    return cw_follow(&memory, 1, &follow, take, &taken);
}

TEST(decisions_are_followed)
{
    start();
    CU_ASSERT_TRUE(read_on() == CW_OK && taken == 0);
    while (put < DECISIONS) {
        for (uint64_t n = codec_random_below(&seed, 200); n > 0; n--)
            CU_ASSERT_TRUE_FATAL(put_one());
        CU_ASSERT_EQUAL_FATAL(read_on(), CW_OK);
        CU_ASSERT_TRUE(taken == put && follow.count == put && follow.at == writer.at);
    }
    CU_ASSERT_FALSE(wrong);
}

/* What comes while it is read is read, too, or the next time. */
static void *put_all(void *arg)
{
    while (put < DECISIONS && put_one())
        ;
    return arg;
}

TEST(decisions_are_followed_while_they_are_made)
{
    pthread_t thread;
    int calls = 0;

    start();
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, put_all, NULL), 0);
    for (; taken < DECISIONS && !wrong; calls++)
        CU_ASSERT_EQUAL_FATAL(read_on(), CW_OK);
    pthread_join(thread, NULL);
    CU_ASSERT_TRUE(!wrong && calls > 1);
}

TEST(one_that_is_not_taken_comes_again)
{
    start();
    while (put < 100)
        put_one();
    refused = 57;
    CU_ASSERT_EQUAL(read_on(), CW_ENOMEM);
    CU_ASSERT_TRUE(taken == 56 && follow.count == 56);
    refused = 0;
    CU_ASSERT_EQUAL(read_on(), CW_OK);
    CU_ASSERT_TRUE(taken == 100 && !wrong);
}

/* A piece that is half written, and one whose stamp is of another place, are none. */
TEST(half_a_decision_is_none)
{
    struct cw_piece *next;

    start();
    while (put < 10)
        put_one();
    next = (struct cw_piece *)(writer.block + writer.offset);
    *next = (struct cw_piece){.stamp = writer.at, .type = CW_PIECE_TOOK};
    CU_ASSERT_EQUAL(read_on(), CW_OK);
    CU_ASSERT_EQUAL(taken, 10);
    next->stamp = writer.at + 1;
    next->size = UINT16_MAX;
    CU_ASSERT_EQUAL(read_on(), CW_EPROTO);
    next->size = 0;
    next->type = CW_PIECE_TAG;
    CU_ASSERT_EQUAL(read_on(), CW_EPROTO);
    CU_ASSERT_TRUE(taken == 10 && follow.count == 10);
}

/* Where nothing is kept any more, what is there is anything: it is no error, and not read. */
TEST(a_memory_that_is_spent)
{
    start();
    while (put < 10)
        put_one();
    CU_ASSERT_EQUAL(read_on(), CW_OK);
    cw_channel_set_spent(&channel);
    put_one();
    ((struct cw_piece *)(writer.block + writer.offset))->stamp = writer.at + 1;
    CU_ASSERT_EQUAL(read_on(), CW_OK);
    CU_ASSERT_EQUAL(taken, 10);
}

/* What was not read is gone: blocks before the first one. */
TEST(what_is_gone_is_missed)
{
    start();
    while (put < DECISIONS)
        put_one();
    cw_stream_free(&writer, writer.at);
    CU_ASSERT_EQUAL(read_on(), CW_EPROTO);
    CU_ASSERT_EQUAL(taken, 0);
}

TEST(a_memory_that_ends)
{
    start();
    while (put < DECISIONS)
        put_one();
    CU_ASSERT_EQUAL(ftruncate(fd, (off_t)cw_channel_place_of_block(&channel, 2)), 0);
    CU_ASSERT_EQUAL(read_on(), CW_EPROTO);
    CU_ASSERT_TRUE(taken < DECISIONS && !wrong);
    CU_ASSERT_EQUAL(ftruncate(fd, 0), 0);
    CU_ASSERT_EQUAL(read_on(), CW_EPROTO);
    follow = (struct cw_follow){.at = 0};
    CU_ASSERT_EQUAL(read_on(), CW_EPROTO);
    CU_ASSERT_FALSE(cw_follow_came(&memory, 1));
}

TEST(who_was_here)
{
    start();
    CU_ASSERT_FALSE(cw_follow_came(&memory, 2));
    cw_channel_come(&channel, 2);
    CU_ASSERT_TRUE(cw_follow_came(&memory, 2) && !cw_follow_came(&memory, 1));
}

static bool take_any(void *ctx, const struct cw_piece *piece, const uint8_t *payload)
{
    uint64_t *sum = ctx;

    CU_ASSERT_TRUE_FATAL(piece->size <= CW_CHANNEL_NOTE_MAX && piece->type >= CW_PIECE_TOOK &&
                         piece->type < CW_PIECE_TYPES);
    for (uint32_t i = 0; i < piece->size; i++)
        *sum += payload[i];
    return true;
}

/* Others write anything anywhere. */
TEST(anything_may_be_there)
{
    uint64_t sum = 0;

    start();
    for (int i = 0; i < HOSTILE; i++) {
        struct cw_piece *at;

        put_one();
        at = (struct cw_piece *)(writer.block + writer.offset);
        at->stamp =
            codec_random_below(&seed, 4) ? writer.at + 1 : codec_random_below(&seed, 1 << 20);
        at->type = (uint16_t)codec_random_below(&seed, CW_PIECE_TYPES + 1);
        at->size = (uint16_t)codec_random_below(&seed, 1 << (1 + codec_random_below(&seed, 16)));
        at->tag = codec_random_below(&seed, 100);
        cw_follow(&memory, 1, &follow, take_any, &sum);
        if (codec_random_below(&seed, 8) == 0)
            follow = (struct cw_follow){.at = codec_random_below(&seed, bytes),
                                        .block = (uint32_t)codec_random_below(&seed, 200)};
        if (codec_random_below(&seed, 8) == 0)
            *(uint64_t *)(all + cw_channel_place_of_decisions(&channel, 1)) =
                codec_random_below(&seed, 200);
        if (codec_random_below(&seed, 8) == 0)
            follow = (struct cw_follow){.at = 0};
    }
    CU_ASSERT_TRUE(sum > 0);
}
