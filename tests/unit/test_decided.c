/* What ranks decided: any decision comes back from its bytes, bytes that are none are refused, and
 * of random histories of which each rank's is known to another length there is left what a model
 * finds that knows what happened before what. */
#include "common/decided.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("decided");

#define RANKS_MAX 5u
#define STEPS_MAX 60u
#define HISTORIES 3000

static uint64_t seed;

static uint32_t below(uint64_t bound)
{
    return (uint32_t)codec_random_below(&seed, bound);
}

static uint64_t any(void)
{
    return codec_random_below(&seed, UINT64_MAX) >> below(64);
}

TEST(decisions_come_back)
{
    static uint8_t bytes[CW_DECISION_MAX];
    static uint8_t payload[CW_CHANNEL_NOTE_MAX];

    seed = 1;
    for (int i = 0; i < 2000; i++) {
        struct cw_piece piece = {.type = (uint16_t)(CW_PIECE_TOOK + below(3)),
                                 .size = (uint16_t)(any() % (CW_CHANNEL_NOTE_MAX + 1)),
                                 .req = (uint32_t)any(),
                                 .tag = any(),
                                 .total = any(),
                                 .more = any()};
        struct cw_piece got;
        const uint8_t *at;
        struct cw_reader r;
        size_t size;

        for (size_t j = 0; j < piece.size; j++)
            payload[j] = (uint8_t)below(256);
        size = cw_decision_put(bytes, &piece, payload);
        CU_ASSERT_TRUE_FATAL(size <= sizeof(bytes));
        r = cw_reader(bytes, size);
        CU_ASSERT_TRUE_FATAL(cw_decision_get(&r, &got, &at) && cw_reader_end(&r));
        CU_ASSERT_TRUE(got.type == piece.type && got.size == piece.size && got.req == piece.req &&
                       got.tag == piece.tag && got.total == piece.total && got.more == piece.more);
        CU_ASSERT_EQUAL(memcmp(at, payload, piece.size), 0);
        r = cw_reader(bytes, below(size)); /* a part of it is none */
        CU_ASSERT_FALSE(cw_decision_get(&r, &got, &at));
    }
}

TEST(bytes_that_are_no_decision)
{
    static const uint8_t type[] = {CW_PIECE_NEXT, 0, 0, 0, 0, 0};
    static const uint8_t long_number[] = {CW_PIECE_TOOK, 0,    0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                          0x80,          0x80, 0x80, 0x80, 0x80, 1,    0,    0};
    static const uint8_t rank[] = {CW_PIECE_TOOK, 0x80, 0x80, 0x80, 0x80, 0x10, 0, 0, 0, 0};
    uint8_t bytes[CW_DECISION_HEAD_MAX];
    struct cw_piece piece;
    const uint8_t *payload;
    struct cw_reader r = cw_reader(type, sizeof(type));

    CU_ASSERT_FALSE(cw_decision_get(&r, &piece, &payload));
    r = cw_reader(long_number, sizeof(long_number));
    CU_ASSERT_FALSE(cw_decision_get(&r, &piece, &payload));
    r = cw_reader(rank, sizeof(rank));
    CU_ASSERT_FALSE(cw_decision_get(&r, &piece, &payload));
    seed = 2;
    for (int i = 0; i < 20000; i++) {
        for (size_t j = 0; j < sizeof(bytes); j++)
            bytes[j] = (uint8_t)(j ? below(256) : CW_PIECE_TOOK + below(3));
        r = cw_reader(bytes, sizeof(bytes));
        if (cw_decision_get(&r, &piece, &payload))
            CU_ASSERT_TRUE_FATAL(payload + piece.size <= bytes + sizeof(bytes));
    }
}

/* --- histories -----------------------------------------------------------------------------------
 */

/* A decision, and for each rank how many of its decisions happened before it, itself included. */
struct decision {
    struct cw_piece piece;
    uint64_t before[RANKS_MAX];
};

static struct decision history[RANKS_MAX][STEPS_MAX];
static uint64_t made[RANKS_MAX];
static uint64_t known[RANKS_MAX][RANKS_MAX]; /* to this rank, of each one */
static uint64_t read_next[RANKS_MAX];

/* One rank decides something: it may have taken what another one has put some time ago. */
static void decide(uint32_t ranks, uint32_t rank)
{
    struct decision *d = &history[rank][made[rank]];
    uint32_t from = below(ranks + 1);

    *d = (struct decision){.piece = {.type = (uint16_t)(CW_PIECE_TOOK + below(3)), .req = from}};
    if (d->piece.type == CW_PIECE_TOOK && from < ranks && made[from] > 0) {
        uint64_t seen = d->piece.total = made[from] - below(2);

        for (uint32_t i = 0; i < ranks && seen > 0; i++)
            if (history[from][seen - 1].before[i] > known[rank][i])
                known[rank][i] = history[from][seen - 1].before[i];
    }
    known[rank][rank] = ++made[rank];
    memcpy(d->before, known[rank], sizeof(d->before));
}

static void begin(void *ctx, uint32_t rank)
{
    (void)ctx;
    read_next[rank] = 0;
}

static bool next(void *ctx, uint32_t rank, struct cw_piece *piece)
{
    const uint64_t *there = ctx;

    if (read_next[rank] == there[rank])
        return false;
    *piece = history[rank][read_next[rank]++].piece;
    return true;
}

/* The model: a decision stays if all that happened before it is there. That is the largest
 * consistent cut, since what happened before what stays has less before it. */
static uint64_t stays(uint32_t ranks, const uint64_t *there, uint32_t rank)
{
    uint64_t count = 0;
    bool whole = true;

    while (whole && count < there[rank]) {
        for (uint32_t i = 0; i < ranks; i++)
            whole &= history[rank][count].before[i] <= there[i];
        count += whole;
    }
    return count;
}

TEST(what_goes_together)
{
    uint64_t cut_off = 0;

    seed = 3;
    for (int i = 0; i < HISTORIES; i++) {
        uint32_t ranks = 1 + below(RANKS_MAX);
        uint64_t there[RANKS_MAX];
        uint64_t counts[RANKS_MAX];

        memset(made, 0, sizeof(made));
        memset(known, 0, sizeof(known));
        for (uint32_t steps = below(STEPS_MAX); steps > 0; steps--)
            decide(ranks, below(ranks));
        for (uint32_t rank = 0; rank < ranks; rank++)
            counts[rank] = there[rank] = made[rank] - below(made[rank] / 2 + 1);
        cw_decided_cut(&(struct cw_decided_source){begin, next, there}, ranks, counts);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            CU_ASSERT_EQUAL(counts[rank], stays(ranks, there, rank));
            cut_off += there[rank] - counts[rank];
        }
    }
    CU_ASSERT_TRUE(cut_off > HISTORIES / 4);
}

/* Of a stream that ends before it should, what is there counts. */
TEST(less_than_was_said)
{
    uint64_t there[] = {1, 0};
    uint64_t counts[] = {3, 2};

    history[0][0].piece = (struct cw_piece){.type = CW_PIECE_TOOK, .req = 1, .total = 0};
    cw_decided_cut(&(struct cw_decided_source){begin, next, there}, 2, counts);
    CU_ASSERT_TRUE(counts[0] == 1 && counts[1] == 0);
    cw_decided_cut(&(struct cw_decided_source){begin, next, there}, 0, counts);
}
