/* Jobs: the ranks that may speak to each other, under one dispatcher. */
#include "relay/core/state.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

struct relay_job *job_find(struct relay_core *core, const uint8_t id[CW_ID_SIZE])
{
    struct relay_job *job = core->jobs;

    while (job && memcmp(job->id, id, CW_ID_SIZE) != 0)
        job = job->next;
    return job;
}

struct relay_job *job_new(struct relay_core *core, const uint8_t id[CW_ID_SIZE], uint32_t ranks)
{
    struct relay_job *job;
    size_t bytes = ranks * sizeof(*job->mailboxes);

    assert(core->job_count < RELAY_JOBS_MAX && ranks <= CW_RANKS_MAX);
    job = relay_pool_alloc(&core->pool, sizeof(*job));
    if (!job)
        return NULL;
    *job = (struct relay_job){.core = core, .ranks = ranks, .relays = 1, .next = core->jobs};
    job->mailboxes = relay_pool_alloc(&core->pool, bytes);
    if (!job->mailboxes) {
        relay_pool_free(&core->pool, job, sizeof(*job));
        return NULL;
    }
    memset(job->mailboxes, 0, bytes);
    memcpy(job->id, id, CW_ID_SIZE);
    cw_cred_job_key(job->key, core->config.key, id);
    core->jobs = job;
    core->job_count++;
    return job;
}

/* The processes of a job that is over have nobody to speak to. */
static void job_release_conns(struct relay_job *job)
{
    for (struct relay_conn *conn = job->core->conns; conn; conn = conn->next) {
        if (conn->job != job)
            continue;
        mailbox_detach(conn);
        conn->job = NULL;
        conn->mailbox = NULL;
        conn->source = NULL;
        conn->state = CONN_CLOSING;
        conn_ready(conn);
    }
}

void job_free(struct relay_job *job)
{
    struct relay_core *core = job->core;
    struct relay_job **at = &core->jobs;

    job_release_conns(job);
    memset(job->links, 0, sizeof(job->links));
    for (uint32_t rank = 0; rank < job->ranks; rank++)
        if (job->mailboxes[rank])
            message_abandon(job->mailboxes[rank]);
    for (uint32_t rank = 0; rank < job->ranks; rank++) {
        if (!job->mailboxes[rank])
            continue;
        mailbox_fini(job->mailboxes[rank]);
        relay_pool_free(&core->pool, job->mailboxes[rank], sizeof(*job->mailboxes[rank]));
    }
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    core->job_count--;
    relay_pool_free(&core->pool, job->homes, job->ranks);
    relay_pool_free(&core->pool, job->mailboxes, job->ranks * sizeof(*job->mailboxes));
    relay_pool_free(&core->pool, job, sizeof(*job));
}

void job_notice(struct relay_job *job, uint32_t code, uint32_t rank, const char *fmt, ...)
{
    struct cw_notice_body body = {.code = code, .rank = rank};
    const struct relay_mailbox *mailbox = rank < job->ranks ? job->mailboxes[rank] : NULL;
    va_list ap;

    if (!job->dispatcher || job->dispatcher->state != CONN_DISPATCHER)
        return;
    va_start(ap, fmt);
    vsnprintf(body.text, sizeof(body.text), fmt, ap);
    va_end(ap);
    if (mailbox) {
        body.incarnation = mailbox->incarnation;
        body.acts = mailbox->acts;
        body.event = mailbox->log.taken;
    }
    conn_notice(job->dispatcher, CW_FRAME_NOTICE, &body);
}

struct relay_mailbox *job_mailbox(struct relay_job *job, uint32_t rank)
{
    struct relay_mailbox *mailbox = job->mailboxes[rank];

    assert(rank < job->ranks);
    if (mailbox)
        return mailbox;
    mailbox = relay_pool_alloc(&job->core->pool, sizeof(*mailbox));
    if (!mailbox)
        return NULL;
    *mailbox = (struct relay_mailbox){.job = job, .rank = rank};
    mailbox->early_tail = &mailbox->early;
    match_init(&mailbox->index, &job->core->pool);
    log_init(&mailbox->log, &job->core->pool, &job->core->copies, job->log);
    job->mailboxes[rank] = mailbox;
    return mailbox;
}
