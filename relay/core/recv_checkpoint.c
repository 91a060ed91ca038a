/* CHECKPOINT: the dispatcher asks a rank for an image of its process. Passed on, not kept: the
 * dispatcher asks again. */
#include "relay/core/recv.h"

void recv_checkpoint(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_job *job = conn->job;
    struct relay_mailbox *mailbox;
    struct cw_checkpoint checkpoint;

    if (!cw_checkpoint_get(body, &checkpoint)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "CHECKPOINT frame that cannot be read");
        return;
    }
    if (checkpoint.rank >= job->ranks || !job_is_home(job, checkpoint.rank)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "CHECKPOINT of rank %u, which is not at home here",
                    checkpoint.rank);
        return;
    }
    if (!job->ranked[checkpoint.rank])
        return;
    mailbox = &job->ranked[checkpoint.rank]->mailbox;
    if (feed_checkpoint(&mailbox->feed, &checkpoint) && mailbox->log.kept)
        mailbox_set_asked(mailbox, true);
}
