/* RECV and MRECV: a rank wants a message; it may be here already. */
#include "relay/core/recv.h"

void recv_recv(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    struct match_waiting *waiting;
    struct relay_posted *posted;
    struct cw_recv recv;

    cw_recv_get(body, &recv);
    if (!match_takes(&mailbox->index, recv.mask)) {
        conn_refuse(conn, CW_REFUSED_LIMIT, RECV_MASKS_REFUSED, RELAY_MATCH_CLASSES);
        return;
    }
    mailbox_act(mailbox, recv.clock);
    if (mailbox->log.kept)
        mailbox_logged(mailbox, log_recv(&mailbox->log, &recv));
    waiting = match_find_waiting(&mailbox->index, recv.tag, recv.mask);
    if (waiting) {
        match_unwait(&mailbox->index, waiting);
        job_match(mailbox, (struct relay_message *)waiting, recv.req, recv.capacity);
        return;
    }
    posted = mailbox_posted_new(mailbox);
    if (posted) {
        posted->req = recv.req;
        posted->tag = recv.tag;
        posted->mask = recv.mask;
        posted->capacity = recv.capacity;
        if (match_post(&mailbox->index, posted) == CW_OK)
            return;
        mailbox_posted_free(mailbox, posted);
    }
    conn_out_of_memory(conn, "keeping a posted receive");
}

void recv_mrecv(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    struct relay_message *message;
    struct cw_mrecv mrecv;

    cw_mrecv_get(body, &mrecv);
    message = mailbox_taken_out(mailbox, mrecv.msg);
    if (!message) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "MRECV of a message that no probe took out");
        return;
    }
    mailbox_act(mailbox, mrecv.clock);
    if (mailbox->log.kept)
        mailbox_logged(mailbox, log_mrecv(&mailbox->log, &mrecv));
    job_match(mailbox, message, mrecv.req, mrecv.capacity);
}
