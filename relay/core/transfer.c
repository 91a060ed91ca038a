#include "relay/core/transfer.h"
#include "relay/core/bounds.h"
#include "relay/core/forward.h"

#include <assert.h>

/* NULL while it is down. */
static struct relay_conn *link_of(const struct transfer *transfer)
{
    struct relay_conn *link = *transfer->link;

    return link && link->state == CONN_LINK ? link : NULL;
}

void transfer_begin(struct transfer *transfer, struct relay_conn *conn, const struct cw_send *send)
{
    assert(transfer->left == 0);
    conn->source = transfer;
    *transfer = (struct transfer){
        .src = transfer->src, .entry = transfer->entry, .left = send->total - conn->payload_left};
    ledger_change(transfer->entry);
}

void transfer_arrived(struct transfer *transfer)
{
    if (!mailbox_came(transfer->to, transfer->message))
        return;
    ledger_change(transfer->entry);
    transfer->message = NULL;
}

/* --- to a link -----------------------------------------------------------------------------------
 */

void transfer_to_link(struct transfer *transfer, struct relay_conn *conn,
                      const struct cw_send *send, struct relay_conn *const *link)
{
    const uint8_t *at = conn_input(conn);

    transfer->link = link;
    if (link_of(transfer)) /* else the dispatcher was told */
        forward_send(link_of(transfer), transfer->src, send, at, conn_take(conn), conn->block);
}

/* --- more of it ----------------------------------------------------------------------------------
 */

bool transfer_more(struct transfer *transfer, struct relay_conn *conn)
{
    if (conn->payload_left == 0 || conn->payload_left > transfer->left) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "%u bytes of a message of which %llu are missing",
                    conn->payload_left, (unsigned long long)transfer->left);
        return false;
    }
    transfer->left -= conn->payload_left;
    conn->source = transfer;
    ledger_change(transfer->entry);
    return true;
}

void transfer_input(struct transfer *transfer, struct relay_conn *conn, const uint8_t *at,
                    uint32_t size)
{
    struct relay_message *message = transfer->message;
    struct relay_mailbox *mailbox = transfer->to;
    bool keep;

    if (transfer->link && link_of(transfer))
        forward_data(link_of(transfer), transfer->src, at, size, conn->block);
    if (!message)
        return;
    keep = !message->matched || (mailbox->log.kept && !message_delivered(message));
    if (keep && message_store(message, &mailbox->log, at, size, conn->block) < 0) {
        conn_out_of_memory(conn, "keeping a message until it is received");
        return;
    }
    mailbox_arrives(mailbox, message, at, size, conn->block);
    transfer_arrived(transfer);
}

bool transfer_wants_input(struct transfer *transfer, uint64_t now_ns)
{
    struct relay_conn *to;

    if (transfer->link) /* also between its messages: the next one most likely goes there */
        return !link_of(transfer) || link_of(transfer)->out.bytes < RELAY_CUT_BACKLOG_MAX;
    if (!transfer->message || !transfer->message->matched || transfer->cut_spent)
        return true;
    to = transfer->to->feed.conn;
    if (!to || to->out.bytes < RELAY_CUT_BACKLOG_MAX) {
        transfer->cut_deadline_ns = 0;
        return true;
    }
    if (transfer->cut_deadline_ns == 0)
        transfer->cut_deadline_ns = now_ns + RELAY_CUT_WAIT_NS;
    transfer->cut_spent = now_ns >= transfer->cut_deadline_ns;
    return transfer->cut_spent;
}

/* --- its end -------------------------------------------------------------------------------------
 */

void transfer_suspend(struct transfer *transfer, struct relay_conn *conn, bool log)
{
    if (transfer->message)
        transfer->left = transfer->message->total - transfer->message->arrived;
    else if (conn->source == transfer)
        transfer->left += conn->payload_left;
    conn->source = NULL;
    conn->payload_left = 0;
    ledger_change(transfer->entry);
    transfer->cut_deadline_ns = 0;
    transfer->cut_spent = false;
    if (!log)
        transfer_abandon(transfer);
}

void transfer_abandon(struct transfer *transfer)
{
    struct relay_message *message = transfer->message;
    struct relay_mailbox *to = transfer->to;

    if (transfer->link && transfer->left && link_of(transfer))
        forward_end(link_of(transfer), transfer->src);
    *transfer = (struct transfer){.src = transfer->src, .entry = transfer->entry};
    ledger_change(transfer->entry);
    if (message)
        mailbox_abandon(to, message);
}
