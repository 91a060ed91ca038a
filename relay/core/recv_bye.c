/* BYE: the rank has sent everything and wants nothing more. Its messages to others stay. */
#include "relay/core/recv.h"

void recv_bye(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;

    if (conn->rank->transfer.left) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "BYE in the middle of a message");
        return;
    }
    cw_bye_get(body, &mailbox->stats);
    conn_frame(conn, CW_FRAME_FAREWELL, NULL, 0);
    conn->state = CONN_CLOSING;
    conn->told = true;
    job_detach(conn);
    job_notice(conn->job, CW_NOTICE_RANK_BYE, mailbox->rank, "done");
}
