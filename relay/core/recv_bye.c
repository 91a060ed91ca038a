/* BYE: the rank has sent everything and wants nothing more. Its messages to others stay. */
#include "relay/core/state.h"

void recv_bye(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = conn->mailbox;

    if (mailbox->sending.left || !cw_bye_get(body, &mailbox->stats)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "BYE in the middle of a message");
        return;
    }
    conn_frame(conn, CW_FRAME_FAREWELL, 0);
    conn->state = CONN_CLOSING;
    conn->fenced = true;
    mailbox_detach(conn);
    job_notice(conn->job, CW_NOTICE_RANK_BYE, mailbox->rank, "done");
}
