/* What the dispatcher of a job says. */
#include "relay/core/copy_in.h"
#include "relay/core/cover.h"
#include "relay/core/link.h"
#include "relay/core/recv.h"
#include "relay/core/route.h"
#include "relay/core/trim.h"

/* ROUTE and LINK: the dispatcher says which relay is the home of which ranks, and where the others
 * are. */
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
    if (conn->state == CONN_DISPATCHER)
        link_tell(conn->job);
}

/* COPY and COPY_CLOSE: who has copies of our log; whose copy is for its successor now. */
void recv_copy(struct relay_conn *conn, const uint8_t *body)
{
    tell(conn, CW_FRAME_COPY, body, CW_COPY_SIZE);
    if (!commit_holds(&conn->set->store->commit))
        conn_set_release(conn->set);
}

void recv_cover(struct relay_conn *conn, const uint8_t *body)
{
    struct cw_cover cover;

    cw_cover_get(body, &cover);
    cover_ask(conn->job, cover.token);
}

void recv_copy_close(struct relay_conn *conn, const uint8_t *body)
{
    struct cw_copy_closed closed;
    struct cw_copy_close close;

    tell(conn, CW_FRAME_COPY_CLOSE, body, CW_COPY_CLOSE_SIZE);
    if (conn->state != CONN_DISPATCHER)
        return;
    cw_copy_close_get(body, &close);
    closed = copy_in_close(conn->job, &close);
    conn_frame(conn, CW_FRAME_COPY_CLOSED, &closed, sizeof(closed));
}

/* Whether the rank that a frame is about is at home here; else it is refused. */
static bool is_at_home(struct relay_conn *conn, const char *frame, uint32_t rank)
{
    if (rank < conn->job->ranks && job_is_home(conn->job, rank))
        return true;
    conn_refuse(conn, CW_REFUSED_PROTOCOL, "%s of rank %u, which is not at home here", frame, rank);
    return false;
}

/* CHECKPOINT: the dispatcher asks a rank for an image of its process. Passed on, not kept: the
 * dispatcher asks again. */
void recv_checkpoint(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox;
    struct cw_checkpoint checkpoint;

    if (!cw_checkpoint_get(body, &checkpoint)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "CHECKPOINT frame that cannot be read");
        return;
    }
    if (!is_at_home(conn, "CHECKPOINT", checkpoint.rank) || !conn->job->ranked[checkpoint.rank])
        return;
    mailbox = &conn->job->ranked[checkpoint.rank]->mailbox;
    if (feed_checkpoint(&mailbox->feed, &checkpoint) && mailbox->log.kept)
        mailbox_set_asked(mailbox, true);
}

/* TRIM: the image of a point is safe, so what is logged before it is not needed any more. */
void recv_trim(struct relay_conn *conn, const uint8_t *body)
{
    struct cw_trim trim;

    if (!cw_trim_get(body, &trim) || trim.known)
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "TRIM frame that cannot be read");
    else if (is_at_home(conn, "TRIM", trim.rank))
        trim_ask(conn->job, trim.rank, &trim.point);
}

/* RANK_END: the process that played a rank has ended, so nobody will resume its session. */
void recv_rank_end(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox;
    struct cw_rank_end end;

    cw_rank_end_get(body, &end);
    /* of one that has not connected there is no session */
    if (!is_at_home(conn, "RANK_END", end.rank) || !conn->job->ranked[end.rank])
        return;
    mailbox = &conn->job->ranked[end.rank]->mailbox;
    if (end.incarnation <= mailbox->ended)
        return;
    mailbox->ended = end.incarnation;
    ledger_change(&mailbox->entry);
    if (mailbox->feed.conn && mailbox_is_over(mailbox))
        conn_lose(mailbox->feed.conn);
}

/* STATS_ASK: what was counted for every rank of the job, and for the relay as a whole. */
static void stats_fill(struct cw_stats *stats, const struct relay_mailbox *mailbox)
{
    stats->incarnation = mailbox->incarnation;
    stats->of_rank = mailbox->elsewhere ? mailbox->counted : mailbox->stats;
    if (mailbox->elsewhere)
        return;
    stats->of_rank.events = mailbox->event;
    stats->of_rank.taken = mailbox->log.taken;
    stats->of_rank.replayed = mailbox->feed.cursor.event;
    stats->of_rank.acts = mailbox->acts;
    stats->of_rank.log_bytes = mailbox_log_bytes(mailbox);
}

void recv_stats_ask(struct relay_conn *conn, const uint8_t *body)
{
    (void)body;
    for (uint32_t rank = 0; rank < conn->job->ranks; rank++) {
        const struct relay_rank *ranked = conn->job->ranked[rank];
        struct cw_stats stats = {.rank = rank, .of_relay = *conn->set->stats};

        if (!job_is_home(conn->job, rank))
            continue;
        if (ranked)
            stats_fill(&stats, &ranked->mailbox);
        if (!conn_frame(conn, CW_FRAME_STATS, &stats, sizeof(stats)))
            return;
    }
}

/* CUT, a drill: a connection breaks, as if a network had failed. */
static void break_links(struct relay_job *job)
{
    for (uint32_t relay = 0; relay < job->relays; relay++) {
        if (job->links[relay].conn)
            conn_break(job->links[relay].conn);
        if (job->copies[relay].conn)
            conn_break(job->copies[relay].conn);
    }
}

void recv_cut(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_job *job = conn->job;
    uint32_t what = cw_word_get(body);

    if (what == CW_CUT_LINKS)
        break_links(job);
    else if (what == CW_CUT_DISPATCHER)
        conn_break(conn);
    else if (what >= job->ranks)
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "CUT of rank %u in a job of %u ranks", what,
                    job->ranks);
    else if (job->ranked[what] && job->ranked[what]->mailbox.feed.conn)
        conn_break(job->ranked[what]->mailbox.feed.conn);
}

/* JOB_END: the dispatcher says that its job ends now. */
void recv_job_end(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_job *job = conn->job;

    (void)body;
    job->dispatcher = NULL;
    job_free(job);
}
