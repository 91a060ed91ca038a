#include "relay/core/trim.h"
#include "relay/core/snapshot.h"

static void answer(struct relay_job *job, uint32_t rank, const struct cw_point *point, bool known)
{
    const struct cw_trim trimmed = {.rank = rank, .known = known, .point = *point};
    uint8_t *to;

    if (!job->dispatcher || job->dispatcher->state != CONN_DISPATCHER)
        return;
    to = conn_frame(job->dispatcher, CW_FRAME_TRIMMED, CW_TRIM_SIZE);
    if (to)
        cw_trim_put(to, &trimmed);
}

/* False: not yet. The answer may cost another job its life, never this one. */
static bool try(struct relay_mailbox *mailbox, const struct cw_point *point)
{
    enum snapshot_trimmed trimmed = mailbox_trim(mailbox, point);

    if (trimmed == TRIM_LATER)
        return false;
    answer(mailbox->job, mailbox->rank, point, trimmed == TRIM_DONE);
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

        if (!mailbox->trims)
            continue;
        mailbox->trims = false;
        any = true;
        if (!try(mailbox, &point))
            mailbox_trim_later(mailbox, &point);
    }
    return any;
}
