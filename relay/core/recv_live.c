/* LIVE: a rank has repeated all that its predecessor did. */
#include "relay/core/recv.h"

#include <inttypes.h>

void recv_live(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    struct cw_taken live;

    cw_taken_get(body, &live);
    if (!mailbox->feed.repeated || live.event != mailbox->log.taken) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "LIVE before all was repeated");
        return;
    }
    if (mailbox->feed.checked.send != mailbox->log.send_count) {
        job_diverged(mailbox, "expected %" PRIu64 " sends, saw %" PRIu64, mailbox->log.send_count,
                     mailbox->feed.checked.send);
        return;
    }
    log_points_forget(&mailbox->log, live.clock);
    ledger_change(&mailbox->entry);
    conn->state = CONN_RANK;
    job_notice(conn->job, CW_NOTICE_RANK_LIVE, mailbox->rank, "repeated %" PRIu64 " events",
               live.event - mailbox->feed.skip);
    mailbox_pump(mailbox);
}
