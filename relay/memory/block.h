/* Memory. All of a core's is counted against one bound, and in the pool of who holds it: a pool for
 * each job, and one for what is kept for any of them.
 *
 * Blocks: where the bytes of a connection are read to, stay, and are written from. Counted
 * references; with the last one the block is free again. The warmest one is handed out first. */
#ifndef RELAY_BLOCK_H
#define RELAY_BLOCK_H

#include "common/frame.h"
#include "common/match.h"
#include "relay/memory/supply.h"

#include <stdbool.h>
#include <stdint.h>

#define RELAY_BLOCK_BYTES (256u << 10)
#define RELAY_BLOCK_ALIGN 4096u /* what a disk asks for */
#define RELAY_BLOCKS_KEPT 64    /* free blocks kept */

struct relay_pool;

/* Of which chain a block is a segment, and which one: log/ledger.h. For who comes after us. */
struct relay_mark {
    uint64_t chain; /* 0: of none */
    uint32_t number;
    uint32_t used;
};

struct relay_block {
    struct relay_block *next; /* of those that are free */
    struct relay_pool *pool;  /* that holds it */
    uint32_t refs;
    uint32_t filling; /* places in it whose bytes others are about to copy there */
    struct relay_mark mark;
    _Alignas(RELAY_BLOCK_ALIGN) uint8_t bytes[RELAY_BLOCK_BYTES];
};

struct relay_memory {
    struct supply supply; /* of blocks; without a region they come from the C library */
    struct relay_block *free;
    uint32_t free_count;
    uint64_t memory_max;
    uint32_t shares;              /* jobs, each with an equal part of memory_max */
    struct cw_relay_stats *stats; /* memory and allocations are counted there */
    struct relay_block *reserve;  /* for those who must still be told when memory is spent */
    bool reserve_used;
    struct relay_pool *pools; /* made by relay_pool_new */
    /* Memory is spent, and a pool asks for more: lets go of what others hold. False: of nothing.
     * NULL: there is nobody to ask. */
    bool (*relieve)(void *ctx, struct relay_pool *asker);
    void *ctx;
};

/* What one holds. */
struct relay_pool {
    struct relay_memory *memory;
    struct relay_pool *next;
    void *owner;        /* NULL: it has ended, or never had one */
    uint64_t held;      /* bytes, its own included */
    uint64_t log_bytes; /* in logs, also on disk */
    bool modest;        /* nobody gives way for what it asks: it may be anybody who is amid it */
    bool ended;         /* it goes with the last of what it holds */
    bool drained;       /* ended, and all was let go of that could be */
};

/* Sets the reserve aside, outside of memory_max. Returns 0 or CW_ENOMEM. */
int relay_memory_init(struct relay_memory *memory, uint64_t memory_max,
                      const struct relay_region *region, struct cw_relay_stats *stats);
/* Frees the blocks that are kept. All others must have been released. */
void relay_memory_fini(struct relay_memory *memory);

/* NULL without memory. */
struct relay_pool *relay_pool_new(struct relay_memory *memory);
/* Its owner is gone; what it still holds is given back later. */
void relay_pool_end(struct relay_pool *pool);
/* The bytes that each job may hold when memory is spent. */
static inline uint64_t relay_memory_share(const struct relay_memory *memory)
{
    return memory->memory_max / (memory->shares ? memory->shares : 1);
}
/* `size` bytes more are in logs, or fewer. */
static inline void relay_pool_log(struct relay_pool *pool, uint64_t size)
{
    pool->log_bytes += size;
}
static inline void relay_pool_unlog(struct relay_pool *pool, uint64_t size)
{
    pool->log_bytes -= size;
}
/* `size` bytes change hands. */
static inline void relay_pool_move(struct relay_pool *from, struct relay_pool *to, uint64_t size)
{
    from->held -= size;
    to->held += size;
}

/* A block with one reference; NULL when the memory bound is reached. `vital`: then the reserve, if
 * it is free. */
struct relay_block *relay_block_new(struct relay_pool *pool, bool vital);
/* Likewise, for what is written once and not read soon: leaves the blocks that were used lately to
 * those who read into them. */
struct relay_block *relay_block_new_cold(struct relay_pool *pool);
void relay_block_release(struct relay_block *block);
/* Takes over a block that was left in the region, with one reference. */
void relay_block_adopt(struct relay_pool *pool, struct relay_block *block);

/* Other memory. Not cleared. */
void *relay_pool_alloc(struct relay_pool *pool, size_t size);
void relay_pool_free(struct relay_pool *pool, void *at, size_t size);
/* The same, of a pool that is its owner. */
extern const struct match_memory relay_pool_memory;

#endif
