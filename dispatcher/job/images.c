#include "dispatcher/job/images.h"
#include "dispatcher/job/image_entries.h"
#include "dispatcher/job/image_sets.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static bool has_server(uint32_t servers, uint32_t server)
{
    return servers >> server & 1;
}

/* How many images are copied one after the other until each rank of a server has one. */
static uint32_t turns_of(const struct images *im)
{
    uint32_t ranks[IMAGES_SERVERS_MAX] = {0}, most = 0;

    for (uint32_t rank = 0; rank < im->config.ranks; rank++)
        for (uint32_t i = 0; i < im->config.servers; i++)
            if (has_server(im->rank[rank].servers, i) && ++ranks[i] > most)
                most++;
    return (most + IMAGES_TRANSFERS_MAX - 1) / IMAGES_TRANSFERS_MAX;
}

void images_init(struct images *im, const struct images_config *config, struct images_rank *rank,
                 uint64_t now_ns)
{
    assert(config->servers > 0 && config->servers <= IMAGES_SERVERS_MAX);
    *im = (struct images){.config = *config,
                          .rank = rank,
                          .start_ns = now_ns,
                          .mtbf_ns = image_policy_mtbf_ns(&config->policy, 0, 0),
                          .due_ns = UINT64_MAX};
    for (uint32_t i = 0; i < config->ranks; i++)
        rank[i].servers = 1u << (config->of_rank ? config->of_rank[i] : i % config->servers);
    im->config.policy.turns = turns_of(im);
}

/* All of them are there; not where there is none. */
static bool are_up(const struct images *im, uint32_t servers)
{
    for (uint32_t i = 0; i < im->config.servers; i++)
        if (has_server(servers, i) && !im->server[i].up)
            return false;
    return servers != 0;
}

/* --- entries --- */

bool images_waits_for_place(const struct images_image *image)
{
    return image->number && image->held && image->whole && !image->unusable && !image->placed;
}

const struct images_image *images_find(const struct images *im, uint32_t rank, uint32_t number)
{
    struct images_rank *r = &im->rank[rank];
    const struct images_image *image =
        number ? image_find(r, number) : image_newest(r, image_is_usable);

    return image && image_is_usable(r, image) ? image : NULL;
}

bool images_choose(const struct images *im, uint32_t rank, uint32_t *number)
{
    *number = image_newest_number(&im->rank[rank], image_can_go_on);
    return *number > 0 || im->rank[rank].begin == 0;
}

/* --- requests --- */

static void set_request(struct images *im, uint32_t rank, enum images_request request)
{
    struct images_rank *r = &im->rank[rank];

    for (uint32_t i = 0; i < im->config.servers; i++)
        if (has_server(r->asked, i)) {
            im->server[i].requests[r->request]--;
            im->server[i].requests[request]++;
        }
    r->request = request;
    im->changed = true;
}

/* The next request is to these. */
static void set_servers(struct images *im, uint32_t rank, uint32_t servers)
{
    set_request(im, rank, IMAGES_IDLE);
    im->rank[rank].asked = servers;
}

static bool is_asked(const struct images_rank *r)
{
    return r->request == IMAGES_ASKED || r->request == IMAGES_LATE;
}

void images_not_asked(struct images *im, uint32_t rank, uint64_t now_ns)
{
    if (!is_asked(&im->rank[rank]))
        return;
    set_request(im, rank, IMAGES_IDLE);
    im->rank[rank].retry_ns = now_ns + IMAGES_RETRY_MIN_NS;
}

static uint64_t doubled(uint64_t pause_ns, uint64_t min_ns, uint64_t max_ns)
{
    uint64_t next_ns = pause_ns ? 2 * pause_ns : min_ns;

    return next_ns < max_ns ? next_ns : max_ns;
}

/* Of an image that was asked for by hand, or a later one. */
static void settle_demand(struct images_rank *r, uint32_t number, enum images_demand what)
{
    if (r->demand == IMAGES_WANTED && r->demanded && number >= r->demanded)
        r->demand = what;
}

static void fail_request(struct images *im, uint32_t rank, const char *why, uint64_t now_ns)
{
    struct images_rank *r = &im->rank[rank];

    set_request(im, rank, IMAGES_IDLE);
    r->pause_ns = doubled(r->pause_ns, IMAGES_RETRY_MIN_NS, IMAGES_RETRY_MAX_NS);
    r->retry_ns = now_ns + r->pause_ns;
    settle_demand(r, r->number, IMAGES_FAILED);
    snprintf(r->why, sizeof(r->why), "%s", why);
}

void images_rank_live(struct images *im, uint32_t rank, uint32_t incarnation, uint64_t now_ns)
{
    struct images_rank *r = &im->rank[rank];

    if (r->live && r->incarnation == incarnation)
        return;
    if (r->incarnation == 0) {
        r->history.first = true;
        r->history.since_ns = now_ns;
    }
    r->live = true;
    r->incarnation = incarnation;
    im->changed = true;
}

void images_rank_down(struct images *im, uint32_t rank, bool crashed)
{
    struct images_rank *r = &im->rank[rank];

    im->crashes += crashed;
    r->live = r->stuck = false;
    set_request(im, rank, IMAGES_IDLE);
    if (r->demand == IMAGES_WANTED)
        r->demand = IMAGES_FAILED;
}

/* What is left of a log that was trimmed is what had come since the image was taken, and what
 * cannot go: messages that the rank has not received. */
void images_log(struct images *im, uint32_t rank, uint64_t bytes)
{
    struct images_rank *r = &im->rank[rank];

    if (r->log_trimmed)
        r->log_taken = bytes > r->log_since ? bytes - r->log_since : 0;
    r->log_trimmed = false;
    r->log_bytes = bytes;
    if (bytes < r->log_taken)
        r->log_taken = bytes;
    r->history.log_grown = bytes - r->log_taken;
    im->changed |= r->live && image_policy_is_grown(&im->config.policy, r->history.log_grown);
}

/* The next one is due some time after this one. */
static void note_taken(struct images_rank *r, uint64_t now_ns)
{
    r->log_taken = r->log_bytes;
    r->log_since = 0;
    r->history.since_ns = now_ns;
    r->history.log_grown = 0;
}

/* That of one which was given up, too early, counts too. */
bool images_taken(struct images *im, uint32_t rank, const struct cw_image_report *report,
                  uint64_t now_ns)
{
    struct images_rank *r = &im->rank[rank];

    if (!r->live || report->number > r->last ||
        report->number <= image_newest_number(r, image_is_held) ||
        (r->request == IMAGES_TAKEN && report->number <= r->number))
        return false;
    set_request(im, rank, IMAGES_TAKEN);
    r->number = report->number;
    r->taken_ns = now_ns;
    note_taken(r, now_ns);
    return true;
}

bool images_ended(struct images *im, uint32_t rank, const struct cw_image_report *report,
                  const char *why, uint64_t now_ns)
{
    struct images_rank *r = &im->rank[rank];
    bool at_hand = r->request != IMAGES_IDLE && report->number == r->number;

    r->stuck = false;
    if (!report->stored) {
        if (at_hand)
            fail_request(im, rank, why, now_ns);
        return at_hand;
    }
    if (report->number != r->number)
        return false;
    /* that it is stored the server says itself, before this is heard or after */
    r->history.sent = report->sent;
    if (at_hand)
        r->stall_ns = report->stall_ns;
    else
        r->history.cost_ns += report->stall_ns;
    return true;
}

/* It is not known yet. One that goes to none of the servers that were asked last was asked for
 * before, and goes to that one alone. */
static struct images_image *take_new(struct images *im, const struct cw_stored *stored,
                                     uint32_t server, uint64_t now_ns)
{
    struct images_rank *r = &im->rank[stored->rank];
    struct images_image *image = image_place_for(r);
    bool asked = stored->number == r->number && has_server(r->asked, server);

    *image = (struct images_image){.number = stored->number,
                                   .wanted = asked ? r->asked : 1u << server,
                                   .set = stored->number == r->number ? r->set : 0,
                                   .unusable = stored->number <= r->voided,
                                   .point = stored->point,
                                   .bytes = stored->bytes,
                                   .stored_ns = now_ns};
    im->changed = true;
    return image;
}

/* Each server that is to have it has it. */
static void come_whole(struct images *im, uint32_t rank, struct images_image *image,
                       uint64_t now_ns)
{
    struct images_rank *r = &im->rank[rank];

    image->whole = im->changed = true;
    if (image->number != r->number)
        return;
    if (!r->taken_ns) /* the rank's word of it comes later */
        note_taken(r, now_ns);
    r->history.first = false;
    r->history.cost_ns = r->stall_ns + (r->taken_ns ? now_ns - r->taken_ns : 0);
    r->stall_ns = r->pause_ns = r->retry_ns = 0;
    set_request(im, rank, IMAGES_IDLE);
}

static struct images_image *take_stored(struct images *im, const struct cw_stored *stored,
                                        uint32_t server, uint64_t now_ns)
{
    struct images_image *image = image_find(&im->rank[stored->rank], stored->number);

    if (!image)
        image = take_new(im, stored, server, now_ns);
    image->held |= 1u << server;
    if (!image->whole && (image->held & image->wanted) == image->wanted)
        come_whole(im, stored->rank, image, now_ns);
    return image;
}

bool images_stored(struct images *im, uint32_t server, const struct cw_stored *stored,
                   uint64_t now_ns)
{
    struct images_rank *r = stored->rank < im->config.ranks ? &im->rank[stored->rank] : NULL;
    const struct images_image *known = r && stored->number ? image_find(r, stored->number) : NULL;
    bool whole;

    if (!r || stored->number > r->last ||
        (known ? has_server(known->held, server)
               : stored->number <= image_newest_number(r, image_is_held)))
        return false;
    whole = take_stored(im, stored, server, now_ns)->whole;
    image_look_at_surplus(r, server);
    return whole;
}

void images_placed(struct images *im, uint32_t rank, uint32_t number)
{
    struct images_image *image = number ? image_find(&im->rank[rank], number) : NULL;

    if (!image || image->placed)
        return;
    image->placed = true;
    settle_demand(&im->rank[rank], number, IMAGES_DONE);
    im->changed = true;
}

/* --- stored ones --- */

static bool same_point(const struct cw_point *a, const struct cw_point *b)
{
    return a->event == b->event && a->clock == b->clock && a->acts == b->acts;
}

/* The image that TRIM was sent for; NULL: nobody waits for this answer. */
static struct images_image *trim_of(struct images_rank *r, const struct cw_point *point)
{
    for (struct images_image *image = r->image; image < r->image + IMAGES_KNOWN_MAX; image++)
        if (image->number > r->begin && image->trim_ns && same_point(&image->point, point))
            return image;
    return NULL;
}

uint32_t images_trimmed(struct images *im, const struct cw_trim *trimmed)
{
    struct images_rank *r = trimmed->rank < im->config.ranks ? &im->rank[trimmed->rank] : NULL;
    struct images_image *image = r ? trim_of(r, &trimmed->point) : NULL;

    if (!image)
        return 0;
    im->changed = true;
    if (!trimmed->known) { /* of several answers one may be good, and which this is nobody knows */
        image->unusable |= image->trims == 1;
        return 0;
    }
    r->log_since = r->log_bytes - r->log_taken;
    r->log_trimmed = true;
    return r->begin = image->number;
}

void images_fail(struct images *im, uint32_t rank, uint32_t number, const char *why)
{
    struct images_rank *r = &im->rank[rank];
    struct images_image *image = number ? image_find(r, number) : NULL;

    if (image) {
        image->unusable = true;
        settle_demand(r, number, IMAGES_FAILED);
    }
    r->fetch_ns = 0;
    if (why)
        snprintf(r->why, sizeof(r->why), "%s", why);
    im->changed = true;
}

/* --- servers --- */

void images_server_opens(struct images *im, uint32_t server)
{
    for (uint32_t rank = 0; rank < im->config.ranks; rank++)
        for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++)
            im->rank[rank].image[i].listed &= ~(1u << server);
}

void images_held(struct images *im, uint32_t server, const struct cw_stored *held, uint64_t now_ns)
{
    struct images_rank *r = held->rank < im->config.ranks ? &im->rank[held->rank] : NULL;

    if (!r)
        return;
    if (held->number <= r->dropped)
        r->dropped = held->number - 1; /* it was not told, or did not listen: once more */
    if (held->number == 0 || held->number > r->last || held->number < r->begin)
        return;
    take_stored(im, held, server, now_ns)->listed |= 1u << server;
}

void images_return(struct images *im, uint32_t rank, uint32_t number, bool begins)
{
    struct images_rank *r = &im->rank[rank];

    if (number > r->last)
        r->last = number;
    if (begins && number > r->begin)
        r->begin = number;
}

void images_hurry(struct images *im, uint32_t server)
{
    for (uint32_t rank = 0; rank < im->config.ranks; rank++)
        if (has_server(im->rank[rank].servers | image_all_servers(&im->rank[rank]), server))
            im->rank[rank].fetch_ns = 0;
    im->changed = true;
}

/* What was not listed the server has lost. */
void images_held_end(struct images *im, uint32_t server)
{
    for (uint32_t rank = 0; rank < im->config.ranks; rank++)
        for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++) {
            struct images_image *image = &im->rank[rank].image[i];

            image->held &= image->listed | ~(1u << server);
        }
    im->server[server].up = true;
    images_hurry(im, server);
}

/* What was being copied there may have come to its end, or not: the rank will say. */
void images_server_lost(struct images *im, uint32_t server)
{
    im->server[server].up = false;
}

/* A request that goes to none of its servers any more is over; its copy may be on its way yet. */
void images_assign(struct images *im, uint32_t rank, uint32_t servers)
{
    struct images_rank *r = &im->rank[rank];

    if (r->servers == servers)
        return;
    r->servers = servers;
    if (r->request != IMAGES_IDLE && r->asked & ~servers) {
        r->stuck |= r->request == IMAGES_TAKEN;
        set_request(im, rank, IMAGES_IDLE);
        r->retry_ns = 0;
    }
    im->config.policy.turns = turns_of(im);
    im->changed = true;
}

uint32_t images_server_gone(struct images *im, uint32_t server, uint32_t rank)
{
    struct images_rank *r = &im->rank[rank];
    uint32_t number = image_newest_number(r, image_is_usable);

    im->server[server].up = false;
    image_forget_servers(r, 1u << server);
    images_assign(im, rank, r->servers & ~(1u << server));
    r->fetch_ns = 0;
    im->changed = true;
    return image_newest_number(r, image_is_usable) < number ? number : 0;
}

/* --- restarts --- */

void images_restart(struct images *im, uint32_t rank)
{
    im->rank[rank].restart = IMAGES_RESTART_DUE;
    im->changed = true;
}

bool images_fetched(struct images *im, uint32_t rank)
{
    bool expected = im->rank[rank].restart == IMAGES_FETCHING;

    if (expected)
        im->rank[rank].restart = IMAGES_NO_RESTART;
    return expected;
}

bool images_lacks(struct images *im, uint32_t rank, uint32_t number, uint32_t server)
{
    struct images_image *image = number ? image_find(&im->rank[rank], number) : NULL;

    if (!image || !(image->held & ~(1u << server)))
        return false;
    image->held &= ~(1u << server);
    im->changed = true;
    return image_is_usable(&im->rank[rank], image);
}

bool images_broke_off(struct images *im, uint32_t rank, bool away, uint64_t now_ns, uint32_t *tries)
{
    struct images_rank *r = &im->rank[rank];
    uint64_t pause_ns = IMAGES_FETCH_PAUSE_MIN_NS;

    r->breaks += !away;
    r->away += away;
    *tries = r->breaks + r->away;
    for (uint32_t i = 1; i < *tries; i++)
        pause_ns = doubled(pause_ns, 0, IMAGES_FETCH_PAUSE_MAX_NS);
    r->fetch_ns = now_ns + pause_ns;
    return r->breaks < IMAGES_BREAKS_MAX &&
           r->away < (r->begin > 0 ? IMAGES_AWAY_MAX : IMAGES_AWAY_BEGIN_MAX);
}

void images_started(struct images *im, uint32_t rank, uint32_t number)
{
    im->rank[rank].from = number;
}

void images_restarted(struct images *im, uint32_t rank)
{
    im->rank[rank].fetch_ns = 0;
    im->rank[rank].breaks = im->rank[rank].away = 0;
}

/* --- what is to be done --- */

/* By hand; one that is stored is not asked for again while its place is looked for. */
static bool is_wanted(struct images_rank *r)
{
    return r->demand == IMAGES_WANTED &&
           (!r->demanded || image_newest_number(r, image_is_held) < r->demanded);
}

static uint64_t ask_due_ns(const struct images *im, struct images_rank *r)
{
    uint64_t due_ns = image_policy_due_ns(&im->config.policy, &r->history, im->mtbf_ns);

    if (!r->live || r->request != IMAGES_IDLE || !r->servers)
        return UINT64_MAX;
    if (image_is_missing(r) || is_wanted(r) || image_is_displaced(r))
        due_ns = 0;
    return due_ns > r->retry_ns ? due_ns : r->retry_ns;
}

bool images_wants_server(const struct images *im, uint32_t server, uint64_t now_ns)
{
    for (uint32_t rank = 0; rank < im->config.ranks; rank++)
        if (has_server(im->rank[rank].servers, server) && ask_due_ns(im, &im->rank[rank]) <= now_ns)
            return true;
    return false;
}

void images_demand_all(struct images *im)
{
    for (uint32_t rank = 0; rank < im->config.ranks; rank++) {
        struct images_rank *r = &im->rank[rank];

        r->demand = r->live ? IMAGES_WANTED : IMAGES_FAILED;
        if (!r->live)
            strcpy(r->why, "it has ended, is down, or repeats what it did");
        r->demanded = 0;
        r->retry_ns = 0;
    }
    im->changed = true;
}

void images_demand_fail(struct images *im, uint32_t rank, const char *why)
{
    struct images_rank *r = &im->rank[rank];

    if (!is_wanted(r) || r->request != IMAGES_IDLE)
        return;
    r->demand = IMAGES_FAILED;
    snprintf(r->why, sizeof(r->why), "%s", why);
}

static uint64_t request_end_ns(const struct images_rank *r)
{
    if (is_asked(r))
        return r->asked_ns + IMAGES_TAKE_NS;
    if (r->request == IMAGES_TAKEN)
        return r->taken_ns + IMAGES_STORE_NS +
               r->history.sent / IMAGES_STORE_BYTES_A_SECOND * 1000000000ull;
    return UINT64_MAX;
}

/* --- one rank --- */

/* Its server has something to gain from an image of this one before it has those of others. */
static bool is_urgent(const struct images *im, struct images_rank *r, uint64_t now_ns)
{
    return ask_due_ns(im, r) <= now_ns &&
           (is_wanted(r) || image_is_missing(r) || image_is_displaced(r) ||
            r->history.log_grown >= im->config.policy.log_urgent);
}

static bool has_room(const struct images *im, uint32_t servers, bool urgent)
{
    for (uint32_t i = 0; i < im->config.servers; i++) {
        const struct images_server *server = &im->server[i];

        if (has_server(servers, i) &&
            ((!urgent && server->urgent > 0) ||
             server->requests[IMAGES_ASKED] + server->requests[IMAGES_TAKEN] >=
                 IMAGES_TRANSFERS_MAX))
            return false;
    }
    return are_up(im, servers);
}

static enum images_action ask(struct images_rank *r, uint64_t now_ns, struct images_order *order)
{
    r->number = ++r->last;
    r->base = image_newest_number(r, image_is_base);
    r->taken_ns = 0;
    r->again_ns = now_ns + IMAGES_ASK_AGAIN_NS;
    if (r->demand == IMAGES_WANTED && !r->demanded)
        r->demanded = r->number;
    order->number = r->number;
    order->base = r->base;
    order->servers = r->asked;
    order->set = r->set;
    return IMAGES_ASK;
}

static enum images_action begin_request(struct images *im, uint32_t rank, uint64_t now_ns,
                                        bool urgent, struct images_order *order)
{
    bool changed = im->changed;

    set_servers(im, rank, im->rank[rank].servers);
    set_request(im, rank, IMAGES_ASKED);
    for (uint32_t i = 0; i < im->config.servers; i++)
        im->server[i].urgent -=
            urgent && has_server(im->rank[rank].asked, i) && im->server[i].urgent > 0;
    im->changed = changed || (urgent && im->skipped); /* it may be the turn of that one now */
    im->rank[rank].asked_ns = now_ns;
    im->rank[rank].demanded = 0;
    im->rank[rank].set = image_sets_join(im, rank);
    return ask(&im->rank[rank], now_ns, order);
}

static enum images_action give_up(struct images *im, uint32_t rank, uint64_t now_ns,
                                  struct images_order *order)
{
    struct images_rank *r = &im->rank[rank];

    order->number = r->number;
    if (r->request == IMAGES_TAKEN)
        order->why = "its copy does not come to an end";
    else if (r->stuck)
        order->why = "the copy of an earlier one does not come to an end";
    else
        order->why = "it did not answer for 60 s: the rank makes no MPI call, or has no connection";
    r->stuck |= r->request == IMAGES_TAKEN;
    fail_request(im, rank, order->why, now_ns);
    return IMAGES_GIVE_UP;
}

static enum images_action restart(struct images *im, uint32_t rank, struct images_order *order)
{
    struct images_rank *r = &im->rank[rank];
    bool any = images_choose(im, rank, &order->number);

    r->fetch_ns = 0;
    r->restart = order->number ? IMAGES_FETCHING : IMAGES_NO_RESTART;
    if (order->number) {
        order->servers = image_find(r, order->number)->held;
        return IMAGES_FETCH;
    }
    return any ? IMAGES_BEGIN : IMAGES_LOST;
}

static enum images_action trim(struct images_image *image, uint64_t now_ns,
                               struct images_order *order)
{
    image->trim_ns = now_ns;
    image->trims++;
    order->number = image->number;
    order->set = image->set;
    order->point = image->point;
    return IMAGES_TRIM;
}

static enum images_action drop(struct images_rank *r, uint32_t number, struct images_order *order)
{
    r->dropped = order->number = number;
    order->servers = r->servers | image_all_servers(r);
    for (struct images_image *image = r->image; image < r->image + IMAGES_KNOWN_MAX; image++)
        if (image->number <= number)
            *image = (struct images_image){0};
    return IMAGES_DROP;
}

/* Whether that is due; else the rank is to be looked at then, at the latest. */
static bool is_due(struct images *im, uint64_t at_ns, uint64_t now_ns)
{
    if (at_ns > now_ns && at_ns < im->pass_due_ns)
        im->pass_due_ns = at_ns;
    return at_ns <= now_ns;
}

static bool may_be_late(const struct images *im, uint32_t servers)
{
    for (uint32_t i = 0; i < im->config.servers; i++)
        if (has_server(servers, i) && im->server[i].requests[IMAGES_LATE] >= IMAGES_LATE_MAX)
            return false;
    return true;
}

/* It computes, and others could be asked. */
static void look_at_turn(struct images *im, uint32_t rank, uint64_t now_ns)
{
    const struct images_rank *r = &im->rank[rank];

    if (r->request == IMAGES_ASKED && may_be_late(im, r->asked) &&
        is_due(im, r->asked_ns + IMAGES_ASK_NS, now_ns))
        set_request(im, rank, IMAGES_LATE);
}

/* The others of its group follow in the next pass at the latest. */
static enum images_action begin(struct images *im, uint32_t rank, uint64_t now_ns, bool urgent,
                                struct images_order *order)
{
    if (!image_sets_begin(im, rank))
        return IMAGES_NOTHING;
    begin_request(im, rank, now_ns, urgent, order);
    im->changed |= im->config.of_group != NULL;
    return IMAGES_ASK;
}

/* What waits for room, or for its server, does not wait for a time. */
static enum images_action look_at_next(struct images *im, uint32_t rank, uint64_t now_ns,
                                       struct images_order *order)
{
    bool urgent = is_urgent(im, &im->rank[rank], now_ns);

    if (image_sets_waits_for(im, rank) && are_up(im, im->rank[rank].servers))
        return begin_request(im, rank, now_ns, urgent, order);
    if (!is_due(im, ask_due_ns(im, &im->rank[rank]), now_ns))
        return IMAGES_NOTHING;
    if (has_room(im, im->rank[rank].servers, urgent))
        return begin(im, rank, now_ns, urgent, order);
    if (!im->skipped) {
        im->skipped = true;
        im->skipped_rank = rank;
    }
    return IMAGES_NOTHING;
}

static enum images_action attend(struct images *im, uint32_t rank, uint64_t now_ns,
                                 struct images_order *order)
{
    struct images_rank *r = &im->rank[rank];
    struct images_image *trimmed = image_sets_to_trim(im, rank);
    uint32_t dropped = image_to_drop(r);

    *order = (struct images_order){.rank = rank};
    if (r->restart == IMAGES_RESTART_DUE && is_due(im, r->fetch_ns, now_ns))
        return restart(im, rank, order);
    if (is_due(im, request_end_ns(r), now_ns))
        return give_up(im, rank, now_ns, order);
    look_at_turn(im, rank, now_ns);
    if (trimmed && is_due(im, trimmed->trim_ns ? trimmed->trim_ns + IMAGES_TRIM_NS : 0, now_ns))
        return trim(trimmed, now_ns, order);
    if (dropped > r->dropped && are_up(im, r->servers))
        return drop(r, dropped, order);
    if (is_asked(r) && is_due(im, r->again_ns, now_ns))
        return ask(r, now_ns, order);
    return look_at_next(im, rank, now_ns, order);
}

uint64_t images_deadline_ns(const struct images *im)
{
    return im->changed || im->passing ? 0 : im->due_ns;
}

static void begin_pass(struct images *im, uint64_t now_ns)
{
    uint64_t ranks_ns = (now_ns - im->start_ns) * im->config.ranks;

    im->mtbf_ns = image_policy_mtbf_ns(&im->config.policy, ranks_ns, im->crashes);
    for (uint32_t i = 0; i < im->config.servers; i++)
        im->server[i].urgent = 0;
    for (uint32_t rank = 0; rank < im->config.ranks; rank++)
        if (is_urgent(im, &im->rank[rank], now_ns))
            for (uint32_t i = 0; i < im->config.servers; i++)
                im->server[i].urgent += has_server(im->rank[rank].servers, i);
    image_sets_look(im);
    im->changed = im->skipped = false;
    im->passing = true;
    im->passed = 0;
    im->pass_due_ns = UINT64_MAX;
}

/* Goes through the ranks in turn, from where the last pass found no more room. */
enum images_action images_next(struct images *im, uint64_t now_ns, struct images_order *order)
{
    if (!im->passing && !im->changed && now_ns < im->due_ns)
        return IMAGES_NOTHING;
    if (!im->passing)
        begin_pass(im, now_ns);
    for (; im->passed < im->config.ranks; im->passed++) {
        enum images_action action =
            attend(im, (im->first + im->passed) % im->config.ranks, now_ns, order);

        if (action != IMAGES_NOTHING)
            return action;
    }
    im->passing = false;
    im->due_ns = im->pass_due_ns;
    if (im->skipped)
        im->first = im->skipped_rank;
    return IMAGES_NOTHING;
}
