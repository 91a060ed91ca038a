#include "relay/core/block.h"

#include <assert.h>
#include <stdlib.h>

static void give_block(struct relay_pool *pool, struct relay_block *block)
{
    if (!pool->supply.give) {
        relay_pool_free(pool, block, sizeof(*block));
        return;
    }
    pool->stats->memory_now -= sizeof(*block);
    pool->supply.give(pool->supply.ctx, block);
}

/* Gives a block that is kept back to where it came from. */
static void free_block(struct relay_pool *pool)
{
    struct relay_block *block = pool->free;

    pool->free = block->next;
    pool->free_count--;
    give_block(pool, block);
}

/* Makes room for `size` bytes more; false when the bound does not allow it. */
static bool may_grow(struct relay_pool *pool, size_t size)
{
    while (size > pool->memory_max - pool->stats->memory_now && pool->free)
        free_block(pool);
    return size <= pool->memory_max - pool->stats->memory_now;
}

static void *grown(struct relay_pool *pool, void *at, size_t size)
{
    if (!at)
        return NULL;
    pool->stats->allocations++;
    pool->stats->memory_now += size;
    if (pool->stats->memory_max < pool->stats->memory_now)
        pool->stats->memory_max = pool->stats->memory_now;
    return at;
}

void *relay_pool_alloc(struct relay_pool *pool, size_t size)
{
    return may_grow(pool, size) ? grown(pool, malloc(size), size) : NULL;
}

static struct relay_block *take_block(struct relay_pool *pool)
{
    if (!pool->supply.take)
        return relay_pool_alloc(pool, sizeof(struct relay_block));
    if (!may_grow(pool, sizeof(struct relay_block)))
        return NULL;
    return grown(pool, pool->supply.take(pool->supply.ctx), sizeof(struct relay_block));
}

void relay_pool_free(struct relay_pool *pool, void *at, size_t size)
{
    if (!at)
        return;
    assert(pool->stats->memory_now >= size);
    pool->stats->memory_now -= size;
    free(at);
}

int relay_pool_init(struct relay_pool *pool, uint64_t memory_max, const struct relay_supply *supply,
                    struct cw_relay_stats *stats)
{
    *pool = (struct relay_pool){.supply = *supply, .memory_max = memory_max, .stats = stats};
    pool->reserve = malloc(sizeof(*pool->reserve));
    return pool->reserve ? CW_OK : CW_ENOMEM;
}

struct relay_block *relay_block_new(struct relay_pool *pool, bool vital)
{
    struct relay_block *block = pool->free;

    if (block) {
        pool->free = block->next;
        pool->free_count--;
    } else {
        block = take_block(pool);
    }
    if (!block && vital && !pool->reserve_used) {
        block = pool->reserve;
        pool->reserve_used = true;
    }
    if (!block)
        return NULL;
    block->refs = 1;
    return block;
}

struct relay_block *relay_block_new_cold(struct relay_pool *pool)
{
    struct relay_block *block = take_block(pool);

    if (!block)
        return relay_block_new(pool, false);
    block->refs = 1;
    return block;
}

void relay_block_release(struct relay_pool *pool, struct relay_block *block)
{
    assert(block->refs > 0);
    if (--block->refs > 0)
        return;
    if (block == pool->reserve) {
        pool->reserve_used = false;
        return;
    }
    if (pool->free_count == RELAY_BLOCKS_KEPT) {
        give_block(pool, block);
        return;
    }
    block->next = pool->free;
    pool->free = block;
    pool->free_count++;
}

void relay_pool_fini(struct relay_pool *pool)
{
    assert(!pool->reserve_used);
    while (pool->free)
        free_block(pool);
    free(pool->reserve);
}
