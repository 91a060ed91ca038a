/* ACK: the other side says how much of our stream it has received. */
#include "relay/core/recv.h"

void recv_ack(struct relay_conn *conn, const uint8_t *body)
{
    if (!conn_acknowledge(conn, cw_ack_get(body)))
        conn_refuse(conn, CW_REFUSED_PROTOCOL, CONN_ACK_REFUSED);
}
