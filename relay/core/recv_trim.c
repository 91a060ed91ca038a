/* TRIM: the image of a point is safe, so what is logged before it is not needed any more. */
#include "relay/core/recv.h"
#include "relay/core/trim.h"

void recv_trim(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_job *job = conn->job;
    struct cw_trim trim;

    if (!cw_trim_get(body, &trim) || trim.known) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "TRIM frame that cannot be read");
        return;
    }
    if (trim.rank >= job->ranks || !job_is_home(job, trim.rank)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "TRIM of rank %u, which is not at home here",
                    trim.rank);
        return;
    }
    trim_ask(job, trim.rank, &trim.point);
}
