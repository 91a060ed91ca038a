/* What one side of a session has to send: slices of blocks, in order. Headers and small payloads
 * are copied together into a block of the queue's own; larger payloads are written from the block
 * that they were read into. Where the other side acknowledges, what was sent stays in the queue
 * until then, and can be sent again. docs/protocol.md, "Positions". */
#ifndef RELAY_OUT_H
#define RELAY_OUT_H

#include "relay/log/chain.h"

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
    uint64_t bytes;   /* to be sent */
    uint64_t kept;    /* before them: sent, and kept until they are acknowledged */
    uint64_t front;   /* position of the first byte that is here */
    uint64_t acked;   /* the other side has said that it has all before this position */
    uint64_t reached; /* after the last byte that was sent over any connection */
    uint64_t opened;  /* of the first byte sent over the present connection */
    uint32_t cursor;  /* the slice that is being sent ... */
    size_t cursor_at; /* ... and how much of it was */
    uint64_t noted[COMMITS_OUT_MAX]; /* end of what is part of commits that are on their way ... */
    uint64_t stable; /* ... or there: it survives the loss of power, or of our host */
    bool keeps;
    struct relay_block *block; /* the queue's own, being filled; NULL when idle */
    uint32_t block_used;
    struct chain chain; /* where it outlives the process, all its bytes are here */
    bool vital;         /* what is queued here must go out even when memory is spent */
};

void out_init(struct out_queue *out, struct relay_pool *pool);
void out_fini(struct out_queue *out);

/* What is queued outlives the process from now on; it is empty. `entry`: who saves it. */
void out_outlive(struct out_queue *out, struct log_store *store, struct ledger_entry *entry);
/* What of it is saved. */
struct out_saved {
    struct chain_end chain;
    uint32_t skip; /* bytes of the first segment */
    uint64_t front;
    uint64_t end;
    uint64_t acked;
};
struct out_saved out_save(const struct out_queue *out);
/* The same for one that was left: nothing of it has been sent. Errors: as chain_return. */
int out_return(struct out_queue *out, struct log_store *store, struct ledger_entry *entry,
               const struct out_saved *saved);

/* Makes the queue one that can take a few small frames even when memory is spent. Returns 0 or
 * CW_ENOMEM. */
int out_make_vital(struct out_queue *out);

/* Room for `size` (at most RELAY_BLOCK_BYTES) contiguous bytes at the end of the queue, to be
 * filled at once. NULL when there is no memory. */
uint8_t *out_reserve(struct out_queue *out, size_t size);

/* Appends bytes: by reference to `block`, or by copy when block is NULL or they are few. Returns 0
 * or CW_ENOMEM. */
int out_append(struct out_queue *out, const uint8_t *at, size_t size, struct relay_block *block);

/* Fills up to `max` vectors with what is to be sent next, at most `size` bytes; returns how many.
 */
int out_peek(const struct out_queue *out, struct iovec *iov, int max, uint64_t size);
/* The first `size` bytes of it were sent. They are held on if the queue keeps. */
void out_sent(struct out_queue *out, size_t size);

/* Whether what is sent is kept from now on. Without: lets go of what is kept. */
void out_keep(struct out_queue *out, bool keeps);
/* The other side has received all before `position`: it is kept no longer. An ACK that was sent
 * again can be older than what is known: it changes nothing. False: it acknowledges what was not
 * sent. */
bool out_acknowledge(struct out_queue *out, uint64_t position);
/* The last `size` bytes that were sent, which were not kept here, come back to the front; they are
 * copied. What is more than was sent over the present connection is dropped: it was part of the
 * handshake. Nothing is kept. Returns 0 or CW_ENOMEM. */
int out_restore(struct out_queue *out, const struct iovec *iov, int count);
/* Whether the other side can have received all before `position`, and has not said before that it
 * has more. */
bool out_may_rewind(const struct out_queue *out, uint64_t position);
/* A new connection, and the other side has all before `position`: the rest is sent again. False: it
 * may not; then nothing is changed. */
bool out_rewind(struct out_queue *out, uint64_t position);
/* All that is here is dropped, and the stream goes on a byte later. Returns that position. */
uint64_t out_restart(struct out_queue *out);
/* `size` bytes of the stream behind what is queued now do not go through the queue: they are sent
 * by someone else, when the queue is empty. It does not keep. */
static inline void out_skip(struct out_queue *out, uint64_t size)
{
    out->front += size;
    out->reached = out->front;
}

/* Drops all but what is kept and the first `pieces` of out_peek. It is sent to no end: the stream
 * does not go on. */
void out_cut(struct out_queue *out, uint32_t pieces);

/* What is here now is part of a commit; which has ended. */
static inline void out_note(struct out_queue *out, uint64_t commit)
{
    out->noted[commit % COMMITS_OUT_MAX] = out->front + out->kept + out->bytes;
}
static inline void out_settle(struct out_queue *out, uint64_t commit)
{
    out->stable = out->noted[commit % COMMITS_OUT_MAX];
}
/* Bytes that are to be sent, and survive that. */
static inline uint64_t out_stable(const struct out_queue *out)
{
    uint64_t sent = out->front + out->kept;
    uint64_t stable = out->stable > sent ? out->stable - sent : 0;

    return stable < out->bytes ? stable : out->bytes;
}

#endif
