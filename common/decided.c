#include "common/decided.h"

#include <assert.h>

/* Numbers are small most of the time: seven bits a byte, the highest says that more follow. */
static uint8_t *put_number(uint8_t *to, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *to++ = (uint8_t)v | 0x80;
    *to++ = (uint8_t)v;
    return to;
}

static uint64_t get_number(struct cw_reader *from, uint64_t most)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = cw_get_u8(from);
        v |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80 && shift < 64);
    from->bad |= (byte & 0x80) || v > most;
    return v;
}

size_t cw_decision_put_head(uint8_t to[CW_DECISION_HEAD_MAX], const struct cw_piece *piece)
{
    uint8_t *at = to;

    *at++ = (uint8_t)piece->type;
    at = put_number(at, piece->req);
    at = put_number(at, piece->tag);
    at = put_number(at, piece->total);
    at = put_number(at, piece->more);
    at = put_number(at, piece->size);
    assert((size_t)(at - to) <= CW_DECISION_HEAD_MAX);
    return (size_t)(at - to);
}

size_t cw_decision_put(uint8_t *to, const struct cw_piece *piece, const uint8_t *payload)
{
    size_t head = cw_decision_put_head(to, piece);

    if (piece->size)
        memcpy(to + head, payload, piece->size);
    return head + piece->size;
}

bool cw_decision_get(struct cw_reader *from, struct cw_piece *piece, const uint8_t **payload)
{
    *piece = (struct cw_piece){.type = cw_get_u8(from)};
    piece->req = (uint32_t)get_number(from, UINT32_MAX);
    piece->tag = get_number(from, UINT64_MAX);
    piece->total = get_number(from, UINT64_MAX);
    piece->more = get_number(from, UINT64_MAX);
    piece->size = (uint16_t)get_number(from, CW_CHANNEL_NOTE_MAX);
    from->bad |= piece->type < CW_PIECE_TOOK || piece->type >= CW_PIECE_TYPES;
    *payload = cw_get_bytes(from, piece->size);
    return !from->bad;
}

/* --- what goes together --------------------------------------------------------------------------
 */

/* Whether it is there although what it follows from is not. */
static bool is_orphan(const struct cw_piece *piece, uint32_t ranks, const uint64_t *counts)
{
    return piece->type == CW_PIECE_TOOK && piece->req < ranks && piece->total > counts[piece->req];
}

/* Returns whether something was cut off this rank's. */
static bool cut_one(const struct cw_decided_source *source, uint32_t ranks, uint64_t *counts,
                    uint32_t rank)
{
    struct cw_piece piece;
    uint64_t good = 0;
    uint64_t all = counts[rank];

    source->begin(source->ctx, rank);
    while (good < all && source->next(source->ctx, rank, &piece) &&
           !is_orphan(&piece, ranks, counts))
        good++;
    counts[rank] = good;
    return good < all;
}

void cw_decided_cut(const struct cw_decided_source *source, uint32_t ranks, uint64_t *counts)
{
    bool cut = ranks > 0;

    while (cut) {
        cut = false;
        for (uint32_t rank = 0; rank < ranks; rank++)
            cut |= cut_one(source, ranks, counts, rank);
    }
}
