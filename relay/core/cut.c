/* Cut-through: large payload passes from its sender's connection to its receiver's without a block
 * of ours between; the engine moves it, and then makes the log's copy. */
#include "relay/core/state.h"

#include <assert.h>

#define SMALL_MAX 16 /* frames before a large one that are looked at */

size_t relay_conn_before_cut(const struct relay_conn *conn, size_t there, relay_peek *peek,
                             void *ctx)
{
    size_t before = 0;

    if (conn->payload_left > 0 || conn->start != conn->end)
        return 0;
    for (int i = 0; i < SMALL_MAX && there - before > CW_FRAME_HEADER; i++) {
        uint8_t header[CW_FRAME_HEADER];
        uint32_t length;
        uint32_t fixed;

        peek(ctx, before, header, sizeof(header));
        length = cw_frame_length(header);
        fixed = cw_frame_fixed(header[4]);
        before += CW_FRAME_HEADER;
        if (length >= fixed + RELAY_CUT_MIN)
            return before + fixed < there ? before + fixed : 0;
        before += length;
        if (before > there)
            break;
    }
    return 0;
}

struct relay_conn *relay_conn_cut_to(struct relay_conn *conn)
{
    const struct relay_message *message = conn->source ? conn->source->sending.message : NULL;
    struct relay_mailbox *to;

    if (conn->payload_left == 0 || conn->start != conn->end || conn->state == CONN_CLOSING ||
        !message || !message->matched || message->inline_size || message_delivered(message))
        return NULL;
    to = conn->source->sending.to;
    if (!to->direct || to->conn->state != CONN_RANK || to->conn == conn)
        return NULL;
    return to->conn;
}

/* A place in the log for up to `size` bytes, of which there may be fewer then. Returns 0 or
 * CW_ENOMEM. */
static int cut_log(struct relay_core *core, struct relay_mailbox *to, struct relay_message *message,
                   struct relay_cut *cut)
{
    struct message_slice slice;

    if (log_reserve(&to->log, cut->size, &slice) < 0)
        return CW_ENOMEM;
    *cut = (struct relay_cut){
        .size = slice.size, .log = slice.block->bytes + slice.at, .block = slice.block};
    slice.block->refs++;
    if (slice_add(core, message, slice) == CW_OK)
        return CW_OK;
    relay_block_release(&core->pool, slice.block);
    return CW_ENOMEM;
}

struct relay_cut relay_conn_cut(struct relay_conn *conn, size_t size)
{
    struct relay_sending *sending = &conn->source->sending;
    struct relay_message *message = sending->message;
    uint64_t left = message_wanted(message) - message->delivered;
    struct relay_cut cut = {0};

    assert(size > 0 && relay_conn_cut_to(conn));
    if (size > conn->payload_left)
        size = conn->payload_left;
    cut.size = (uint32_t)(size < left ? size : left);
    if (sending->to->conn->out.bytes > 0 ||
        (sending->to->log.kept && cut_log(conn->core, sending->to, message, &cut) < 0))
        return (struct relay_cut){0};
    conn->payload_left -= cut.size;
    message->arrived += cut.size;
    cut.to = mailbox_deliver_cut(sending->to, message, cut.size);
    message_arrived(sending);
    return cut;
}

void relay_cut_done(struct relay_core *core, const struct relay_cut *cut)
{
    if (cut->block)
        relay_block_release(&core->pool, cut->block);
}
