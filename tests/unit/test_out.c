/* Blocks and the queue of bytes to be written: what goes in comes out, in order, and every block
 * comes home. */
#include "relay/core/out.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 3000
#define SOURCES 4

static struct cw_relay_stats stats;
static struct relay_memory memory;
static struct relay_pool pool;
static struct out_queue out;
static uint64_t seed;
static uint64_t in;   /* bytes put in so far: byte i of the stream is that of the pattern */
static uint64_t gone; /* bytes taken out */

static void start(uint64_t memory_max)
{
    memset(&stats, 0, sizeof(stats));
    memory = (struct relay_memory){.memory_max = memory_max, .stats = &stats};
    pool = (struct relay_pool){.memory = &memory};
    out_init(&out, &pool);
    in = gone = 0;
}

static void finish(void)
{
    out_fini(&out);
    relay_memory_fini(&memory);
    CU_ASSERT_EQUAL(stats.memory_now, 0);
}

SUITE_AFTER_EACH("out", finish);

static uint64_t below(uint64_t bound)
{
    return codec_random_below(&seed, bound);
}

static bool reserve(size_t size)
{
    uint8_t *at = out_reserve(&out, size);

    if (!at)
        return false;
    codec_pattern(at, 1, in, size);
    in += size;
    return true;
}

/* Bytes of a block of somebody else, who may give it up before they are written. */
static bool append(struct relay_block *block, size_t from, size_t size)
{
    int failed;

    codec_pattern(block->bytes + from, 1, in, size);
    failed = out_append(&out, block->bytes + from, size, block);
    if (failed == CW_OK)
        in += size;
    return failed == CW_OK;
}

/* Looks at up to `max` pieces, and takes some of what they hold. */
static void consume(int max)
{
    struct iovec iov[16];
    int n = out_peek(&out, iov, max, UINT64_MAX);
    uint64_t seen = 0;
    bool right = true;

    CU_ASSERT_TRUE(n <= max && (n > 0) == (out.bytes > 0));
    for (int i = 0; i < n; i++) {
        const uint8_t *at = iov[i].iov_base;

        right &= iov[i].iov_len > 0;
        for (size_t j = 0; j < iov[i].iov_len; j++)
            right &= at[j] == codec_pattern_at(1, gone + seen + j);
        seen += iov[i].iov_len;
    }
    CU_ASSERT_TRUE(right);
    seen = below(3) ? below(seen + 1) : seen;
    out_sent(&out, seen);
    gone += seen;
    CU_ASSERT_EQUAL(out.bytes, in - gone);
}

static size_t some_size(void)
{
    static const size_t bounds[] = {20, 100, RELAY_OUT_COPY_MAX + 3, 20000};

    return 1 + below(bounds[below(4)]);
}

static void random_step(struct relay_block **source)
{
    struct relay_block **from = &source[below(SOURCES)];
    size_t size = below(50) ? some_size() : RELAY_BLOCK_BYTES;

    if (below(3) == 0) {
        reserve(size);
    } else if (below(2)) {
        if (*from)
            relay_block_release(*from); /* the queue's references keep it */
        *from = relay_block_new(&pool, false);
        if (*from)
            append(*from, RELAY_BLOCK_BYTES - size, size);
    } else {
        consume(1 + (int)below(16));
    }
}

static void random_mix(uint64_t which, uint64_t memory_max)
{
    struct relay_block *source[SOURCES] = {0};

    seed = which;
    start(memory_max);
    for (int i = 0; i < STEPS; i++)
        random_step(source);
    while (which % 2 && out.bytes)
        consume(16);
    for (int i = 0; i < SOURCES; i++)
        if (source[i])
            relay_block_release(source[i]);
    finish();
}

TEST(any_mix_comes_out_as_it_went_in)
{
    for (uint64_t which = 1; which <= 6; which++)
        random_mix(which, 1u << 30);
}

TEST(memory_is_spent)
{
    for (uint64_t which = 1; which <= 6; which++)
        random_mix(which, which * 700000 + 300);
}

TEST(small_payloads_share_a_piece)
{
    struct relay_block *block;
    struct iovec iov[4];

    start(1u << 30);
    block = relay_block_new(&pool, false);
    CU_ASSERT_PTR_NOT_NULL_FATAL(block);
    reserve(48);
    append(block, 0, RELAY_OUT_COPY_MAX);
    reserve(48);
    CU_ASSERT_EQUAL(out_peek(&out, iov, 4, UINT64_MAX), 1);
    CU_ASSERT_EQUAL(block->refs, 1);
    append(block, 0, RELAY_OUT_COPY_MAX + 1);
    CU_ASSERT_EQUAL(out_peek(&out, iov, 4, UINT64_MAX), 2);
    CU_ASSERT_EQUAL(block->refs, 2);
    CU_ASSERT_PTR_EQUAL(iov[1].iov_base, block->bytes);
    CU_ASSERT_EQUAL(out_append(&out, NULL, 0, block), CW_OK);
    CU_ASSERT_EQUAL(out_peek(&out, iov, 4, UINT64_MAX), 2);
    out_sent(&out, out.bytes);
    CU_ASSERT_EQUAL(block->refs, 1);
    CU_ASSERT_EQUAL(out_peek(&out, iov, 4, UINT64_MAX), 0);
    relay_block_release(block);
}

TEST(without_a_block_everything_is_copied)
{
    static uint8_t bytes[60000];

    start(1u << 30);
    for (int i = 0; i < 10; i++) {
        codec_pattern(bytes, 1, in, sizeof(bytes));
        CU_ASSERT_EQUAL(out_append(&out, bytes, sizeof(bytes), NULL), CW_OK);
        in += sizeof(bytes);
        memset(bytes, 0, sizeof(bytes));
    }
    seed = 3;
    while (out.bytes)
        consume(2);
}

/* An idle queue holds no block: thousands of connections cost little. */
TEST(idle_queue_holds_nothing)
{
    start(1u << 30);
    reserve(100);
    CU_ASSERT_EQUAL(memory.free_count, 0);
    out_sent(&out, 100);
    CU_ASSERT_EQUAL(memory.free_count, 1);
    CU_ASSERT_PTR_NULL(out.block);
}

TEST(pool_keeps_some_blocks)
{
    static struct relay_block *blocks[RELAY_BLOCKS_KEPT + 10];
    uint64_t made;

    start(1u << 30);
    for (int i = 0; i < RELAY_BLOCKS_KEPT + 10; i++)
        blocks[i] = relay_block_new(&pool, false);
    made = stats.allocations;
    for (int i = 0; i < RELAY_BLOCKS_KEPT + 10; i++)
        relay_block_release(blocks[i]);
    CU_ASSERT_EQUAL(memory.free_count, RELAY_BLOCKS_KEPT);
    /* the warmest first: what was released last and kept */
    blocks[0] = relay_block_new(&pool, false);
    CU_ASSERT_PTR_EQUAL(blocks[0], blocks[RELAY_BLOCKS_KEPT - 1]);
    CU_ASSERT_EQUAL(stats.allocations, made);
    relay_block_release(blocks[0]);
}

TEST(pool_has_a_bound)
{
    void *at[3];

    start(1000);
    CU_ASSERT_PTR_NULL(relay_block_new(&pool, false));
    at[0] = relay_pool_alloc(&pool, 600);
    at[1] = relay_pool_alloc(&pool, 401);
    at[2] = relay_pool_alloc(&pool, 400);
    CU_ASSERT_PTR_NOT_NULL(at[0]);
    CU_ASSERT_PTR_NULL(at[1]);
    CU_ASSERT_PTR_NOT_NULL(at[2]);
    CU_ASSERT_EQUAL(stats.memory_now, 1000);
    CU_ASSERT_PTR_NULL(relay_pool_alloc(&pool, 1));
    CU_ASSERT_PTR_NULL(relay_pool_alloc(&pool, SIZE_MAX));
    relay_pool_free(&pool, at[0], 600);
    relay_pool_free(&pool, NULL, 600);
    relay_pool_free(&pool, at[2], 400);
    CU_ASSERT_EQUAL(stats.memory_max, 1000);
}

/* --- what is kept until it is acknowledged ---------------------------------------------------- */
static uint8_t byte_at(uint64_t position)
{
    return (uint8_t)(position * 7 + position / 251);
}

static uint64_t end_of_queue(void)
{
    return out.front + out.kept + out.bytes;
}

static void put_some(void)
{
    size_t size = 1 + codec_random_below(&seed, 5000);
    bool refer = codec_random_below(&seed, 2);
    struct relay_block *block = refer ? relay_block_new(&pool, false) : NULL;
    uint64_t from = end_of_queue();
    uint8_t *to = refer ? block->bytes : out_reserve(&out, size);

    for (size_t i = 0; i < size; i++)
        to[i] = byte_at(from + i);
    if (refer) {
        CU_ASSERT_EQUAL(out_append(&out, to, size, block), CW_OK);
        relay_block_release(block);
    }
}

static void send_some(void)
{
    struct iovec iov[3];
    int n = out_peek(&out, iov, 3, UINT64_MAX);
    uint64_t position = out.front + out.kept;
    size_t size = 0;
    size_t wrong = 0;

    for (int i = 0; i < n; i++)
        for (size_t j = 0; j < iov[i].iov_len; j++, size++)
            wrong += ((uint8_t *)iov[i].iov_base)[j] != byte_at(position + size);
    CU_ASSERT_EQUAL_FATAL(wrong, 0);
    CU_ASSERT_TRUE(n > 0 || out.bytes == 0);
    if (size)
        out_sent(&out, 1 + codec_random_below(&seed, size));
}

/* In any order: what is to be sent is always what follows in the stream. */
TEST(kept_until_acknowledged)
{
    start(64u << 20);
    seed = 11;
    out_keep(&out, true);
    for (int i = 0; i < STEPS; i++) {
        uint64_t position = out.front + codec_random_below(&seed, out.kept + 1);

        switch (codec_random_below(&seed, 8)) {
        case 0:
        case 1:
        case 2:
            if (out.bytes + out.kept < 200000)
                put_some();
            break;
        case 3:
            CU_ASSERT_TRUE(out_rewind(&out, position));
            CU_ASSERT_EQUAL(out.kept, 0);
            break;
        case 4:
        case 5:
            CU_ASSERT_TRUE(out_acknowledge(&out, position));
            CU_ASSERT_EQUAL(out.front, position);
            break;
        default:
            send_some();
            break;
        }
    }
    CU_ASSERT_FALSE(out_acknowledge(&out, out.front + out.kept + 1));
    CU_ASSERT_FALSE(out_rewind(&out, out.front - 1));
    out_fini(&out);
    CU_ASSERT_EQUAL(out.count, 0);
}

/* Through rings nothing is kept; what was not taken comes back, in two parts. */
TEST(what_was_not_taken_comes_back)
{
    static uint8_t ring[600000];

    for (uint64_t lost = 0; lost <= 600000; lost += 59999) {
        struct iovec parts[2] = {{ring, lost / 3}, {ring + lost / 3, lost - lost / 3}};
        uint64_t written;

        start(64u << 20);
        seed = 5;
        out_keep(&out, false);
        for (int i = 0; i < 300; i++)
            put_some();
        written = out.bytes;
        out_sent(&out, written);
        put_some();
        lost = lost < written ? lost : written;
        for (uint64_t i = 0; i < lost; i++)
            ring[i] = byte_at(written - lost + i);
        CU_ASSERT_EQUAL(out_restore(&out, parts, 2), CW_OK);
        CU_ASSERT_EQUAL(out.kept, lost);
        CU_ASSERT_TRUE(out_rewind(&out, written - lost + lost / 2));
        while (out.bytes > 0)
            send_some();
        finish();
    }
}

/* The rings held a part of the handshake too. */
TEST(handshake_does_not_come_back)
{
    static uint8_t ring[1000];

    start(64u << 20);
    memset(out_reserve(&out, 600), 0, 600);
    out_sent(&out, 600);
    CU_ASSERT_EQUAL(out_restore(&out, &(struct iovec){ring, sizeof(ring)}, 1), CW_OK);
    CU_ASSERT_EQUAL(out.front, 0);
}

/* An earlier attempt to resume, which its opener had given up, is answered late: it says that less
 * was received than the next one does, and nothing has been sent again meanwhile. */
TEST(late_attempt_to_resume)
{
    struct iovec next;

    start(64u << 20);
    out_keep(&out, true);
    CU_ASSERT_TRUE(reserve(600));
    out_sent(&out, 500);
    CU_ASSERT_TRUE(out_rewind(&out, 100));
    CU_ASSERT_FALSE(out_may_rewind(&out, 99));
    CU_ASSERT_FALSE(out_may_rewind(&out, 501));
    CU_ASSERT_TRUE(out_rewind(&out, 400));
    CU_ASSERT_EQUAL(out_peek(&out, &next, 1, UINT64_MAX), 1);
    CU_ASSERT_EQUAL(next.iov_len, 200);
    CU_ASSERT_EQUAL(*(uint8_t *)next.iov_base, codec_pattern_at(1, 400));
}
