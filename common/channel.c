#include "common/channel.h"
#include "common/copy.h"

#include <assert.h>
#include <string.h>

#define HEAD sizeof(struct cw_piece)
#define CHANNEL_TOTAL_MAX (256u << 20)    /* of all streams, where they are above the least size */
#define STREAM_HEAD (2 * CW_CHANNEL_LINE) /* before the bytes of a stream: a line of each side */
#define PIECES_MIN 4u                     /* that have room in a stream */

_Static_assert(HEAD == 40, "docs/protocol.md, Channel memory");
_Static_assert(CW_CHANNEL_PIECE_MAX *PIECES_MIN < CW_CHANNEL_STREAM_MAX, "pieces flow");

static uint32_t stream_bytes(uint32_t ranks)
{
    uint32_t size = CW_CHANNEL_STREAM_MAX;

    while (size > CW_CHANNEL_STREAM_MIN && (uint64_t)size * ranks * ranks > CHANNEL_TOTAL_MAX)
        size /= 2;
    return size;
}

static size_t stream_stride(uint32_t size)
{
    return STREAM_HEAD + size;
}

size_t cw_channel_bytes(uint32_t ranks)
{
    return (size_t)ranks * CW_CHANNEL_LINE +
           (size_t)ranks * ranks * stream_stride(stream_bytes(ranks));
}

struct cw_channel cw_channel_at(void *memory, uint32_t ranks)
{
    assert(ranks <= CW_CHANNEL_RANKS_MAX);
    return (struct cw_channel){
        .memory = memory, .ranks = ranks, .stream_bytes = stream_bytes(ranks)};
}

struct cw_stream cw_channel_stream(const struct cw_channel *channel, uint32_t from, uint32_t to)
{
    uint8_t *at = channel->memory + (size_t)channel->ranks * CW_CHANNEL_LINE +
                  ((size_t)to * channel->ranks + from) * stream_stride(channel->stream_bytes);

    return (struct cw_stream){.bytes = at + STREAM_HEAD,
                              .taken = (_Atomic uint64_t *)at,
                              .waits = (_Atomic uint32_t *)(at + CW_CHANNEL_LINE),
                              .size = channel->stream_bytes};
}

/* --- sleeping ------------------------------------------------------------------------------------
 */

/* 1 + the processor that it runs on; 0: not known. */
static _Atomic uint32_t *cpu_of(const struct cw_channel *channel, uint32_t rank)
{
    return (_Atomic uint32_t *)(channel->memory + (size_t)rank * CW_CHANNEL_LINE) + 1;
}

void cw_channel_runs_on(const struct cw_channel *channel, uint32_t rank, int cpu)
{
    _Atomic uint32_t *word = cpu_of(channel, rank);

    if (atomic_load_explicit(word, memory_order_relaxed) != (uint32_t)(cpu + 1))
        atomic_store_explicit(word, (uint32_t)(cpu + 1), memory_order_relaxed);
}

bool cw_channel_shares_cpu(const struct cw_channel *channel, uint32_t rank, int cpu)
{
    uint32_t other = 0;

    while (other < rank && atomic_load_explicit(cpu_of(channel, other), memory_order_relaxed) !=
                               (uint32_t)(cpu + 1))
        other++;
    return other < rank;
}

static _Atomic uint32_t *sleeps_of(const struct cw_channel *channel, uint32_t rank)
{
    return (_Atomic uint32_t *)(channel->memory + (size_t)rank * CW_CHANNEL_LINE);
}

/* Either this side sees that the other one waits, or the other one sees what this side did: each
 * writes, then reads what the other writes, with a full fence between. */
static bool is_set(_Atomic uint32_t *word)
{
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(word, memory_order_relaxed) &&
           atomic_exchange_explicit(word, 0, memory_order_relaxed);
}

static void set(_Atomic uint32_t *word)
{
    atomic_store_explicit(word, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

bool cw_channel_wakes(const struct cw_channel *channel, uint32_t rank)
{
    return is_set(sleeps_of(channel, rank));
}

_Atomic uint32_t *cw_channel_sleep(const struct cw_channel *channel, uint32_t rank)
{
    set(sleeps_of(channel, rank));
    return sleeps_of(channel, rank);
}

void cw_channel_woke(const struct cw_channel *channel, uint32_t rank)
{
    atomic_store_explicit(sleeps_of(channel, rank), 0, memory_order_relaxed);
}

void cw_stream_wait(struct cw_stream *stream)
{
    set(stream->waits);
}

bool cw_stream_is_awaited(const struct cw_stream *stream)
{
    return is_set(stream->waits);
}

/* --- pieces --------------------------------------------------------------------------------------
 */

/* Of a piece with so much payload, and the pieces after it begin at lines. */
static uint32_t length_of(uint32_t payload)
{
    return (uint32_t)((HEAD + payload + CW_CHANNEL_LINE - 1) & ~(CW_CHANNEL_LINE - 1));
}

static struct cw_piece *piece_at(const struct cw_stream *stream, uint64_t position)
{
    return (struct cw_piece *)(stream->bytes + (position & (stream->size - 1)));
}

static uint32_t piece_max(const struct cw_stream *stream)
{
    uint32_t most = stream->size / PIECES_MIN - CW_CHANNEL_LINE;

    return most < CW_CHANNEL_PIECE_MAX ? most : CW_CHANNEL_PIECE_MAX;
}

/* The stamp behind what is put has to have room, too. */
static int64_t free_bytes(const struct cw_stream *stream)
{
    return (int64_t)stream->size - (int64_t)(stream->at - stream->seen) -
           (int64_t)(2 * CW_CHANNEL_LINE + HEAD);
}

int32_t cw_stream_room(struct cw_stream *stream, uint64_t wanted)
{
    int64_t most = piece_max(stream);
    int64_t least;

    if (wanted < (uint64_t)most)
        most = (int64_t)wanted;
    least = most < CW_CHANNEL_PIECE_MIN ? most : CW_CHANNEL_PIECE_MIN;
    if (free_bytes(stream) < most) {
        stream->seen = atomic_load_explicit(stream->taken, memory_order_acquire);
        stream->broken |= stream->at - stream->seen > stream->size;
    }
    if (stream->broken || free_bytes(stream) < least)
        return -1;
    return (int32_t)(free_bytes(stream) < most ? free_bytes(stream) : most);
}

/* Payload lies behind its head, and goes on at the beginning where the bytes end. */
static void copy_in(const struct cw_stream *stream, uint64_t position, const void *from,
                    size_t size)
{
    size_t at = (size_t)(position & (stream->size - 1));
    size_t first = size < stream->size - at ? size : stream->size - at;

    cw_copy(stream->bytes + at, from, first);
    if (size > first)
        cw_copy(stream->bytes, (const uint8_t *)from + first, size - first);
}

static void gather(const struct cw_stream *stream, uint64_t position, size_t size,
                   const struct iovec *from, size_t skip)
{
    for (; size > 0; from++) {
        size_t n = from->iov_len > skip ? from->iov_len - skip : 0;

        if (n > size)
            n = size;
        if (n > 0)
            copy_in(stream, position, (const uint8_t *)from->iov_base + skip, n);
        skip -= skip < from->iov_len ? skip : from->iov_len;
        position += n;
        size -= n;
    }
}

/* The reader looks at the stamp of the piece after this one next: what lies there from before must
 * not look like one. */
void cw_stream_put(struct cw_stream *stream, const struct cw_piece *piece, const struct iovec *from,
                   size_t skip)
{
    struct cw_piece *to = piece_at(stream, stream->at);
    uint64_t next = stream->at + length_of(piece->size);

    to->size = piece->size;
    to->type = piece->type;
    to->tag = piece->tag;
    to->total = piece->total;
    to->req = piece->req;
    gather(stream, stream->at + HEAD, piece->size, from, skip);
    atomic_store_explicit(&piece_at(stream, next)->stamp, 0, memory_order_relaxed);
    atomic_store_explicit(&to->stamp, stream->at + 1, memory_order_release);
    stream->at = next;
}

bool cw_stream_next(struct cw_stream *stream, struct cw_piece *piece)
{
    const struct cw_piece *there = piece_at(stream, stream->at);

    if (atomic_load_explicit(&there->stamp, memory_order_acquire) != stream->at + 1)
        return false;
    piece->size = there->size;
    piece->type = there->type;
    piece->tag = there->tag;
    piece->total = there->total;
    piece->req = there->req;
    stream->broken |= piece->size > piece_max(stream) || piece->type >= CW_PIECE_TYPES;
    return !stream->broken;
}

void cw_stream_copy(const struct cw_stream *stream, size_t skip, void *to, size_t size)
{
    size_t at = (size_t)((stream->at + HEAD + skip) & (stream->size - 1));
    size_t first = size < stream->size - at ? size : stream->size - at;

    cw_copy(to, stream->bytes + at, first);
    if (size > first)
        cw_copy((uint8_t *)to + first, stream->bytes, size - first);
}

void cw_stream_take(struct cw_stream *stream, const struct cw_piece *piece)
{
    stream->at += length_of(piece->size);
    atomic_store_explicit(stream->taken, stream->at, memory_order_release);
}
