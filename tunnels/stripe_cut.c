#include "tunnels/stripe_cut.h"

#include <lz4.h>
#include <string.h>

uint32_t stripe_cut_turn(struct stripe_cut *cut, uint32_t ready)
{
    if (cut->of_turn >= STRIPE_TURN_BYTES) {
        cut->turn++;
        cut->of_turn = 0;
    }
    for (uint32_t i = 0; i < STRIPES_MAX; i++)
        if (ready & 1u << (cut->turn + i) % STRIPES_MAX) {
            cut->of_turn = i ? 0 : cut->of_turn;
            cut->turn = (cut->turn + i) % STRIPES_MAX;
            break;
        }
    return cut->turn;
}

/* --- packing --- */

void stripe_cut_pause(struct stripe_cut *cut)
{
    cut->since_ns = 0;
}

void stripe_cut_waited(struct stripe_cut *cut, uint64_t now_ns)
{
    if (cut->since_ns && cut->since < STRIPE_SPAN_BYTES)
        return;
    if (cut->since_ns)
        pack_wrote(&cut->pack, cut->since, now_ns - cut->since_ns);
    cut->since_ns = now_ns;
    cut->since = 0;
}

static void sent(struct stripe_cut *cut, uint32_t bytes)
{
    cut->of_turn += bytes;
    cut->since += bytes;
    if (cut->since < STRIPE_FREE_BYTES)
        return;
    pack_wrote(&cut->pack, cut->since, 0);
    cut->since_ns = 0;
    cut->since = 0;
}

bool stripe_cut_packs(struct stripe_cut *cut)
{
    return pack_wanted(&cut->pack);
}

/* Bytes that it came to; 0: it is to stay as it is. */
static uint32_t pack(struct stripe_cut *cut, const uint8_t *from, uint32_t size, uint8_t *to)
{
    int most = (int)(size - size / STRIPE_PACK_SHARE - 1);
    int stored = LZ4_compress_default((const char *)from, (char *)to, (int)size, most);

    pack_tried(&cut->pack, size, stored > 0 ? (uint64_t)stored : size);
    return stored > 0 ? (uint32_t)stored : 0;
}

/* --- chunks --- */

uint32_t stripe_cut_chunk(struct stripe_cut *cut, const uint8_t *from, uint32_t size, bool packed,
                          uint8_t to[STRIPE_HEADER_BYTES + STRIPE_CHUNK_BYTES_MAX])
{
    uint8_t *body = to + STRIPE_HEADER_BYTES;
    struct stripe_header header = {.number = cut->number++, .size = size};

    header.stored = packed ? pack(cut, from, size, body) : 0;
    if (header.stored == 0) {
        header.stored = size;
        if (from != body)
            memcpy(body, from, size);
    }
    stripe_header_put(to, &header);
    sent(cut, STRIPE_HEADER_BYTES + header.stored);
    return STRIPE_HEADER_BYTES + header.stored;
}

uint32_t stripe_cut_end(const struct stripe_cut *cut, uint8_t to[STRIPE_HEADER_BYTES])
{
    stripe_header_put(to, &(struct stripe_header){.number = cut->number});
    return STRIPE_HEADER_BYTES;
}
