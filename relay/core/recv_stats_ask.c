/* STATS_ASK: what was counted for every rank of the job, and for the relay as a whole. */
#include "relay/core/recv.h"

static void stats_fill(struct cw_stats *stats, const struct relay_mailbox *mailbox)
{
    stats->incarnation = mailbox->incarnation;
    stats->of_rank = mailbox->stats;
    stats->of_rank.events = mailbox->event;
    stats->of_rank.taken = mailbox->log.taken;
    stats->of_rank.replayed = mailbox->feed.cursor.event;
    stats->of_rank.acts = mailbox->acts;
    stats->of_rank.log_bytes = mailbox->log.bytes;
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
