/* Memory of blocks from a region: what is used again, and what goes back to the system. */
#include "relay/memory/block.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <sys/mman.h>

#define BLOCKS 400
#define BYTES (256ull << 20)

static struct supply supply;
static struct relay_region region;
static struct relay_block *blocks[BLOCKS];

static void begin(void)
{
    region = (struct relay_region){.size = BYTES};
    region.start = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(region.start, MAP_FAILED);
    supply_init(&supply, &region);
}

static void finish(void)
{
    munmap(region.start, BYTES);
}

SUITE_AFTER_EACH("supply", finish);

static void take_all(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = supply_take(&supply);
        CU_ASSERT_PTR_NOT_NULL_FATAL(blocks[i]);
        blocks[i]->bytes[RELAY_BLOCK_BYTES - 1] = (uint8_t)i;
    }
}

/* Nothing goes back as long as it is in use. */
TEST(nothing_is_surplus)
{
    struct relay_pages pages;

    begin();
    CU_ASSERT_FALSE(supply_next_surplus(&supply, &pages));
    take_all();
    CU_ASSERT_FALSE(supply_next_surplus(&supply, &pages));
}

/* Beyond the spare ones memory goes back, each block's once; all can be taken again. */
TEST(memory_goes_back)
{
    struct relay_pages pages;
    int count = 0;

    begin();
    take_all();
    for (int i = 0; i < BLOCKS; i++)
        supply_give(&supply, blocks[i]);
    while (supply_next_surplus(&supply, &pages)) {
        CU_ASSERT_EQUAL(madvise(pages.at, pages.size, MADV_DONTNEED), 0);
        count++;
    }
    CU_ASSERT_EQUAL(count, BLOCKS - SUPPLY_SPARE_MIN);
    take_all();
    for (int i = 0; i < BLOCKS; i++)
        CU_ASSERT_EQUAL(blocks[i]->bytes[RELAY_BLOCK_BYTES - 1], (uint8_t)i);
    CU_ASSERT_TRUE(supply.carved < (BLOCKS + 1) * (sizeof(struct relay_block) + 4096));
}

/* All of it stays while that is wanted, and what is too much goes afterwards. */
TEST(memory_stays_for_a_time)
{
    struct relay_pages pages;
    int count = 0;

    begin();
    supply_keep(&supply, BYTES);
    take_all();
    for (int i = 0; i < BLOCKS; i++)
        supply_give(&supply, blocks[i]);
    CU_ASSERT_FALSE(supply_next_surplus(&supply, &pages));
    supply_let_go(&supply);
    while (supply_next_surplus(&supply, &pages))
        count++;
    CU_ASSERT_EQUAL(count, BLOCKS - SUPPLY_SPARE_MIN);
    supply_keep(&supply, 0);
    take_all();
    for (int i = 0; i < BLOCKS; i++)
        supply_give(&supply, blocks[i]);
    CU_ASSERT_TRUE(supply_next_surplus(&supply, &pages));
}

/* A block that is taken again before its memory went back keeps it. */
TEST(taken_again_before_that)
{
    struct relay_pages pages;

    begin();
    take_all();
    for (int i = 0; i < BLOCKS; i++)
        supply_give(&supply, blocks[i]);
    take_all();
    CU_ASSERT_FALSE(supply_next_surplus(&supply, &pages));
}

TEST(region_that_is_used_up)
{
    int count = 0;

    begin();
    while (supply_take(&supply))
        count++;
    CU_ASSERT_TRUE(count > 1000 && count * (uint64_t)RELAY_BLOCK_BYTES <= BYTES);
}
