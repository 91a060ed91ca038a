/* ROUTE and LINK: the dispatcher says which relay is the home of which ranks, and where the others
 * are. */
#include "relay/core/recv.h"
#include "relay/core/route.h"

static void tell(struct relay_conn *conn, uint8_t type, const uint8_t *body, size_t size)
{
    int failed = route_tell(conn->job, type, body, size);

    if (failed == CW_ENOMEM)
        conn_out_of_memory(conn, "keeping where ranks are at home, and other relays");
    else if (failed)
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "%s frame that does not add up",
                    cw_frame_name(type));
}

void recv_route(struct relay_conn *conn, const uint8_t *body)
{
    tell(conn, CW_FRAME_ROUTE, body, CW_ROUTE_SIZE);
}

void recv_link(struct relay_conn *conn, const uint8_t *body)
{
    uint32_t size = conn->payload_left;

    conn->start += size;
    conn->payload_left = 0;
    tell(conn, CW_FRAME_LINK, body, CW_LINK_SIZE + size);
}
