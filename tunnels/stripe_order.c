#include "tunnels/stripe_order.h"

#include <lz4.h>
#include <stdlib.h>

void stripe_order_init(struct stripe_order *order)
{
    *order = (struct stripe_order){.total = UINT64_MAX};
}

void stripe_order_fini(struct stripe_order *order)
{
    for (uint32_t i = 0; i < STRIPE_AHEAD_MAX; i++)
        free(order->held[i]);
}

/* --- taking --- */

static int refuse(struct cw_err *err, const char *what, const struct stripe_header *header)
{
    return cw_err_set(err, CW_EPROTO,
                      "the other end of the tunnel sent %s (number %llu, %u bytes, stored as %u)",
                      what, (unsigned long long)header->number, header->size, header->stored);
}

static int take_end(struct stripe_order *order, struct stripe_arrived *arrived,
                    const struct stripe_header *header, struct cw_err *err)
{
    if (order->total != UINT64_MAX && order->total != header->number)
        return refuse(err, "two different ends", header);
    for (uint64_t number = header->number; number < order->next + STRIPE_AHEAD_MAX; number++)
        if (order->held[number % STRIPE_AHEAD_MAX])
            return refuse(err, "an end before a chunk", header);
    order->total = header->number;
    arrived->ended = true;
    return CW_OK;
}

static int unpack(struct stripe_chunk *chunk, const uint8_t *from,
                  const struct stripe_header *header, struct cw_err *err)
{
    if (header->stored == header->size)
        memcpy(chunk->bytes, from, header->size);
    else if (LZ4_decompress_safe((const char *)from, (char *)chunk->bytes, (int)header->stored,
                                 (int)header->size) != (int)header->size)
        return refuse(err, "a chunk that is not packed as LZ4 does", header);
    return CW_OK;
}

static int take_chunk(struct stripe_order *order, const uint8_t *from,
                      const struct stripe_header *header, struct cw_err *err)
{
    struct stripe_chunk **place = &order->held[header->number % STRIPE_AHEAD_MAX];

    if (*place || header->number >= order->total)
        return refuse(err, "a chunk twice, or after the end", header);
    *place = malloc(sizeof(**place) + header->size);
    if (!*place)
        return cw_err_set(err, CW_ENOMEM, "no memory for %u bytes of a tunnel", header->size);
    **place = (struct stripe_chunk){.size = header->size};
    return unpack(*place, from, header, err);
}

static int take(struct stripe_order *order, struct stripe_arrived *arrived, const uint8_t *from,
                const struct stripe_header *header, struct cw_err *err)
{
    if (header->number < arrived->least || header->number < order->next)
        return refuse(err, "a chunk out of its order", header);
    arrived->least = header->number + 1;
    return header->size ? take_chunk(order, from, header, err)
                        : take_end(order, arrived, header, err);
}

int stripe_order_take(struct stripe_order *order, struct stripe_arrived *arrived,
                      const uint8_t *bytes, size_t size, size_t *used, bool *ahead,
                      struct cw_err *err)
{
    struct stripe_header header;

    *ahead = false;
    for (*used = 0; size - *used >= STRIPE_HEADER_BYTES;
         *used += STRIPE_HEADER_BYTES + header.stored) {
        if (!stripe_header_get(bytes + *used, &header))
            return cw_err_set(err, CW_EPROTO, "the other end of the tunnel sent no chunk");
        if (header.number == STRIPE_SIGN && header.size == 0)
            continue;
        if (arrived->ended)
            return refuse(err, "something after the end", &header);
        *ahead = header.size && header.number >= order->next + STRIPE_AHEAD_MAX;
        if (*ahead || size - *used < STRIPE_HEADER_BYTES + header.stored)
            return CW_OK;
        if (take(order, arrived, bytes + *used + STRIPE_HEADER_BYTES, &header, err) < 0)
            return err->code;
    }
    return CW_OK;
}

/* --- giving --- */

struct stripe_chunk *stripe_order_first(const struct stripe_order *order)
{
    return order->held[order->next % STRIPE_AHEAD_MAX];
}

void stripe_order_drop(struct stripe_order *order)
{
    struct stripe_chunk **place = &order->held[order->next % STRIPE_AHEAD_MAX];

    free(*place);
    *place = NULL;
    order->next++;
}

bool stripe_order_is_over(const struct stripe_order *order)
{
    return order->next == order->total;
}
