#include "relay/core/cut.h"
#include "relay/core/bounds.h"
#include "relay/core/transfer.h"

#include <assert.h>

#define SMALL_MAX 16 /* frames before a large one that are looked at */

size_t cut_before(const struct relay_conn *conn, size_t there, relay_peek *peek, void *ctx)
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

struct relay_conn *cut_to(const struct relay_conn *conn)
{
    const struct relay_message *message = conn->source ? conn->source->message : NULL;
    const struct feed *to;

    if (conn->payload_left == 0 || conn->start != conn->end || conn->state == CONN_CLOSING ||
        !message || !message->matched || message->inline_size || message_delivered(message))
        return NULL;
    to = &conn->source->to->feed;
    if (!to->direct || to->conn->state != CONN_RANK || to->conn == conn || conn->broken ||
        to->conn->broken || to->conn->suspended || to->conn->out.keeps || conn->entry.ledger)
        return NULL;
    return to->conn;
}

/* A place in the log for up to cut->size bytes, of which there may be fewer then. Returns 0 or
 * CW_ENOMEM. */
static int cut_log(struct relay_message *message, struct relay_log *log, struct relay_cut *cut)
{
    struct message_slice slice;

    if (message_reserve(message, log, cut->size, &slice) < 0)
        return CW_ENOMEM;
    slice.block->refs++;
    slice.block->filling++;
    *cut = (struct relay_cut){
        .size = slice.size, .log = slice.block->bytes + slice.at, .block = slice.block};
    return CW_OK;
}

struct relay_cut cut_begin(struct relay_conn *conn, size_t size)
{
    struct transfer *transfer = conn->source;
    struct relay_message *message = transfer->message;
    struct relay_mailbox *to = transfer->to;
    uint64_t left = message_wanted(message) - message->delivered;
    struct relay_cut cut = {0};

    assert(size > 0 && cut_to(conn));
    if (size > conn->payload_left)
        size = conn->payload_left;
    cut.size = (uint32_t)(size < left ? size : left);
    if (to->feed.conn->out.bytes > 0 || (to->log.kept && cut_log(message, &to->log, &cut) < 0))
        return (struct relay_cut){0};
    conn->payload_left -= cut.size;
    conn->session.received += cut.size;
    cut.to = mailbox_cut_arrives(to, message, cut.size);
    if (cut.to)
        out_skip(&cut.to->out, cut.size);
    transfer_arrived(transfer);
    return cut;
}
