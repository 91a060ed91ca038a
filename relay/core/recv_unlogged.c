/* UNLOGGED: the rank does something that a log cannot repeat. */
#include "relay/core/recv.h"

void recv_unlogged(struct relay_conn *conn, const uint8_t *body)
{
    uint32_t why;

    if (!cw_unlogged_get(body, &why))
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "UNLOGGED frame that cannot be read");
    else if (why == CW_UNLOGGED_THREADS)
        job_unlog(&conn->rank->mailbox, "it calls MPI from more than one thread, and the order of "
                                        "their calls is not logged");
    else
        job_unlog(&conn->rank->mailbox, "it asked for the time too often before MPI_Init");
}
