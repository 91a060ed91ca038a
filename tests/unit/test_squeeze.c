/* Segments made smaller for the disk. */
#include "relay/log/squeeze.h"
#include "tests/lib/codec.h"
#include "tests/lib/fake_disk.h"
#include "tests/unit/left_site.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

#define SIZE 65536u

static uint8_t bytes[SIZE];
static uint8_t small[SIZE];
static uint8_t again[SIZE];
static uint64_t seed;

/* Of so many kinds of bytes: 256 cannot be made smaller. */
static void fill(uint32_t kinds)
{
    for (uint32_t i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)codec_random_below(&seed, kinds);
}

static void comes_back(void)
{
    struct squeeze squeeze = {0};
    uint32_t stored;

    seed = 1;
    for (uint32_t size = 100; size <= SIZE; size += 977) {
        fill(1 + (uint32_t)codec_random_below(&seed, 8));
        stored = squeeze_try(&squeeze, bytes, size, small);
        squeeze = (struct squeeze){0};
        if (stored == 0)
            continue;
        CU_ASSERT_TRUE(stored <= size - size / SQUEEZE_GAIN_SHARE);
        memset(again, 0xee, sizeof(again));
        CU_ASSERT_TRUE(squeeze_undo(small, stored, again, size));
        CU_ASSERT_EQUAL(memcmp(again, bytes, size), 0);
    }
}

/* How many of `count` segments were tried: those after which the pause has changed, or which became
 * smaller. */
static uint32_t tried(struct squeeze *squeeze, uint32_t count)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < count; i++) {
        bool tries = squeeze->left == 0;

        CU_ASSERT_EQUAL(squeeze_try(squeeze, bytes, SIZE, small), 0);
        sum += tries;
    }
    return sum;
}

static void what_gains_nothing_is_tried_rarely(void)
{
    struct squeeze squeeze = {0};

    seed = 2;
    fill(256);
    CU_ASSERT_EQUAL(tried(&squeeze, 1), 1);
    CU_ASSERT_EQUAL(tried(&squeeze, 69), 6); /* after 1, 2, 4, 8, 16 and 32 that were not */
    CU_ASSERT_EQUAL(tried(&squeeze, 10 * (SQUEEZE_PAUSE_MAX + 1)), 10);
    fill(2);
    for (uint32_t i = 0; i < SQUEEZE_PAUSE_MAX; i++)
        CU_ASSERT_EQUAL(squeeze_try(&squeeze, bytes, SIZE, small), 0);
    CU_ASSERT_TRUE(squeeze_try(&squeeze, bytes, SIZE, small) > 0);
    CU_ASSERT_TRUE(squeeze_try(&squeeze, bytes, SIZE, small) > 0); /* at once */
}

static void hostile_bytes(void)
{
    struct squeeze squeeze = {0};
    uint32_t stored;

    seed = 3;
    fill(3);
    stored = squeeze_try(&squeeze, bytes, SIZE, small);
    CU_ASSERT_TRUE_FATAL(stored > 0);
    CU_ASSERT_FALSE(squeeze_undo(small, stored - 1, again, SIZE));
    CU_ASSERT_FALSE(squeeze_undo(small, stored, again, SIZE - 1));
    for (int i = 0; i < 2000; i++) {
        for (int n = 0; n < 3; n++)
            small[codec_random_below(&seed, stored)] ^=
                (uint8_t)(1 + codec_random_below(&seed, 255));
        squeeze_undo(small, stored, again, SIZE); /* within its bounds: the sanitizers look */
    }
}

/* --- in the store ------------------------------------------------------------------------------
 */
#define SEGMENTS 40u
#define BUDGET ((uint64_t)4 * STORE_SEGMENT_BYTES)

static struct site site;
static struct chain chain;
static struct fake_disk disk;

static void start(void)
{
    disk = (struct fake_disk){.seed = 4};
    left_site_open(&site, left_new(), BUDGET, SITE_MEMORY);
    chain_init(&chain, &site.store, &site.pool);
}

static void append(uint32_t number)
{
    uint64_t position;
    uint64_t held = 0;
    uint8_t *at = chain_append(&chain, STORE_SEGMENT_BYTES, &position, &held);

    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    memset(at, (int)number, STORE_SEGMENT_BYTES);
}

/* Returns how many requests were taken of which this is the size. */
static uint32_t take(uint32_t size)
{
    struct relay_log_io io;
    uint32_t count = 0;

    while (store_next_io(&site.store, &io)) {
        fake_disk_take(&disk, &io);
        count += io.size == size;
    }
    return count;
}

static bool done_one(void)
{
    struct relay_log_done done;

    if (!fake_disk_done(&disk, &done))
        return false;
    store_io_done(&site.store, &done);
    return true;
}

static void settle(void)
{
    do
        take(0);
    while (done_one());
}

static bool reads_all(void)
{
    uint64_t position = 0;
    struct chain_bytes bytes;
    enum chain_found found;
    uint32_t number = 0;

    while ((found = chain_read(&chain, &position, &bytes)) != CHAIN_END) {
        if (found == CHAIN_LOST || (found == CHAIN_AWAY && (take(0), !done_one())))
            return false;
        if (found != CHAIN_HERE)
            continue;
        if (bytes.at[0] != (uint8_t)number || bytes.at[bytes.size - 1] != (uint8_t)number)
            return false;
        position += bytes.size;
        number++;
        store_end_round(&site.store);
    }
    return number == chain.count;
}

static void finish(void)
{
    chain_free(&chain);
    settle();
    left_site_close(&site);
    fake_disk_fini(&disk);
}

static void while_the_disk_is_behind(void)
{
    uint32_t squeezed;

    start();
    for (uint32_t i = 0; i < SEGMENTS; i++)
        append(i);
    CU_ASSERT_EQUAL(take(STORE_SEGMENT_BYTES), STORE_SQUEEZE_AT);
    CU_ASSERT_EQUAL(site.store.out_count, STORE_IO_MAX);
    settle();
    squeezed = 0;
    for (uint32_t i = 0; i < chain.count; i++)
        squeezed += chain.segments[i]->stored > 0;
    CU_ASSERT_TRUE(squeezed >= STORE_IO_MAX - STORE_SQUEEZE_AT);
    CU_ASSERT_TRUE(reads_all());
    finish();
}

static void not_while_it_keeps_up(void)
{
    start();
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        append(i);
        settle();
    }
    for (uint32_t i = 0; i < chain.count; i++)
        CU_ASSERT_EQUAL(chain.segments[i]->stored, 0);
    finish();
}

/* What was squeezed can be read when there is memory for the segment alone: something was set aside
 * for that. */
static void read_without_memory(void)
{
    start();
    for (uint32_t i = 0; i < SEGMENTS; i++)
        append(i);
    settle();
    CU_ASSERT_PTR_NOT_NULL(site.store.spare);
    site.memory.memory_max = site.stats.memory_now;
    CU_ASSERT_TRUE(reads_all());
    finish();
}

void add_squeeze_tests(void)
{
    CU_pSuite suite = CU_add_suite("squeezed segments", NULL, NULL);

    CU_ADD_TEST(suite, comes_back);
    CU_ADD_TEST(suite, what_gains_nothing_is_tried_rarely);
    CU_ADD_TEST(suite, hostile_bytes);
    CU_ADD_TEST(suite, while_the_disk_is_behind);
    CU_ADD_TEST(suite, not_while_it_keeps_up);
    CU_ADD_TEST(suite, read_without_memory);
}
