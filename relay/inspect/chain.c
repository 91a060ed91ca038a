#include "relay/inspect/chain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void inspect_damaged(struct inspect_damage *damage, const char *fmt, ...)
{
    char text[INSPECT_TEXT_MAX];
    va_list args;

    damage->count++;
    if (!damage->say)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    damage->say(damage->ctx, text);
}

#define XXH_INLINE_ALL
#include <xxhash.h>

static struct ledger_piece *piece_of(const struct inspect_image *image,
                                     const struct inspect_chain *chain, uint32_t number)
{
    const struct ledger_copy *copy = ledger_copy_of(&image->ledger, chain->cell);
    const struct ledger_entry entry = {.cell = chain->cell, .generation = copy->generation};

    return ledger_left((struct ledger *)&image->ledger, ledger_chain(&entry, chain->which), number);
}

static bool is_last(const struct inspect_chain *chain, uint32_t number)
{
    return number - chain->end.first == chain->end.count - 1;
}

uint32_t inspect_chain_used(const struct inspect_image *image, const struct inspect_chain *chain,
                            uint32_t number)
{
    const struct ledger_piece *piece =
        number - chain->end.first < chain->end.count ? piece_of(image, chain, number) : NULL;

    if (!piece)
        return 0;
    return is_last(chain, number) ? chain->end.used : piece->used;
}

/* All of it that was written there; NULL: it cannot be had. */
static const uint8_t *bytes_of(struct inspect_image *image, const struct inspect_chain *chain,
                               const struct ledger_piece *piece, struct inspect_damage *damage)
{
    int failed;

    if (piece->block)
        return piece->block->bytes;
    failed = image->read(image->ctx, piece->extent, image->buffer, piece->used);
    if (failed)
        inspect_damaged(damage, "%s: segment %u, at %llu of segments, cannot be read: %s",
                        chain->what, piece->number,
                        (unsigned long long)piece->extent * RELAY_BLOCK_BYTES, strerror(failed));
    else if (XXH3_64bits(image->buffer, piece->used) != piece->sum)
        inspect_damaged(damage,
                        "%s: segment %u, at %llu of segments, has other bytes than were written "
                        "(its sum is wrong)",
                        chain->what, piece->number,
                        (unsigned long long)piece->extent * RELAY_BLOCK_BYTES);
    else
        return image->buffer;
    return NULL;
}

static bool has_sense(const struct inspect_chain *chain, const struct ledger_piece *piece,
                      uint32_t number, uint32_t used, struct inspect_damage *damage)
{
    if (!piece)
        inspect_damaged(damage, "%s: segment %u is missing", chain->what, number);
    else if (piece->used > RELAY_BLOCK_BYTES || used > piece->used)
        inspect_damaged(damage, "%s: segment %u has %u bytes, its end is at %u", chain->what,
                        number, piece->used, used);
    else
        return true;
    return false;
}

bool inspect_chain(struct inspect_image *image, const struct inspect_chain *chain,
                   inspect_segment *take, void *ctx, struct inspect_sizes *sizes,
                   struct inspect_damage *damage)
{
    for (uint32_t i = 0; i < chain->end.count; i++) {
        uint32_t number = chain->end.first + i;
        struct ledger_piece *piece = piece_of(image, chain, number);
        uint32_t used = inspect_chain_used(image, chain, number);
        const uint8_t *bytes;

        if (!piece && number < chain->solid)
            continue;
        if (!has_sense(chain, piece, number, used, damage))
            return false;
        piece->taken = true;
        sizes->segments += !piece->block;
        *(piece->block ? &sizes->journal : &sizes->disk) += used;
        bytes = bytes_of(image, chain, piece, damage);
        if (!bytes || (take && !take(ctx, number, bytes, used)))
            return false;
    }
    return true;
}
