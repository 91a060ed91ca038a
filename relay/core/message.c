/* Messages that are not delivered yet, and the bytes of them that have come. */
#include "relay/core/state.h"

#include <assert.h>

#define SLICES_MIN 4u

struct relay_message *message_new(struct relay_core *core, const struct cw_send *send, uint32_t src,
                                  bool waits)
{
    uint32_t inline_max = waits ? MESSAGE_INLINE_MAX : LOG_INLINE_MAX;
    uint32_t room = send->total <= MESSAGE_SMALL ? MESSAGE_SMALL
                    : send->total <= inline_max  ? (uint32_t)send->total
                                                 : 0;
    struct relay_message *message = core->free_messages;

    if (room == MESSAGE_SMALL && message) {
        core->free_messages = message->next_free;
        core->free_message_count--;
    } else {
        message = relay_pool_alloc(&core->pool, sizeof(*message) + room);
        if (!message)
            return NULL;
    }
    *message = (struct relay_message){.waiting = {.tag = send->tag},
                                      .total = send->total,
                                      .src = src,
                                      .kind = send->kind,
                                      .sender_req = send->req,
                                      .inline_size = room};
    return message;
}

void slices_pieces(struct relay_core *core, const struct message_slice *slices, uint32_t count,
                   piece_give *give, void *ctx)
{
    if (count > 0)
        copies_pay_all(&core->copies);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t done = 0, n; done < slices[i].size; done += n) {
            n = slices[i].size - done;
            n = n < CW_FRAME_DATA_MAX ? n : CW_FRAME_DATA_MAX;
            give(ctx, slices[i].block->bytes + slices[i].at + done, n, slices[i].block);
        }
}

void message_pieces(struct relay_core *core, const struct relay_message *message, piece_give *give,
                    void *ctx)
{
    if (message->inline_used)
        give(ctx, message->bytes, message->inline_used, NULL);
    slices_pieces(core, message->slices, message->slice_count, give, ctx);
}

void message_forget(struct relay_core *core, struct relay_message *message)
{
    for (uint32_t i = 0; i < message->slice_count; i++)
        relay_block_release(&core->pool, message->slices[i].block);
    message->slice_count = 0;
    message->inline_used = 0;
}

void message_open(struct relay_mailbox *mailbox, struct relay_message *message)
{
    message->prev_open = NULL;
    message->next_open = mailbox->open;
    if (mailbox->open)
        mailbox->open->prev_open = message;
    mailbox->open = message;
}

void message_close(struct relay_mailbox *mailbox, struct relay_message *message)
{
    if (message->next_open)
        message->next_open->prev_open = message->prev_open;
    if (message->prev_open)
        message->prev_open->next_open = message->next_open;
    else
        mailbox->open = message->next_open;
}

void message_free(struct relay_core *core, struct relay_message *message)
{
    message_forget(core, message);
    relay_pool_free(&core->pool, message->slices, message->slice_size * sizeof(*message->slices));
    if (message->inline_size == MESSAGE_SMALL && core->free_message_count < MESSAGES_KEPT) {
        message->next_free = core->free_messages;
        core->free_messages = message;
        core->free_message_count++;
        return;
    }
    relay_pool_free(&core->pool, message, sizeof(*message) + message->inline_size);
}

static int slices_grow(struct relay_core *core, struct relay_message *message)
{
    uint32_t size = message->slice_size ? message->slice_size * 2 : SLICES_MIN;
    struct message_slice *slices = relay_pool_alloc(&core->pool, size * sizeof(*slices));

    if (!slices)
        return CW_ENOMEM;
    if (message->slice_count)
        memcpy(slices, message->slices, message->slice_count * sizeof(*slices));
    relay_pool_free(&core->pool, message->slices, message->slice_size * sizeof(*slices));
    message->slices = slices;
    message->slice_size = size;
    return CW_OK;
}

int slice_add(struct relay_core *core, struct relay_message *message, struct message_slice slice)
{
    struct message_slice *last =
        message->slice_count ? &message->slices[message->slice_count - 1] : NULL;

    if (last && last->block == slice.block && last->at + last->size == slice.at) {
        last->size += slice.size;
        relay_block_release(&core->pool, slice.block);
        return CW_OK;
    }
    if (message->slice_count == message->slice_size && slices_grow(core, message) < 0) {
        relay_block_release(&core->pool, slice.block);
        return CW_ENOMEM;
    }
    message->slices[message->slice_count++] = slice;
    return CW_OK;
}

int message_store(struct relay_core *core, struct relay_message *message, struct relay_log *log,
                  const uint8_t *at, uint32_t size, struct relay_block *block)
{
    struct message_slice slices[2] = {{block, (uint32_t)(at - block->bytes), size}};
    int result = CW_OK;
    int count = 1;

    if (message->inline_size) {
        assert(size <= message->inline_size - message->inline_used);
        memcpy(message->bytes + message->inline_used, at, size);
        message->inline_used += size;
        return CW_OK;
    }
    if (log->kept)
        count = log_place(log, at, size, block, slices);
    else
        block->refs++;
    for (int i = 0; i < count; i++)
        if (slice_add(core, message, slices[i]) < 0)
            result = CW_ENOMEM;
    return count < 0 ? count : result;
}
