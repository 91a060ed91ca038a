/* Blocks: where the bytes of a connection are read to, stay, and are written from. Counted
 * references; the last one gives the block back to its pool, which hands the warmest one out first.
 */
#ifndef RELAY_BLOCK_H
#define RELAY_BLOCK_H

#include "common/frame.h"

#include <stdbool.h>
#include <stdint.h>

#define RELAY_BLOCK_BYTES (256u << 10)
#define RELAY_BLOCKS_KEPT 64 /* free blocks kept by a pool */

struct relay_block {
    struct relay_block *next; /* in the pool's list */
    uint32_t refs;
    _Alignas(8) uint8_t bytes[RELAY_BLOCK_BYTES];
};

/* Where blocks come from, instead of the C library; all zero: from there. */
struct relay_supply {
    void *ctx;
    struct relay_block *(*take)(void *ctx); /* NULL without memory */
    void (*give)(void *ctx, struct relay_block *block);
};

struct relay_pool {
    struct relay_supply supply;
    struct relay_block *free;
    uint32_t free_count;
    uint64_t memory_max;
    struct cw_relay_stats *stats; /* memory and allocations are counted there */
    struct relay_block *reserve;  /* for those who must still be told when memory is spent */
    bool reserve_used;
};

/* Sets the reserve aside, outside of memory_max. Returns 0 or CW_ENOMEM. */
int relay_pool_init(struct relay_pool *pool, uint64_t memory_max, const struct relay_supply *supply,
                    struct cw_relay_stats *stats);

/* A block with one reference; NULL when the memory bound is reached. `vital`: then the reserve, if
 * it is free. */
struct relay_block *relay_block_new(struct relay_pool *pool, bool vital);
/* Likewise, for what is written once and not read soon: leaves the blocks that were used lately to
 * those who read into them. */
struct relay_block *relay_block_new_cold(struct relay_pool *pool);
void relay_block_release(struct relay_pool *pool, struct relay_block *block);

/* Other memory of the core, counted against the same bound. Not cleared. */
void *relay_pool_alloc(struct relay_pool *pool, size_t size);
void relay_pool_free(struct relay_pool *pool, void *at, size_t size);

/* Frees the blocks that are kept. All others must have been released. */
void relay_pool_fini(struct relay_pool *pool);

#endif
