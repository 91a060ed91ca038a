#include "relay/core/link.h"
#include "relay/core/saved.h"

#include <assert.h>
#include <string.h>

bool link_may_come(const struct relay_job *job, uint32_t relay)
{
    return relay < job->relays && relay != job->self && !job->links[relay].linked &&
           job->routed >= job->ranks;
}

static uint32_t count_linked(const struct relay_job *job)
{
    uint32_t count = 0;

    for (uint32_t relay = 0; relay < job->relays; relay++)
        count += job->links[relay].linked;
    return count;
}

void link_up(struct relay_conn *conn, struct relay_job *job, uint32_t relay)
{
    struct job_link *link = &job->links[relay];

    assert(link_may_come(job, relay));
    job_join(job, conn);
    conn->peer = relay;
    conn->state = CONN_LINK;
    link->conn = conn;
    link->linked = true;
    job->settled = true;
    if (job->entry.ledger)
        conn_outlive(conn, true, saved_conn);
    if (count_linked(job) == job->relays - 1)
        job_notice(job, CW_NOTICE_LINKED, UINT32_MAX, "linked to the %u other relays of the job",
                   job->relays - 1);
}

void link_down(struct relay_conn *conn)
{
    struct relay_job *job = conn->job;

    job->links[conn->peer].conn = NULL;
    for (uint32_t rank = 0; rank < job->ranks; rank++)
        if (job->ranked[rank] && job_home(job, rank) == conn->peer)
            transfer_abandon(&job->ranked[rank]->transfer);
}

/* --- those that we open --------------------------------------------------------------------------
 */

void link_want(struct relay_job *job, struct relay_dial *dial)
{
    struct job_link *link = &job->links[dial->peer];

    relay_pool_free(job->pool, link->dial, sizeof(*link->dial));
    link->dial = dial;
    job->set->dials += !link->wanted;
    link->wanted = true;
}

void link_want_again(struct relay_conn *conn)
{
    struct job_link *link = &conn->job->links[conn->peer];

    if (!link->dial)
        return;
    link->dial->resumes = true;
    link->dial->received = conn->session.received;
    link->dial->resume_ns = conn->job->resume_ns;
    conn->job->set->dials += !link->wanted;
    link->wanted = true;
    if (conn->entry.ledger)
        commit_want(&conn->set->store->commit);
}

struct relay_conn *link_suspended(const struct relay_job *job, uint32_t relay)
{
    struct relay_conn *conn = job->links[relay].conn;

    return conn && conn->suspended ? conn : NULL;
}

/* The other relay forgets what we have received. */
static bool may_ask(const struct job_link *link)
{
    return !link->dial->resumes || !link->conn || conn_may_tell_acted(link->conn);
}

static bool next_wanted(struct relay_job *job, struct relay_dial *dial)
{
    for (uint32_t relay = 0; relay < job->relays; relay++) {
        struct job_link *link = &job->links[relay];

        if (!link->wanted || !may_ask(link))
            continue;
        link->wanted = false;
        link->asked = true;
        job->set->dials--;
        *dial = *link->dial;
        return true;
    }
    return false;
}

bool link_next_dial(struct job_set *set, struct relay_dial *dial)
{
    struct relay_job *job;

    if (set->cancel_count > 0) {
        *dial = (struct relay_dial){.cancelled = true};
        memcpy(dial->job, set->cancelled[set->cancel_first++ % JOB_CANCELS_MAX], CW_ID_SIZE);
        set->cancel_count--;
        return true;
    }
    if (set->dials == 0)
        return false;
    LIST_FOREACH (job, &set->all, of_set)
        if (next_wanted(job, dial))
            return true;
    return false;
}

struct relay_job *link_dialled(struct job_set *set, const struct relay_dialled *dialled)
{
    struct relay_job *job = job_find(set, dialled->job);

    assert(dialled->peer < CW_RELAYS_MAX);
    /* another job may have its identifier, which did not ask */
    if (!job || !job->links[dialled->peer].asked)
        return NULL;
    job->links[dialled->peer].asked = false;
    if (dialled->resumed)
        return link_suspended(job, dialled->peer) ? job : NULL;
    /* else it came to us meanwhile */
    return link_may_come(job, dialled->peer) ? job : NULL;
}

void link_failed(struct relay_job *job, uint32_t relay, const char *why)
{
    job_notice(job, CW_NOTICE_FATAL, UINT32_MAX, "no link to relay %u of the job: %s", relay, why);
}
