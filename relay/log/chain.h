/* Bytes in segments: appended, and found again by their position, which says nothing of where they
 * are. Segments grow from small to large, so that a chain of few bytes stays small. */
#ifndef RELAY_CHAIN_H
#define RELAY_CHAIN_H

#include "relay/log/store.h"

#define CHAIN_SEGMENT_MIN (STORE_SEGMENT_BYTES / 256) /* the next one is twice as large ... */
#define CHAIN_SEGMENT_SMALL                                                                        \
    (STORE_SEGMENT_BYTES / 4) /* ... until here; then they can go to disk                          \
                               */
#define CHAIN_SHIFT 18        /* a position is the number of a segment, then of a byte in it */
#define CHAIN_AHEAD                                                                                \
    8u /* segments that are read from disk before one who reads in order needs them */

struct chain {
    struct log_store *store;
    struct relay_pool *pool;
    struct ledger_entry *entry; /* of whom it is; NULL: nothing of it outlives the process */
    uint64_t name;              /* in the ledger */
    bool stays;                 /* in memory: it is read without asking; set after chain_init */
    struct log_segment **segments;
    uint32_t first; /* number of the first one; those before it were let go of */
    uint32_t count;
    uint32_t room;  /* of the table */
    uint32_t solid; /* none is missing from this number on; before it some may be: NULL */
};

/* What of it is saved in the state of its entry. */
struct chain_end {
    uint32_t first;
    uint32_t count;
    uint32_t used; /* of the last one */
};

void chain_init(struct chain *chain, struct log_store *store, struct relay_pool *pool);
/* It outlives the process from now on, and is empty now: one of four of the entry's. Then each of
 * its segments is a block. */
void chain_keep(struct chain *chain, struct ledger_entry *entry, uint32_t which);
struct chain_end chain_end(const struct chain *chain);
/* The same for one that was left, and that ends there; what is missing before `solid`, which is set
 * already, had been let go of. Returns 0, CW_ENOMEM, or CW_EPROTO: some of
 * it is missing. */
int chain_return(struct chain *chain, struct ledger_entry *entry, uint32_t which,
                 struct chain_end end);
/* Gives all back; blocks that others hold stay with them. It is empty then. */
void chain_free(struct chain *chain);

/* Bytes of its segments in memory. */
uint64_t chain_memory(const struct chain *chain);

/* Lets go of the segments before this one. */
void chain_trim(struct chain *chain, uint32_t number);
/* The same, but those that have a pin of `pin` or above stay. */
void chain_thin(struct chain *chain, uint32_t number, uint64_t pin);
/* Where the next byte goes, or the segment after it begins. */
uint64_t chain_next(const struct chain *chain);
/* The block of its last segment; NULL: there is none. */
static inline struct relay_block *chain_last_block(const struct chain *chain)
{
    return chain->count ? chain->segments[chain->count - 1]->block : NULL;
}

/* Room for `size` contiguous bytes, at most RELAY_BLOCK_BYTES, at the end, to be filled at once; at
 * *position. *held grows by the memory that was taken for it. NULL without memory. */
uint8_t *chain_append(struct chain *chain, uint32_t size, uint64_t *position, uint64_t *held);

/* Sets at most *size bytes aside, as many as the last block has room for: all segments of this
 * chain are blocks, and filled to their ends, so that one who reads on from one place comes to the
 * next. Returns the block, without a reference for the caller; NULL without memory. */
struct relay_block *chain_reserve(struct chain *chain, uint32_t *size, uint64_t *position);

enum chain_found {
    CHAIN_END,
    CHAIN_AWAY, /* it will be read from disk; ask again then */
    CHAIN_LOST, /* it could not be read */
    CHAIN_HERE,
};

/* In which segment a position is, and where in it. */
static inline uint32_t chain_number(uint64_t position)
{
    return (uint32_t)(position >> CHAIN_SHIFT);
}
static inline uint32_t chain_offset(uint64_t position)
{
    return (uint32_t)(position & ((1u << CHAIN_SHIFT) - 1));
}

static inline uint64_t chain_position(uint32_t number, uint32_t offset)
{
    return ((uint64_t)number << CHAIN_SHIFT) + offset;
}

struct chain_bytes {
    const uint8_t *at;
    uint32_t size;             /* that follow in this segment */
    struct relay_block *block; /* NULL: memory of its own */
};

/* The segment of a position; NULL: it was let go of, or is still to come. */
static inline struct log_segment *chain_segment(const struct chain *chain, uint64_t position)
{
    uint32_t at = chain_number(position) - chain->first; /* large for one before the first */

    return at < chain->count ? chain->segments[at] : NULL;
}

/* The bytes at a position where one who reads all in order has come to; the position is moved on to
 * the next segment if that is where they are. They stay as store_want says. */
enum chain_found chain_read(const struct chain *chain, uint64_t *position,
                            struct chain_bytes *bytes);

#endif
