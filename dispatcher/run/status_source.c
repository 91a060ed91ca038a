#include "dispatcher/run/status_source.h"
#include "dispatcher/run/copies.h"
#include "dispatcher/run/parts.h"
#include "dispatcher/status/json_value.h"
#include "dispatcher/status/status.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A socket where somebody asks. */
struct source {
    struct status_server server;
    struct loop_watch watch;
    struct loop_timer timer;
};

struct status_source {
    const struct parts *parts; /* borrowed, as the job */
    const struct job *job;
    struct source status;
    struct source demand; /* for images */
    void (*demanded)(void *ctx);
    void *demanded_ctx;
    uint32_t demand_open; /* ranks whose images are waited for */
    char host[HOST_NAME_MAX + 1];
    struct timespec started;
    const struct images *images; /* borrowed; NULL: there are none */
    struct cw_stats *stats;      /* the last known of each rank */
    uint32_t received;           /* since they were asked for ... */
    uint32_t coming;  /* ... and that are to come still, with those of earlier questions ... */
    uint32_t earlier; /* ... which come first */
};

void status_source_ask(struct status_source *s)
{
    s->received = 0;
    s->earlier = s->coming;
    s->coming += relays_ask_stats(s->parts->relays);
}

static const char *host_of(const struct status_source *s, const struct job_rank *r)
{
    const struct host_list *hosts = &s->parts->options->hosts.list;

    return hosts->count ? hosts->host[s->job->slots.slot[r->slot].host].name : s->host;
}

static struct status_rank status_of(const struct status_source *s, uint32_t rank)
{
    const struct job_rank *r = &s->job->rank[rank];
    const struct cw_rank_stats *stats = &s->stats[rank].of_rank;
    const struct images_image *image = s->images ? images_find(s->images, rank, 0) : NULL;

    return (struct status_rank){
        .rank = rank,
        .pid = (uint64_t)remote_pid(s->parts->remote, job_process(s->job, rank)),
        .host = host_of(s, r),
        .slot = r->slot,
        .incarnation = r->incarnation,
        .state = job_rank_condition(s->job, rank, s->parts->options->alive_period_ns,
                                    loop_now_ns(s->parts->loop)),
        .events = stats->events,
        .taken = stats->taken,
        .replayed = stats->replayed,
        .to_replay = r->to_repeat,
        .acts = stats->acts,
        .log_bytes = stats->log_bytes,
        .unprotected = r->unlogged,
        .unprotected_s = (double)(loop_now_ns(s->parts->loop) - r->unlogged_ns) / 1e9,
        .image = image ? image->number : 0,
        .image_age_s = image ? (double)(loop_now_ns(s->parts->loop) - image->stored_ns) / 1e9 : 0.0,
        .image_bytes = image ? image->bytes : 0,
        .restarts = r->restarts,
        .program = r->program};
}

static const char *state_of(const struct backups *b, uint32_t relay)
{
    if (backups_is_moving(b, relay))
        return "moving";
    if (backups_is_covered(b, relay))
        return "covered";
    return backups_is_awaited(b, relay) ? "copying" : "alone";
}

/* Returns how many relays have copies, or are to have them. */
static uint32_t copies_of(const struct status_source *s, struct status_copies copies[CW_RELAYS_MAX])
{
    const struct backups *b = &s->parts->copies->core;
    const struct nodes *nodes = s->parts->nodes;
    uint64_t now_ns = loop_now_ns(s->parts->loop);
    uint32_t count = 0;

    for (uint32_t relay = 0; relay < b->relays; relay++) {
        const struct backup *backup = &b->relay[relay];
        struct status_copies *c = &copies[count];

        if (backup->group == 0)
            continue;
        *c = (struct status_copies){.relay = relay,
                                    .host = nodes_name(nodes, backup->host),
                                    .state = state_of(b, relay),
                                    .uncovered_s = (double)(now_ns - backup->since_ns) / 1e9};
        for (uint32_t peer = 0; peer < b->relays && c->backups < CW_COPIES_MAX; peer++)
            if (backup->peers >> peer & 1)
                c->backup[c->backups++] = nodes_name(nodes, b->relay[peer].host);
        count++;
    }
    return count;
}

static void answer(struct status_source *s)
{
    uint32_t count = s->parts->options->ranks;
    uint32_t relay_restarts[CW_RELAYS_MAX];
    struct status_copies copies[CW_RELAYS_MAX];
    char relays[CW_RELAYS_MAX * CW_ADDRESS_MAX];
    struct status_rank *ranks = calloc(count, sizeof(*ranks));
    char command[STATUS_COMMAND_MAX];
    struct status_job job = {.id = s->parts->job_id,
                             .pid = (uint64_t)getpid(),
                             .started = s->started,
                             .command = command,
                             .relay = relays,
                             .relay_restarts = relay_restarts,
                             .relays = s->parts->layout.relays,
                             .copies = copies,
                             .copied = copies_of(s, copies),
                             .rank = ranks,
                             .ranks = count};
    json_t *document = NULL;

    status_command(s->parts->options, command);
    relays_addresses(s->parts->relays, relays, sizeof(relays));
    for (uint32_t i = 0; i < job.relays; i++)
        relay_restarts[i] = relays_restarts(s->parts->relays, i);
    for (uint32_t rank = 0; ranks && rank < count; rank++)
        ranks[rank] = status_of(s, rank);
    if (ranks)
        document = status_document(&job);
    status_answer(&s->status.server, document, loop_now_ns(s->parts->loop));
    if (document)
        json_decref(document);
    free(ranks);
}

static void step(void *ctx)
{
    struct status_source *s = ctx;
    uint64_t now_ns = loop_now_ns(s->parts->loop);

    if (status_step(&s->status.server, now_ns))
        status_source_ask(s);
    if (status_due(&s->status.server, now_ns))
        answer(s);
    loop_timer_set(&s->status.timer, status_deadline_ns(&s->status.server));
}

static int open_source(struct status_source *s, struct source *source, const char *name,
                       uint64_t fresh_ns, void (*step)(void *ctx), struct cw_err *err)
{
    if (status_open(&source->server, s->parts->dir.path, name, fresh_ns, err) < 0)
        return err->code;
    if (loop_watch(s->parts->loop, &source->watch, source->server.fd, EPOLLIN, step, s) < 0)
        return cw_err_set(err, CW_ESYS, "watching %s/%s", s->parts->dir.path, name);
    loop_timer_add(s->parts->loop, &source->timer, step, s);
    return CW_OK;
}

static void close_source(struct status_source *s, struct source *source)
{
    loop_unwatch(s->parts->loop, &source->watch);
    loop_timer_remove(&source->timer);
    status_close(&source->server);
}

/* --- images on demand --- */

static json_t *image_document(const struct status_source *s, uint32_t rank)
{
    static const char *const states[] = {[IMAGES_NOT_WANTED] = "waiting",
                                         [IMAGES_WANTED] = "waiting",
                                         [IMAGES_DONE] = "stored",
                                         [IMAGES_FAILED] = "failed"};
    const struct images_image *image = images_find(s->images, rank, 0);
    const struct images_rank *r = &s->images->rank[rank];

    return json_pack("{s:I, s:s, s:I, s:I, s:o}", "rank", (json_int_t)rank, "state",
                     states[r->demand], "image", (json_int_t)(image ? image->number : 0), "bytes",
                     (json_int_t)(image ? image->bytes : 0), "cause",
                     json_value_text(r->demand == IMAGES_FAILED ? r->why : ""));
}

static void answer_demand(struct status_source *s)
{
    json_t *ranks = json_array();
    json_t *document;

    for (uint32_t rank = 0; ranks && rank < s->parts->options->ranks; rank++)
        if (json_array_append_new(ranks, image_document(s, rank)) < 0) {
            json_decref(ranks);
            ranks = NULL;
        }
    document = ranks ? json_pack("{s:o}", "ranks", ranks) : NULL;
    status_answer(&s->demand.server, document, loop_now_ns(s->parts->loop));
    json_decref(document);
}

/* Counts the ranks whose images are waited for. Returns whether there is progress: an image has
 * come, or failed, or is being copied, for which the core has a bound. */
static bool look_at_images(struct status_source *s)
{
    uint32_t open = 0;
    bool progress = false;

    for (uint32_t rank = 0; rank < s->parts->options->ranks; rank++) {
        const struct images_rank *r = &s->images->rank[rank];

        open += r->demand == IMAGES_WANTED;
        progress |= r->demand == IMAGES_WANTED && r->request == IMAGES_TAKEN;
    }
    progress |= open != s->demand_open;
    s->demand_open = open;
    return progress;
}

static void step_demand(void *ctx)
{
    struct status_source *s = ctx;
    struct status_server *server = &s->demand.server;
    uint64_t now_ns = loop_now_ns(s->parts->loop);

    if (status_step(server, now_ns))
        s->demanded(s->demanded_ctx);
    if (look_at_images(s))
        status_renew(server, now_ns);
    if (status_waiting(server) && (s->demand_open == 0 || status_due(server, now_ns)))
        answer_demand(s);
    loop_timer_set(&s->demand.timer, status_deadline_ns(server));
    if (status_waiting(server))
        loop_timer_hasten(&s->demand.timer, now_ns + STATUS_SOURCE_LOOK_NS);
}

int status_source_set_images(struct status_source *s, const struct images *images,
                             void (*demanded)(void *ctx), void *ctx, struct cw_err *err)
{
    s->images = images;
    s->demanded = demanded;
    s->demanded_ctx = ctx;
    return open_source(s, &s->demand, STATUS_IMAGES_NAME, STATUS_IMAGES_NS, step_demand, err);
}

/* --- the source --- */

struct status_source *status_source_new(const struct parts *parts, const struct job *job,
                                        struct cw_err *err)
{
    uint32_t ranks = parts->options->ranks;
    struct status_source *s = calloc(1, sizeof(*s));

    if (s) {
        s->parts = parts;
        s->job = job;
        s->status.server.fd = s->demand.server.fd = -1;
        s->status.watch.fd = s->demand.watch.fd = -1;
        s->stats = calloc(ranks, sizeof(*s->stats));
    }
    if (!s || !s->stats)
        cw_err_set(err, CW_ENOMEM, "no memory for a job of %u ranks", ranks);
    else
        open_source(s, &s->status, STATUS_NAME, STATUS_FRESH_NS, step, err);
    if (err->code) {
        status_source_free(s);
        return NULL;
    }
    gethostname(s->host, sizeof(s->host) - 1);
    clock_gettime(CLOCK_REALTIME, &s->started);
    return s;
}

void status_source_free(struct status_source *s)
{
    if (!s)
        return;
    close_source(s, &s->status);
    close_source(s, &s->demand);
    free(s->stats);
    free(s);
}

void status_source_take(struct status_source *s, const struct cw_stats *stats)
{
    if (stats->rank >= s->parts->options->ranks)
        return;
    s->stats[stats->rank] = *stats;
    s->coming -= s->coming > 0;
    if (s->earlier > 0) {
        s->earlier--;
        return;
    }
    s->received++;
    if (status_source_missing(s) == 0 && status_waiting(&s->status.server)) {
        answer(s);
        loop_timer_set(&s->status.timer, status_deadline_ns(&s->status.server));
    }
}

void status_source_refresh(struct status_source *s)
{
    if (s->coming == 0)
        status_source_ask(s);
}

uint32_t status_source_missing(const struct status_source *s)
{
    uint32_t ranks = s->parts->options->ranks;

    return s->received < ranks ? ranks - s->received : 0;
}

static void print_rank(FILE *to, const struct cw_stats *s, uint32_t restarts)
{
    const struct cw_rank_stats *r = &s->of_rank;

    fprintf(
        to,
        "%6u %10" PRIu64 " %14" PRIu64 " %10" PRIu64 " %14" PRIu64 " %10" PRIu64 " %12" PRIu64
        " %8" PRIu64 " %12" PRIu64 " %9" PRIu64 " %10" PRIu64 " %10" PRIu64 " %12" PRIu64 " %8u\n",
        s->rank, r->sent, r->sent_bytes, r->received, r->received_bytes, r->unexpected, r->polls,
        r->sleeps, r->syscalls, r->switches, r->events, r->acts, r->log_bytes, restarts);
}

/* The relay's own counts, as they came with those of its last rank. */
static void print_relay(FILE *to, const struct cw_relay_stats *relay)
{
    fprintf(to,
            " relay: frames in %" PRIu64 ", out %" PRIu64 "; wakeups %" PRIu64 ", sleeps %" PRIu64
            ", syscalls %" PRIu64 ", switches %" PRIu64 "; allocations %" PRIu64 "; memory %" PRIu64
            " bytes, at most %" PRIu64 "; to other relays %" PRIu64 " messages, %" PRIu64
            " bytes\n",
            relay->frames_in, relay->frames_out, relay->wakeups, relay->sleeps, relay->syscalls,
            relay->switches, relay->allocations, relay->memory_now, relay->memory_max,
            relay->forwarded, relay->forwarded_bytes);
}

/* The table of --stats: one row a rank, then one a relay. */
void status_source_print(FILE *to, const struct status_source *s)
{
    const struct layout *l = &s->parts->layout;
    uint32_t ranks = s->parts->options->ranks;

    fprintf(to, "%6s %10s %14s %10s %14s %10s %12s %8s %12s %9s %10s %10s %12s %8s\n", "rank",
            "sent", "bytes", "received", "bytes", "unexpected", "polls", "sleeps", "syscalls",
            "switches", "events", "acts", "log_bytes", "restarts");
    for (uint32_t rank = 0; rank < ranks; rank++)
        print_rank(to, &s->stats[rank], s->job->rank[rank].restarts);
    for (uint32_t relay = 0; relay < l->relays; relay++)
        for (uint32_t rank = ranks; rank-- > 0;)
            if (!l->homes || l->homes[rank] == relay) {
                print_relay(to, &s->stats[rank].of_relay);
                break;
            }
}
