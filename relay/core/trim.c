#include "relay/core/trim.h"
#include "relay/core/bounds.h"
#include "relay/core/decisions.h"
#include "relay/core/snapshot.h"

/* Where its log is in channel memory, the rank itself trims that. */
static void answer(struct relay_job *job, uint32_t rank, const struct cw_point *point, bool known)
{
    const struct cw_trim trimmed = {.rank = rank, .known = known, .point = *point};
    struct relay_mailbox *mailbox = job->ranked[rank] ? &job->ranked[rank]->mailbox : NULL;

    if (known && mailbox->elsewhere) {
        mailbox->counted.log_bytes = 0;
        decisions_take(mailbox); /* what is let go of there is here */
        if (mailbox->feed.conn)
            conn_frame(mailbox->feed.conn, CW_FRAME_TRIMMED, &trimmed, sizeof(trimmed));
    }
    if (job->dispatcher && job->dispatcher->state == CONN_DISPATCHER)
        conn_frame(job->dispatcher, CW_FRAME_TRIMMED, &trimmed, sizeof(trimmed));
}

/* Of the memory for logs, so that there is time for an image before it is spent. */
static uint64_t grows_by(const struct relay_mailbox *mailbox)
{
    uint64_t share = mailbox->shared->store.memory_max / RELAY_GROWN_SHARE / mailbox->job->ranks;

    if (share > RELAY_GROWN_MAX)
        return RELAY_GROWN_MAX;
    return share < RELAY_GROWN_MIN ? RELAY_GROWN_MIN : share;
}

void trim_tell_bytes(const struct relay_mailbox *mailbox)
{
    const struct cw_grown grown = {.rank = mailbox->rank, .bytes = mailbox_log_bytes(mailbox)};
    struct relay_conn *dispatcher = mailbox->job->dispatcher;

    if (dispatcher && dispatcher->state == CONN_DISPATCHER)
        conn_frame(dispatcher, CW_FRAME_GROWN, &grown, sizeof(grown));
}

static void tell_grown(struct relay_mailbox *mailbox)
{
    bool first = mailbox->grown_at == 0; /* it has just begun */

    mailbox->grown_at = (first ? 0 : mailbox->log.bytes) + grows_by(mailbox);
    if (!mailbox->log.kept)
        mailbox->grown_at = UINT64_MAX;
    else if (!first)
        trim_tell_bytes(mailbox);
}

/* False: not yet. The answer may cost another job its life, never this one. */
static bool try(struct relay_mailbox *mailbox, const struct cw_point *point)
{
    enum snapshot_trimmed trimmed = mailbox_trim(mailbox, point);

    if (trimmed == TRIM_LATER)
        return false;
    answer(mailbox->job, mailbox->rank, point, trimmed == TRIM_DONE);
    if (trimmed ==
        TRIM_DONE) /* what is left could not go: of that the next image does not rid us */
        trim_tell_bytes(mailbox);
    mailbox->grown_at = mailbox->log.bytes + grows_by(mailbox);
    return true;
}

static bool same(const struct cw_point *a, const struct cw_point *b)
{
    return a->event == b->event && a->clock == b->clock && a->acts == b->acts;
}

void trim_ask(struct relay_job *job, uint32_t rank, const struct cw_point *point)
{
    struct relay_mailbox *mailbox = job->ranked[rank] ? &job->ranked[rank]->mailbox : NULL;

    if (!mailbox) {
        answer(job, rank, point, false); /* it has not connected: it was at no point */
        return;
    }
    if (try(mailbox, point))
        return;
    if (mailbox->trims && !same(&mailbox->trim, point))
        answer(job, rank, &mailbox->trim, false);
    mailbox_trim_later(mailbox, point);
}

bool trim_settle(struct mailbox_shared *shared)
{
    struct relay_mailbox *mailbox;
    bool any = false;

    while ((mailbox = mailbox_next_due(shared))) {
        struct cw_point point = mailbox->trim;

        if (mailbox->log.bytes >= mailbox->grown_at)
            tell_grown(mailbox);
        if (!mailbox->trims)
            continue;
        mailbox->trims = false;
        any = true;
        if (!try(mailbox, &point))
            mailbox_trim_later(mailbox, &point);
    }
    return any;
}

static bool may_come(const struct mailbox_shared *shared)
{
    return shared->imaged > 0 && !shared->waited;
}

bool trim_is_awaited(struct mailbox_shared *shared, uint64_t now_ns)
{
    if (!may_come(shared) || !store_is_full(&shared->store)) {
        shared->wait_end_ns = 0;
        return false;
    }
    if (shared->wait_end_ns == 0)
        shared->wait_end_ns = now_ns + RELAY_TRIM_WAIT_NS;
    shared->waited = now_ns >= shared->wait_end_ns;
    return !shared->waited;
}

bool trim_is_hopeless(const struct mailbox_shared *shared)
{
    return store_spent(&shared->store) && (!may_come(shared) || store_is_exceeded(&shared->store));
}
