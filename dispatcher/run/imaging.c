#include "dispatcher/run/imaging.h"
#include "dispatcher/images/image_dir.h"
#include "dispatcher/images/servers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct rank_images {
    uint32_t from;             /* the image that its process went on from; 0: its beginning */
    uint32_t unplaced;         /* a stored image whose place is still looked for; 0: none */
    bool fetching;             /* source() is to come */
    bool returned;             /* it was known to a dispatcher before us, and no image is newer */
    uint32_t last, begin;      /* ... of its images */
    char why[CW_ERR_TEXT_MAX]; /* the last one failed */
};

struct imaging {
    struct imaging_config config;
    struct images core;
    struct images_rank *core_ranks; /* owned */
    struct rank_images *rank;       /* owned */
    struct servers *servers;
    struct image_dir dir; /* of our own server */
    uint8_t mark[CW_MARK_SIZE];
    struct loop_timer timer;              /* the core has something to be done */
    struct loop_timer stats_timer;        /* logs are looked at */
    struct loop_timer pause_timer;        /* rank 0 gets input again */
    bool server_told[IMAGES_SERVERS_MAX]; /* that there is no session with it */
    uint32_t causes[IMAGING_CAUSES_MAX];  /* hashes of those that were told */
    uint32_t cause_count;
    bool ending;
    bool slowed_told; /* that images cannot come as often as the user said */
    bool server_failed;
    bool looks; /* what a dispatcher before us had stored is asked for */
};

static uint64_t now_of(const struct imaging *im)
{
    return loop_now_ns(im->config.loop);
}

/* The core is asked once all that is at hand was heard. */
static void soon(struct imaging *im)
{
    if (!im->ending)
        loop_timer_hasten(&im->timer, now_of(im));
}

/* --- failures --- */

/* Of a cause, without its figures: numbers of bytes are others each time. */
static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;

    for (; *text; text++)
        if (*text < '0' || *text > '9')
            hash = (hash ^ (uint8_t)*text) * 16777619u;
    return hash;
}

/* Whether this cause was not told yet: each is told once. */
static bool is_news(struct imaging *im, const char *why)
{
    uint32_t hash = hash_of(why);

    for (uint32_t i = 0; i < im->cause_count; i++)
        if (im->causes[i] == hash)
            return false;
    if (im->cause_count == IMAGING_CAUSES_MAX)
        return false;
    im->causes[im->cause_count++] = hash;
    return true;
}

static void warn_failed(struct imaging *im, uint32_t rank, uint32_t number, const char *why)
{
    snprintf(im->rank[rank].why, sizeof(im->rank[rank].why), "%s", why);
    telling_image_failed(im->config.telling, now_of(im), rank, number, why);
    if (!im->ending && is_news(im, why))
        telling_tell(im->config.telling,
                     "rank %u: no image of it: %s; the job goes on, and keeps its log", rank, why);
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

/* NULL: all places but that in the output are known. */
static const char *missing_place(const struct imaging *im, uint32_t rank, uint32_t number)
{
    const struct images_rank *r = &im->core.rank[rank];

    if (!rank_io_has_place(im->config.rank_io, rank, number))
        return r->number == number && !r->taken_ns
                   ? "the rank did not tell when it was taken: the program has closed a descriptor "
                     "which it had not opened"
                   : "it was taken in the middle of a request to its launcher";
    if (rank == 0 && !rank_input_has_place(im->config.input, number))
        return "it is not known how much of its standard input it had read";
    return NULL;
}

static bool has_places(const struct imaging *im, uint32_t rank, uint32_t number)
{
    return !missing_place(im, rank, number) &&
           outputs_has_place(im->config.telling->outputs, rank, number);
}

/* Where the job is to outlive us, an image is of use only to who knows its place, and has seen out
 * what was printed before it. */
static bool is_kept(struct imaging *im, uint32_t rank, uint32_t number)
{
    struct state_file *state = im->config.state;
    struct job_state_record place = {
        .type = JOB_STATE_PLACE, .rank = rank, .number = number, .place.input = JOB_STATE_NO_INPUT};

    if (!state)
        return true;
    if (!outputs_are_out(im->config.telling->outputs, rank, number))
        return false;
    outputs_place(im->config.telling->outputs, rank, number, place.place.printed);
    if (rank == 0)
        place.place.input = rank_input_place(im->config.input, number);
    state_file_put(state, &place);
    state_file_sync(state);
    return true;
}

/* Of an image that is stored. */
static void look_for_place(struct imaging *im, uint32_t rank)
{
    uint32_t number = im->rank[rank].unplaced;
    const char *missing = missing_place(im, rank, number);

    if (missing) {
        images_fail(&im->core, rank, number);
        warn_failed(im, rank, number, missing);
    } else if (has_places(im, rank, number) && is_kept(im, rank, number)) {
        images_placed(&im->core, rank, number);
    } else {
        loop_timer_hasten(&im->timer, now_of(im) + IMAGING_PLACE_NS);
        return;
    }
    im->rank[rank].unplaced = 0;
}

/* --- what is to be done --- */

static void ask(struct imaging *im, const struct images_order *order)
{
    struct cw_checkpoint checkpoint = {
        .rank = order->rank, .number = order->number, .base = order->base};

    if (order->rank == 0)
        pause_input(im);
    relays_checkpoint(im->config.relays, &checkpoint);
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
            warn_failed(im, order.rank, order.number, order.why);
            break;
        }
    }
}

static void on_time(void *ctx)
{
    struct imaging *im = ctx;

    if (im->ending)
        return;
    for (uint32_t rank = 0; rank < im->config.options->ranks; rank++)
        if (im->rank[rank].unplaced)
            look_for_place(im, rank);
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

    telling_say(im->config.telling, "checkpoint server started (pid %d, %s, images in %s)",
                (int)pid, servers_address(im->servers, 0), im->dir.path);
}

static void on_opens(void *ctx, uint32_t server)
{
    struct imaging *im = ctx;

    if (im->server_told[server])
        telling_tell(im->config.telling, "checkpoint server %s is there again",
                     servers_address(im->servers, server));
    im->server_told[server] = false;
    if (im->config.options->image_server_count == 0)
        image_dir_hold(&im->dir);
    images_server_opens(&im->core, server);
}

static void on_held(void *ctx, const struct cw_stored *held)
{
    struct imaging *im = ctx;
    const struct images_image *image;

    images_held(&im->core, held, now_of(im));
    image = held->rank < im->config.options->ranks
                ? images_find(&im->core, held->rank, held->number)
                : NULL;
    if (image && held->number && !image->placed && im->rank[held->rank].returned &&
        has_places(im, held->rank, held->number))
        images_placed(&im->core, held->rank, held->number);
    else if (image && held->number && !image->placed && !im->rank[held->rank].returned)
        im->rank[held->rank].unplaced = held->number;
}

static void on_held_end(void *ctx, uint32_t server)
{
    struct imaging *im = ctx;

    images_held_end(&im->core, server);
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
    telling_image_stored(im->config.telling, now_of(im), stored,
                         r->taken_ns && r->number == stored->number ? now_of(im) - r->taken_ns : 0);
    im->rank[stored->rank].unplaced = stored->number;
    im->rank[stored->rank].returned = false;
    tell_slowed(im, stored->rank);
    soon(im);
}

static void on_lost(void *ctx, uint32_t server, const struct cw_err *err)
{
    struct imaging *im = ctx;

    images_server_lost(&im->core, server);
    if (im->ending || im->server_told[server])
        return;
    if (im->config.options->image_server_count == 0) {
        telling_say(im->config.telling, "%s", err->text); /* how its process ended says more */
        return;
    }
    im->server_told[server] = true;
    telling_warn(im->config.telling, now_of(im), JOB_NO_RANK, "a checkpoint server is away",
                 err->text);
    telling_tell(im->config.telling, "%s; no images are stored there until it is back", err->text);
}

static void on_failed(void *ctx, const struct cw_err *err)
{
    struct imaging *im = ctx;

    im->server_failed = true;
    if (im->ending)
        return;
    telling_warn(im->config.telling, now_of(im), JOB_NO_RANK, "no more images are taken",
                 err->text);
    telling_tell(im->config.telling, "no more images are taken: %s", err->text);
}

/* --- restarts --- */

uint32_t imaging_from(const struct imaging *im, uint32_t rank)
{
    return im ? im->rank[rank].from : 0;
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
    im->rank[rank].from = number;
    if (number)
        telling_restored(im->config.telling, now_of(im), rank,
                         im->config.job->rank[rank].incarnation, number);
}

/* That image is of no use: says so, and what comes instead. */
static void give_up_image(struct imaging *im, uint32_t rank, uint32_t number, const char *why)
{
    char next[64] = "nothing else is left";
    uint32_t other;

    images_fail(&im->core, rank, number);
    if (images_choose(&im->core, rank, &other))
        snprintf(next, sizeof(next),
                 other ? "it starts from image %u" : "it starts from its beginning", other);
    snprintf(im->rank[rank].why, sizeof(im->rank[rank].why), "image %u: %s", number, why);
    telling_image_failed(im->config.telling, now_of(im), rank, number, why);
    telling_tell(im->config.telling, "rank %u: image %u cannot be restored: %s; %s", rank, number,
                 why, next);
}

void imaging_not_restored(struct imaging *im, uint32_t rank, const char *why)
{
    if (im && im->rank[rank].from)
        give_up_image(im, rank, im->rank[rank].from, why);
}

/* Returns false when the rank starts from its beginning, or from nothing at all (`*none`). */
static bool choose(struct imaging *im, uint32_t rank, uint32_t *number, bool *none)
{
    while ((*none = !images_choose(&im->core, rank, number)) == false && *number > 0) {
        if (has_places(im, rank, *number))
            return true;
        images_fail(&im->core, rank, *number);
    }
    return false;
}

static void tell_none(struct imaging *im, uint32_t rank)
{
    const char *why = im->rank[rank].why;

    im->config.events->no_source(im->config.ctx, rank,
                                 why[0] ? why : "its checkpoint server has lost its images");
}

bool imaging_source(struct imaging *im, uint32_t rank)
{
    uint32_t number;
    bool none;

    if (!im)
        return true;
    im->rank[rank].fetching = false;
    if (choose(im, rank, &number, &none)) {
        im->rank[rank].fetching = true;
        servers_fetch(im->servers, rank, number);
        return false;
    }
    if (none)
        tell_none(im, rank);
    return !none;
}

static void on_fetched(void *ctx, uint32_t rank, uint32_t number, int fd, const struct cw_err *err)
{
    struct imaging *im = ctx;

    if (!im->rank[rank].fetching || im->ending) {
        if (fd >= 0)
            close(fd);
        return;
    }
    im->rank[rank].fetching = false;
    if (fd >= 0) {
        im->config.events->source(im->config.ctx, rank, number, fd);
        return;
    }
    give_up_image(im, rank, number, err->text);
    if (imaging_source(im, rank))
        im->config.events->source(im->config.ctx, rank, 0, -1);
}

static const struct servers_events servers_events = {on_child,  on_opens, on_held,    on_held_end,
                                                     on_stored, on_lost,  on_fetched, on_failed};

/* --- opening and closing --- */

static int choose_dir(struct imaging *im, struct cw_err *err)
{
    const struct run_options *o = im->config.options;

    if (o->image_server_count)
        return CW_OK;
    if (im->config.image_dir) {
        if (image_dir_choose(&im->dir, im->config.image_dir, err) < 0)
            return err->code;
        return CW_OK;
    }
    if (image_dir_choose(&im->dir, o->image_dir, err) < 0)
        return err->code;
    if (im->dir.in_memory)
        telling_say(im->config.telling, "images are kept in %s, which is in memory (--ckpt-dir)",
                    im->dir.path);
    return CW_OK;
}

static int open_servers(struct imaging *im, struct cw_err *err)
{
    const struct run_options *o = im->config.options;
    struct servers_config config = {.loop = im->config.loop,
                                    .job_id = im->config.job_id,
                                    .ranks = o->ranks,
                                    .addresses = o->image_servers,
                                    .count = o->image_server_count,
                                    .key_file = o->image_key_file,
                                    .socket_dir = im->config.dir,
                                    .image_dir = im->dir.path,
                                    .bytes_max =
                                        o->image_bytes_max ? o->image_bytes_max : im->dir.free_max,
                                    .ephemeral = !im->config.state,
                                    .events = &servers_events,
                                    .ctx = im};

    if (choose_dir(im, err) < 0)
        return err->code;
    im->servers = servers_new(&config, err);
    return im->servers ? CW_OK : err->code;
}

static void open_core(struct imaging *im)
{
    const struct run_options *o = im->config.options;
    struct images_config config = {
        .ranks = o->ranks,
        .servers = o->image_server_count ? o->image_server_count : 1,
        .policy = {.every_ns = o->image_every_ns, .mtbf_ns = o->image_mtbf_ns}};

    images_init(&im->core, &config, im->core_ranks, loop_look(im->config.loop));
    loop_timer_add(im->config.loop, &im->timer, on_time, im);
    loop_timer_add(im->config.loop, &im->stats_timer, on_stats_time, im);
    loop_timer_add(im->config.loop, &im->pause_timer, resume_input, im);
    if (!o->image_every_ns)
        loop_timer_set(&im->stats_timer, now_of(im) + IMAGE_FIRST_NS);
}

struct imaging *imaging_new(const struct imaging_config *config, struct cw_err *err)
{
    struct imaging *im = calloc(1, sizeof(*im));

    if (im) {
        im->config = *config;
        im->core_ranks = calloc(config->options->ranks, sizeof(*im->core_ranks));
        im->rank = calloc(config->options->ranks, sizeof(*im->rank));
    }
    if (!im || !im->core_ranks || !im->rank) {
        cw_err_set(err, CW_ENOMEM, "no memory for images of %u ranks", config->options->ranks);
        imaging_free(im);
        return NULL;
    }
    outputs_draw_mark(im->mark);
    if (config->state) /* processes that were restored have the mark of those before */
        memcpy(im->mark + 1, config->job_id, sizeof(im->mark) - 1);
    outputs_set_mark(config->telling->outputs, im->mark);
    open_core(im);
    if (open_servers(im, err) < 0) {
        imaging_free(im);
        return NULL;
    }
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
    loop_timer_set(&im->timer, LOOP_NEVER);
    loop_timer_set(&im->stats_timer, LOOP_NEVER);
}

void imaging_free(struct imaging *im)
{
    if (!im)
        return;
    servers_free(im->servers);
    if (im->servers && !im->config.options->image_server_count)
        image_dir_remove(&im->dir);
    free(im->core_ranks);
    free(im->rank);
    free(im);
}

void imaging_set_up(const struct imaging *im, struct cw_setup *setup)
{
    if (!im)
        return;
    snprintf(setup->image_address, sizeof(setup->image_address), "%s",
             servers_address(im->servers, servers_of_rank(im->servers, setup->rank)));
    servers_rank_key(im->servers, setup->rank, setup->incarnation, setup->image_key);
    memcpy(setup->mark, im->mark, sizeof(setup->mark));
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
    else if (!im->ending && WIFSIGNALED(status))
        telling_tell(im->config.telling,
                     "the checkpoint server was killed by signal %d (%s); starting it again",
                     WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (!im->ending)
        telling_tell(im->config.telling,
                     "the checkpoint server ended with code %d; starting it again",
                     WEXITSTATUS(status));
}

/* --- ranks --- */

void imaging_look(struct imaging *im, uint32_t rank)
{
    const struct job_rank *r;

    if (!im)
        return;
    r = &im->config.job->rank[rank];
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

void imaging_report(struct imaging *im, uint32_t rank, const struct cw_report *report)
{
    if (!im)
        return;
    if (report->kind == CW_REPORT_IMAGE_TAKEN) {
        taken(im, rank, &report->image);
    } else {
        /* of the image before, when the next one is asked for already, it changes nothing */
        if (rank == 0 && report->image.number == im->core.rank[0].number)
            resume_input(im);
        if (report->image.stored)
            telling_image_copied(im->config.telling, now_of(im), rank, &report->image);
        if (images_ended(&im->core, rank, &report->image, now_of(im)) && !report->image.stored)
            warn_failed(im, rank, report->image.number, report->text);
    }
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
    outputs_forget_before(im->config.telling->outputs, trimmed->rank, begin);
    rank_io_forget_before(im->config.rank_io, trimmed->rank, begin);
    if (trimmed->rank == 0)
        rank_input_forget_before(im->config.input, begin);
}

void imaging_stats(struct imaging *im, const struct cw_stats *stats)
{
    if (!im || stats->rank >= im->config.options->ranks)
        return;
    images_log(&im->core, stats->rank, stats->of_rank.log_bytes);
    if (im->core.changed)
        soon(im);
}

const char *imaging_why(const struct imaging *im, uint32_t rank)
{
    return im->rank[rank].why;
}

void imaging_demand(struct imaging *im)
{
    for (uint32_t rank = 0; rank < im->config.options->ranks; rank++)
        if (!im->core.rank[rank].live)
            snprintf(im->rank[rank].why, sizeof(im->rank[rank].why),
                     "it has ended, is down, or repeats what it did");
    images_demand_all(&im->core);
    soon(im);
}
