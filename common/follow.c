#include "common/follow.h"

#include <string.h>

#define HEAD sizeof(struct cw_piece)
#define SOME 4096u /* bytes read first: most of the time all that is new */

_Static_assert(CW_FOLLOW_BYTES >= HEAD + CW_CHANNEL_NOTE_MAX + CW_CHANNEL_DECISION_STEP, "any one");

static bool read_at(const struct cw_followed *memory, uint64_t at, void *to, size_t size)
{
    return memory->read(memory->ctx, at, to, size);
}

bool cw_follow_came(const struct cw_followed *memory, uint32_t rank)
{
    uint32_t came = 0;

    return read_at(memory, cw_channel_place_of_came(rank), &came, sizeof(came)) && came != 0;
}

/* What is read while a rank gives its blocks back, since nothing is kept any more, is anything. */
static bool is_spent(const struct cw_followed *memory)
{
    uint32_t spent = 0;

    return read_at(memory, cw_channel_place_of_spent(), &spent, sizeof(spent)) && spent != 0;
}

static uint32_t offset_of(const struct cw_followed *memory, const struct cw_follow *follow)
{
    return (uint32_t)(follow->at % memory->channel.block_bytes);
}

static uint64_t place_of(const struct cw_followed *memory, const struct cw_follow *follow)
{
    return cw_channel_place_of_block(&memory->channel, follow->block - 1) +
           offset_of(memory, follow);
}

/* The first block, where the rank has one: 1; 0: not yet. One before which others were would have
 * been read. */
static int begin(const struct cw_followed *memory, uint32_t rank, struct cw_follow *follow)
{
    uint64_t first;

    if (!read_at(memory, cw_channel_place_of_decisions(&memory->channel, rank), &first,
                 sizeof(first)))
        return CW_EPROTO;
    if (first == 0)
        return 0;
    if (first > memory->channel.blocks)
        return CW_EPROTO;
    follow->block = (uint32_t)first;
    return 1;
}

/* The next piece in what was read, `from` bytes behind the follower: its length; 0: none is there,
 * or not all of it; or CW_EPROTO. */
static int64_t look(const struct cw_followed *memory, const struct cw_follow *follow, size_t from,
                    size_t size, struct cw_piece *piece)
{
    uint32_t end = memory->channel.block_bytes - CW_CHANNEL_LINE;
    uint32_t length;

    if (size - from < HEAD)
        return 0;
    memcpy(piece, memory->room + from, HEAD);
    if (piece->stamp != follow->at + from + 1)
        return 0;
    if (piece->type == CW_PIECE_NEXT)
        return piece->tag < memory->channel.blocks ? (int64_t)HEAD : CW_EPROTO;
    length = (uint32_t)(HEAD + piece->size + CW_CHANNEL_DECISION_STEP - 1) &
             ~(CW_CHANNEL_DECISION_STEP - 1);
    if (piece->type < CW_PIECE_TOOK || piece->type >= CW_PIECE_TYPES ||
        piece->size > CW_CHANNEL_NOTE_MAX || offset_of(memory, follow) + from + length > end)
        return CW_EPROTO;
    return size - from < length ? 0 : (int64_t)length;
}

/* How many bytes of what was read are whole pieces of one block. */
static int64_t whole(const struct cw_followed *memory, const struct cw_follow *follow, size_t size)
{
    struct cw_piece piece = {.type = 0};
    int64_t length = 1;
    size_t end = 0;

    while (length > 0 && piece.type != CW_PIECE_NEXT) {
        length = look(memory, follow, end, size, &piece);
        end += length > 0 ? (size_t)length : 0;
    }
    return length < 0 ? length : (int64_t)end;
}

/* Reads pieces that are there, whole: the second time, since a writer may have been amid what was
 * copied the first time before its stamp. Returns how many bytes, or CW_EPROTO. */
static int64_t fetch(struct cw_followed *memory, const struct cw_follow *follow, size_t size)
{
    size_t left = memory->channel.block_bytes - offset_of(memory, follow);
    int64_t end;

    if (size > left)
        size = left;
    if (!read_at(memory, place_of(memory, follow), memory->room, size))
        return CW_EPROTO;
    end = whole(memory, follow, size);
    if (end > 0 && (!read_at(memory, place_of(memory, follow), memory->room, (size_t)end) ||
                    whole(memory, follow, (size_t)end) != end))
        return CW_EPROTO;
    return end;
}

static int hand_over(const struct cw_followed *memory, struct cw_follow *follow, size_t size,
                     cw_follow_take *take, void *ctx)
{
    const struct cw_follow start = *follow;
    struct cw_piece piece;

    for (size_t from = 0; from < size; from = (size_t)(follow->at - start.at)) {
        int64_t length = look(memory, &start, from, size, &piece);

        if (piece.type == CW_PIECE_NEXT) {
            follow->at += memory->channel.block_bytes - offset_of(memory, follow);
            follow->block = (uint32_t)piece.tag + 1;
            break;
        }
        if (!take(ctx, &piece, memory->room + from + HEAD))
            return CW_ENOMEM;
        follow->at += (uint64_t)length;
        follow->count++;
    }
    return CW_OK;
}

/* Whether a piece is there, for one who reads much more than this if it is. */
static int is_there(const struct cw_followed *memory, const struct cw_follow *follow)
{
    uint64_t stamp;

    if (!read_at(memory, place_of(memory, follow), &stamp, sizeof(stamp)))
        return CW_EPROTO;
    return stamp == follow->at + 1;
}

int cw_follow(struct cw_followed *memory, uint32_t rank, struct cw_follow *follow,
              cw_follow_take *take, void *ctx)
{
    int result = follow->block ? 1 : begin(memory, rank, follow);
    int64_t size;

    while (result > 0 && (result = is_there(memory, follow)) > 0) {
        size = fetch(memory, follow, SOME);
        if (size == 0)
            size = fetch(memory, follow, CW_FOLLOW_BYTES);
        if (is_spent(memory))
            return CW_OK;
        if (size <= 0)
            return CW_EPROTO;
        result = hand_over(memory, follow, (size_t)size, take, ctx);
        if (result == CW_OK)
            result = 1;
    }
    return result < 0 && result != CW_ENOMEM && is_spent(memory) ? CW_OK : result;
}
