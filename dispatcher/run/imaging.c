#include "dispatcher/run/imaging.h"
#include "dispatcher/images/image_dir.h"
#include "dispatcher/images/servers.h"
#include "dispatcher/run/far_server.h"
#include "dispatcher/run/image_failures.h"
#include "dispatcher/run/image_places.h"
#include "dispatcher/run/server_news.h"
#include "relay/log_files.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A stored image whose place is still looked for; number 0: none. */
struct unplaced {
    uint32_t number;
    uint64_t until_ns; /* what the rank says of it may still come */
};

struct rank_images {
    struct unplaced unplaced[IMAGING_UNPLACED_MAX];
    bool returned;        /* it was known to a dispatcher before us, and no image is newer */
    uint32_t last, begin; /* ... of its images */
};

struct imaging {
    struct imaging_config config;
    struct images core;
    struct images_rank *core_ranks; /* owned */
    struct rank_images *rank;       /* owned */
    struct image_places places;
    struct image_failures *failures;
    struct image_sources *sources;
    struct servers *servers;
    struct image_dir dir; /* of our own server, where it is here */
    struct far_server far;
    uint8_t mark[CW_MARK_SIZE];
    struct loop_timer timer;       /* the core has something to be done */
    struct loop_timer stats_timer; /* logs are looked at */
    struct loop_timer pause_timer; /* rank 0 gets input again */
    struct server_news news;
    bool ending;
    bool slowed_told; /* that images cannot come as often as the user said */
    bool server_failed;
    char (*server_why)[CW_ERR_TEXT_MAX]; /* of each server, why no image comes there, which is not
                                          * about to end; "": one may. Owned */
    bool looks;                          /* what a dispatcher before us had stored is asked for */
};

static uint64_t now_of(const struct imaging *im)
{
    return loop_now_ns(im->config.loop);
}

/* The checkpoint server is the job's own. */
static bool is_own(const struct imaging *im)
{
    return im->config.options->image_server_count == 0;
}

/* ... and on this machine. */
static bool is_here(const struct imaging *im)
{
    return is_own(im) && !im->config.agents;
}

/* The core is asked once all that is at hand was heard. */
static void soon(struct imaging *im)
{
    if (!im->ending)
        loop_timer_hasten(&im->timer, now_of(im));
}

/* --- places --- */

/* Rank 0 is given its input again. */
static void resume_input(void *ctx)
{
    struct imaging *im = ctx;

    loop_timer_set(&im->pause_timer, LOOP_NEVER);
    rank_input_resume(im->config.input);
}

static void pause_input(struct imaging *im)
{
    rank_input_pause(im->config.input);
    loop_timer_set(&im->pause_timer, now_of(im) + IMAGING_PAUSE_NS);
}

/* What a rank on a host says comes through its agent, which may be slower than the server. */
static void await_place(struct imaging *im, uint32_t rank, uint32_t number)
{
    const struct host_options *hosts = &im->config.options->hosts;
    struct unplaced *oldest = im->rank[rank].unplaced;

    for (uint32_t i = 1; i < IMAGING_UNPLACED_MAX; i++)
        if (im->rank[rank].unplaced[i].number < oldest->number)
            oldest = &im->rank[rank].unplaced[i];
    oldest->number = number;
    oldest->until_ns = now_of(im) + (hosts->list.count ? hosts->timeout_ns : 0);
}

static void look_for_place(struct imaging *im, uint32_t rank, struct unplaced *image)
{
    const char *missing = image_places_missing(&im->places, rank, image->number);

    if (missing && now_of(im) >= image->until_ns) {
        images_fail(&im->core, rank, image->number);
        image_failures_tell(im->failures, now_of(im), rank, image->number, missing);
    } else if (!missing && image_places_known(&im->places, rank, image->number) &&
               image_places_keep(&im->places, rank, image->number)) {
        images_placed(&im->core, rank, image->number);
        image_failures_stored(im->failures, rank);
    } else {
        loop_timer_hasten(&im->timer, now_of(im) + IMAGING_PLACE_NS);
        return;
    }
    image->number = 0;
}

static void look_for_places(struct imaging *im)
{
    for (uint32_t rank = 0; rank < im->config.options->ranks; rank++)
        for (uint32_t i = 0; i < IMAGING_UNPLACED_MAX; i++)
            if (im->rank[rank].unplaced[i].number)
                look_for_place(im, rank, &im->rank[rank].unplaced[i]);
}

/* The rank is down, and says nothing any more. */
static void forget_missing(struct imaging *im, uint32_t rank)
{
    for (uint32_t i = 0; i < IMAGING_UNPLACED_MAX; i++) {
        struct unplaced *image = &im->rank[rank].unplaced[i];

        if (!image->number || !image_places_missing(&im->places, rank, image->number))
            continue;
        images_fail(&im->core, rank, image->number);
        image->number = 0;
    }
}

/* --- on demand --- */

/* A person waits for an image of the rank that cannot come. */
static void fail_demand(struct imaging *im, uint32_t rank, const char *why)
{
    if (images_demand_fail(&im->core, rank))
        image_failures_note(im->failures, rank, why);
}

/* The server is away for long, or for good. */
static void fail_demands(struct imaging *im, uint32_t server)
{
    for (uint32_t rank = 0; rank < im->config.options->ranks; rank++)
        if (images_server_of(&im->core, rank) == server)
            fail_demand(im, rank, im->server_why[server]);
}

void imaging_demand(struct imaging *im)
{
    for (uint32_t rank = 0; rank < im->config.options->ranks; rank++)
        if (!im->core.rank[rank].live)
            image_failures_note(im->failures, rank,
                                "it has ended, is down, or repeats what it did");
    images_demand_all(&im->core);
    for (uint32_t i = 0; i < im->core.config.servers; i++)
        if (im->server_why[i][0])
            fail_demands(im, i);
    soon(im);
}

/* --- what is to be done --- */

static void ask(struct imaging *im, const struct images_order *order)
{
    struct cw_checkpoint checkpoint = {
        .rank = order->rank, .number = order->number, .base = order->base};

    if (relays_checkpoint(im->config.relays, &checkpoint)) {
        if (order->rank == 0)
            pause_input(im);
        return;
    }
    images_not_asked(&im->core, order->rank, now_of(im));
    fail_demand(im, order->rank, "its relay is away");
}

static void obey(struct imaging *im)
{
    struct images_order order;

    for (;;) {
        switch (images_next(&im->core, now_of(im), &order)) {
        case IMAGES_NOTHING:
            return;
        case IMAGES_ASK:
            ask(im, &order);
            break;
        case IMAGES_TRIM:
            relays_trim(im->config.relays, order.rank, &order.point);
            break;
        case IMAGES_DROP:
            servers_drop(im->servers, servers_of_rank(im->servers, order.rank), order.rank,
                         order.number);
            break;
        case IMAGES_GIVE_UP:
            image_failures_tell(im->failures, now_of(im), order.rank, order.number, order.why);
            break;
        }
    }
}

static void on_time(void *ctx)
{
    struct imaging *im = ctx;

    if (im->ending)
        return;
    look_for_places(im);
    obey(im);
    for (uint32_t i = 0; i < im->core.config.servers; i++)
        if (!im->core.server[i].up && images_wants_server(&im->core, i, now_of(im)))
            servers_want(im->servers, i);
    loop_timer_hasten(&im->timer, images_deadline_ns(&im->core));
}

static void on_stats_time(void *ctx)
{
    struct imaging *im = ctx;
    uint64_t pause_ns = im->config.options->ranks * IMAGING_STATS_A_RANK_NS;

    if (im->ending)
        return;
    standing_refresh(im->config.standing);
    loop_timer_set(&im->stats_timer,
                   now_of(im) + (pause_ns > IMAGING_STATS_NS ? pause_ns : IMAGING_STATS_NS));
}

/* --- what servers say --- */

static void on_child(void *ctx, pid_t pid)
{
    struct imaging *im = ctx;

    server_news_own_started(&im->news, pid, servers_address(im->servers, 0, true), im->dir.path);
    if (im->dir.in_memory)
        server_news_in_memory(&im->news, im->dir.path);
}

static void on_opens(void *ctx, uint32_t server)
{
    struct imaging *im = ctx;

    if (is_here(im))
        image_dir_hold(&im->dir);
    else if (!is_own(im))
        server_news_open(&im->news, server, servers_address(im->servers, server, true));
    images_server_opens(&im->core, server);
}

static void on_held(void *ctx, const struct cw_stored *held)
{
    struct imaging *im = ctx;
    const struct images_image *image;

    images_held(&im->core, held, now_of(im));
    if (held->rank >= im->config.options->ranks || !held->number)
        return;
    image = images_find(&im->core, held->rank, held->number);
    if (!image || image->placed)
        return;
    if (!im->rank[held->rank].returned)
        await_place(im, held->rank, held->number);
    else if (image_places_known(&im->places, held->rank, held->number))
        images_placed(&im->core, held->rank, held->number);
}

static void on_held_end(void *ctx, uint32_t server)
{
    struct imaging *im = ctx;

    images_held_end(&im->core, server);
    im->server_why[server][0] = '\0';
    if (is_own(im))
        server_news_own_open(&im->news);
    image_sources_server_back(im->sources, server);
    soon(im);
}

/* The user asked for images more often than they can be had. Told once. */
static void tell_slowed(struct imaging *im, uint32_t rank)
{
    const struct image_history *h = &im->core.rank[rank].history;
    uint64_t asked_ns = im->config.options->image_every_ns;
    uint64_t every_ns = image_policy_every_ns(&im->core.config.policy, h);

    if (!asked_ns || im->slowed_told || every_ns / IMAGING_SLOWED < asked_ns)
        return;
    im->slowed_told = true;
    telling_warn(im->config.telling, now_of(im), rank, "images come less often than asked for", "");
    telling_tell(im->config.telling,
                 "note: an image of rank %u took %.2g s: there will be one of each rank in %.2g s "
                 "rather than in %.2g s (--ckpt-every), for they may take half the time",
                 rank, (double)h->cost_ns / 1e9, (double)every_ns / 1e9, (double)asked_ns / 1e9);
}

/* What the rank has said of the image counts first. */
static void on_stored(void *ctx, uint32_t server, const struct cw_stored *stored)
{
    struct imaging *im = ctx;
    const struct images_rank *r;

    if (im->ending || stored->rank >= im->config.options->ranks ||
        servers_of_rank(im->servers, stored->rank) != server)
        return;
    rank_io_hear_reports(im->config.rank_io, stored->rank);
    r = &im->core.rank[stored->rank];
    if (!images_stored(&im->core, stored, now_of(im)))
        return;
    server_news_own_stored(&im->news);
    telling_image_stored(im->config.telling, now_of(im), stored,
                         r->taken_ns && r->number == stored->number ? now_of(im) - r->taken_ns : 0);
    await_place(im, stored->rank, stored->number);
    im->rank[stored->rank].returned = false;
    tell_slowed(im, stored->rank);
    soon(im);
}

/* Who waits for one need not wait. */
static void no_image_from(struct imaging *im, uint32_t server, const struct cw_err *err)
{
    snprintf(im->server_why[server], sizeof(im->server_why[server]), "%s", err->text);
    fail_demands(im, server);
}

static void on_lost(void *ctx, uint32_t server, const struct cw_err *err)
{
    struct imaging *im = ctx;

    images_server_lost(&im->core, server);
    if (im->ending)
        return;
    if (is_own(im))
        telling_say(im->config.telling, "%s", err->text); /* how its process ended says more */
    if (is_own(im))
        return;
    server_news_lost(&im->news, now_of(im), server, err);
    no_image_from(im, server, err);
}

static void on_failed(void *ctx, const struct cw_err *err)
{
    struct imaging *im = ctx;

    im->server_failed = true;
    if (im->ending)
        return;
    no_image_from(im, 0, err);
    image_sources_no_server(im->sources, err->text);
    server_news_own_failed(&im->news, now_of(im), err);
}

static void on_fetched(void *ctx, uint32_t rank, uint32_t number, int fd, const struct cw_err *err)
{
    image_sources_fetched(((struct imaging *)ctx)->sources, rank, number, fd, err);
}

static const struct servers_events servers_events = {on_child,  on_opens, on_held,    on_held_end,
                                                     on_stored, on_lost,  on_fetched, on_failed};

/* --- restarts --- */

uint32_t imaging_from(const struct imaging *im, uint32_t rank)
{
    return im ? image_sources_from(im->sources, rank) : 0;
}

uint64_t imaging_event(const struct imaging *im, uint32_t rank, uint32_t number)
{
    const struct images_image *image = number ? images_find(&im->core, rank, number) : NULL;

    return image ? image->point.event : 0;
}

void imaging_started(struct imaging *im, uint32_t rank, uint32_t number)
{
    if (!im)
        return;
    image_sources_started(im->sources, rank, number);
    if (number)
        telling_restored(im->config.telling, now_of(im), rank,
                         im->config.job->rank[rank].incarnation, number);
}

void imaging_not_restored(struct imaging *im, uint32_t rank, const char *why, bool broke_off)
{
    if (im)
        image_sources_not_restored(im->sources, rank, why, broke_off);
}

bool imaging_source(struct imaging *im, uint32_t rank)
{
    return !im || image_sources_ask(im->sources, rank);
}

/* --- opening and closing --- */

static int choose_dir(struct imaging *im, struct cw_err *err)
{
    const char *wanted =
        im->config.image_dir ? im->config.image_dir : im->config.options->image_dir;

    if (!is_here(im))
        return CW_OK;
    return image_dir_choose(&im->dir, wanted, im->config.job_id, im->config.state != NULL, err);
}

static void open_far(struct imaging *im)
{
    const struct run_options *o = im->config.options;

    im->far = (struct far_server){.agents = im->config.agents,
                                  .host = o->hosts.ckptsrv_host,
                                  .listen = im->config.listen,
                                  .dir = o->image_dir,
                                  .bytes_max = o->image_bytes_max,
                                  .servers = im->servers,
                                  .news = &im->news,
                                  .failed = on_failed,
                                  .ctx = im};
    far_server_open(&im->far);
    servers_want(im->servers, 0);
}

static int open_servers(struct imaging *im, struct cw_err *err)
{
    const struct run_options *o = im->config.options;
    struct servers_config config = {.loop = im->config.loop,
                                    .job_id = im->config.job_id,
                                    .ranks = o->ranks,
                                    .addresses = o->image_servers,
                                    .of_rank = o->grid ? o->grid->rank_server : NULL,
                                    .count = o->image_server_count,
                                    .key_file = o->image_key_file,
                                    .socket_dir = im->config.dir,
                                    .host = im->config.host,
                                    .image_dir = im->dir.path,
                                    .ephemeral = !im->config.state,
                                    .elsewhere = im->config.agents ? &far_server_ops : NULL,
                                    .elsewhere_ctx = &im->far,
                                    .events = &servers_events,
                                    .ctx = im};

    if (choose_dir(im, err) < 0)
        return err->code;
    config.bytes_max = o->image_bytes_max ? o->image_bytes_max : im->dir.bytes_max;
    im->servers = servers_new(&config, err);
    return im->servers ? CW_OK : err->code;
}

static void open_core(struct imaging *im)
{
    const struct run_options *o = im->config.options;
    const struct relay_settings *logs = &o->relay_settings;
    struct images_config config = {
        .ranks = o->ranks,
        .servers = o->image_server_count ? o->image_server_count : 1,
        .of_rank = o->grid ? o->grid->rank_server : NULL,
        .policy = {.every_ns = o->image_every_ns, .mtbf_ns = o->image_mtbf_ns}};

    image_policy_set_room(&config.policy, relay_settings_log_memory(logs),
                          log_files_disk_bytes(logs), o->ranks);
    im->news = (struct server_news){.telling = im->config.telling};
    images_init(&im->core, &config, im->core_ranks, loop_look(im->config.loop));
    im->places = (struct image_places){.core = &im->core,
                                       .telling = im->config.telling,
                                       .rank_io = im->config.rank_io,
                                       .input = im->config.input,
                                       .state = im->config.state};
    loop_timer_add(im->config.loop, &im->timer, on_time, im);
    loop_timer_add(im->config.loop, &im->stats_timer, on_stats_time, im);
    loop_timer_add(im->config.loop, &im->pause_timer, resume_input, im);
    if (!o->image_every_ns)
        loop_timer_set(&im->stats_timer, now_of(im) + IMAGE_FIRST_NS);
}

static int open_sources(struct imaging *im, struct cw_err *err)
{
    struct image_sources_config config = {.loop = im->config.loop,
                                          .ranks = im->config.options->ranks,
                                          .core = &im->core,
                                          .servers = im->servers,
                                          .places = &im->places,
                                          .failures = im->failures,
                                          .telling = im->config.telling,
                                          .events = im->config.events,
                                          .ctx = im->config.ctx};

    im->sources = image_sources_new(&config, err);
    return im->sources ? CW_OK : err->code;
}

struct imaging *imaging_new(const struct imaging_config *config, struct cw_err *err)
{
    struct imaging *im = calloc(1, sizeof(*im));

    if (im) {
        im->config = *config;
        im->core_ranks = calloc(config->options->ranks, sizeof(*im->core_ranks));
        im->rank = calloc(config->options->ranks, sizeof(*im->rank));
        im->server_why = calloc(IMAGES_SERVERS_MAX, sizeof(*im->server_why));
        im->failures = image_failures_new(config->telling, config->options->ranks);
    }
    if (!im || !im->core_ranks || !im->rank || !im->server_why || !im->failures) {
        cw_err_set(err, CW_ENOMEM, "no memory for images of %u ranks", config->options->ranks);
        imaging_free(im);
        return NULL;
    }
    outputs_draw_mark(im->mark);
    if (config->state) /* processes that were restored have the mark of those before */
        memcpy(im->mark + 1, config->job_id, sizeof(im->mark) - 1);
    outputs_set_mark(config->telling->outputs, im->mark);
    open_core(im);
    if (open_servers(im, err) < 0 || open_sources(im, err) < 0) {
        imaging_free(im);
        return NULL;
    }
    if (config->agents)
        open_far(im);
    return im;
}

/* --- a dispatcher before us --- */

void imaging_replay(struct imaging *im, const struct job_state_record *record)
{
    struct rank_images *r;

    if (!im)
        return;
    r = &im->rank[record->rank];
    if (record->type == JOB_STATE_TRIMMED && record->number > r->begin) {
        r->begin = record->number;
        outputs_forget_before(im->config.telling->outputs, record->rank, record->number);
    } else if (record->type == JOB_STATE_PLACE) {
        outputs_add_place(im->config.telling->outputs, record->rank, record->number,
                          record->place.printed);
    } else if (record->type != JOB_STATE_MARK) {
        return;
    }
    if (record->number > r->last)
        r->last = record->number;
}

void imaging_look_up(struct imaging *im)
{
    if (!im)
        return;
    for (uint32_t rank = 0; rank < im->config.options->ranks; rank++) {
        im->looks |= im->rank[rank].last > 0;
        im->rank[rank].returned = true;
        /* numbers that were asked for and never heard of are not given again */
        images_return(&im->core, rank, im->rank[rank].last + IMAGES_KNOWN_MAX,
                      im->rank[rank].begin);
    }
    if (im->looks)
        servers_want(im->servers, 0);
}

bool imaging_knows(const struct imaging *im, bool *failed)
{
    *failed = im && im->server_failed;
    return !im || !im->looks || im->core.server[0].up;
}

void imaging_end(struct imaging *im)
{
    if (!im || im->ending)
        return;
    im->ending = true;
    image_failures_end(im->failures);
    image_sources_end(im->sources);
    loop_timer_set(&im->timer, LOOP_NEVER);
    loop_timer_set(&im->stats_timer, LOOP_NEVER);
}

void imaging_free(struct imaging *im)
{
    if (!im)
        return;
    loop_timer_remove(im->config.loop, &im->timer);
    loop_timer_remove(im->config.loop, &im->stats_timer);
    loop_timer_remove(im->config.loop, &im->pause_timer);
    image_sources_free(im->sources);
    servers_free(im->servers);
    if (im->servers && is_here(im))
        image_dir_remove(&im->dir);
    image_failures_free(im->failures);
    free(im->core_ranks);
    free(im->rank);
    free(im->server_why);
    free(im);
}

void imaging_set_up(const struct imaging *im, uint32_t host, bool is_near, struct cw_setup *setup)
{
    const struct run_options *o = im ? im->config.options : NULL;
    char address[CW_ADDRESS_MAX];
    uint32_t server;

    if (!im)
        return;
    server = servers_of_rank(im->servers, setup->rank);
    if (o->grid)
        grid_job_server_at(o->grid, server, o->hosts.list.host[host].site, address);
    else
        snprintf(address, sizeof(address), "%s", servers_address(im->servers, server, is_near));
    snprintf(setup->image_address, sizeof(setup->image_address), "%.299s", address);
    servers_rank_key(im->servers, setup->rank, setup->incarnation, setup->image_key);
    memcpy(setup->mark, im->mark, sizeof(setup->mark));
}

const struct far_server *imaging_far_server(const struct imaging *im)
{
    return im && im->config.agents ? &im->far : NULL;
}

const struct images *imaging_images(const struct imaging *im)
{
    return im ? &im->core : NULL;
}

bool imaging_is_child(const struct imaging *im, pid_t pid)
{
    return im && im->servers && servers_is_child(im->servers, pid);
}

void imaging_child_ended(struct imaging *im, int status)
{
    struct cw_err err = {0};

    if (!servers_child_ended(im->servers, WIFEXITED(status), &err))
        on_failed(im, &err);
    else if (!im->ending)
        server_news_own_ended(&im->news, status, servers_child_why(im->servers));
}

/* --- ranks --- */

void imaging_look(struct imaging *im, uint32_t rank)
{
    const struct job_rank *r;

    if (!im)
        return;
    r = &im->config.job->rank[rank];
    if (r->up)
        image_sources_reset(im->sources, rank);
    if (r->state == JOB_RANK_MPI && r->live && !r->unlogged)
        images_rank_live(&im->core, rank, r->incarnation, now_of(im));
    else if (im->core.rank[rank].live)
        images_rank_down(&im->core, rank, false);
    else
        return;
    soon(im);
}

void imaging_crashed(struct imaging *im, uint32_t rank)
{
    if (!im)
        return;
    if (rank == 0)
        resume_input(im);
    forget_missing(im, rank);
    image_sources_reset(im->sources, rank);
    images_rank_down(&im->core, rank, true);
    soon(im);
}

static void taken(struct imaging *im, uint32_t rank, const struct cw_image_report *image)
{
    outputs_settle(im->config.telling->outputs, rank, image->number);
    if (rank == 0) {
        rank_input_mark(im->config.input, image->number, image->unread);
        resume_input(im);
    }
    if (images_taken(&im->core, rank, image, now_of(im)))
        telling_image_taken(im->config.telling, now_of(im), rank,
                            im->config.job->rank[rank].incarnation, image->number);
}

static void ended(struct imaging *im, uint32_t rank, const struct cw_image_report *image,
                  const char *why)
{
    /* of the image before, when the next one is asked for already, it changes nothing */
    if (rank == 0 && image->number == im->core.rank[0].number)
        resume_input(im);
    if (image->number == 0) { /* it says before it is asked that there will be none */
        image_failures_tell(im->failures, now_of(im), rank, 0, why);
        return;
    }
    if (image->stored)
        telling_image_copied(im->config.telling, now_of(im), rank, image);
    if (!images_ended(&im->core, rank, image, now_of(im)) || image->stored)
        return;
    if (im->config.job->rank[rank].unlogged) /* who was told that needs no more */
        image_failures_note(im->failures, rank, why);
    else
        image_failures_tell(im->failures, now_of(im), rank, image->number, why);
}

void imaging_report(struct imaging *im, uint32_t rank, const struct cw_report *report)
{
    if (!im)
        return;
    if (report->kind == CW_REPORT_IMAGE_TAKEN)
        taken(im, rank, &report->image);
    else
        ended(im, rank, &report->image, report->text);
    soon(im);
}

void imaging_trimmed(struct imaging *im, const struct cw_trim *trimmed)
{
    uint32_t begin;

    if (!im)
        return;
    begin = images_trimmed(&im->core, trimmed);
    soon(im);
    if (!begin)
        return;
    state_file_put(im->config.state, &(struct job_state_record){.type = JOB_STATE_TRIMMED,
                                                                .rank = trimmed->rank,
                                                                .number = begin});
    image_places_forget_before(&im->places, trimmed->rank, begin);
}

void imaging_log(struct imaging *im, uint32_t rank, uint64_t bytes)
{
    if (!im || rank >= im->config.options->ranks)
        return;
    images_log(&im->core, rank, bytes);
    if (im->core.changed)
        soon(im);
}

const char *imaging_why(const struct imaging *im, uint32_t rank)
{
    return image_failures_why(im->failures, rank);
}
