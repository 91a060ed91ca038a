/* FORWARD, FORWARD_DATA, FORWARD_END and FORWARD_SENT: another relay of the job speaks for its
 * ranks. Messages of many ranks come over one link, each rank's in order. */
#include "relay/core/apply.h"
#include "relay/core/recv.h"

/* The rank of that relay; NULL after refusing. */
static struct transfer *sender_of(struct relay_conn *conn, uint32_t src)
{
    struct relay_rank *sender;

    if (src >= conn->job->ranks || job_home(conn->job, src) != conn->peer) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "relay %u speaks for rank %u, which is not its own",
                    conn->peer, src);
        return NULL;
    }
    sender = job_rank(conn->job, src);
    if (!sender)
        conn_out_of_memory(conn, "making a mailbox");
    return sender ? &sender->transfer : NULL;
}

void recv_forward(struct relay_conn *conn, const uint8_t *body)
{
    struct transfer *sender;
    struct cw_forward forward;

    if (!cw_forward_get(body, &forward) || forward.send.total < conn->payload_left ||
        forward.send.dst >= conn->job->ranks || !job_is_home(conn->job, forward.send.dst)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "FORWARD frame that does not add up");
        return;
    }
    sender = sender_of(conn, forward.src);
    if (!sender)
        return;
    if (sender->left) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "FORWARD in the middle of a message of rank %u",
                    forward.src);
        return;
    }
    transfer_begin(sender, conn, &forward.send);
    apply_send(conn, sender, &forward.send);
}

void recv_forward_data(struct relay_conn *conn, const uint8_t *body)
{
    struct transfer *sender;
    struct cw_forward_ref ref;

    cw_forward_ref_get(body, &ref);
    sender = sender_of(conn, ref.rank);
    if (sender)
        transfer_more(sender, conn);
}

void recv_forward_end(struct relay_conn *conn, const uint8_t *body)
{
    struct transfer *sender;
    struct cw_forward_ref ref;

    cw_forward_ref_get(body, &ref);
    sender = sender_of(conn, ref.rank);
    if (sender)
        transfer_abandon(sender);
}

void recv_forward_sent(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_rank *rank;
    struct cw_forward_ref ref;

    cw_forward_ref_get(body, &ref);
    rank = ref.rank < conn->job->ranks ? conn->job->ranked[ref.rank] : NULL;
    if (!rank || !job_is_home(conn->job, ref.rank)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "FORWARD_SENT for rank %u, whose home is elsewhere",
                    ref.rank);
        return;
    }
    mailbox_done(&rank->mailbox, CW_FRAME_SENT, ref.req);
}
