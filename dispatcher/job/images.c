#include "dispatcher/job/images.h"

#include <assert.h>
#include <string.h>

/* How many images are copied one after the other until each rank of a server has one. */
static uint32_t turns_of(const struct images *im)
{
    uint32_t ranks[IMAGES_SERVERS_MAX] = {0}, most = 0;

    for (uint32_t rank = 0; rank < im->config.ranks; rank++)
        if (++ranks[images_server_of(im, rank)] > most)
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
    im->config.policy.turns = turns_of(im);
}

uint32_t images_server_of(const struct images *im, uint32_t rank)
{
    return im->config.of_rank ? im->config.of_rank[rank] : rank % im->config.servers;
}

static struct images_server *server_of(struct images *im, uint32_t rank)
{
    return &im->server[images_server_of(im, rank)];
}

/* --- entries --- */

static struct images_image *find(struct images_rank *r, uint32_t number)
{
    for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++)
        if (r->image[i].number == number)
            return &r->image[i];
    return NULL;
}

static bool is_usable(const struct images_image *image)
{
    return image->number && image->held && !image->unusable;
}

/* What it would be good for. */
static bool can_go_on(const struct images_rank *r, const struct images_image *image)
{
    return is_usable(image) && image->placed && image->number >= r->begin;
}

/* For a new one: a free entry, or that of one which is of no use; NULL: there is none. */
static struct images_image *place_for(struct images_rank *r)
{
    struct images_image *worst = NULL;

    for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++) {
        struct images_image *image = &r->image[i];

        if (image->number == 0)
            return image;
        if ((!is_usable(image) || image->number < r->begin) &&
            (!worst || image->number < worst->number))
            worst = image;
    }
    return worst;
}

static void know(struct images_rank *r, const struct cw_stored *stored, uint64_t now_ns)
{
    struct images_image *image = place_for(r);

    if (stored->number > r->newest)
        r->newest = stored->number;
    if (stored->number > r->last)
        r->last = stored->number;
    if (image)
        *image = (struct images_image){.number = stored->number,
                                       .incarnation = stored->incarnation,
                                       .point = stored->point,
                                       .bytes = stored->bytes,
                                       .stored_ns = now_ns,
                                       .held = true};
}

const struct images_image *images_find(const struct images *im, uint32_t rank, uint32_t number)
{
    const struct images_image *newest = NULL;

    for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++) {
        const struct images_image *image = &im->rank[rank].image[i];

        if (is_usable(image) && (number == 0 || image->number == number) &&
            (!newest || image->number > newest->number))
            newest = image;
    }
    return newest;
}

bool images_choose(const struct images *im, uint32_t rank, uint32_t *number)
{
    const struct images_rank *r = &im->rank[rank];

    *number = 0;
    for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++)
        if (can_go_on(r, &r->image[i]) && r->image[i].number > *number)
            *number = r->image[i].number;
    return *number > 0 || r->begin == 0;
}

/* --- requests --- */

/* Its turn is over, or it waited without one. */
static void leave_turn(struct images *im, uint32_t rank)
{
    struct images_rank *r = &im->rank[rank];

    if (r->late)
        server_of(im, rank)->late--;
    else if (r->request != IMAGES_IDLE)
        server_of(im, rank)->transfers--;
    r->late = false;
}

/* The request is over. */
static void end_request(struct images *im, uint32_t rank)
{
    if (im->rank[rank].request == IMAGES_IDLE)
        return;
    leave_turn(im, rank);
    im->rank[rank].request = IMAGES_IDLE;
    im->changed = true;
}

void images_not_asked(struct images *im, uint32_t rank, uint64_t now_ns)
{
    if (im->rank[rank].request != IMAGES_ASKED)
        return;
    end_request(im, rank);
    im->rank[rank].retry_ns = now_ns + IMAGES_RETRY_MIN_NS;
}

static void fail_request(struct images *im, uint32_t rank, uint64_t now_ns)
{
    struct images_rank *r = &im->rank[rank];

    end_request(im, rank);
    r->pause_ns = r->pause_ns ? 2 * r->pause_ns : IMAGES_RETRY_MIN_NS;
    if (r->pause_ns > IMAGES_RETRY_MAX_NS)
        r->pause_ns = IMAGES_RETRY_MAX_NS;
    r->retry_ns = now_ns + r->pause_ns;
    if (r->demand == IMAGES_WANTED && r->demanded && r->demanded <= r->number)
        r->demand = IMAGES_FAILED;
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
    r->stuck = false;
    im->changed = true;
    r->live = false;
    end_request(im, rank);
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

bool images_taken(struct images *im, uint32_t rank, const struct cw_image_report *report,
                  uint64_t now_ns)
{
    struct images_rank *r = &im->rank[rank];

    if (!r->live || report->number > r->last || report->number <= r->newest ||
        (r->request == IMAGES_TAKEN && report->number <= r->number))
        return false;
    if (r->request == IMAGES_IDLE || r->late) /* it was given up, too early */
        server_of(im, rank)->transfers++;
    if (r->late)
        leave_turn(im, rank);
    r->request = IMAGES_TAKEN;
    r->number = report->number;
    r->taken_ns = now_ns;
    note_taken(r, now_ns);
    im->changed = true;
    return true;
}

bool images_ended(struct images *im, uint32_t rank, const struct cw_image_report *report,
                  uint64_t now_ns)
{
    struct images_rank *r = &im->rank[rank];
    bool at_hand = r->request != IMAGES_IDLE && report->number == r->number;

    r->stuck = false;
    if (!report->stored) {
        if (at_hand)
            fail_request(im, rank, now_ns);
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

/* The server has one more; if those were too many, the oldest but one is not there any more. */
static void look_at_surplus(struct images_rank *r)
{
    struct images_image *oldest = NULL, *second = NULL;
    uint32_t count = 0;

    for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++) {
        struct images_image *image = &r->image[i];

        if (!image->number || !image->held)
            continue;
        count++;
        if (!oldest || image->number < oldest->number) {
            second = oldest;
            oldest = image;
        } else if (!second || image->number < second->number) {
            second = image;
        }
    }
    if (count > IMAGES_HELD_MAX)
        second->held = false;
}

/* Of an image that was asked for by hand, or a later one. */
static void settle_demand(struct images_rank *r, uint32_t number, enum images_demand what)
{
    if (r->demand == IMAGES_WANTED && r->demanded && number >= r->demanded)
        r->demand = what;
}

/* It is not known yet. */
static void take_stored(struct images *im, const struct cw_stored *stored, uint64_t now_ns)
{
    struct images_rank *r = &im->rank[stored->rank];

    know(r, stored, now_ns);
    im->changed = true;
    if (stored->number == r->number) {
        if (!r->taken_ns) /* the rank's word of it comes later */
            note_taken(r, now_ns);
        r->history.first = false;
        r->history.cost_ns = r->stall_ns + (r->taken_ns ? now_ns - r->taken_ns : 0);
        r->stall_ns = 0;
        r->pause_ns = r->retry_ns = 0;
        end_request(im, stored->rank);
    }
    if (!find(r, stored->number))
        settle_demand(r, stored->number, IMAGES_FAILED);
}

bool images_stored(struct images *im, const struct cw_stored *stored, uint64_t now_ns)
{
    const struct images_rank *r;

    if (stored->rank >= im->config.ranks)
        return false;
    r = &im->rank[stored->rank];
    if (stored->number <= r->newest || stored->number > r->last)
        return false;
    take_stored(im, stored, now_ns);
    look_at_surplus(&im->rank[stored->rank]);
    return true;
}

void images_placed(struct images *im, uint32_t rank, uint32_t number)
{
    struct images_image *image = number ? find(&im->rank[rank], number) : NULL;

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

uint32_t images_trimmed(struct images *im, const struct cw_trim *trimmed)
{
    struct images_rank *r;

    if (trimmed->rank >= im->config.ranks)
        return 0;
    r = &im->rank[trimmed->rank];
    for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++) {
        struct images_image *image = &r->image[i];

        if (!image->number || !image->trim_ns || image->number <= r->begin ||
            !same_point(&image->point, &trimmed->point))
            continue;
        im->changed = true;
        /* of several answers the last one counts, and which this is nobody knows */
        if (!trimmed->known && image->trims > 1)
            return 0;
        image->unusable |= !trimmed->known;
        if (!trimmed->known)
            return 0;
        r->log_since = r->log_bytes - r->log_taken;
        r->log_trimmed = true;
        return r->begin = image->number;
    }
    return 0;
}

void images_fail(struct images *im, uint32_t rank, uint32_t number)
{
    struct images_image *image = number ? find(&im->rank[rank], number) : NULL;

    if (image) {
        image->unusable = true;
        settle_demand(&im->rank[rank], number, IMAGES_FAILED);
    }
    im->changed = true;
}

/* --- servers --- */

void images_server_opens(struct images *im, uint32_t server)
{
    for (uint32_t rank = 0; rank < im->config.ranks; rank++)
        for (uint32_t i = 0; images_server_of(im, rank) == server && i < IMAGES_KNOWN_MAX; i++)
            im->rank[rank].image[i].listed = false;
}

void images_held(struct images *im, const struct cw_stored *held, uint64_t now_ns)
{
    struct images_rank *r;
    struct images_image *image;

    if (held->rank >= im->config.ranks)
        return;
    r = &im->rank[held->rank];
    if (held->number <= r->dropped)
        r->dropped = held->number - 1; /* it was not told, or did not listen: once more */
    if (held->number > r->last || held->number < r->begin)
        return;
    if (!find(r, held->number))
        take_stored(im, held, now_ns);
    image = find(r, held->number);
    if (image)
        image->held = image->listed = true;
}

void images_return(struct images *im, uint32_t rank, uint32_t last, uint32_t begin)
{
    im->rank[rank].last = last;
    im->rank[rank].begin = begin;
}

/* What was not listed the server has lost. */
void images_held_end(struct images *im, uint32_t server)
{
    for (uint32_t rank = 0; rank < im->config.ranks; rank++) {
        struct images_rank *r = &im->rank[rank];

        if (images_server_of(im, rank) != server)
            continue;
        r->newest = 0;
        for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++) {
            struct images_image *image = &r->image[i];

            image->held &= image->listed;
            if (image->held && image->number > r->newest)
                r->newest = image->number;
        }
    }
    im->server[server].up = true;
    im->changed = true;
}

/* What was being copied there may have come to its end, or not: the rank will say. */
void images_server_lost(struct images *im, uint32_t server)
{
    im->server[server].up = false;
}

/* --- what is to be done --- */

/* Nothing would be left that the rank could be restarted from. */
static bool is_bare(const struct images_rank *r)
{
    for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++)
        if (is_usable(&r->image[i]) && r->image[i].number >= r->begin)
            return false;
    return r->begin > 0;
}

/* By hand; one that is stored is not asked for again while its place is looked for. */
static bool is_wanted(const struct images_rank *r)
{
    return r->demand == IMAGES_WANTED && (!r->demanded || r->newest < r->demanded);
}

static uint64_t ask_due_ns(const struct images *im, const struct images_rank *r)
{
    uint64_t due_ns = image_policy_due_ns(&im->config.policy, &r->history, im->mtbf_ns);

    if (!r->live || r->request != IMAGES_IDLE)
        return UINT64_MAX;
    if (is_bare(r) || is_wanted(r))
        due_ns = 0;
    return due_ns > r->retry_ns ? due_ns : r->retry_ns;
}

bool images_wants_server(const struct images *im, uint32_t server, uint64_t now_ns)
{
    for (uint32_t rank = 0; rank < im->config.ranks; rank++)
        if (images_server_of(im, rank) == server && ask_due_ns(im, &im->rank[rank]) <= now_ns)
            return true;
    return false;
}

void images_demand_all(struct images *im)
{
    for (uint32_t rank = 0; rank < im->config.ranks; rank++) {
        struct images_rank *r = &im->rank[rank];

        r->demand = r->live ? IMAGES_WANTED : IMAGES_FAILED;
        r->demanded = 0;
        r->retry_ns = 0;
    }
    im->changed = true;
}

bool images_demand_fail(struct images *im, uint32_t rank)
{
    struct images_rank *r = &im->rank[rank];

    if (!is_wanted(r) || r->request != IMAGES_IDLE)
        return false;
    r->demand = IMAGES_FAILED;
    return true;
}

static uint64_t request_end_ns(const struct images_rank *r)
{
    if (r->request == IMAGES_ASKED)
        return r->asked_ns + IMAGES_TAKE_NS;
    if (r->request == IMAGES_TAKEN)
        return r->taken_ns + IMAGES_STORE_NS +
               r->history.sent / IMAGES_STORE_BYTES_A_SECOND * 1000000000ull;
    return UINT64_MAX;
}

static enum images_action order_give_up(struct images *im, uint32_t rank, uint64_t now_ns,
                                        struct images_order *order)
{
    struct images_rank *r = &im->rank[rank];

    *order = (struct images_order){
        .rank = rank, .number = r->number, .why = "its copy does not come to an end"};
    if (r->request == IMAGES_ASKED)
        order->why =
            r->stuck
                ? "the copy of an earlier one does not come to an end"
                : "it did not answer for 60 s: the rank makes no MPI call, or has no connection";
    r->stuck |= r->request == IMAGES_TAKEN;
    fail_request(im, rank, now_ns);
    return IMAGES_GIVE_UP;
}

/* The newest one that the log could begin at, and is not known to begin at or behind. Not while the
 * rank is down or repeats: what it is started from was chosen, and must not be trimmed away
 * meanwhile. */
static struct images_image *to_trim(struct images_rank *r)
{
    struct images_image *newest = NULL;

    if (!r->live)
        return NULL;
    for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++)
        if (can_go_on(r, &r->image[i]) && (!newest || r->image[i].number > newest->number))
            newest = &r->image[i];
    return newest && newest->number > r->begin ? newest : NULL;
}

/* All before the oldest that may be needed; not the base of an image that is on its way. */
static uint32_t to_drop(const struct images_rank *r)
{
    uint32_t oldest = r->newest + 1;
    bool usable = false;

    for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++)
        if (is_usable(&r->image[i]) && r->image[i].number >= r->begin) {
            usable = true;
            oldest = r->image[i].number < oldest ? r->image[i].number : oldest;
        }
    if (r->request != IMAGES_IDLE && r->base && r->base < oldest)
        oldest = r->base;
    /* the newest is the base of the next, even if nothing can go on from it */
    if (!usable && oldest > r->newest)
        oldest = r->newest;
    return oldest > 0 ? oldest - 1 : 0;
}

static uint64_t trim_due_ns(const struct images_image *image)
{
    return image->trim_ns ? image->trim_ns + IMAGES_TRIM_NS : 0;
}

/* --- one rank --- */

/* Its server has something to gain from an image of this one before it has those of others. */
static bool is_urgent(const struct images *im, struct images_rank *r, uint64_t now_ns)
{
    return ask_due_ns(im, r) <= now_ns && place_for(r) != NULL &&
           (is_wanted(r) || is_bare(r) || r->history.log_grown >= im->config.policy.log_urgent);
}

static bool has_room(const struct images *im, uint32_t rank, bool urgent)
{
    const struct images_server *server = &im->server[images_server_of(im, rank)];

    return server->up && server->transfers < IMAGES_TRANSFERS_MAX &&
           (urgent || server->urgent == 0) && place_for(&im->rank[rank]) != NULL;
}

static enum images_action order_ask(struct images *im, uint32_t rank, uint64_t now_ns,
                                    struct images_order *order)
{
    struct images_rank *r = &im->rank[rank];

    r->request = IMAGES_ASKED;
    r->number = ++r->last;
    r->base = r->newest;
    r->taken_ns = 0;
    r->again_ns = now_ns + IMAGES_ASK_AGAIN_NS;
    if (r->demand == IMAGES_WANTED && !r->demanded)
        r->demanded = r->number;
    *order = (struct images_order){.rank = rank, .number = r->number, .base = r->base};
    return IMAGES_ASK;
}

static enum images_action begin_request(struct images *im, uint32_t rank, uint64_t now_ns,
                                        bool urgent, struct images_order *order)
{
    struct images_server *server = server_of(im, rank);
    struct images_rank *r = &im->rank[rank];

    server->transfers++;
    server->urgent -= urgent && server->urgent > 0;
    im->changed |= urgent && im->skipped; /* it may be the turn of that one now */
    r->asked_ns = now_ns;
    r->demanded = 0;
    return order_ask(im, rank, now_ns, order);
}

static bool may_be_late(const struct images *im, uint32_t rank)
{
    return im->rank[rank].request == IMAGES_ASKED && !im->rank[rank].late &&
           im->server[images_server_of(im, rank)].late < IMAGES_LATE_MAX;
}

/* It computes, and others could be asked. */
static void look_at_turn(struct images *im, uint32_t rank, uint64_t now_ns)
{
    struct images_rank *r = &im->rank[rank];

    if (!may_be_late(im, rank) || now_ns < r->asked_ns + IMAGES_ASK_NS)
        return;
    leave_turn(im, rank);
    r->late = true;
    server_of(im, rank)->late++;
    im->changed = true;
}

static enum images_action attend(struct images *im, uint32_t rank, uint64_t now_ns,
                                 struct images_order *order)
{
    struct images_rank *r = &im->rank[rank];
    struct images_image *trim = to_trim(r);
    uint32_t drop = to_drop(r);
    bool urgent = is_urgent(im, r, now_ns);

    if (request_end_ns(r) <= now_ns)
        return order_give_up(im, rank, now_ns, order);
    look_at_turn(im, rank, now_ns);
    if (trim && trim_due_ns(trim) <= now_ns) {
        trim->trim_ns = now_ns;
        trim->trims++;
        *order = (struct images_order){.rank = rank, .number = trim->number, .point = trim->point};
        return IMAGES_TRIM;
    }
    if (drop > r->dropped && server_of(im, rank)->up) {
        r->dropped = drop;
        for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++)
            if (r->image[i].number <= drop)
                r->image[i] = (struct images_image){0};
        *order = (struct images_order){.rank = rank, .number = drop};
        return IMAGES_DROP;
    }
    if (r->request == IMAGES_ASKED && r->again_ns <= now_ns)
        return order_ask(im, rank, now_ns, order);
    if (ask_due_ns(im, r) > now_ns)
        return IMAGES_NOTHING;
    if (has_room(im, rank, urgent))
        return begin_request(im, rank, now_ns, urgent, order);
    if (!im->skipped) {
        im->skipped = true;
        im->skipped_rank = rank;
    }
    return IMAGES_NOTHING;
}

/* When there may be something about the rank by time alone. What waits for room, or for its server,
 * does not wait for a time. */
static uint64_t rank_due_ns(struct images *im, uint32_t rank, uint64_t now_ns)
{
    struct images_rank *r = &im->rank[rank];
    const struct images_image *trim = to_trim(r);
    uint64_t due_ns = request_end_ns(r);
    uint64_t ask_ns = ask_due_ns(im, r);

    if (trim && trim_due_ns(trim) < due_ns)
        due_ns = trim_due_ns(trim);
    if (ask_ns > now_ns && ask_ns < due_ns)
        due_ns = ask_ns;
    if (r->request == IMAGES_ASKED && r->again_ns < due_ns)
        due_ns = r->again_ns;
    if (may_be_late(im, rank) && r->asked_ns + IMAGES_ASK_NS < due_ns)
        due_ns = r->asked_ns + IMAGES_ASK_NS;
    return due_ns;
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
        server_of(im, rank)->urgent += is_urgent(im, &im->rank[rank], now_ns);
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
    while (im->passed < im->config.ranks) {
        uint32_t rank = (im->first + im->passed) % im->config.ranks;
        enum images_action action = attend(im, rank, now_ns, order);
        uint64_t due_ns;

        if (action != IMAGES_NOTHING)
            return action;
        due_ns = rank_due_ns(im, rank, now_ns);
        if (due_ns < im->pass_due_ns)
            im->pass_due_ns = due_ns;
        im->passed++;
    }
    im->passing = false;
    im->due_ns = im->pass_due_ns;
    if (im->skipped)
        im->first = im->skipped_rank;
    return IMAGES_NOTHING;
}
