/* FORWARD, FORWARD_DATA, FORWARD_END and FORWARD_SENT: another relay of the job speaks for its
 * ranks. Messages of many ranks come over one link, each rank's in order. */
#include "relay/core/state.h"

/* The rank of that relay; NULL after refusing. */
static struct relay_mailbox *sender_of(struct relay_conn *conn, uint32_t src)
{
    struct relay_mailbox *sender;

    if (src >= conn->job->ranks || job_home(conn->job, src) != conn->peer) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "relay %u speaks for rank %u, which is not its own",
                    conn->peer, src);
        return NULL;
    }
    sender = job_mailbox(conn->job, src);
    if (!sender)
        conn_out_of_memory(conn, "making a mailbox");
    return sender;
}

void recv_forward(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *sender;
    struct cw_forward forward;

    if (!cw_forward_get(body, &forward) || forward.send.total < conn->payload_left ||
        forward.send.dst >= conn->job->ranks || !job_is_home(conn->job, forward.send.dst)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "FORWARD frame that does not add up");
        return;
    }
    sender = sender_of(conn, forward.src);
    if (!sender)
        return;
    if (sender->sending.left) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "FORWARD in the middle of a message of rank %u",
                    forward.src);
        return;
    }
    conn->source = sender;
    sender->sending = (struct relay_sending){.left = forward.send.total - conn->payload_left};
    send_arrives(conn, sender, &forward.send);
}

void recv_forward_data(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *sender;
    struct cw_forward_ref ref;

    cw_forward_ref_get(body, &ref);
    sender = sender_of(conn, ref.rank);
    if (sender)
        data_fits(conn, sender);
}

void recv_forward_end(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *sender;
    struct cw_forward_ref ref;

    cw_forward_ref_get(body, &ref);
    sender = sender_of(conn, ref.rank);
    if (sender)
        message_abandon(sender);
}

void recv_forward_sent(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox;
    struct cw_forward_ref ref;

    cw_forward_ref_get(body, &ref);
    mailbox = ref.rank < conn->job->ranks ? conn->job->mailboxes[ref.rank] : NULL;
    if (!mailbox || !job_is_home(conn->job, ref.rank)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "FORWARD_SENT for rank %u, whose home is elsewhere",
                    ref.rank);
        return;
    }
    mailbox_done(mailbox, CW_FRAME_SENT, ref.req);
}
