/* READINGS: what the rank's clocks told it, as bytes that only its device understands. */
#include "relay/core/recv.h"

void recv_readings(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    uint32_t size = conn->payload_left;

    conn->start += size;
    conn->payload_left = 0;
    if (size == 0)
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "READINGS frame without readings");
    else if (mailbox->log.kept)
        mailbox_logged(mailbox, log_readings(&mailbox->log, body, size));
}
