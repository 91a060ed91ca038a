#include "tests/interleave/site.h"

#include <string.h>

struct cw_channel site_channel;
_Alignas(4096) uint8_t site_memory[SITE_BYTES_MAX];

/* docs/protocol.md, Channel memory */
#define USED_AT 64u
#define STREAMS_AT (128u + 64u * SITE_RANKS)
#define STREAM_BYTES 192u
#define FIRST_AT 8u
#define BLOCKS_AT                                                                                  \
    ((STREAMS_AT + STREAM_BYTES * SITE_STREAMS + CW_CHANNEL_BLOCK_MIN - 1) /                       \
     CW_CHANNEL_BLOCK_MIN * CW_CHANNEL_BLOCK_MIN)

void site_start(unsigned log_blocks)
{
    memset(site_memory, 0, sizeof(site_memory));
    if (!cw_channel_at(&site_channel, site_memory,
                       cw_channel_bytes(SITE_RANKS, (uint64_t)log_blocks * CW_CHANNEL_BLOCK_MAX),
                       SITE_RANKS))
        explore_check(false, "the memory has another size");
}

/* --- pieces ----------------------------------------------------------------------------------- */

struct cw_piece site_piece(unsigned type, unsigned number, unsigned size)
{
    return (struct cw_piece){.type = type,
                             .size = size,
                             .tag = 1000 + number,
                             .total = 2000 + number,
                             .req = 3000 + number,
                             .more = 4000 + number};
}

bool site_put(struct cw_stream *stream, const struct cw_piece *piece)
{
    uint8_t bytes[CW_CHANNEL_BLOCK_MAX];

    if (!cw_stream_fits(stream, piece->size))
        return false;
    memset(bytes, (int)piece->tag, sizeof(bytes));
    cw_stream_put(stream, piece, &(struct iovec){bytes, piece->size}, 0);
    return true;
}

bool site_take(struct cw_stream *stream, const struct cw_piece *expected)
{
    uint8_t bytes[CW_CHANNEL_BLOCK_MAX];
    const uint8_t *payload;
    struct cw_piece piece;

    if (!cw_stream_next(stream, &piece)) {
        explore_check(!stream->broken, "a stream is broken");
        return false;
    }
    explore_check(piece.tag == expected->tag, "another piece comes than was put next");
    explore_check(piece.type == expected->type && piece.size == expected->size &&
                      piece.total == expected->total && piece.req == expected->req &&
                      piece.more == expected->more,
                  "a piece has another head than was put");
    payload = cw_stream_payload(stream);
    explore_access(payload, piece.size, false);
    memset(bytes, (int)piece.tag, sizeof(bytes));
    explore_check(memcmp(payload, bytes, piece.size) == 0,
                  "a piece has not the bytes that were put");
    cw_stream_take(stream, &piece);
    return true;
}

/* --- sleeping --------------------------------------------------------------------------------- */

void site_wake(unsigned rank)
{
    _Atomic uint32_t *futex;

    if (cw_channel_wakes(&site_channel, rank, &futex))
        explore_wake(futex);
}

void site_sleep_reading(unsigned rank, const struct cw_stream *stream)
{
    site_sleep_reading_two(rank, stream, stream);
}

void site_sleep_reading_two(unsigned rank, const struct cw_stream *stream,
                            const struct cw_stream *other)
{
    _Atomic uint32_t *futex = cw_channel_sleep(&site_channel, rank);

    if (!cw_stream_readable(stream) && (stream == other || !cw_stream_readable(other)))
        explore_sleep(futex, 1);
    cw_channel_woke(&site_channel, rank);
}

void site_sleep_writing(unsigned rank, struct cw_stream *stream, unsigned size)
{
    _Atomic uint32_t *futex = cw_channel_sleep(&site_channel, rank);

    cw_stream_wait(stream);
    if (!cw_stream_fits(stream, size))
        explore_sleep(futex, 1);
    cw_channel_woke(&site_channel, rank);
}

/* --- blocks ----------------------------------------------------------------------------------- */

static uint32_t word_at(size_t at)
{
    uint32_t word;

    memcpy(&word, site_memory + at, sizeof(word));
    return word;
}

static uint32_t link_of(uint32_t number)
{
    return word_at(BLOCKS_AT + (number + 1) * CW_CHANNEL_BLOCK_MAX - sizeof(uint32_t));
}

/* Follows a chain from 1 + its first block, until after `last`, or to its end; counts each. */
static void count_chain(uint32_t next, uint32_t last, unsigned *counts)
{
    unsigned length = 0;

    while (next && next - 1 < site_channel.blocks && length++ < site_channel.blocks) {
        counts[next - 1]++;
        next = next - 1 == last ? 0 : link_of(next - 1);
    }
    explore_check(next == 0, "a chain of blocks does not end");
}

void site_check_blocks(const uint32_t *last, unsigned lost_max)
{
    unsigned counts[SITE_BLOCKS_MAX] = {0};
    uint32_t used = word_at(USED_AT);
    unsigned lost = 0;

    count_chain(word_at(0), UINT32_MAX, counts);
    for (unsigned s = 0; s < SITE_STREAMS; s++)
        if (last[s] != UINT32_MAX)
            count_chain(word_at(STREAMS_AT + s * STREAM_BYTES + FIRST_AT), last[s], counts);
    for (unsigned b = 0; b < site_channel.blocks; b++) {
        explore_check(counts[b] <= 1, "a block is in two places");
        explore_check(counts[b] == 0 || b < used, "a block is somewhere that was never taken");
        lost += counts[b] == 0 && b < used;
    }
    explore_check(lost <= lost_max, "more blocks are lost than a death had in hand");
}
