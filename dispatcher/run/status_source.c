#include "dispatcher/run/status_source.h"
#include "dispatcher/status/stats.h"
#include "dispatcher/status/status.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct status_source {
    struct status_source_config config;
    struct status_server server;
    struct loop_watch watch;
    struct loop_timer timer;
    char host[HOST_NAME_MAX + 1];
    struct timespec started;
    char relays[CW_RELAYS_MAX * CW_ADDRESS_MAX];
    uint32_t relay_restarts[CW_RELAYS_MAX];
    const struct images *images; /* borrowed; NULL: there are none */
    struct cw_stats *stats;      /* the last known of each rank */
    pid_t *pids;
    uint32_t received; /* since they were asked for ... */
    uint32_t coming;   /* ... and that are to come still, with those of earlier questions ... */
    uint32_t earlier;  /* ... which come first */
};

void status_source_ask(struct status_source *s)
{
    s->received = 0;
    s->earlier = s->coming;
    s->coming += s->config.ask(s->config.ctx);
}

static const char *host_of(const struct status_source *s, const struct job_rank *r)
{
    const struct host_list *hosts = &s->config.options->hosts.list;

    return hosts->count ? hosts->host[s->config.job->slot[r->slot].host].name : s->host;
}

static struct status_rank status_of(const struct status_source *s, uint32_t rank)
{
    const struct job_rank *r = &s->config.job->rank[rank];
    const struct cw_rank_stats *stats = &s->stats[rank].of_rank;
    const struct images_image *image = s->images ? images_find(s->images, rank, 0) : NULL;

    return (struct status_rank){
        .rank = rank,
        .pid = (uint64_t)s->pids[rank],
        .host = host_of(s, r),
        .slot = r->slot,
        .incarnation = r->incarnation,
        .state = job_rank_condition(s->config.job, rank, s->config.options->alive_period_ns,
                                    loop_now_ns(s->config.loop)),
        .events = stats->events,
        .taken = stats->taken,
        .replayed = stats->replayed,
        .to_replay = r->to_repeat,
        .acts = stats->acts,
        .log_bytes = stats->log_bytes,
        .unprotected = r->unlogged,
        .unprotected_s = (double)(loop_now_ns(s->config.loop) - r->unlogged_ns) / 1e9,
        .image = image ? image->number : 0,
        .image_age_s = image ? (double)(loop_now_ns(s->config.loop) - image->stored_ns) / 1e9 : 0.0,
        .image_bytes = image ? image->bytes : 0,
        .restarts = r->restarts,
        .program = r->program};
}

static void answer(struct status_source *s)
{
    uint32_t count = s->config.options->ranks;
    struct status_rank *ranks = calloc(count, sizeof(*ranks));
    char command[STATUS_COMMAND_MAX];
    struct status_job job = {.id = s->config.job_id,
                             .pid = (uint64_t)getpid(),
                             .started = s->started,
                             .command = command,
                             .relay = s->relays,
                             .relay_restarts = s->relay_restarts,
                             .relays = s->config.options->relays,
                             .rank = ranks,
                             .ranks = count};
    json_t *document = NULL;

    status_command(s->config.options, command);
    for (uint32_t rank = 0; ranks && rank < count; rank++)
        ranks[rank] = status_of(s, rank);
    if (ranks)
        document = status_document(&job);
    status_answer(&s->server, document, loop_now_ns(s->config.loop));
    if (document)
        json_decref(document);
    free(ranks);
}

static void step(void *ctx)
{
    struct status_source *s = ctx;
    uint64_t now_ns = loop_now_ns(s->config.loop);

    if (status_step(&s->server, now_ns))
        status_source_ask(s);
    if (status_due(&s->server, now_ns))
        answer(s);
    loop_timer_set(&s->timer, status_deadline_ns(&s->server));
}

struct status_source *status_source_new(const struct status_source_config *config,
                                        struct cw_err *err)
{
    struct status_source *s = calloc(1, sizeof(*s));

    if (s) {
        s->config = *config;
        s->server.fd = s->server.listener = s->watch.fd = -1;
        s->stats = calloc(config->options->ranks, sizeof(*s->stats));
        s->pids = calloc(config->options->ranks, sizeof(*s->pids));
    }
    if (!s || !s->stats || !s->pids)
        cw_err_set(err, CW_ENOMEM, "no memory for a job of %u ranks", config->options->ranks);
    else if (status_open(&s->server, config->dir, STATUS_NAME, STATUS_FRESH_NS, err) == CW_OK &&
             loop_watch(config->loop, &s->watch, s->server.fd, EPOLLIN, step, s) < 0)
        cw_err_set(err, CW_ESYS, "watching %s/" STATUS_NAME, config->dir);
    if (err->code) {
        status_source_free(s);
        return NULL;
    }
    gethostname(s->host, sizeof(s->host) - 1);
    clock_gettime(CLOCK_REALTIME, &s->started);
    loop_timer_add(config->loop, &s->timer, step, s);
    return s;
}

void status_source_free(struct status_source *s)
{
    if (!s)
        return;
    loop_unwatch(s->config.loop, &s->watch);
    loop_timer_remove(s->config.loop, &s->timer);
    status_close(&s->server);
    free(s->stats);
    free(s->pids);
    free(s);
}

void status_source_set_relays(struct status_source *s, const char *addresses)
{
    snprintf(s->relays, sizeof(s->relays), "%s", addresses);
}

void status_source_set_relay_restarts(struct status_source *s, uint32_t relay, uint32_t restarts)
{
    s->relay_restarts[relay] = restarts;
}

void status_source_set_images(struct status_source *s, const struct images *images)
{
    s->images = images;
}

void status_source_set_pid(struct status_source *s, uint32_t rank, pid_t pid)
{
    s->pids[rank] = pid;
}

void status_source_take(struct status_source *s, const struct cw_stats *stats)
{
    if (stats->rank >= s->config.options->ranks)
        return;
    s->stats[stats->rank] = *stats;
    s->coming -= s->coming > 0;
    if (s->earlier > 0) {
        s->earlier--;
        return;
    }
    s->received++;
    if (status_source_missing(s) == 0 && status_waiting(&s->server)) {
        answer(s);
        loop_timer_set(&s->timer, status_deadline_ns(&s->server));
    }
}

void status_source_refresh(struct status_source *s)
{
    if (s->coming == 0)
        status_source_ask(s);
}

uint32_t status_source_missing(const struct status_source *s)
{
    uint32_t ranks = s->config.options->ranks;

    return s->received < ranks ? ranks - s->received : 0;
}

void status_source_print(FILE *to, const struct status_source *s)
{
    stats_print(to, s->stats, s->config.job->rank, s->config.options);
}
