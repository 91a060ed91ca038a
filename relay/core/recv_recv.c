/* RECV and MRECV: a rank wants a message; it may be here already. */
#include "relay/core/recv.h"
#include "relay/core/apply.h"

void recv_recv(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    struct cw_recv recv;

    cw_recv_get(body, &recv);
    if (!match_takes(&mailbox->index, recv.mask)) {
        conn_refuse(conn, CW_REFUSED_LIMIT, RECV_MASKS_REFUSED, MATCH_CLASSES);
        return;
    }
    mailbox_act(mailbox, recv.clock);
    if (apply_act(mailbox, &(struct log_record){.type = LOG_RECV,
                                                .req = recv.req,
                                                .tag = recv.tag,
                                                .mask = recv.mask,
                                                .total = recv.capacity}) < 0)
        conn_out_of_memory(conn, "keeping a posted receive");
}

void recv_mrecv(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    struct cw_mrecv mrecv;

    cw_mrecv_get(body, &mrecv);
    if (conn->state != CONN_RANK && !mailbox->elsewhere) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "MRECV frame is not allowed here");
        return;
    }
    if (!mailbox_is_out(mailbox, mrecv.msg)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "MRECV of a message that %s",
                    mailbox->elsewhere ? "was not offered" : "no probe took out");
        return;
    }
    mailbox_act(mailbox, mrecv.clock);
    apply_act(mailbox,
              &(struct log_record){
                  .type = LOG_MRECV, .msg = mrecv.msg, .req = mrecv.req, .total = mrecv.capacity});
}
