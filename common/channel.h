/* Channel memory: ranks of one host put messages into memory that all of them have mapped, and the
 * receiver gets them from there ([MPICH-V] 3.2, "Channel Memory"); no process stands between. One
 * stream of pieces for each pair of ranks, with one writer and one reader: a process that dies in
 * the middle of a piece leaves one that was never put, and no lock. Pure: no system call.
 *
 * The reader trusts nothing that the writer may write: what it takes is checked against bounds, and
 * its own position is in its own memory. docs/protocol.md, "Channel memory".
 *
 * Thread rule: one thread of any process at each end of a stream. */
#ifndef CW_CHANNEL_H
#define CW_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define CW_CHANNEL_RANKS_MAX 128u
#define CW_CHANNEL_LINE 64u
#define CW_CHANNEL_PIECE_MAX (32u << 10)   /* bytes of payload of one piece, at most */
#define CW_CHANNEL_PIECE_MIN 4096u         /* a message is not cut into smaller ones */
#define CW_CHANNEL_STREAM_MAX (256u << 10) /* bytes of one stream: few ranks ... */
#define CW_CHANNEL_STREAM_MIN (16u << 10)  /* ... and many */

enum cw_piece_type {
    CW_PIECE_TAG,  /* a message begins: enum cw_send_kind ... */
    CW_PIECE_SYNC, /* ... */
    CW_PIECE_AM,   /* ... */
    CW_PIECE_MORE, /* of the message that began last */
    CW_PIECE_SENT, /* the synchronous send `req` of the reader was matched */
    CW_PIECE_TYPES
};

/* As it is written, at a multiple of CW_CHANNEL_LINE; `size` bytes of payload follow. */
struct cw_piece {
    _Atomic uint64_t stamp; /* 1 + the position of the piece, once all of it is there */
    uint32_t size;
    uint32_t type; /* enum cw_piece_type */
    uint64_t tag;
    uint64_t total; /* bytes of the message */
    uint32_t req;   /* of a synchronous send */
    uint32_t zero;
};

/* One side's view of a stream. */
struct cw_stream {
    uint8_t *bytes;          /* `size` of them, a power of two; a position is taken modulo it */
    _Atomic uint64_t *taken; /* by the reader, in the memory */
    _Atomic uint32_t *waits; /* the writer, for room; likewise */
    uint64_t at;             /* what this side has put, or taken */
    uint64_t seen;           /* the writer's: what was taken when it last looked */
    uint32_t size;
    bool broken; /* what the other side wrote cannot be */
};

struct cw_channel {
    uint8_t *memory; /* cw_channel_bytes(ranks), page-aligned; all zero at first */
    uint32_t ranks;  /* at most CW_CHANNEL_RANKS_MAX */
    uint32_t stream_bytes;
};

/* Bytes of the memory for so many ranks. */
size_t cw_channel_bytes(uint32_t ranks);
struct cw_channel cw_channel_at(void *memory, uint32_t ranks);

/* From one rank to another, as it is at the beginning. */
struct cw_stream cw_channel_stream(const struct cw_channel *channel, uint32_t from, uint32_t to);

/* A rank is going to sleep until somebody has put something for it, or has taken something of its
 * own (cw_stream_wait); it looks once more after this. Returns the futex to sleep at, while it
 * is 1.
 */
_Atomic uint32_t *cw_channel_sleep(const struct cw_channel *channel, uint32_t rank);
void cw_channel_woke(const struct cw_channel *channel, uint32_t rank);
/* Whether the caller is to wake this rank, for which it has done something: true once for each
 * sleep. */
bool cw_channel_wakes(const struct cw_channel *channel, uint32_t rank);

/* The rank says on which processor it runs; and whether one of a lower number last said the same.
 */
void cw_channel_runs_on(const struct cw_channel *channel, uint32_t rank, int cpu);
bool cw_channel_shares_cpu(const struct cw_channel *channel, uint32_t rank, int cpu);

/* --- the writer's side */
/* How many bytes of payload the next piece may have: at most `wanted` and CW_CHANNEL_PIECE_MAX, and
 * not less than both of `wanted` and CW_CHANNEL_PIECE_MIN, where a piece can have as many.
 * Negative: there is no room for that now. */
int32_t cw_stream_room(struct cw_stream *stream, uint64_t wanted);
/* Puts a piece, with `piece->size` bytes of payload, at most what cw_stream_room said, from the
 * vectors, of which the first `skip` bytes are passed over. */
void cw_stream_put(struct cw_stream *stream, const struct cw_piece *piece, const struct iovec *from,
                   size_t skip);

/* The writer is going to wait for room; it looks once more after this. */
void cw_stream_wait(struct cw_stream *stream);

/* --- the reader's side */
/* Whether the writer waits for what was taken since this was asked last. */
bool cw_stream_is_awaited(const struct cw_stream *stream);
/* Whether a piece is there, for one who does not read it now. */
static inline bool cw_stream_readable(const struct cw_stream *stream)
{
    const struct cw_piece *there =
        (const struct cw_piece *)(stream->bytes + (stream->at & (stream->size - 1)));

    return atomic_load_explicit(&there->stamp, memory_order_acquire) == stream->at + 1;
}
/* Copies the head of the next piece to *piece; false: none is there, or the stream is broken. */
bool cw_stream_next(struct cw_stream *stream, struct cw_piece *piece);
/* Copies `size` bytes of its payload, from byte `skip` on; both within piece->size. */
void cw_stream_copy(const struct cw_stream *stream, size_t skip, void *to, size_t size);
/* Has done with it: the writer gets its room back. */
void cw_stream_take(struct cw_stream *stream, const struct cw_piece *piece);

#endif
