/* JOB_END: the dispatcher says that its job ends now. */
#include "relay/core/recv.h"

void recv_job_end(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_job *job = conn->job;

    (void)body;
    job->dispatcher = NULL;
    job_free(job);
}
