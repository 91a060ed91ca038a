/* What waits to be written to one connection: slices of blocks, in order. Headers and small
 * payloads are copied together into a block of the queue's own; larger payloads are written from
 * the block that they were read into. */
#ifndef RELAY_OUT_H
#define RELAY_OUT_H

#include "relay/core/block.h"

#include <stdbool.h>
#include <sys/uio.h>

#define RELAY_OUT_COPY_MAX                                                                         \
    2048u /* bytes: a smaller payload is copied, a larger one referred to                          \
           */

struct out_slice {
    const uint8_t *at;
    size_t size;
    struct relay_block *block; /* one reference is the slice's */
};

struct out_queue {
    struct relay_pool *pool;
    struct out_slice *slices; /* a ring */
    uint32_t size;            /* of the ring, a power of two, or 0 */
    uint32_t head;
    uint32_t count;
    uint64_t bytes;
    struct relay_block *block; /* the queue's own, being filled; NULL when idle */
    uint32_t block_used;
    bool vital; /* what is queued here must go out even when memory is spent */
};

void out_init(struct out_queue *out, struct relay_pool *pool);
void out_fini(struct out_queue *out);

/* Makes the queue one that can take a few small frames even when memory is spent. Returns 0 or
 * CW_ENOMEM. */
int out_make_vital(struct out_queue *out);

/* Room for `size` (at most RELAY_BLOCK_BYTES) contiguous bytes at the end of the queue, to be
 * filled at once. NULL when there is no memory. */
uint8_t *out_reserve(struct out_queue *out, size_t size);

/* Appends bytes: by reference to `block`, or by copy when block is NULL or they are few. Returns 0
 * or CW_ENOMEM. */
int out_append(struct out_queue *out, const uint8_t *at, size_t size, struct relay_block *block);

int out_peek(const struct out_queue *out, struct iovec *iov, int max);
void out_consume(struct out_queue *out, size_t size);

#endif
