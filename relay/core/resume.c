#include "relay/core/resume.h"
#include "relay/core/copy_in.h"

/* All that led to the old connection leads to this one. */
static void replace(struct relay_conn *conn, const struct relay_conn *old)
{
    struct relay_job *job = old->job;

    if (job->dispatcher == old)
        job->dispatcher = conn;
    if (job->links[old->peer].conn == old)
        job->links[old->peer].conn = conn;
    if (job->copies[old->peer].conn == old)
        job->copies[old->peer].conn = conn;
    copy_in_replace(job, old, conn);
    if (old->rank && old->rank->mailbox.feed.conn == old)
        old->rank->mailbox.feed.conn = conn;
}

/* Of a rank whose relay was killed. */
static bool event_fits(const struct relay_conn *old, uint64_t event)
{
    const struct relay_mailbox *mailbox = &old->rank->mailbox;

    return event >= mailbox->log.taken && event <= mailbox->event;
}

/* What the relay that was killed had said after this event is said again, or forgotten: events; the
 * last answer to a probe that found something; hints, and answers that found nothing. */
static void begin_anew(struct relay_conn *conn, uint64_t event)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;

    if (!mailbox->elsewhere)
        conn_frame(conn, CW_FRAME_PROBED, &mailbox->found, sizeof(mailbox->found));
    feed_return(&mailbox->feed, conn, &mailbox->log.early, event);
    mailbox_pump(mailbox);
}

void resume_hello(struct relay_conn *conn, struct relay_conn *old, const struct cw_hello *hello,
                  const uint8_t key[CW_KEY_SIZE])
{
    struct cw_welcome answer = {.flags = CW_WELCOME_RESUMED};
    bool returned = old && hello->received < old->anew;

    if (!old || old->state == CONN_CLOSING || old->job->resume_ns == 0) {
        conn_refuse(conn, CW_REFUSED_JOB, "the relay has no such session (it may have ended)");
        return;
    }
    if (!old->suspended) {
        conn_break(old);
        conn_refuse(conn, CW_REFUSED_BUSY, "the session's old connection is being ended");
        return;
    }
    if (returned ? !event_fits(old, hello->event) : !out_may_rewind(&old->out, hello->received)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL,
                    "it has received what was not sent, or less than "
                    "it said before");
        conn_refuse(old, CW_REFUSED_PROTOCOL, "it cannot go on from what it has received");
        return;
    }
    answer.received = old->session.received;
    if (returned) {
        answer.flags |= CW_WELCOME_RETURNED;
        answer.acts = old->session.out_seq;
        answer.event = old->anew = out_restart(&old->out);
    }
    cw_cred_mac_welcome(answer.mac, key, &answer, hello, conn->stranger.nonce);
    conn_frame(conn, CW_FRAME_WELCOME, &answer, sizeof(answer));
    cw_stranger_leave(&conn->stranger);
    replace(conn, old);
    conn_resume(conn, old, returned ? answer.event : hello->received);
    if (returned)
        begin_anew(conn, hello->event);
}

void resume_dialled(struct relay_conn *conn, struct relay_conn *old, uint64_t received)
{
    if (!out_may_rewind(&old->out, received)) {
        conn_end(conn);
        conn_refuse(old, CW_REFUSED_PROTOCOL, "it cannot go on from what it has received");
        return;
    }
    replace(conn, old);
    conn_resume(conn, old, received);
}
