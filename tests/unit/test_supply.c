/* Memory of blocks from a region: what is touched ahead, and what goes back to the system. */
#include "relay/memory/block.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <sys/mman.h>

#define BLOCKS 400
#define BYTES (256ull << 20)

static struct supply supply;
static struct relay_region region;
static struct relay_block *blocks[BLOCKS];

static void begin(uint64_t touched)
{
    region = (struct relay_region){.size = BYTES, .touched = touched};
    region.start = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(region.start, MAP_FAILED);
    supply_init(&supply, &region);
}

static void finish(void)
{
    munmap(region.start, BYTES);
}

static void take_all(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = supply_take(&supply);
        CU_ASSERT_PTR_NOT_NULL_FATAL(blocks[i]);
        blocks[i]->bytes[RELAY_BLOCK_BYTES - 1] = (uint8_t)i;
    }
}

/* Nothing while little is in use; then a part of it, in order, once. */
static void touched_ahead_of_use(void)
{
    struct relay_warm warm;
    uint8_t *end = NULL;
    uint64_t bytes = 0;

    begin(0);
    CU_ASSERT_FALSE(supply_next_warm(&supply, &warm));
    take_all();
    while (supply_next_warm(&supply, &warm)) {
        CU_ASSERT_FALSE(warm.give_back);
        CU_ASSERT_TRUE(!end || warm.at == end);
        end = (uint8_t *)warm.at + warm.size;
        bytes += warm.size;
    }
    CU_ASSERT_TRUE(end > blocks[BLOCKS - 1]->bytes + RELAY_BLOCK_BYTES);
    CU_ASSERT_TRUE(bytes >= BLOCKS * RELAY_BLOCK_BYTES / WARM_AHEAD_SHARE);
    CU_ASSERT_TRUE(bytes <= BLOCKS * RELAY_BLOCK_BYTES / WARM_AHEAD_SHARE + 3 * WARM_STEP);
    finish();
}

static void what_is_warm_is_not_asked_for(void)
{
    struct relay_warm warm;

    begin(BYTES);
    take_all();
    CU_ASSERT_FALSE(supply_next_warm(&supply, &warm));
    finish();
}

/* Beyond the spare ones memory goes back, each block's once; all can be taken again. */
static void memory_goes_back(void)
{
    struct relay_warm warm;
    int count = 0;

    begin(0);
    take_all();
    for (int i = 0; i < BLOCKS; i++)
        supply_give(&supply, blocks[i]);
    while (supply_next_warm(&supply, &warm)) {
        if (!warm.give_back)
            continue;
        CU_ASSERT_EQUAL(madvise(warm.at, warm.size, MADV_DONTNEED), 0);
        count++;
    }
    CU_ASSERT_EQUAL(count, BLOCKS - WARM_SPARE_MIN);
    take_all();
    for (int i = 0; i < BLOCKS; i++)
        CU_ASSERT_EQUAL(blocks[i]->bytes[RELAY_BLOCK_BYTES - 1], (uint8_t)i);
    CU_ASSERT_TRUE(supply.carved < (BLOCKS + 1) * (sizeof(struct relay_block) + 4096));
    finish();
}

/* A block that is taken again before its memory went back keeps it. */
static void taken_again_before_that(void)
{
    struct relay_warm warm;

    begin(0);
    take_all();
    for (int i = 0; i < BLOCKS; i++)
        supply_give(&supply, blocks[i]);
    take_all();
    while (supply_next_warm(&supply, &warm))
        CU_ASSERT_FALSE(warm.give_back);
    finish();
}

static void region_that_is_used_up(void)
{
    int count = 0;

    begin(0);
    while (supply_take(&supply))
        count++;
    CU_ASSERT_TRUE(count > 1000 && count * (uint64_t)RELAY_BLOCK_BYTES <= BYTES);
    finish();
}

void add_supply_tests(void)
{
    CU_pSuite suite = CU_add_suite("supply", NULL, NULL);

    CU_ADD_TEST(suite, touched_ahead_of_use);
    CU_ADD_TEST(suite, what_is_warm_is_not_asked_for);
    CU_ADD_TEST(suite, memory_goes_back);
    CU_ADD_TEST(suite, taken_again_before_that);
    CU_ADD_TEST(suite, region_that_is_used_up);
}
