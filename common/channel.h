/* Channel memory: ranks of one host put messages into memory that all of them have mapped, and the
 * receiver gets them from there ([MPICH-V] 3.2, "Channel Memory"); no process stands between. One
 * stream of pieces for each pair of ranks, and one for what each rank decides, with one writer and
 * one reader each: a process that dies in the middle of a piece leaves one that was never put, and
 * no lock. A stream is a chain of blocks, which are anybody's while they are free. With a log, what
 * was read stays where it is, and the next incarnation of the reader reads it again. Pure: no
 * system call.
 *
 * Neither side trusts what others may write: positions are in one's own memory, and what is read is
 * checked against bounds. docs/protocol.md, "Channel memory".
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
#define CW_CHANNEL_PIECE_MAX (32u << 10)  /* bytes of payload of one piece, at most */
#define CW_CHANNEL_PIECE_MIN 4096u        /* a message is not cut into smaller ones */
#define CW_CHANNEL_BLOCK_MAX (128u << 10) /* bytes of a block: few ranks ... */
#define CW_CHANNEL_BLOCK_MIN (32u << 10)  /* ... and many */
#define CW_CHANNEL_NOTE_MAX (16u << 10)   /* bytes of inputs that are noted at once */
#define CW_CHANNEL_AHEAD 4u               /* blocks of a stream that is not kept */
#define CW_CHANNEL_DECISION_STEP 8u       /* a decision begins at a multiple of it */

enum cw_piece_type {
    CW_PIECE_TAG,  /* a message begins: enum cw_send_kind ... */
    CW_PIECE_SYNC, /* ... */
    CW_PIECE_AM,   /* ... */
    CW_PIECE_MORE, /* of the message that began last */
    CW_PIECE_SENT, /* the synchronous send `req` of the reader was matched */
    CW_PIECE_NEXT, /* the stream goes on in block `tag` */
    /* of what a rank decides, docs/protocol.md */
    CW_PIECE_TOOK,
    CW_PIECE_INPUTS,
    CW_PIECE_SEND,
    CW_PIECE_TYPES
};

/* As it is written, at a multiple of CW_CHANNEL_LINE; `size` bytes of payload follow. */
struct cw_piece {
    _Atomic uint64_t stamp; /* 1 + the position of the piece, once all of it is there */
    uint16_t size;
    uint16_t type; /* enum cw_piece_type */
    uint32_t req;  /* of a synchronous send */
    uint64_t tag;
    uint64_t total; /* bytes of the message */
    uint64_t more;  /* as the type says */
};

/* In the memory; docs/protocol.md. */
struct cw_stream_head;

struct cw_channel {
    uint8_t *memory; /* of this many bytes, page-aligned; all zero at first */
    size_t size;
    uint32_t ranks; /* at most CW_CHANNEL_RANKS_MAX */
    uint32_t block_bytes;
    uint32_t blocks;
    uint32_t
        in_memory; /* of these; those behind are in a file, and taken when there are no others */
};

/* What a writer has put into a stream, of all incarnations. */
struct cw_stream_sum {
    uint64_t messages; /* begun; or decisions */
    uint64_t bytes;    /* of the last one */
    uint64_t sents;    /* pieces SENT */
};

/* One side's view of a stream. */
struct cw_stream {
    const struct cw_channel *channel;
    struct cw_stream_head *head;
    uint8_t *block;           /* NULL: none yet */
    uint32_t number;          /* of that */
    uint32_t offset;          /* in it, of the next piece */
    uint64_t at;              /* position of the next piece: whole blocks before it, and offset */
    uint64_t seen;            /* the writer's: what was taken when it last looked */
    size_t step;              /* a piece begins at a multiple of it */
    bool keeps;               /* what was read stays */
    bool broken;              /* what others wrote cannot be */
    bool spent;               /* the writer's: there is no block left for it */
    struct cw_stream_sum sum; /* the writer's */
};

/* Bytes of the memory for so many ranks, with `log_bytes` for what is kept; 0: nothing is. */
size_t cw_channel_bytes(uint32_t ranks, uint64_t log_bytes);
/* False: `size` is none that cw_channel_bytes gives. */
bool cw_channel_at(struct cw_channel *channel, void *memory, size_t size, uint32_t ranks);

/* The last `bytes` of the memory, whole blocks, are those of a file on a disk: they are used as far
 * as the file has them, which somebody says who has seen to it. The first bytes that it is not
 * known to have; and that it has what lies before `bytes`. */
void cw_channel_with_file(struct cw_channel *channel, uint64_t bytes);
uint64_t cw_channel_provided(const struct cw_channel *channel);
void cw_channel_provide(const struct cw_channel *channel, uint64_t bytes);
/* So many bytes, in whole blocks. */
uint64_t cw_channel_blocks_of(uint32_t ranks, uint64_t bytes);

/* Whether there is room for what is to be kept; and whether that was spent, which a rank says that
 * finds it so: nothing is kept any more. */
bool cw_channel_keeps(const struct cw_channel *channel);
bool cw_channel_is_spent(const struct cw_channel *channel);
void cw_channel_set_spent(const struct cw_channel *channel);

/* From one rank to another, as it is at the beginning. The channel outlives it. */
struct cw_stream cw_channel_stream(const struct cw_channel *channel, uint32_t from, uint32_t to,
                                   bool keeps);
/* Of what a rank decides. */
struct cw_stream cw_channel_decisions(const struct cw_channel *channel, uint32_t rank);

/* --- where things are, in bytes from the start, for one who reads the memory without mapping it */
uint64_t cw_channel_place_of_block(const struct cw_channel *channel, uint32_t number);
/* The u64 with the first block of what a rank decides: 1 + its number, and above 32 bits how many
 * were before it. */
uint64_t cw_channel_place_of_decisions(const struct cw_channel *channel, uint32_t rank);
/* The u32 of a rank that says that a process of it was here; and that for all that nothing is kept
 * any more. */
uint64_t cw_channel_place_of_came(uint32_t rank);
uint64_t cw_channel_place_of_spent(void);

/* A process of the rank is here. Returns whether one was before: else the memory is new, or another
 * one than its predecessors had. */
bool cw_channel_come(const struct cw_channel *channel, uint32_t rank);

/* A rank is going to sleep until somebody has put something for it, or has taken something of its
 * own (cw_stream_wait); it looks once more after this. Returns the futex to sleep at, while it
 * is 1.
 */
_Atomic uint32_t *cw_channel_sleep(const struct cw_channel *channel, uint32_t rank);
void cw_channel_woke(const struct cw_channel *channel, uint32_t rank);
/* Whether the caller is to wake this rank, for which it has done something: true once for each
 * sleep; *futex is where. */
bool cw_channel_wakes(const struct cw_channel *channel, uint32_t rank, _Atomic uint32_t **futex);

/* How the rank is woken: by this number (rdevice/bell.h); 0: at its futex. */
void cw_channel_set_bell(const struct cw_channel *channel, uint32_t rank, uint32_t number);
uint32_t cw_channel_bell(const struct cw_channel *channel, uint32_t rank);

/* The rank says on which processor it runs; and whether one of a lower number last said the same.
 */
void cw_channel_runs_on(const struct cw_channel *channel, uint32_t rank, int cpu);
bool cw_channel_shares_cpu(const struct cw_channel *channel, uint32_t rank, int cpu);

/* --- the writer's side */
/* Goes on behind what an earlier incarnation has put; stream->sum has it then. */
void cw_stream_find_end(struct cw_stream *stream);
/* How many bytes of payload the next piece may have: at most CW_CHANNEL_PIECE_MAX, and `wanted` or
 * at least CW_CHANNEL_PIECE_MIN. Negative: there is no room, now; or, if `spent`, no block. */
int32_t cw_stream_room(struct cw_stream *stream, uint64_t wanted);
/* Whether the next piece may have all of `size` bytes, at most CW_CHANNEL_NOTE_MAX. */
bool cw_stream_fits(struct cw_stream *stream, uint32_t size);
/* Puts a piece, with `piece->size` bytes of payload, at most what cw_stream_room said just before,
 * from the vectors, of which the first `skip` bytes are passed over. */
void cw_stream_put(struct cw_stream *stream, const struct cw_piece *piece, const struct iovec *from,
                   size_t skip);
/* The writer is going to wait for room; it looks once more after this. */
void cw_stream_wait(struct cw_stream *stream);

/* --- the reader's side */
/* Whether the writer waits for what was taken since this was asked last. */
bool cw_stream_is_awaited(const struct cw_stream *stream);
/* Whether a piece is there, for one who does not read it now. */
bool cw_stream_readable(const struct cw_stream *stream);
/* Copies the head of the next piece to *piece; false: none is there, or the stream is broken. */
bool cw_stream_next(struct cw_stream *stream, struct cw_piece *piece);
/* The payload of that piece, piece->size bytes: valid until it is taken. */
const uint8_t *cw_stream_payload(const struct cw_stream *stream);
/* Has done with it. */
void cw_stream_take(struct cw_stream *stream, const struct cw_piece *piece);
/* Of a stream that is kept: bytes that are there behind the reader. */
uint64_t cw_stream_held(const struct cw_stream *stream);
/* What was read and lies before that position is not needed any more. */
void cw_stream_free(struct cw_stream *stream, uint64_t before);
/* Nothing is kept any more. */
void cw_stream_forget(struct cw_stream *stream);

#endif
