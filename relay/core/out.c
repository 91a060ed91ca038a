#include "relay/core/out.h"

#include <assert.h>
#include <string.h>

#define RING_MIN 8u

void out_init(struct out_queue *out, struct relay_pool *pool)
{
    *out = (struct out_queue){.pool = pool};
}

void out_fini(struct out_queue *out)
{
    out_consume(out, out->bytes);
    relay_pool_free(out->pool, out->slices, out->size * sizeof(*out->slices));
    *out = (struct out_queue){.pool = out->pool};
}

static struct out_slice *slice_at(const struct out_queue *out, uint32_t i)
{
    return &out->slices[(out->head + i) & (out->size - 1)];
}

static int ring_grow(struct out_queue *out)
{
    uint32_t size = out->size ? out->size * 2 : RING_MIN;
    struct out_slice *slices = relay_pool_alloc(out->pool, size * sizeof(*slices));

    if (!slices)
        return CW_ENOMEM;
    for (uint32_t i = 0; i < out->count; i++)
        slices[i] = *slice_at(out, i);
    relay_pool_free(out->pool, out->slices, out->size * sizeof(*out->slices));
    out->slices = slices;
    out->size = size;
    out->head = 0;
    return CW_OK;
}

int out_make_vital(struct out_queue *out)
{
    out->vital = true;
    return out->size ? CW_OK : ring_grow(out);
}

/* Takes over one reference to `block` when it returns 0. */
static int slice_push(struct out_queue *out, const uint8_t *at, size_t size,
                      struct relay_block *block)
{
    if (out->count == out->size && ring_grow(out) < 0)
        return CW_ENOMEM;
    *slice_at(out, out->count++) = (struct out_slice){at, size, block};
    out->bytes += size;
    return CW_OK;
}

static int own_block_renew(struct out_queue *out)
{
    struct relay_block *block = relay_block_new(out->pool, out->vital);

    if (!block)
        return CW_ENOMEM;
    if (out->block)
        relay_block_release(out->pool, out->block);
    out->block = block;
    out->block_used = 0;
    return CW_OK;
}

uint8_t *out_reserve(struct out_queue *out, size_t size)
{
    struct out_slice *last;
    uint8_t *at;

    assert(size <= RELAY_BLOCK_BYTES);
    if ((!out->block || RELAY_BLOCK_BYTES - out->block_used < size) && own_block_renew(out) < 0)
        return NULL;
    at = out->block->bytes + out->block_used;
    last = out->count ? slice_at(out, out->count - 1) : NULL;
    if (last && last->at + last->size == at && last->block == out->block) {
        last->size += size;
        out->bytes += size;
    } else {
        if (slice_push(out, at, size, out->block) < 0)
            return NULL;
        out->block->refs++;
    }
    out->block_used += (uint32_t)size;
    return at;
}

int out_append(struct out_queue *out, const uint8_t *at, size_t size, struct relay_block *block)
{
    uint8_t *to;

    if (size == 0)
        return CW_OK;
    if (block && size > RELAY_OUT_COPY_MAX) {
        if (slice_push(out, at, size, block) < 0)
            return CW_ENOMEM;
        block->refs++;
        return CW_OK;
    }
    to = out_reserve(out, size);
    if (!to)
        return CW_ENOMEM;
    memcpy(to, at, size);
    return CW_OK;
}

int out_peek(const struct out_queue *out, struct iovec *iov, int max)
{
    int n = 0;

    for (uint32_t i = 0; i < out->count && n < max; i++, n++) {
        const struct out_slice *slice = slice_at(out, i);

        iov[n] = (struct iovec){.iov_base = (void *)slice->at, .iov_len = slice->size};
    }
    return n;
}

void out_consume(struct out_queue *out, size_t size)
{
    assert(size <= out->bytes);
    out->bytes -= size;
    while (size > 0) {
        struct out_slice *slice = slice_at(out, 0);

        if (size < slice->size) {
            slice->at += size;
            slice->size -= size;
            return;
        }
        size -= slice->size;
        relay_block_release(out->pool, slice->block);
        out->head++;
        out->count--;
    }
    if (out->bytes == 0 && out->block) {
        relay_block_release(out->pool, out->block);
        out->block = NULL;
    }
}
