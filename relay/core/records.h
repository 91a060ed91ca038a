/* Records in memory: appended, read in order from a cursor, and given back all together. Segments
 * grow from small to large, so that a mailbox with little to keep stays small. A store on disk
 * takes this file's place. */
#ifndef RELAY_RECORDS_H
#define RELAY_RECORDS_H

#include "relay/core/block.h"

#define RECORDS_SEGMENT_MIN (1u << 10)
#define RECORDS_SEGMENT_MAX (64u << 10) /* the next one, and all after it, is a block */

struct records_segment {
    struct records_segment *next;
    struct relay_block *block; /* that it lies in; NULL: memory of its own, for it is small, or a
                                  record is larger than a block */
    size_t size;               /* of bytes[] */
    size_t used;
    uint8_t bytes[];
};

struct records {
    struct records_segment *first;
    struct records_segment *last;
};

struct records_cursor {
    const struct records_segment *segment; /* NULL: at the start of the first */
    size_t at;
};

/* Room for `size` contiguous bytes at the end, to be filled at once; *held grows by the memory that
 * was taken for it. A multiple of 8 every time keeps records aligned to 8. NULL without memory. */
void *records_append(struct records *r, struct relay_pool *pool, size_t size, uint64_t *held);

/* The record at the cursor, and how many bytes of its segment follow from there; NULL at the end.
 */
const void *records_peek(const struct records *r, struct records_cursor *cursor, size_t *left);
static inline void records_advance(struct records_cursor *cursor, size_t size)
{
    cursor->at += size;
}

void records_free(struct records *r, struct relay_pool *pool);

#endif
