/* RANK_END: the process that played a rank has ended, so nobody will resume its session. */
#include "relay/core/recv.h"

void recv_rank_end(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_job *job = conn->job;
    struct relay_mailbox *mailbox;
    struct cw_rank_end end;

    cw_rank_end_get(body, &end);
    if (end.rank >= job->ranks || !job_is_home(job, end.rank)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "RANK_END of rank %u, which is not at home here",
                    end.rank);
        return;
    }
    if (!job->ranked[end.rank])
        return; /* it has not connected: there is no session */
    mailbox = &job->ranked[end.rank]->mailbox;
    if (end.incarnation <= mailbox->ended)
        return;
    mailbox->ended = end.incarnation;
    ledger_change(&mailbox->entry);
    if (mailbox->feed.conn && mailbox_is_over(mailbox))
        conn_lose(mailbox->feed.conn);
}
