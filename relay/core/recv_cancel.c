/* CANCEL: takes a posted receive back. When its message is on the way already, the message wins and
 * nothing is answered. */
#include "relay/core/recv.h"

void recv_cancel(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    struct relay_posted *posted;
    struct cw_recv cancel;

    cw_recv_get(body, &cancel);
    mailbox_act(mailbox, cancel.clock);
    posted = match_find_request(&mailbox->index, cancel.req, cancel.tag, cancel.mask);
    if (!posted)
        return;
    if (mailbox->log.outlives)
        mailbox_logged(mailbox, log_cancel(&mailbox->log, &cancel));
    match_unpost(&mailbox->index, posted);
    mailbox_posted_free(mailbox, posted);
    mailbox_done(mailbox, CW_FRAME_CANCELED, cancel.req);
}
