#include "relay/core/job.h"
#include "relay/core/bounds.h"
#include "relay/core/saved.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct relay_job *job_find(const struct job_set *set, const uint8_t id[CW_ID_SIZE])
{
    struct relay_job *job;

    LIST_FOREACH (job, &set->all, of_set)
        if (memcmp(job->id, id, CW_ID_SIZE) == 0)
            break;
    return job;
}

struct relay_job *job_new(struct job_set *set, const uint8_t id[CW_ID_SIZE], uint32_t ranks)
{
    struct relay_pool *pool = relay_pool_new(set->memory);
    struct relay_job *job = pool ? relay_pool_alloc(pool, sizeof(*job)) : NULL;
    size_t bytes = ranks * sizeof(*job->ranked);
    struct relay_rank **ranked = job ? relay_pool_alloc(pool, bytes) : NULL;

    assert(set->count < RELAY_JOBS_MAX && ranks <= CW_RANKS_MAX);
    if (!ranked) {
        if (job)
            relay_pool_free(pool, job, sizeof(*job));
        if (pool)
            relay_pool_end(pool);
        return NULL;
    }
    /* no memory is asked for after this: another job may end for it */
    *job =
        (struct relay_job){.set = set, .pool = pool, .ranks = ranks, .relays = 1, .ranked = ranked};
    pool->owner = job;
    chain_init(&job->told, &set->shared->store, pool);
    job->told.stays = true;
    memset(job->ranked, 0, bytes);
    memcpy(job->id, id, CW_ID_SIZE);
    cw_cred_job_key(job->key, set->key, id);
    LIST_INSERT_HEAD(&set->all, job, of_set);
    set->memory->shares = ++set->count;
    set->ranks += ranks;
    supply_keep(&set->memory->supply, set->shared->store.memory_max);
    return job;
}

/* The processes of a job that is over have nobody to speak to. */
static void release_conns(struct relay_job *job)
{
    struct relay_conn *next;

    for (struct relay_conn *conn = LIST_FIRST(&job->set->conns->all); conn; conn = next) {
        next = LIST_NEXT(conn, of_set);
        if (conn->job != job)
            continue;
        job_detach(conn);
        conn->job = NULL;
        conn->rank = NULL;
        conn->rank_number = CONN_NOBODY;
        conn->source = NULL;
        if (conn->out.size == 0) { /* then it need not hold the job's pool */
            out_fini(&conn->out);
            out_init(&conn->out, job->set->conns->pool);
        }
        conn_end(conn);
        if (job->links[conn->peer].conn == conn)
            job->links[conn->peer].conn = NULL; /* a message may be on its way there */
        if (conn->suspended)
            conn_forget(conn);
    }
}

static void free_ranks(struct relay_job *job)
{
    for (uint32_t rank = 0; rank < job->ranks; rank++)
        if (job->ranked[rank])
            transfer_abandon(&job->ranked[rank]->transfer);
    for (uint32_t rank = 0; rank < job->ranks; rank++) {
        if (!job->ranked[rank])
            continue;
        mailbox_fini(&job->ranked[rank]->mailbox);
        relay_pool_free(job->pool, job->ranked[rank], sizeof(*job->ranked[rank]));
    }
    relay_pool_free(job->pool, job->ranked, job->ranks * sizeof(*job->ranked));
}

/* Returns whether it was being opened. */
static bool free_link(struct relay_job *job, struct job_link *link)
{
    bool asked = link->asked;

    job->set->dials -= link->wanted;
    if (link->dial)
        explicit_bzero(link->dial, sizeof(*link->dial));
    relay_pool_free(job->pool, link->dial, sizeof(*link->dial));
    *link = (struct job_link){0};
    return asked;
}

static void free_links(struct relay_job *job)
{
    struct job_set *set = job->set;
    bool asked = false;

    for (uint32_t relay = 0; relay < CW_RELAYS_MAX; relay++) {
        asked |= free_link(job, &job->links[relay]);
        asked |= free_link(job, &job->copies[relay]);
    }
    if (!asked || set->cancel_count == JOB_CANCELS_MAX)
        return;
    memcpy(set->cancelled[(set->cancel_first + set->cancel_count++) % JOB_CANCELS_MAX], job->id,
           CW_ID_SIZE);
}

void job_set_images(struct relay_job *job, bool images)
{
    job->set->shared->imaged += images - job->images;
    job->images = images;
}

void job_free(struct relay_job *job)
{
    struct job_set *set = job->set;
    struct relay_pool *pool = job->pool;

    job_set_images(job, false);
    if (set->on_end)
        set->on_end(job);
    ledger_leave(&job->entry);
    chain_free(&job->told);
    release_conns(job);
    free_links(job);
    free_ranks(job);
    LIST_REMOVE(job, of_set);
    set->memory->shares = --set->count;
    set->ranks -= job->ranks;
    relay_pool_free(pool, job->homes, job->ranks);
    explicit_bzero(job->key, sizeof(job->key));
    relay_pool_free(pool, job, sizeof(*job));
    relay_pool_end(pool);
}

void job_notice(struct relay_job *job, uint32_t code, uint32_t rank, const char *fmt, ...)
{
    struct cw_notice_body body = {.code = code, .rank = rank};
    const struct relay_rank *about = rank < job->ranks ? job->ranked[rank] : NULL;
    va_list ap;

    if (!job->dispatcher || job->dispatcher->state != CONN_DISPATCHER)
        return;
    va_start(ap, fmt);
    vsnprintf(body.text, sizeof(body.text), fmt, ap);
    va_end(ap);
    if (about) {
        body.incarnation = about->mailbox.incarnation;
        body.acts = about->mailbox.acts;
        body.event = about->mailbox.log.taken;
        if (about->mailbox.elsewhere) { /* what it repeats is not counted here */
            body.acts = about->mailbox.incarnation > 1;
            body.event = about->mailbox.elsewhere_events;
        }
    }
    conn_notice(job->dispatcher, CW_FRAME_NOTICE, &body);
}

/* --- connections ---------------------------------------------------------------------------------
 */

void job_join(struct relay_job *job, struct relay_conn *conn)
{
    cw_stranger_leave(&conn->stranger);
    conn_join(conn, job, job->pool, job->resume_ns > 0);
}

void job_detach(struct relay_conn *conn)
{
    struct relay_rank *rank = conn->rank;

    if (!rank || rank->mailbox.feed.conn != conn)
        return;
    transfer_suspend(&rank->transfer, conn, rank->mailbox.log.kept);
    feed_detach(&rank->mailbox.feed);
    rank->mailbox.asked = false;
    mailbox_let_trim(&rank->mailbox);
}

/* --- ranks and messages --------------------------------------------------------------------------
 */

/* Not the job's yet. */
static struct relay_rank *rank_new(struct relay_job *job, uint32_t number)
{
    struct relay_rank *rank = relay_pool_alloc(job->pool, sizeof(*rank));

    if (!rank)
        return NULL;
    mailbox_init(&rank->mailbox, job->set->shared, job->pool, job, number, job->log, job->channel);
    rank->transfer = (struct transfer){.src = number, .entry = &rank->mailbox.entry};
    return rank;
}

struct relay_rank *job_rank(struct relay_job *job, uint32_t number)
{
    struct relay_rank *rank;

    assert(number < job->ranks);
    if (job->ranked[number])
        return job->ranked[number];
    rank = rank_new(job, number);
    if (rank && !saved_enter_rank(rank)) {
        relay_pool_free(job->pool, rank, sizeof(*rank));
        return NULL;
    }
    job->ranked[number] = rank;
    return rank;
}

struct relay_rank *job_rank_return(struct relay_job *job, uint32_t number, uint32_t cell)
{
    struct relay_rank *rank = rank_new(job, number);

    assert(!job->ranked[number]);
    if (rank)
        ledger_return(job->entry.ledger, &rank->mailbox.entry, cell, rank, saved_rank);
    job->ranked[number] = rank;
    return rank;
}

/* --- logs ----------------------------------------------------------------------------------------
 */

void job_unlog(struct relay_mailbox *mailbox, const char *fmt, ...)
{
    char text[CW_TEXT_MAX + 1];
    va_list ap;

    if (!mailbox->log.kept)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    log_free(&mailbox->log);
    job_notice(mailbox->job, CW_NOTICE_UNLOGGED, mailbox->rank, "%s", text);
    mailbox_refuse_unlogged(mailbox, text);
}
