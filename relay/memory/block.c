#include "relay/memory/block.h"

#include <assert.h>
#include <stdlib.h>

static void give_block(struct relay_memory *memory, struct relay_block *block)
{
    memory->stats->memory_now -= sizeof(*block);
    if (supply_has_region(&memory->supply))
        supply_give(&memory->supply, block);
    else
        free(block);
}

/* Gives a block that is kept back to where it came from. */
static void free_block(struct relay_memory *memory)
{
    struct relay_block *block = memory->free;

    memory->free = block->next;
    memory->free_count--;
    give_block(memory, block);
}

/* Makes room for `size` bytes more; false when the bound does not allow it. */
static bool may_grow(struct relay_pool *pool, size_t size)
{
    struct relay_memory *memory = pool->memory;

    do {
        while (size > memory->memory_max - memory->stats->memory_now && memory->free)
            free_block(memory);
        if (size <= memory->memory_max - memory->stats->memory_now)
            return true;
    } while (memory->relieve && memory->relieve(memory->ctx, pool));
    return false;
}

static void *grown(struct relay_pool *pool, void *at, size_t size)
{
    struct cw_relay_stats *stats = pool->memory->stats;

    if (!at)
        return NULL;
    pool->held += size;
    stats->allocations++;
    stats->memory_now += size;
    if (stats->memory_max < stats->memory_now)
        stats->memory_max = stats->memory_now;
    return at;
}

void *relay_pool_alloc(struct relay_pool *pool, size_t size)
{
    return may_grow(pool, size) ? grown(pool, malloc(size), size) : NULL;
}

/* The last of what an ended pool holds is itself. */
static void pool_drop(struct relay_pool *pool, size_t size)
{
    struct relay_memory *memory = pool->memory;
    struct relay_pool **at = &memory->pools;

    assert(pool->held >= size);
    pool->held -= size;
    if (!pool->ended || pool->held > sizeof(*pool))
        return;
    while (*at != pool)
        at = &(*at)->next;
    *at = pool->next;
    memory->stats->memory_now -= sizeof(*pool);
    free(pool);
    if (memory->shares == 0)
        supply_let_go(&memory->supply);
}

void relay_pool_free(struct relay_pool *pool, void *at, size_t size)
{
    if (!at)
        return;
    assert(pool->memory->stats->memory_now >= size);
    pool->memory->stats->memory_now -= size;
    free(at);
    pool_drop(pool, size);
}

struct relay_pool *relay_pool_new(struct relay_memory *memory)
{
    struct relay_pool first = {.memory = memory};
    struct relay_pool *pool = relay_pool_alloc(&first, sizeof(*pool));

    if (!pool)
        return NULL;
    *pool = first;
    pool->next = memory->pools;
    memory->pools = pool;
    return pool;
}

void relay_pool_end(struct relay_pool *pool)
{
    pool->owner = NULL;
    pool->ended = true;
    pool_drop(pool, 0);
}

int relay_memory_init(struct relay_memory *memory, uint64_t memory_max,
                      const struct relay_region *region, struct cw_relay_stats *stats)
{
    *memory = (struct relay_memory){.memory_max = memory_max, .stats = stats};
    supply_init(&memory->supply, region);
    memory->reserve = aligned_alloc(RELAY_BLOCK_ALIGN, sizeof(*memory->reserve));
    return memory->reserve ? CW_OK : CW_ENOMEM;
}

static struct relay_block *take_block(struct relay_pool *pool)
{
    struct supply *supply = &pool->memory->supply;

    const size_t size = sizeof(struct relay_block);

    if (!may_grow(pool, size))
        return NULL;
    return grown(pool,
                 supply_has_region(supply) ? (void *)supply_take(supply)
                                           : aligned_alloc(RELAY_BLOCK_ALIGN, size),
                 size);
}

static struct relay_block *take_free_block(struct relay_pool *pool)
{
    struct relay_memory *memory = pool->memory;
    struct relay_block *block = memory->free;

    if (!block)
        return NULL;
    memory->free = block->next;
    memory->free_count--;
    pool->held += sizeof(*block);
    return block;
}

static struct relay_block *take_reserve(struct relay_pool *pool)
{
    struct relay_memory *memory = pool->memory;

    if (memory->reserve_used)
        return NULL;
    memory->reserve_used = true;
    pool->held += sizeof(*memory->reserve);
    return memory->reserve;
}

static struct relay_block *block_for(struct relay_pool *pool, struct relay_block *block)
{
    if (!block)
        return NULL;
    block->pool = pool;
    block->refs = 1;
    block->filling = 0;
    block->mark.chain = 0;
    return block;
}

void relay_block_adopt(struct relay_pool *pool, struct relay_block *block)
{
    struct relay_mark mark = block->mark;

    block_for(pool, grown(pool, block, sizeof(*block)));
    block->mark = mark;
}

struct relay_block *relay_block_new(struct relay_pool *pool, bool vital)
{
    struct relay_block *block = take_free_block(pool);

    if (!block)
        block = take_block(pool);
    if (!block && vital)
        block = take_reserve(pool);
    return block_for(pool, block);
}

struct relay_block *relay_block_new_cold(struct relay_pool *pool)
{
    struct relay_block *block = take_block(pool);

    return block ? block_for(pool, block) : relay_block_new(pool, false);
}

void relay_block_release(struct relay_block *block)
{
    struct relay_pool *pool = block->pool;
    struct relay_memory *memory = pool->memory;

    assert(block->refs > 0);
    if (--block->refs > 0)
        return;
    block->mark.chain = 0;
    pool_drop(pool, sizeof(*block));
    if (block == memory->reserve) {
        memory->reserve_used = false;
    } else if (memory->free_count == RELAY_BLOCKS_KEPT) {
        give_block(memory, block);
    } else {
        block->next = memory->free;
        memory->free = block;
        memory->free_count++;
    }
}

void relay_memory_fini(struct relay_memory *memory)
{
    assert(!memory->reserve_used);
    while (memory->free)
        free_block(memory);
    free(memory->reserve);
}

static void *alloc_of(void *pool, size_t size)
{
    return relay_pool_alloc(pool, size);
}

static void free_of(void *pool, void *at, size_t size)
{
    relay_pool_free(pool, at, size);
}

const struct match_memory relay_pool_memory = {alloc_of, free_of};
