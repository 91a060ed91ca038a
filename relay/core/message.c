#include "relay/core/message.h"

#include <assert.h>
#include <string.h>

#define SLICES_MIN 4u
#define SLICES_MAX (1u << 30) /* pieces of one message */

struct relay_message *message_new(struct message_cache *cache, struct relay_pool *pool,
                                  const struct log_record *record, bool waits)
{
    uint32_t inline_max = waits ? MESSAGE_INLINE_MAX : LOG_INLINE_MAX;
    uint32_t room = record->total <= MESSAGE_SMALL ? MESSAGE_SMALL
                    : record->total <= inline_max  ? (uint32_t)record->total
                                                   : 0;
    struct relay_message *message = cache->first;

    if (room == MESSAGE_SMALL && message) {
        cache->first = message->next_free;
        cache->count--;
        relay_pool_move(cache->pool, pool, sizeof(*message) + room);
    } else {
        message = relay_pool_alloc(pool, sizeof(*message) + room);
        if (!message)
            return NULL;
    }
    *message = (struct relay_message){.waiting = {.tag = record->tag},
                                      .total = record->total,
                                      .record = record->message,
                                      .floor = record->at,
                                      .src = (uint32_t)record->src,
                                      .kind = (uint32_t)record->kind,
                                      .sender_req = (uint32_t)record->req,
                                      .inline_size = room};
    return message;
}

void message_free(struct message_cache *cache, struct relay_pool *pool,
                  struct relay_message *message)
{
    size_t size = sizeof(*message) + message->inline_size;

    message_forget(message);
    relay_pool_free(pool, message->slices, message->slice_size * sizeof(*message->slices));
    if (message->inline_size == MESSAGE_SMALL && cache->count < MESSAGES_KEPT) {
        relay_pool_move(pool, cache->pool, size);
        message->next_free = cache->first;
        cache->first = message;
        cache->count++;
        return;
    }
    relay_pool_free(pool, message, size);
}

void message_cache_fini(struct message_cache *cache)
{
    while (cache->first) {
        struct relay_message *message = cache->first;

        cache->first = message->next_free;
        relay_pool_free(cache->pool, message, sizeof(*message) + message->inline_size);
    }
}

void message_pieces(const struct relay_message *message, const struct relay_log *log,
                    piece_give *give, void *ctx)
{
    if (message->inline_used)
        give(ctx, message->bytes, message->inline_used, NULL);
    log_pieces(log, message->slices, message->slice_count, give, ctx);
}

void message_forget(struct relay_message *message)
{
    for (uint32_t i = 0; i < message->slice_count; i++)
        if (message->slices[i].block)
            relay_block_release(message->slices[i].block);
    message->slice_count = 0;
    message->inline_used = 0;
}

void message_put_away(struct relay_message *message)
{
    for (uint32_t i = 0; i < message->slice_count; i++) {
        struct message_slice *slice = &message->slices[i];

        slice->number = slice->block->mark.number;
        relay_block_release(slice->block);
        slice->block = NULL;
    }
    message->away = true;
}

void message_read(struct relay_message *message)
{
    message->begun = false;
    message->delivered = 0;
    message->reading =
        log_read(&(struct log_event){.size = message_wanted(message), .record = message->record});
}

struct cw_message message_header(const struct relay_message *message, bool last)
{
    bool sync = message->unmatched && message->kind == CW_SEND_SYNC;

    return (struct cw_message){
        .req = message->req,
        .tag = message->waiting.tag,
        .total = message->total,
        .flags = (message->begun ? 0 : CW_MESSAGE_FIRST) | (last ? CW_MESSAGE_LAST : 0) |
                 (message->capacity < message->total ? CW_MESSAGE_TRUNC : 0) |
                 (message->kind == CW_SEND_AM ? CW_MESSAGE_ACTIVE : 0) |
                 (message->unmatched ? CW_MESSAGE_UNMATCHED : 0) | (sync ? CW_MESSAGE_SYNC : 0),
        .sync = sync ? message->sender_req : 0};
}

/* Room for `count` more slices. Returns 0 or CW_ENOMEM. */
static int slice_room(struct relay_pool *pool, struct relay_message *message, uint32_t count)
{
    uint32_t size = message->slice_size ? message->slice_size * 2 : SLICES_MIN;
    struct message_slice *slices;

    if (message->slice_size - message->slice_count >= count)
        return CW_OK;
    while (size - message->slice_count < count)
        size *= 2;
    slices = size <= SLICES_MAX ? relay_pool_alloc(pool, size * sizeof(*slices)) : NULL;
    if (!slices)
        return CW_ENOMEM;
    if (message->slice_count)
        memcpy(slices, message->slices, message->slice_count * sizeof(*slices));
    relay_pool_free(pool, message->slices, message->slice_size * sizeof(*message->slices));
    message->slices = slices;
    message->slice_size = size;
    return CW_OK;
}

/* One more, where there is room. Takes over the slice's reference. */
static void slice_add(struct relay_message *message, struct message_slice slice)
{
    struct message_slice *last =
        message->slice_count ? &message->slices[message->slice_count - 1] : NULL;

    if (last && last->block == slice.block && last->at + last->size == slice.at) {
        last->size += slice.size;
        relay_block_release(slice.block);
        return;
    }
    assert(message->slice_count < message->slice_size);
    message->slices[message->slice_count++] = slice;
}

/* Bytes that are few, and stand in the message itself; the log has its own. */
static int store_inline(struct relay_message *message, struct relay_log *log, const uint8_t *at,
                        uint32_t size, struct relay_block *block)
{
    if (log->kept && log_part(log, message->src, at, size, block, NULL) < 0)
        return CW_ENOMEM;
    assert(size <= message->inline_size - message->inline_used);
    memcpy(message->bytes + message->inline_used, at, size);
    message->inline_used += size;
    return CW_OK;
}

int message_store(struct relay_message *message, struct relay_log *log, const uint8_t *at,
                  uint32_t size, struct relay_block *block)
{
    struct message_slice slices[LOG_PART_SLICES] = {
        {block, (uint32_t)(at - block->bytes), size, 0}};
    int count = 1;

    if (message->inline_size)
        return store_inline(message, log, at, size, block);
    if (slice_room(log->pool, message, LOG_PART_SLICES) < 0)
        return CW_ENOMEM;
    if (log->kept)
        count = log_part(log, message->src, at, size, block, slices);
    if (count < 0)
        return CW_ENOMEM;
    block->refs += !log->kept;
    for (int i = 0; i < count; i++)
        slice_add(message, slices[i]);
    return CW_OK;
}

int message_reserve(struct relay_message *message, struct relay_log *log, uint32_t size,
                    struct message_slice *slice)
{
    if (slice_room(log->pool, message, 1) < 0 ||
        log_part_reserve(log, message->src, size, slice) < 0)
        return CW_ENOMEM;
    slice_add(message, *slice);
    return CW_OK;
}

int message_restore(struct relay_message *message, struct relay_pool *pool,
                    const struct log_piece *piece)
{
    if (message->inline_size || !piece->block) {
        if (piece->size > message->inline_size - message->inline_used)
            return CW_ENOMEM;
        memcpy(message->bytes + message->inline_used, piece->at, piece->size);
        message->inline_used += piece->size;
        return CW_OK;
    }
    if (slice_room(pool, message, 1) < 0)
        return CW_ENOMEM;
    piece->block->refs++;
    slice_add(message, (struct message_slice){.block = piece->block,
                                              .at = (uint32_t)(piece->at - piece->block->bytes),
                                              .size = piece->size});
    return CW_OK;
}
