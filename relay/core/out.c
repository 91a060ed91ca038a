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
    out_cut(out, 0);
    out_keep(out, false);
    relay_pool_free(out->pool, out->slices, out->size * sizeof(*out->slices));
    *out = (struct out_queue){.pool = out->pool};
}

/* An idle queue has no block. */
static void own_block_rest(struct out_queue *out)
{
    if (out->count > 0 || !out->block)
        return;
    relay_block_release(out->block);
    out->block = NULL;
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
        relay_block_release(out->block);
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

/* The first slice with something to be sent. */
static uint32_t first_unsent(const struct out_queue *out)
{
    bool sent = out->count > 0 && out->cursor_at == slice_at(out, out->cursor)->size;

    return out->cursor + sent;
}

int out_peek(const struct out_queue *out, struct iovec *iov, int max)
{
    uint32_t first = first_unsent(out);
    int n = 0;

    for (uint32_t i = first; i < out->count && n < max; i++, n++) {
        const struct out_slice *slice = slice_at(out, i);
        size_t skip = i == out->cursor ? out->cursor_at : 0;

        iov[n] =
            (struct iovec){.iov_base = (void *)(slice->at + skip), .iov_len = slice->size - skip};
    }
    return n;
}

/* Lets go of `size` bytes at the front. */
static void drop_front(struct out_queue *out, uint64_t size)
{
    out->front += size;
    while (size > 0) {
        struct out_slice *slice = slice_at(out, 0);

        if (size < slice->size) {
            slice->at += size;
            slice->size -= size;
            return;
        }
        size -= slice->size;
        relay_block_release(slice->block);
        out->head++;
        out->count--;
    }
    own_block_rest(out);
}

/* The cursor moves over `size` bytes, which stay. */
static void keep_sent(struct out_queue *out, size_t size)
{
    out->kept += size;
    while (size > 0) {
        size_t left = slice_at(out, out->cursor)->size - out->cursor_at;

        if (left == 0) {
            out->cursor++;
            out->cursor_at = 0;
            continue;
        }
        left = left < size ? left : size;
        out->cursor_at += left;
        size -= left;
    }
}

void out_sent(struct out_queue *out, size_t size)
{
    assert(size <= out->bytes);
    out->bytes -= size;
    if (out->keeps)
        keep_sent(out, size);
    else
        drop_front(out, size);
}

/* Lets go of `size` bytes of those that are kept. */
static void drop_kept(struct out_queue *out, uint64_t size)
{
    uint32_t dropped = out->count;

    assert(size <= out->kept);
    out->kept -= size;
    drop_front(out, size);
    dropped -= out->count;
    /* it may have stood at the end of the last slice that is gone */
    out->cursor = dropped > out->cursor ? 0 : out->cursor - dropped;
    if (out->cursor == 0)
        out->cursor_at = (size_t)out->kept;
}

void out_keep(struct out_queue *out, bool keeps)
{
    out->keeps = keeps;
    if (!keeps)
        drop_kept(out, out->kept);
}

bool out_acknowledge(struct out_queue *out, uint64_t position)
{
    if (position > out->front + out->kept)
        return false;
    if (position <= out->acked) /* an ACK that was sent again over another connection */
        return true;
    out->acked = position;
    if (position > out->front)
        drop_kept(out, position - out->front);
    return true;
}

bool out_rewind(struct out_queue *out, uint64_t position)
{
    if (position < out->front || position < out->acked || !out_acknowledge(out, position))
        return false;
    out->bytes += out->kept;
    out->kept = 0;
    out->cursor = 0;
    out->cursor_at = 0;
    out->opened = out->front;
    return true;
}

/* A copy of it before all that is here. Returns 0 or CW_ENOMEM. */
static int push_front(struct out_queue *out, const uint8_t *at, size_t size)
{
    struct relay_block *block = relay_block_new(out->pool, out->vital);

    assert(size <= RELAY_BLOCK_BYTES);
    if (!block)
        return CW_ENOMEM;
    if (out->count == out->size && ring_grow(out) < 0) {
        relay_block_release(block);
        return CW_ENOMEM;
    }
    memcpy(block->bytes, at, size);
    out->head--;
    out->count++;
    *slice_at(out, 0) = (struct out_slice){block->bytes, size, block};
    out->front -= size;
    out->kept += size;
    return CW_OK;
}

int out_restore(struct out_queue *out, const struct iovec *iov, int count)
{
    uint64_t mine = out->front - out->opened;
    uint32_t pushed = 0;

    if (count == 0)
        return CW_OK;
    assert(out->kept == 0 && out->cursor == 0 && out->cursor_at == 0);
    for (int i = count - 1; i >= 0; i--) {
        size_t left = iov[i].iov_len < mine ? iov[i].iov_len : (size_t)mine;
        const uint8_t *end = (const uint8_t *)iov[i].iov_base + iov[i].iov_len;

        mine -= left;
        while (left > 0) {
            size_t size = left < RELAY_BLOCK_BYTES ? left : RELAY_BLOCK_BYTES;

            if (push_front(out, end - size, size) < 0)
                return CW_ENOMEM;
            pushed++;
            end -= size;
            left -= size;
        }
    }
    if (pushed > 0) {
        out->cursor = pushed - 1;
        out->cursor_at = slice_at(out, out->cursor)->size;
    }
    return CW_OK;
}

void out_cut(struct out_queue *out, uint32_t pieces)
{
    uint32_t keep = first_unsent(out) + pieces;

    while (out->count > keep) {
        struct out_slice *last = slice_at(out, out->count - 1);

        if (out->count - 1 == out->cursor && out->cursor_at > 0) {
            /* its first part is kept */
            out->bytes -= last->size - out->cursor_at;
            last->size = out->cursor_at;
            break;
        }
        out->bytes -= last->size;
        relay_block_release(last->block);
        out->count--;
    }
    own_block_rest(out);
}
