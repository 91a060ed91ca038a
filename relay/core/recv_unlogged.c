/* UNLOGGED: the rank does something that a log cannot repeat. */
#include "relay/core/recv.h"

void recv_unlogged(struct relay_conn *conn, const uint8_t *body)
{
    static const char *const reasons[] = {
        [CW_UNLOGGED_THREADS] =
            "it calls MPI from more than one thread, and the order of their calls is not logged",
        [CW_UNLOGGED_READINGS] = "it asked for the time too often before MPI_Init",
        [CW_UNLOGGED_ADDRESSES] = "its memory would lie elsewhere: personality(ADDR_NO_RANDOMIZE) "
                                  "is not allowed here (causeway doctor)",
    };
    uint32_t why = cw_word_get(body);

    if (why >= CW_UNLOGGED_THREADS && why <= CW_UNLOGGED_ADDRESSES)
        job_unlog(&conn->rank->mailbox, reasons[why]);
    else
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "UNLOGGED frame that cannot be read");
}
