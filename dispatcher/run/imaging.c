#include "dispatcher/run/imaging.h"
#include "dispatcher/run/image_words.h"
#include "dispatcher/run/parts.h"
#include "relay/log_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rank_images {
    bool returned;   /* it was known to a dispatcher before us, and no image is newer */
    uint32_t taken;  /* the last one that the rank has said it took */
    uint32_t server; /* from which its last one was fetched */
};

struct imaging {
    struct parts *parts;
    struct job_log *log;
    struct image_words words;
    const struct job *job;
    const struct imaging_events *events;
    void *ctx;
    uint32_t ranks;
    struct images core;
    struct rank_images *rank; /* owned, as core.rank */
    struct image_servers at;
    uint8_t mark[CW_MARK_SIZE];
    struct loop_timer timer;       /* the core has something to be done */
    struct loop_timer stats_timer; /* logs are looked at */
    struct loop_timer pause_timer; /* rank 0 gets input again */
    bool ending;
    bool looks; /* what a dispatcher before us had stored is asked for */
};

static uint64_t now_of(const struct imaging *im)
{
    return loop_now_ns(im->parts->loop);
}

/* The core is asked once all that is at hand was heard. */
static void soon(void *ctx)
{
    struct imaging *im = ctx;

    if (!im->ending)
        loop_timer_hasten(&im->timer, now_of(im));
}

/* --- what fails --- */

/* Nobody can go on from this image. Says so, and what comes instead. */
static void give_up(struct imaging *im, uint32_t rank, uint32_t number, const char *why)
{
    char next[64] = "nothing else is left";
    char note[CW_ERR_TEXT_MAX];
    uint32_t other;

    snprintf(note, sizeof(note), "image %u: %.*s", number, CW_ERR_TEXT_MAX - 24, why);
    images_fail(&im->core, rank, number, note);
    if (images_choose(&im->core, rank, &other))
        snprintf(next, sizeof(next),
                 other ? "it starts from image %u" : "it starts from its beginning", other);
    image_words_useless(&im->words, rank, number, why);
    log_notice(im->log, "rank %u: image %u cannot be restored: %s; %s", rank, number, why, next);
}

/* The image is damaged, or it is not there; another server may have it as it was. */
static void reject(struct imaging *im, uint32_t rank, uint32_t number, const char *why)
{
    uint32_t server = im->rank[rank].server;

    if (!images_lacks(&im->core, rank, number, server)) {
        give_up(im, rank, number, why);
        return;
    }
    log_warning(im->log, now_of(im), rank, "an image is fetched from another server", why);
    log_notice(im->log,
               "rank %u: image %u of checkpoint server %s is of no use: %s; it is kept at %s too",
               rank, number, image_servers_name(&im->at, server), why,
               image_servers_names(&im->at, images_find(&im->core, rank, number)->held));
}

/* Nothing is known against the image: it is fetched again, unless that was tried often enough. */
static void break_off(struct imaging *im, uint32_t rank, uint32_t number, const char *why,
                      bool away)
{
    char text[CW_ERR_TEXT_MAX];
    uint32_t tries;

    if (!images_broke_off(&im->core, rank, away, now_of(im), &tries)) {
        snprintf(text, sizeof(text), "%.*s (tried %u times)", CW_ERR_TEXT_MAX - 40, why, tries);
        give_up(im, rank, number, tries > 1 ? text : why);
        return;
    }
    log_warning(im->log, now_of(im), rank, "an image is fetched again", why);
    if (tries == 1)
        log_notice(im->log, "rank %u: image %u did not come: %s; fetching it again", rank, number,
                   why);
}

/* --- places: of use is an image of which it is known where its process was in its output, its
 * input and PMI --- */

/* NULL: all places but that in the output are known. Else why they will not be. */
static const char *missing_place(const struct imaging *im, uint32_t rank, uint32_t number)
{
    if (!places_at(&im->parts->places[rank], number, PLACE_PMI))
        return im->rank[rank].taken < number
                   ? "the rank did not tell when it was taken: the program has closed a descriptor "
                     "which it had not opened"
                   : "it was taken in the middle of a request to its launcher";
    if (rank == 0 && !rank_input_has_place(im->parts->input, number))
        return "it is not known how much of its standard input it had read";
    return NULL;
}

static bool is_placed(const struct imaging *im, uint32_t rank, uint32_t number)
{
    const struct places *places = &im->parts->places[rank];

    return !missing_place(im, rank, number) && places_at(places, number, PLACE_STDOUT) &&
           places_at(places, number, PLACE_STDERR);
}

/* Writes the places down where the job is to outlive us. False: what was printed before it is not
 * out yet. */
static bool keep_places(const struct imaging *im, uint32_t rank, uint32_t number)
{
    struct job_state_record place = {
        .type = JOB_STATE_PLACE, .rank = rank, .number = number, .place.input = JOB_STATE_NO_INPUT};
    const uint64_t *at;

    if (!im->parts->state)
        return true;
    if (!outputs_are_out(im->parts->outputs, rank, number))
        return false;
    outputs_sync(im->parts->outputs, rank);
    for (int i = 0; i < JOB_STATE_STREAMS; i++)
        if ((at = places_at(&im->parts->places[rank], number, PLACE_STDOUT + (unsigned)i)))
            place.place.printed[i] = job_state_printed(at[0], at[1]);
    if (rank == 0 && (at = places_at(&im->parts->places[0], number, PLACE_STDIN)))
        place.place.input = *at;
    state_file_put(im->parts->state, &place);
    state_file_sync(im->parts->state);
    return true;
}

/* What a rank says comes through its node, which may be slower than the server. Of an image that a
 * dispatcher before us knew all was said. */
static void look_for_place(struct imaging *im, uint32_t rank, const struct images_image *image)
{
    uint64_t until_ns = image->stored_ns + im->parts->options->hosts.timeout_ns;
    const char *missing = missing_place(im, rank, image->number);
    bool placed = is_placed(im, rank, image->number);

    if (im->rank[rank].returned && !placed) {
        images_fail(&im->core, rank, image->number, NULL);
    } else if (missing && (im->rank[rank].taken >= image->number || now_of(im) >= until_ns)) {
        images_fail(&im->core, rank, image->number, missing);
        image_words_failed(&im->words, rank, image->number, missing);
    } else if (placed && (im->rank[rank].returned || keep_places(im, rank, image->number))) {
        images_placed(&im->core, rank, image->number);
        image_words_has_image(&im->words, rank);
    } else {
        loop_timer_hasten(&im->timer, now_of(im) + IMAGING_PLACE_NS);
    }
}

static void look_for_places(struct imaging *im)
{
    for (uint32_t rank = 0; rank < im->ranks; rank++)
        for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++)
            if (images_waits_for_place(&im->core.rank[rank].image[i]))
                look_for_place(im, rank, &im->core.rank[rank].image[i]);
}

/* The rank is down, and says nothing any more. */
static void forget_missing(struct imaging *im, uint32_t rank)
{
    for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++) {
        const struct images_image *image = &im->core.rank[rank].image[i];

        if (images_waits_for_place(image) && missing_place(im, rank, image->number))
            images_fail(&im->core, rank, image->number, NULL);
    }
}

/* --- what is to be done --- */

/* Rank 0 is given its input again. */
static void resume_input(void *ctx)
{
    struct imaging *im = ctx;

    loop_timer_set(&im->pause_timer, LOOP_NEVER);
    rank_input_resume(im->parts->input);
}

static void ask(struct imaging *im, const struct images_order *order)
{
    struct cw_checkpoint checkpoint = {.rank = order->rank,
                                       .number = order->number,
                                       .base = order->base,
                                       .servers = image_servers_places_of(&im->at, order->servers)};

    if (!relays_checkpoint(im->parts->relays, &checkpoint)) {
        images_not_asked(&im->core, order->rank, now_of(im));
        images_demand_fail(&im->core, order->rank, "its relay is away");
    } else if (order->rank == 0) {
        rank_input_pause(im->parts->input);
        loop_timer_set(&im->pause_timer, now_of(im) + IMAGING_PAUSE_NS);
    }
}

/* The host on which a process of the rank is started, or runs. */
static uint32_t host_of(const struct imaging *im, uint32_t rank)
{
    return im->job->slots.slot[im->job->rank[rank].slot].host;
}

/* Something else is chosen where that image is of no use after all. */
static void fetch(struct imaging *im, const struct images_order *order)
{
    uint32_t rank = order->rank;

    const struct images_rank *r = &im->core.rank[rank];

    if (is_placed(im, rank, order->number)) {
        im->rank[rank].server =
            image_servers_nearest(&im->at, order->servers, host_of(im, rank), r->breaks + r->away);
        servers_fetch(im->at.servers, im->rank[rank].server, rank, order->number);
        return;
    }
    images_fail(&im->core, rank, order->number, NULL);
    images_restart(&im->core, rank);
}

static void drop(struct imaging *im, const struct images_order *order)
{
    for (uint32_t i = 0; i < im->at.count; i++)
        if (order->servers >> i & 1)
            servers_drop(im->at.servers, i, order->rank, order->number);
}

static void obey(struct imaging *im, enum images_action action, const struct images_order *order)
{
    uint32_t rank = order->rank;

    switch (action) {
    case IMAGES_ASK:
        ask(im, order);
        break;
    case IMAGES_TRIM:
        relays_trim(im->parts->relays, rank, &order->point);
        break;
    case IMAGES_DROP:
        drop(im, order);
        break;
    case IMAGES_GIVE_UP:
        image_words_failed(&im->words, rank, order->number, order->why);
        break;
    case IMAGES_FETCH:
        fetch(im, order);
        break;
    case IMAGES_BEGIN:
        im->events->source(im->ctx, rank, 0, -1);
        break;
    case IMAGES_LOST:
        im->events->no_source(im->ctx, rank,
                              im->core.rank[rank].why[0]
                                  ? im->core.rank[rank].why
                                  : "its checkpoint server has lost its images");
        break;
    case IMAGES_NOTHING:
        break;
    }
}

static void on_time(void *ctx)
{
    struct imaging *im = ctx;
    struct images_order order;
    enum images_action action;

    if (im->ending)
        return;
    look_for_places(im);
    image_servers_look(&im->at);
    while ((action = images_next(&im->core, now_of(im), &order)) != IMAGES_NOTHING)
        obey(im, action, &order);
    for (uint32_t i = 0; i < im->core.config.servers; i++)
        if (!im->core.server[i].up && images_wants_server(&im->core, i, now_of(im)))
            image_servers_want(&im->at, i);
    loop_timer_hasten(&im->timer, images_deadline_ns(&im->core));
}

static void on_stats_time(void *ctx)
{
    struct imaging *im = ctx;
    uint64_t pause_ns = im->ranks * IMAGING_STATS_A_RANK_NS;

    if (im->ending)
        return;
    status_source_refresh(im->parts->status);
    loop_timer_set(&im->stats_timer,
                   now_of(im) + (pause_ns > IMAGING_STATS_NS ? pause_ns : IMAGING_STATS_NS));
}

static void on_demand(void *ctx)
{
    struct imaging *im = ctx;

    images_demand_all(&im->core);
    image_servers_fail_demands(&im->at);
    soon(im);
}

/* --- what servers say --- */

static void on_opens(void *ctx, uint32_t server)
{
    images_server_opens(&((struct imaging *)ctx)->core, server);
}

static void on_held(void *ctx, uint32_t server, const struct cw_stored *held)
{
    struct imaging *im = ctx;

    images_held(&im->core, server, held, now_of(im));
}

static void on_held_end(void *ctx, uint32_t server)
{
    struct imaging *im = ctx;

    images_held_end(&im->core, server);
    image_servers_up(&im->at, server);
    soon(im);
}

/* What the rank has said of the image counts first. */
static void on_stored(void *ctx, uint32_t server, const struct cw_stored *stored)
{
    struct imaging *im = ctx;
    const struct images_image *image;

    if (im->ending || stored->rank >= im->ranks)
        return;
    rank_io_hear(im->parts->rank_io, job_process(im->job, stored->rank));
    if (!images_stored(&im->core, server, stored, now_of(im)))
        return;
    image_servers_stored(&im->at, server);
    image = images_find(&im->core, stored->rank, stored->number);
    image_words_stored(&im->words, stored,
                       image_servers_names(&im->at, image ? image->held : 1u << server));
    im->rank[stored->rank].returned = false;
    soon(im);
}

static void on_lost(void *ctx, uint32_t server, const struct cw_err *err)
{
    struct imaging *im = ctx;

    images_server_lost(&im->core, server);
    image_servers_lost(&im->at, server, err);
}

static void on_fetched(void *ctx, uint32_t rank, uint32_t number, int fd, const struct cw_err *err)
{
    struct imaging *im = ctx;

    if (!images_fetched(&im->core, rank) || im->ending) {
        if (fd >= 0)
            close(fd);
    } else if (fd >= 0) {
        im->events->source(im->ctx, rank, number, fd);
    } else {
        if (err->code == CW_EAUTH)
            reject(im, rank, number, err->text);
        else if (images_find(&im->core, rank, number)) /* else all servers of it are gone */
            break_off(im, rank, number, err->text,
                      err->code != CW_ECLOSED && err->code != CW_EPROTO);
        imaging_restart(im, rank);
    }
}

static const struct servers_events servers_events = {on_opens,  on_held, on_held_end,
                                                     on_stored, on_lost, on_fetched};

/* --- restarts --- */

bool imaging_restart(struct imaging *im, uint32_t rank)
{
    if (!im)
        return false;
    images_restart(&im->core, rank);
    soon(im);
    return true;
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
    images_started(&im->core, rank, number);
    if (number)
        job_events_write(&im->log->events, now_of(im), "rank_restored", rank,
                         job_number("incarnation", im->job->rank[rank].incarnation),
                         job_number("image", number));
}

void imaging_not_restored(struct imaging *im, uint32_t rank, const char *why, bool broke_off)
{
    uint32_t number = im ? im->core.rank[rank].from : 0;

    if (number && broke_off)
        break_off(im, rank, number, why, false);
    else if (number)
        reject(im, rank, number, why);
}

/* --- opening and closing --- */

static int open_servers(struct imaging *im, struct cw_err *err)
{
    im->at = (struct image_servers){.parts = im->parts,
                                    .log = im->log,
                                    .job = im->job,
                                    .core = &im->core,
                                    .count = im->core.config.servers,
                                    .changed = soon,
                                    .ctx = im};
    return image_servers_open(&im->at, &servers_events, im->events->start_server, im->ctx, err);
}

static void open_core(struct imaging *im)
{
    const struct run_options *o = im->parts->options;
    const struct relay_settings *logs = &o->relay_settings;
    struct images_config config = {
        .ranks = o->ranks,
        .servers = image_servers_count(im->parts),
        .of_rank = o->grid ? o->grid->rank_server : NULL,
        .policy = {.every_ns = o->images.every_ns, .mtbf_ns = o->images.mtbf_ns}};

    image_policy_set_room(&config.policy, relay_settings_log_memory(logs),
                          log_files_disk_bytes(logs), o->ranks);
    images_init(&im->core, &config, im->core.rank, loop_look(im->parts->loop));
    loop_timer_add(im->parts->loop, &im->timer, on_time, im);
    loop_timer_add(im->parts->loop, &im->stats_timer, on_stats_time, im);
    loop_timer_add(im->parts->loop, &im->pause_timer, resume_input, im);
    if (!o->images.every_ns)
        loop_timer_set(&im->stats_timer, now_of(im) + IMAGE_FIRST_NS);
}

struct imaging *imaging_new(struct parts *p, const struct job *job,
                            const struct imaging_events *events, void *ctx, struct cw_err *err)
{
    struct imaging *im = calloc(1, sizeof(*im));

    if (im) {
        im->parts = p;
        im->log = &p->log;
        im->job = job;
        im->events = events;
        im->ctx = ctx;
        im->ranks = p->options->ranks;
        im->core.rank = calloc(im->ranks, sizeof(*im->core.rank));
        im->rank = calloc(im->ranks, sizeof(*im->rank));
    }
    if (!im || image_words_open(&im->words, p->loop, im->log, &im->core, im->ranks) < 0 ||
        !im->core.rank || !im->rank) {
        cw_err_set(err, CW_ENOMEM, "no memory for images of %u ranks", p->options->ranks);
        imaging_free(im);
        return NULL;
    }
    outputs_draw_mark(im->mark);
    if (p->state) /* processes that were restored have the mark of those before */
        memcpy(im->mark + 1, p->job_id, sizeof(im->mark) - 1);
    outputs_set_mark(p->outputs, im->mark);
    open_core(im);
    if (open_servers(im, err) < 0 ||
        status_source_set_images(p->status, &im->core, on_demand, im, err) < 0) {
        imaging_free(im);
        return NULL;
    }
    return im;
}

/* --- a dispatcher before us --- */

/* What is before this image in all that its rank said and was told is of no use any more. */
static void forget_before(struct imaging *im, uint32_t rank, uint32_t number)
{
    if (rank == 0)
        rank_input_let_go(im->parts->input, number);
    places_forget_before(&im->parts->places[rank], number);
}

static void return_place(struct imaging *im, const struct job_state_record *record)
{
    struct places *places = &im->parts->places[record->rank];
    const struct job_state_place *place = &record->place;

    for (int i = 0; i < JOB_STATE_STREAMS; i++)
        places_set(places, record->number, PLACE_STDOUT + (unsigned)i,
                   (uint64_t[PLACE_VALUES]){job_state_printed_lines(place->printed[i]),
                                            job_state_printed_bytes(place->printed[i])});
    if (record->rank == 0 && place->input != JOB_STATE_NO_INPUT)
        places_set(places, record->number, PLACE_STDIN, (uint64_t[PLACE_VALUES]){place->input});
}

void imaging_replay(struct imaging *im, const struct job_state_record *record)
{
    bool trimmed = record->type == JOB_STATE_TRIMMED;

    if (!im || (!trimmed && record->type != JOB_STATE_PLACE && record->type != JOB_STATE_MARK))
        return;
    im->looks = true;
    images_return(&im->core, record->rank, record->number, trimmed);
    if (trimmed)
        forget_before(im, record->rank, record->number);
    else if (record->type == JOB_STATE_PLACE)
        return_place(im, record);
}

void imaging_look_up(struct imaging *im)
{
    if (!im)
        return;
    for (uint32_t rank = 0; rank < im->ranks; rank++) {
        im->rank[rank].returned = true;
        /* numbers that were asked for and never heard of are not given again */
        images_return(&im->core, rank, im->core.rank[rank].last + IMAGES_KNOWN_MAX, false);
    }
    for (uint32_t i = 0; im->looks && i < im->core.config.servers; i++)
        image_servers_want(&im->at, i);
}

bool imaging_knows(const struct imaging *im, bool *failed)
{
    bool knows = true;

    *failed = false;
    for (uint32_t i = 0; im && im->looks && i < im->core.config.servers; i++) {
        *failed |= im->at.server[i].gone;
        knows &= im->core.server[i].up;
    }
    return knows;
}

void imaging_end(struct imaging *im)
{
    if (!im || im->ending)
        return;
    im->ending = im->at.ending = true;
    image_words_end(&im->words);
    loop_timer_set(&im->timer, LOOP_NEVER);
    loop_timer_set(&im->stats_timer, LOOP_NEVER);
}

void imaging_free(struct imaging *im)
{
    if (!im)
        return;
    loop_timer_remove(&im->timer);
    loop_timer_remove(&im->stats_timer);
    loop_timer_remove(&im->pause_timer);
    image_servers_close(&im->at);
    image_words_close(&im->words);
    free(im->core.rank);
    free(im->rank);
    free(im);
}

void imaging_set_up(struct imaging *im, uint32_t host, struct cw_setup *setup)
{
    if (!im)
        return;
    image_servers_place(&im->at, setup->process.rank, host);
    image_servers_set_up(&im->at, host, setup);
    memcpy(setup->mark, im->mark, sizeof(setup->mark));
    soon(im);
}

struct image_servers *imaging_servers(struct imaging *im)
{
    return im ? &im->at : NULL;
}

/* --- ranks --- */

void imaging_look(struct imaging *im, uint32_t rank)
{
    const struct job_rank *r;

    if (!im)
        return;
    r = &im->job->rank[rank];
    if (r->up)
        images_restarted(&im->core, rank);
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
    images_restarted(&im->core, rank);
    images_rank_down(&im->core, rank, true);
    soon(im);
}

static void taken(struct imaging *im, uint32_t rank, const struct cw_image_report *image)
{
    im->rank[rank].taken = image->number;
    outputs_settle(im->parts->outputs, rank, image->number);
    if (rank == 0) {
        rank_input_mark(im->parts->input, image->number, image->unread);
        resume_input(im);
    }
    if (!images_taken(&im->core, rank, image, now_of(im)))
        return;
    log_verbose(im->log, "rank %u: image %u is being copied", rank, image->number);
    job_events_write(&im->log->events, now_of(im), "image_taken", rank,
                     job_number("incarnation", im->job->rank[rank].incarnation),
                     job_number("image", image->number));
}

static void ended(struct imaging *im, uint32_t rank, const struct cw_image_report *image,
                  const char *why)
{
    /* of the image before, when the next one is asked for already, it changes nothing */
    if (rank == 0 && image->number == im->core.rank[0].number)
        resume_input(im);
    if (image->number == 0) /* it says before it is asked that there will be none */
        images_fail(&im->core, rank, 0, why);
    if (image->stored)
        job_events_write(&im->log->events, now_of(im), "image_copied", rank,
                         job_number("image", image->number), job_number("sent_bytes", image->sent),
                         job_seconds("stall", image->stall_ns));
    if (image->number && (!images_ended(&im->core, rank, image, why, now_of(im)) || image->stored))
        return;
    if (!image->number || !im->job->rank[rank].unlogged) /* who was told that needs no more */
        image_words_failed(&im->words, rank, image->number, why);
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
    state_file_put(im->parts->state, &(struct job_state_record){.type = JOB_STATE_TRIMMED,
                                                                .rank = trimmed->rank,
                                                                .number = begin});
    forget_before(im, trimmed->rank, begin);
}

void imaging_log(struct imaging *im, uint32_t rank, uint64_t bytes)
{
    if (!im || rank >= im->ranks)
        return;
    images_log(&im->core, rank, bytes);
    if (im->core.changed)
        soon(im);
}
