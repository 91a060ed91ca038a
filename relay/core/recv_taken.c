/* TAKEN: the rank says at which poll clock it took events. It is logged before anything that the
 * rank sends afterwards is acted on: the pessimistic rule. */
#include "relay/core/recv.h"

void recv_taken(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    struct relay_log *log = &mailbox->log;
    struct cw_taken taken;

    if (!log->kept)
        return;
    cw_taken_get(body, &taken);
    if (taken.event <= log->taken || taken.event > mailbox->event || taken.clock < log->clock) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "TAKEN frame that does not add up");
        return;
    }
    mailbox_logged(mailbox, log_taken(log, taken.event, taken.clock));
}
