#include "relay/core/cover.h"

/* A rank that may come back has words that we have not heard. */
static bool waits_for_rank(const struct relay_job *job)
{
    for (uint32_t rank = 0; rank < job->ranks; rank++)
        if (job->ranked[rank] && job->ranked[rank]->mailbox.feed.conn &&
            job->ranked[rank]->mailbox.feed.conn->suspended)
            return true;
    return false;
}

static void answer(struct relay_job *job)
{
    job->covers = false;
    ledger_change(&job->entry);
    if (job->dispatcher && job->dispatcher->state == CONN_DISPATCHER)
        conn_frame(job->dispatcher, CW_FRAME_COVERED, &(struct cw_cover){.token = job->cover},
                   CW_COVER_SIZE);
}

void cover_ask(struct relay_job *job, uint64_t token)
{
    job->cover = token;
    job->covers = true;
    ledger_change(&job->entry);
    if (!job->set->shared->store.commit.copies)
        answer(job);
}

bool cover_is_due(const struct job_set *set)
{
    const struct relay_job *job;

    if (!set->shared->store.commit.copies)
        return false; /* it was answered at once */
    LIST_FOREACH (job, &set->all, of_set)
        if (job->covers && !waits_for_rank(job))
            return true;
    return false;
}

void cover_answer(struct job_set *set)
{
    struct relay_job *job;

    LIST_FOREACH (job, &set->all, of_set)
        if (job->covers && !waits_for_rank(job))
            answer(job);
}
