/* Where the segments of all logs of a core are: in memory up to a budget, and beyond it on disk.
 * Segments that are full are written in the order in which they became so, long before the budget
 * is spent: memory that is used again costs less than memory that is used for the first time. They
 * are read back when a replay comes to them. What is to be written and read is asked of the caller.
 * [MPICH-V] 3.2: the channel memory has "an out-of-core message storage", which the operating
 * system does not swap. */
#ifndef RELAY_STORE_H
#define RELAY_STORE_H

#include "relay/log/commit.h"
#include "relay/log/ledger.h"

#ifndef STORE_SEGMENT_BYTES
#define STORE_SEGMENT_BYTES RELAY_BLOCK_BYTES /* of those that go to disk; each has a block */
#endif
#define STORE_IO_MAX 16u               /* requests that are out at a time */
#define STORE_BEGIN_MAX (256ull << 20) /* memory in use when writing begins; but ... */
#define STORE_BEGIN_SHARE 2            /* ... no more than one part in so many of the budget */
#define STORE_BEGIN_JOURNAL                                                                        \
    (16ull << 20) /* with a journal, which holds all that is not on disk, writing begins here      \
                   */
#define STORE_SLACK_SHARE 8  /* one part in so many more is used before a log is given up */
#define STORE_EXCESS_SHARE 4 /* ... and while an image is awaited, a 4th ... */
#define STORE_EXCESS_MIN (16ull << 20) /* ... and so much */
#define STORE_EVICT_TRIES 64u /* segments that others hold are passed over, so many at a time */

#define STORE_NO_EXTENT UINT32_MAX

enum segment_state {
    SEGMENT_OPEN,    /* being filled, or never written: it is small, or there is no disk */
    SEGMENT_FULL,    /* to be written */
    SEGMENT_WRITING, /* a request is out */
    SEGMENT_CLEAN,   /* in memory and on disk */
    SEGMENT_COLD,    /* on disk alone */
    SEGMENT_WANTED,  /* to be read */
    SEGMENT_READING, /* a request is out */
    SEGMENT_LOST,    /* it could not be read */
};

struct log_segment {
    struct log_segment *prev; /* in the list of its state, if that has one */
    struct log_segment *next;
    struct log_segment *next_dropped;
    struct relay_pool *pool;
    uint8_t *bytes;            /* NULL: not in memory */
    struct relay_block *block; /* that they are of; NULL: they are few, in memory of their own */
    uint64_t chain;            /* whose it is, for the ledger ... */
    uint32_t number;           /* ... and which one of it */
    uint32_t size;
    uint32_t used;
    uint32_t extent; /* its place on disk, from FULL on; counted in segments; or STORE_NO_EXTENT */
    uint8_t state;   /* enum segment_state */
    bool stays;      /* in memory, as long as it is there; it is not of a log */
    bool dropped;    /* its log is gone, and a request is still out */
    uint32_t round;  /* in which it was read */
    uint64_t sum;    /* XXH3 of its bytes, once it was written */
    struct segment_notes notes;
    uint64_t pin; /* of payload: the last point whose snapshot refers to it; 0: none */
};

struct log_store {
    struct relay_pool *pool; /* of what is kept for all logs */
    struct ledger
        *ledger;          /* where what has a name is entered; NULL: nothing outlives the process */
    struct commit commit; /* of it to the journal, where there is one */
    uint64_t memory_max;
    uint64_t memory_begin; /* beyond it memory is used again */
    uint64_t write_begin;  /* beyond it what is not on disk is written */
    uint64_t memory_now;   /* bytes of segments in memory, but for those that stay there ... */
    uint64_t
        clean_now; /* ... of those that are on disk as well: others hold them, or they can go */
    uint32_t extents_max;  /* 0: there is no disk */
    uint32_t extents;      /* that have been used ... */
    uint32_t extents_left; /* ... of them by who was before us, until store_returned */
    uint32_t *free_extents;
    uint32_t free_count;
    uint32_t free_room;
    struct segment_list full;
    struct segment_list clean;
    struct segment_list wanted;
    struct segment_list out;     /* WRITING and READING */
    struct log_segment *dropped; /* of chains that outlive the process; until store_settle */
    uint32_t out_count;
    uint32_t writing; /* of them */
    uint32_t round;   /* what was read in this one stays until it ends */
    bool arrived;     /* something was */
    int error;        /* an errno: nothing can be written any more */
};

/* `disk_max`: bytes; 0: there is no disk. */
void store_init(struct log_store *store, struct relay_pool *pool, struct ledger *ledger,
                uint64_t memory_max, uint64_t disk_max);
/* What has a name is kept in a journal from now on, so that it survives the loss of power. Returns
 * 0 or CW_ENOMEM. */
int store_keep_journal(struct log_store *store, const struct relay_journal *journal);
/* There is no log any more, and no request is carried out any more. */
void store_fini(struct log_store *store);

/* A segment of `size` bytes: from STORE_SEGMENT_BYTES to RELAY_BLOCK_BYTES, or fewer, which stay in
 * memory. `stays`: that one is never written to disk, nor counted. NULL without memory. */
struct log_segment *store_new(struct log_store *store, struct relay_pool *pool, uint32_t size,
                              bool stays);
/* It is this one of a chain, for who comes after us. It has a block. */
void store_name(struct log_store *store, struct log_segment *segment, uint64_t chain,
                uint32_t number);
/* Something was left: what is written meanwhile goes elsewhere. */
void store_return_begin(struct log_store *store);
/* One that was left. Returns NULL without memory. */
struct log_segment *store_return(struct log_store *store, struct relay_pool *pool,
                                 struct ledger_piece *piece, bool stays);
/* All that are taken were; other places on disk are free. */
void store_returned(struct log_store *store);
/* `size` bytes more of it are used. */
static inline void store_use(struct log_store *store, struct log_segment *segment, uint32_t size)
{
    segment->used += size;
    if (segment->chain)
        commit_segment(&store->commit, segment, size);
}
/* Nothing is added to it any more. */
void store_seal(struct log_store *store, struct log_segment *segment);
void store_drop(struct log_store *store, struct log_segment *segment);
/* The ledger knows that they were dropped. */
void store_settle(struct log_store *store);
/* Whether it is in memory. Else it is asked for, unless it is LOST. What is in memory stays there
 * until the next call of store_new, store_next_io, store_io_done or store_trim; and as long as
 * others hold its block. */
bool store_want(struct log_store *store, struct log_segment *segment);

/* What is to be written or read next; false: nothing now. Copies into segments have been made. */
bool store_next_io(struct log_store *store, struct relay_log_io *io);
/* The ends of segments have been committed: their places are free. */
void store_committed(struct log_store *store);
/* A request has been carried out. */
void store_io_done(struct log_store *store, const struct relay_log_done *done);
/* All who waited for what has arrived have looked at it. */
void store_end_round(struct log_store *store);

/* Lets go of memory that is not needed, where the budget is spent. */
void store_trim(struct log_store *store);
/* The budget is spent, and what is being written will make room; or the journal is behind. */
static inline bool store_waits(const struct log_store *store)
{
    return (store->memory_now - store->clean_now > store->memory_max && store->writing > 0) ||
           commit_waits(&store->commit);
}
/* More is in memory than may be, for others hold it, and there is a disk that has it as well or
 * will. */
bool store_is_crowded(const struct log_store *store);
/* Memory and disk are spent ... */
bool store_is_full(const struct log_store *store);
/* ... beyond the slack as well: a log is to be given up. */
bool store_spent(const struct log_store *store);
/* Likewise, by more than what comes in while everybody waits. */
bool store_is_exceeded(const struct log_store *store);

#endif
