/* SEND and SEND_DATA: a message comes in; it goes to the receive that waits for it, or waits for
 * one. */
#include "relay/core/apply.h"
#include "relay/core/recv.h"

/* What a rank with channel memory sent it logs there, and counts itself. */
static void send_count(struct relay_mailbox *sender, const struct cw_send *send)
{
    mailbox_act(sender, send->clock);
    if (sender->elsewhere)
        return;
    apply_act(sender, &(struct log_record){.type = LOG_SEND,
                                           .dst = send->dst,
                                           .kind = send->kind,
                                           .tag = send->tag,
                                           .total = send->total,
                                           .contents = send->contents});
}

/* While it repeats what it did, only a rank that knows by itself what of that is at the relay. */
static bool may_send(struct relay_conn *conn, uint8_t type)
{
    if (conn->state == CONN_RANK || conn->rank->mailbox.elsewhere)
        return true;
    conn_refuse(conn, CW_REFUSED_PROTOCOL, "%s frame is not allowed here", cw_frame_name(type));
    return false;
}

static bool send_adds_up(const struct relay_conn *conn, const struct cw_send *send)
{
    return send->total >= conn->payload_left && (send->total == 0 || conn->payload_left > 0);
}

void recv_send(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_rank *sender = conn->rank;
    struct cw_send send;

    if (!may_send(conn, CW_FRAME_SEND))
        return;
    if (!cw_send_get(body, &send) || !send_adds_up(conn, &send) || sender->transfer.left) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "SEND frame that does not add up");
        return;
    }
    if (send.dst >= conn->job->ranks) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "SEND to rank %u in a job of %u ranks", send.dst,
                    conn->job->ranks);
        return;
    }
    transfer_begin(&sender->transfer, conn, &send);
    send_count(&sender->mailbox, &send);
    if (job_is_home(conn->job, send.dst))
        apply_send(conn, &sender->transfer, &send);
    else
        transfer_to_link(&sender->transfer, conn, &send,
                         &conn->job->links[job_home(conn->job, send.dst)].conn);
}

void recv_send_data(struct relay_conn *conn, const uint8_t *body)
{
    (void)body;
    if (may_send(conn, CW_FRAME_SEND_DATA))
        transfer_more(&conn->rank->transfer, conn);
}
