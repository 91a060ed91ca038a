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
    if (out->chain.entry)
        chain_free(&out->chain);
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

/* Room in the queue's own block. */
static uint8_t *own_room(struct out_queue *out, size_t size, struct relay_block **block)
{
    uint8_t *at;

    if ((!out->block || RELAY_BLOCK_BYTES - out->block_used < size) && own_block_renew(out) < 0)
        return NULL;
    at = out->block->bytes + out->block_used;
    out->block_used += (uint32_t)size;
    *block = out->block;
    return at;
}

static uint8_t *chain_room(struct out_queue *out, size_t size, struct relay_block **block)
{
    uint64_t position;
    uint64_t held = 0;
    uint8_t *at = chain_append(&out->chain, (uint32_t)size, &position, &held);

    *block = chain_last_block(&out->chain);
    return at;
}

/* Bytes of a block that hold nothing yet are the queue's last ones. */
static int extend(struct out_queue *out, const uint8_t *at, size_t size, struct relay_block *block)
{
    struct out_slice *last = out->count ? slice_at(out, out->count - 1) : NULL;

    if (last && last->at + last->size == at && last->block == block) {
        last->size += size;
        out->bytes += size;
        return CW_OK;
    }
    if (slice_push(out, at, size, block) < 0)
        return CW_ENOMEM;
    block->refs++;
    return CW_OK;
}

uint8_t *out_reserve(struct out_queue *out, size_t size)
{
    struct relay_block *block;
    uint8_t *at;

    assert(size <= RELAY_BLOCK_BYTES);
    at = out->chain.entry ? chain_room(out, size, &block) : own_room(out, size, &block);
    return at && extend(out, at, size, block) == CW_OK ? at : NULL;
}

/* Large payload is copied into what outlives the process. */
static int append_kept(struct out_queue *out, const uint8_t *at, size_t size)
{
    while (size > 0) {
        uint32_t n = size < RELAY_BLOCK_BYTES ? (uint32_t)size : RELAY_BLOCK_BYTES;
        uint64_t position;
        struct relay_block *block = chain_reserve(&out->chain, &n, &position);
        uint8_t *to = block ? block->bytes + chain_offset(position) : NULL;

        if (!to || extend(out, to, n, block) < 0)
            return CW_ENOMEM;
        memcpy(to, at, n);
        at += n;
        size -= n;
    }
    return CW_OK;
}

int out_append(struct out_queue *out, const uint8_t *at, size_t size, struct relay_block *block)
{
    uint8_t *to;

    if (size == 0)
        return CW_OK;
    if (out->chain.entry)
        return append_kept(out, at, size);
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

int out_peek(const struct out_queue *out, struct iovec *iov, int max, uint64_t size)
{
    uint32_t first = first_unsent(out);
    int n = 0;

    for (uint32_t i = first; i < out->count && n < max && size > 0; i++, n++) {
        const struct out_slice *slice = slice_at(out, i);
        size_t skip = i == out->cursor ? out->cursor_at : 0;
        size_t length = slice->size - skip < size ? slice->size - skip : (size_t)size;

        iov[n] = (struct iovec){.iov_base = (void *)(slice->at + skip), .iov_len = length};
        size -= length;
    }
    return n;
}

/* Lets go of the segments that hold nothing of it any more. */
static void trim(struct out_queue *out)
{
    const struct relay_block *first = out->count ? slice_at(out, 0)->block : NULL;
    struct chain *chain = &out->chain;
    uint32_t gone = 0;

    if (!chain->entry)
        return;
    while (gone < chain->count && chain->segments[gone]->block != first)
        gone++;
    chain_trim(chain, chain->first + gone);
}

static void drop_slices(struct out_queue *out, uint64_t size)
{
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
}

/* Lets go of `size` bytes at the front. */
static void drop_front(struct out_queue *out, uint64_t size)
{
    out->front += size;
    drop_slices(out, size);
    own_block_rest(out);
    trim(out);
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
    uint64_t position = out->front + out->kept + size;

    assert(size <= out->bytes);
    if (out->reached < position)
        out->reached = position;
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

bool out_may_rewind(const struct out_queue *out, uint64_t position)
{
    return position >= out->front && position >= out->acked && position <= out->reached;
}

bool out_rewind(struct out_queue *out, uint64_t position)
{
    uint64_t received = position - out->front;

    if (!out_may_rewind(out, position))
        return false;
    out->bytes += out->kept;
    out->kept = 0;
    out->cursor = 0;
    out->cursor_at = 0;
    out->acked = position;
    out->bytes -= received; /* it may have been sent over an earlier connection */
    drop_front(out, received);
    out->opened = out->front;
    return true;
}

uint64_t out_restart(struct out_queue *out)
{
    uint64_t position = out->front + out->kept + out->bytes + 1;
    struct relay_pool *pool = out->pool;

    assert(!out->chain.entry);
    out_fini(out);
    out_init(out, pool);
    out->front = out->acked = out->opened = out->reached = position;
    return position;
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
    assert(!out->chain.entry);
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

/* --- what outlives the process -------------------------------------------------------------------
 */

void out_outlive(struct out_queue *out, struct log_store *store, struct ledger_entry *entry)
{
    assert(out->count == 0);
    chain_init(&out->chain, store, out->pool);
    out->chain.stays = true;
    chain_keep(&out->chain, entry, 0);
}

struct out_saved out_save(const struct out_queue *out)
{
    struct out_saved saved = {.chain = chain_end(&out->chain),
                              .front = out->front,
                              .end = out->front + out->kept + out->bytes,
                              .acked = out->acked};

    if (out->count > 0 && out->chain.entry)
        saved.skip = (uint32_t)(slice_at(out, 0)->at - slice_at(out, 0)->block->bytes);
    return saved;
}

/* The chain's bytes are what is to be sent. Returns 0, CW_ENOMEM, or CW_EPROTO: they are not. */
static int refer_to_chain(struct out_queue *out, uint32_t skip, uint64_t end)
{
    for (uint32_t i = 0; i < out->chain.count; i++, skip = 0) {
        struct log_segment *segment = out->chain.segments[i];
        int failed = CW_OK;

        if (!segment->block || segment->used < skip)
            return CW_EPROTO;
        if (segment->used > skip)
            failed = extend(out, segment->bytes + skip, segment->used - skip, segment->block);
        if (failed)
            return failed;
    }
    return out->front + out->bytes == end ? CW_OK : CW_EPROTO;
}

int out_return(struct out_queue *out, struct log_store *store, struct ledger_entry *entry,
               const struct out_saved *saved)
{
    int failed;

    chain_init(&out->chain, store, out->pool);
    out->chain.stays = true;
    failed = chain_return(&out->chain, entry, 0, saved->chain);
    out->front = out->opened = saved->front;
    out->acked = saved->acked;
    if (!failed)
        failed = refer_to_chain(out, saved->skip, saved->end);
    if (failed) {
        chain_free(&out->chain);
        return failed;
    }
    /* all of it may have been sent */
    out->reached = saved->end;
    out->keeps = true;
    out->kept = out->bytes;
    out->bytes = 0;
    out->cursor = out->count ? out->count - 1 : 0;
    out->cursor_at = out->count ? slice_at(out, out->cursor)->size : 0;
    return CW_OK;
}
