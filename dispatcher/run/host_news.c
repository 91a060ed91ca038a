#include "dispatcher/run/host_news.h"
#include "dispatcher/run/copies.h"

#include <stdio.h>

static uint64_t now_of(const struct host_news *n)
{
    return loop_now_ns(n->parts->loop);
}

static const char *name_of(const struct host_news *n, uint32_t host)
{
    return nodes_name(n->parts->nodes, host);
}

static void on_ready(void *ctx)
{
    struct host_news *n = ctx;

    n->ready = true;
    for (uint32_t host = 0; host < nodes_here(n->parts->nodes); host++)
        log_verbose(&n->parts->log, "host %s has a node (pid %u, %u cores)", name_of(n, host),
                    nodes_facts(n->parts->nodes, host)->pid,
                    nodes_facts(n->parts->nodes, host)->cores);
}

static void on_failed(void *ctx, uint32_t host, const struct cw_err *err)
{
    struct host_news *n = ctx;

    (void)host;
    job_fail(n->job, 1, now_of(n), "%s", err->text);
}

static void tell(struct host_news *n, enum life_what what, uint32_t host, const char *text)
{
    job_life(n->job, &(struct life_event){.what = what, .host = host, .text = text}, now_of(n));
}

static void on_silent(void *ctx, uint32_t host, bool silent)
{
    tell(ctx, silent ? LIFE_SUSPECT : LIFE_BACK, host, NULL);
}

/* Ranks that were there cannot be started again anywhere. */
static void lose_memory(struct host_news *n, uint32_t host)
{
    for (uint32_t rank = 0; rank < n->job->config.ranks; rank++)
        if (n->job->slots.slot[n->job->rank[rank].slot].host == host)
            job_rank_unlogged(n->job, rank,
                              "its log was in the channel memory of its host, and is lost with it "
                              "(--channel off keeps "
                              "logs at relays)",
                              now_of(n));
}

static void on_lost(void *ctx, uint32_t host, const struct cw_err *err)
{
    struct host_news *n = ctx;
    char text[CW_ERR_TEXT_MAX];

    if (nodes_here(n->parts->nodes) == 0)
        job_fail(n->job, 1, now_of(n), "%s; the job's ranks and its relay end with it", err->text);
    else
        log_notice(&n->parts->log, "%s; it is lost", err->text);
    log_host(&n->parts->log, now_of(n), "host_lost", name_of(n, host), err->text);
    snprintf(text, sizeof(text), "was on host %s, which is lost", name_of(n, host));
    if (n->parts->layout.channel && !n->parts->options->log_copies)
        lose_memory(n, host);
    copies_host_lost(n->parts->copies, host);
    tell(n, LIFE_DEAD, host, text);
}

static void use_again(void *ctx, uint32_t host)
{
    struct host_news *n = ctx;

    log_notice(&n->parts->log, "host %s is there again", name_of(n, host));
    log_host(&n->parts->log, now_of(n), "host_back", name_of(n, host), NULL);
    tell(n, LIFE_BACK, host, NULL);
}

static void on_back(void *ctx, uint32_t host)
{
    struct host_news *n = ctx;

    if (n->parts->staging)
        staging_host_back(n->parts->staging, host);
    else
        use_again(n, host);
}

static void on_suspended(void *ctx, uint32_t host, const struct cw_err *err)
{
    struct host_news *n = ctx;

    log_verbose(&n->parts->log, "host %s: %s; connecting again", name_of(n, host), err->text);
    log_host(&n->parts->log, now_of(n), "host_suspended", name_of(n, host), err->text);
}

static void on_resumed(void *ctx, uint32_t host)
{
    struct host_news *n = ctx;

    log_verbose(&n->parts->log, "host %s: the session with its node goes on", name_of(n, host));
    log_host(&n->parts->log, now_of(n), "host_resumed", name_of(n, host), NULL);
}

static void on_said(void *ctx, uint32_t host, const char *line)
{
    struct host_news *n = ctx;

    log_notice(&n->parts->log, "host %s: %s", name_of(n, host), line);
}

const struct nodes_events host_news_events = {.ready = on_ready,
                                              .failed = on_failed,
                                              .lost = on_lost,
                                              .back = on_back,
                                              .suspended = on_suspended,
                                              .resumed = on_resumed,
                                              .silent = on_silent,
                                              .said = on_said};

/* --- programs that are sent to them --- */

static void on_staged(void *ctx, uint32_t host, uint32_t number, bool sent)
{
    struct host_news *n = ctx;
    const struct stage_program *program = &n->parts->programs.sources[number].program;

    log_verbose(&n->parts->log,
                sent ? "host %s: %s was sent to it (%llu bytes)"
                     : "host %s: %s is there already (%llu bytes)",
                name_of(n, host), program->name, (unsigned long long)program->size);
}

static void on_stage_failed(void *ctx, const struct cw_err *err)
{
    struct host_news *n = ctx;

    if (n->staged)
        log_notice(&n->parts->log, "%s; the host is not used again", err->text);
    else
        job_fail(n->job, 1, now_of(n), "%s", err->text);
}

static void on_all_staged(void *ctx)
{
    ((struct host_news *)ctx)->staged = true;
}

const struct staging_events host_news_staging = {
    .staged = on_staged, .failed = on_stage_failed, .done = on_all_staged, .returned = use_again};
