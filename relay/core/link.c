#include "relay/core/link.h"
#include "relay/core/saved.h"

#include <assert.h>
#include <string.h>

bool link_may_come(const struct relay_job *job, uint32_t relay)
{
    return relay < job->relays && relay != job->self && !job->links[relay].linked &&
           job->routed >= job->ranks;
}

/* A relay has a link to each other one if both have ranks; where it is told of more, to those.
 * Returns how many, and in *missing whether one of them is not there. */
static uint32_t count_expected(const struct relay_job *job, bool *missing)
{
    bool has_ranks[CW_RELAYS_MAX] = {0};
    uint32_t count = 0;

    *missing = job->routed < job->ranks;
    for (uint32_t rank = 0; rank < job->ranks; rank++)
        has_ranks[job_home(job, rank)] = true;
    for (uint32_t relay = 0; relay < job->relays; relay++) {
        const struct job_link *link = &job->links[relay];

        if (relay == job->self ||
            (!link->dial && !link->linked && !(has_ranks[relay] && has_ranks[job->self])))
            continue;
        count++;
        *missing |= !link->linked;
    }
    return count;
}

void link_tell(struct relay_job *job)
{
    bool missing;
    uint32_t expected = count_expected(job, &missing);

    if (job->told_linked || missing)
        return;
    job->told_linked = true;
    job_notice(job, CW_NOTICE_LINKED, UINT32_MAX, "linked to the %u other relays of the job",
               expected);
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
    link_tell(job);
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

static void want(struct relay_job *job, struct job_link *link)
{
    job->set->dials += !link->wanted;
    link->wanted = true;
}

/* How it is opened; what is known of its session stays. Returns 0 or CW_ENOMEM. */
static int keep_dial(struct relay_job *job, struct job_link *link, const struct relay_dial *what)
{
    struct relay_dial was = {0};

    if (link->dial)
        was = *link->dial;
    else
        link->dial = relay_pool_alloc(job->pool, sizeof(*link->dial));
    if (!link->dial)
        return CW_ENOMEM;
    *link->dial = *what;
    link->dial->resumes = was.resumes;
    link->dial->received = was.received;
    link->dial->resume_ns = was.resume_ns;
    explicit_bzero(was.key, sizeof(was.key));
    return CW_OK;
}

/* Its relay is another process now: the connection with the one before leads nowhere. */
static void move(struct relay_conn *conn)
{
    if (conn && conn->suspended)
        link_want_again(conn);
    else if (conn)
        conn_break(conn);
}

int link_told(struct relay_job *job, const struct relay_dial *what, uint32_t incarnation,
              bool opens)
{
    struct job_link *link = &job->links[what->peer];
    struct job_link *copy = &job->copies[what->peer];
    bool moved = link->incarnation > 0 && incarnation > link->incarnation;

    if (incarnation > link->incarnation)
        link->incarnation = incarnation;
    if (job->set->shared->store.commit.copies && keep_dial(job, copy, what) < 0)
        return CW_ENOMEM;
    if (copy->dial)
        copy->dial->copies = true;
    if (opens && keep_dial(job, link, what) < 0)
        return CW_ENOMEM;
    if (opens && !link->linked)
        want(job, link);
    if (moved)
        move(link->conn);
    return CW_OK;
}

void link_want_again(struct relay_conn *conn)
{
    bool copies = conn->state == CONN_COPIED;
    struct job_link *link = copies ? &conn->job->copies[conn->peer] : &conn->job->links[conn->peer];

    if (!link->dial)
        return;
    link->dial->resumes = true;
    link->dial->received = conn->session.received;
    link->dial->resume_ns = conn->job->resume_ns;
    want(conn->job, link);
    if (conn->entry.ledger)
        commit_want(&conn->set->store->commit);
}

void link_want_copy(struct relay_job *job, uint32_t peer)
{
    struct job_link *copy = &job->copies[peer];

    assert(copy->dial && !copy->conn);
    copy->dial->resumes = false;
    copy->dial->number = job->copy_out.number;
    want(job, copy);
}

void link_want_no_copy(struct relay_job *job, uint32_t peer)
{
    struct job_link *copy = &job->copies[peer];

    job->set->dials -= copy->wanted;
    copy->wanted = copy->asked = false;
}

struct relay_conn *link_suspended(const struct relay_job *job, const struct relay_dialled *dialled)
{
    struct relay_conn *conn = (dialled->copies ? job->copies : job->links)[dialled->peer].conn;

    return conn && conn->suspended ? conn : NULL;
}

/* The other relay forgets what we have received. */
static bool may_ask(const struct job_link *link)
{
    return !link->dial->resumes || !link->conn || conn_may_tell_acted(link->conn);
}

static bool next_of(struct relay_job *job, struct job_link *links, struct relay_dial *dial)
{
    for (uint32_t relay = 0; relay < job->relays; relay++) {
        struct job_link *link = &links[relay];

        if (!link->wanted || !may_ask(link))
            continue;
        link->wanted = false;
        link->asked = true;
        link->dial->asked = ++link->asks;
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
        if (next_of(job, job->links, dial) || next_of(job, job->copies, dial))
            return true;
    return false;
}

struct relay_job *link_dialled(struct job_set *set, const struct relay_dialled *dialled)
{
    struct relay_job *job = job_find(set, dialled->job);
    struct job_link *link;

    assert(dialled->peer < CW_RELAYS_MAX);
    /* another job may have its identifier, which did not ask; or it was asked for anew meanwhile */
    link = job ? &(dialled->copies ? job->copies : job->links)[dialled->peer] : NULL;
    if (!link || !link->asked || link->asks != dialled->asked)
        return NULL;
    link->asked = false;
    if (dialled->resumed)
        return link_suspended(job, dialled) ? job : NULL;
    /* else it came to us meanwhile */
    return dialled->copies || link_may_come(job, dialled->peer) ? job : NULL;
}

void link_failed(struct relay_job *job, uint32_t relay, const char *why)
{
    job_notice(job, CW_NOTICE_FATAL, UINT32_MAX, "no link to relay %u of the job: %s", relay, why);
}
