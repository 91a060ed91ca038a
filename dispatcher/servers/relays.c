#include "dispatcher/servers/relays.h"
#include "common/cred.h"
#include "common/keyfile.h"
#include "common/secret.h"
#include "dispatcher/job/homes.h"
#include "dispatcher/servers/party.h"
#include "tunnels/ssh_address.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECT_MS 80000 /* for all places of a name */
#define HELLO_MS 10000
#define RESUME_PAUSE_MS 20      /* between two tries to resume a session; doubled each time ... */
#define RESUME_PAUSE_MAX_MS 500 /* ... up to this */
#define ROOM_MIN 65536          /* bytes that a relay can be told before it acknowledges any */
#define LINK_NS 15000000000ull  /* for the relays of a job to link to each other */

struct relay {
    struct relays *of;
    uint32_t number;
    bool listens;         /* one of our own does ... */
    uint32_t restarts;    /* ... having been started again so often */
    uint32_t incarnation; /* of its log at another place: 1, 2, ... */
    bool away;            /* the host of the one before is lost, and it is to listen elsewhere */
    uint32_t dials;       /* of its session: what comes of those before is of no use */
    struct party party;
    bool opened;
    bool over;             /* the session was given up */
    struct cw_err why;     /* the connection broke last */
    bool deaf;             /* it has not taken what it had to be told: to be given up */
    bool linked;           /* to all others */
    struct cw_copy copied; /* the last one that was sent; all zero: none */
};

struct relays {
    struct relays_config config;
    struct relay *relay;          /* config.relays of them; owned */
    uint8_t (*keys)[CW_KEY_SIZE]; /* of the job at each; as cw_secret_alloc made them; owned */
    uint8_t (*own)[CW_KEY_SIZE];  /* of our own, likewise: with copies, to start them elsewhere */
    struct opener *opener;
    bool ending;             /* the relays were told, or will be */
    struct loop_timer timer; /* when the next step has taken too long */
    enum { CLOSED, STARTING, LINKING, READY, FAILED } state;
};

static void on_timer(void *ctx);
static void on_opened(void *ctx, const struct cw_dial_result *result);
static const struct party_kind relay_kind;
static void give_up(struct relay *relay, struct cw_err *err);

/* For all routes, all links to other relays, and the ends and trims of ranks meanwhile. */
static size_t room(const struct relays_config *config)
{
    return ROOM_MIN +
           config->ranks * (3 * CW_FRAME_HEADER + CW_ROUTE_SIZE + CW_RANK_END_SIZE + CW_TRIM_SIZE) +
           config->relays * (CW_FRAME_HEADER + CW_LINK_SIZE + CW_LINK_ADDRESS_MAX);
}

struct relays *relays_new(const struct relays_config *config, struct cw_err *err)
{
    struct relays *r = calloc(1, sizeof(*r));

    err->code = CW_OK;
    if (r) {
        r->config = *config;
        r->relay = calloc(config->relays, sizeof(*r->relay));
        r->keys = cw_secret_alloc(config->relays * sizeof(*r->keys));
        r->own = cw_secret_alloc(config->relays * sizeof(*r->own));
    }
    if (!r || !r->relay || !r->keys || !r->own) {
        cw_err_set(err, CW_ENOMEM, "no memory for a job of %u ranks", config->ranks);
        relays_free(r);
        return NULL;
    }
    for (uint32_t i = 0; i < config->relays && err->code == CW_OK; i++) {
        struct relay *relay = &r->relay[i];

        *relay = (struct relay){.of = r, .number = i, .incarnation = 1};
        party_init(&relay->party, config->loop, &relay_kind, relay, room(config), err);
        relay->party.key = r->keys[i];
    }
    loop_timer_add(config->loop, &r->timer, on_timer, r);
    r->opener = err->code ? NULL : opener_new(config->loop, on_opened, r, err);
    if (r->opener)
        return r;
    relays_free(r);
    return NULL;
}

void relays_free(struct relays *r)
{
    uint32_t relays = r && r->relay ? r->config.relays : 0;

    if (!r)
        return;
    opener_free(r->opener);
    relays_end(r);
    loop_timer_remove(&r->timer);
    for (uint32_t i = 0; i < relays; i++)
        party_free(&r->relay[i].party);
    free(r->relay);
    cw_secret_free(r->keys, r->config.relays * sizeof(*r->keys));
    cw_secret_free(r->own, r->config.relays * sizeof(*r->own));
    free(r);
}

/* The job cannot be opened. */
static void fail(struct relays *r, const struct cw_err *err)
{
    if (r->state == READY || r->state == FAILED)
        return;
    r->state = FAILED;
    loop_timer_set(&r->timer, LOOP_NEVER);
    r->config.events->failed(r->config.ctx, err);
}

/* --- opening the job at one --- */

/* Opens the session, or resumes it. Returns false when there is no room for that. */
static bool dial(struct relay *relay, bool resume)
{
    const struct relays_config *config = &relay->of->config;
    struct cw_dial_request request = {.hello = {.rank = config->ranks,
                                                .flags = config->hello_flags,
                                                .resume_ms = config->resume_ms,
                                                .event = resume ? 0 : config->orphan_ms},
                                      .tag = (uint64_t)++relay->dials << 32 | relay->number,
                                      .time_ms = CONNECT_MS,
                                      .session_ms = HELLO_MS,
                                      .tries = 1};

    if (config->take && !resume)
        request.hello.flags |= CW_HELLO_TAKE;
    if (resume) {
        request.hello.flags |= CW_HELLO_RESUME;
        request.hello.received = relay->party.session.received;
        request.hello.event = relay->copied.number;
        request.hello.incarnation = relay->copied.incarnation;
        request.time_ms = config->resume_ms;
    }
    /* the relay may have to end the connection before, first */
    if (resume || config->take) {
        request.tries = 0;
        request.pause_ms = RESUME_PAUSE_MS;
        request.pause_max_ms = RESUME_PAUSE_MAX_MS;
    }
    return party_dial(&relay->party, relay->of->opener, &request, config->job_id);
}

static void open_session(struct relay *relay)
{
    struct cw_err err;

    if (dial(relay, false))
        return;
    cw_err_set(&err, CW_ENOMEM, "relay %s: no thread to connect to it", relay->party.address);
    fail(relay->of, &err);
}

static int start_own(struct relay *relay, struct cw_err *err)
{
    const struct relays_config *config = &relay->of->config;
    uint8_t *key = relay->of->own[relay->number];

    if (config->key)
        memcpy(key, config->key, CW_KEY_SIZE);
    else if (relay->incarnation == 1)
        cw_key_random(key);
    cw_cred_job_key(relay->party.key, key, config->job_id); /* it may listen at once */
    config->own->start(config->own_ctx, relay->number, key, err);
    if (!config->copies)
        sodium_memzero(key, CW_KEY_SIZE);
    return err->code;
}

/* Ranks of a relay behind a gateway are there as well. */
static int find_running(struct relay *relay, const char *address, struct cw_err *err)
{
    const struct relays_config *config = &relay->of->config;
    const char *inner = ssh_address_inner(address);
    struct party *party = &relay->party;

    if (inner) {
        snprintf(party->near, sizeof(party->near), "tcp:%.900s", inner);
        strcpy(party->far, party->near);
    }
    return party_find(party, address, config->key_file, config->job_id, err);
}

int relays_open(struct relays *r, struct cw_err *err)
{
    r->state = STARTING;
    loop_timer_set(&r->timer, loop_now_ns(r->config.loop) + RELAYS_START_NS);
    for (uint32_t i = 0; i < r->config.relays; i++) {
        struct relay *relay = &r->relay[i];

        if (!r->config.addresses) {
            if (start_own(relay, err) < 0)
                return err->code;
            continue;
        }
        if (find_running(relay, r->config.addresses[i], err) < 0)
            return err->code;
        open_session(relay);
    }
    return CW_OK;
}

/* --- telling --- */

static bool is_there(const struct relay *relay)
{
    return relay->opened && !relay->over;
}

/* What has to come to it: where there is no room, it is given up, by the timer, since the caller
 * may not bear the event at this moment. */
static void must_tell(struct relay *relay, uint8_t type, const void *body, uint32_t size)
{
    struct cw_err err;

    if (party_tell(&relay->party, type, body, size, &err) == CW_OK)
        return;
    relay->deaf = true;
    loop_timer_set(&relay->of->timer, loop_now_ns(relay->of->config.loop));
}

/* What may be asked again: questions do not take the room of what has to come to it. */
static bool ask(struct relay *relay, uint8_t type, const void *body, uint32_t size)
{
    size_t left = room(&relay->of->config) - ROOM_MIN / 2;
    struct cw_err err;

    return is_there(relay) && relay->party.fd >= 0 && cw_kept_room(&relay->party.kept) > left &&
           party_tell(&relay->party, type, body, size, &err) == CW_OK;
}

/* --- links between them --- */

static int tell_routes(struct relays *r, uint32_t number, struct cw_err *err)
{
    struct cw_route route = {.self = number, .relays = r->config.relays};
    bool *told = calloc(r->config.ranks, sizeof(*told));

    if (!told)
        return cw_err_set(err, CW_ENOMEM, "no memory for the routes of %u ranks", r->config.ranks);
    while (err->code == CW_OK && homes_next_route(r->config.homes, r->config.ranks, told, &route))
        party_tell(&r->relay[number].party, CW_FRAME_ROUTE, &route, sizeof(route), err);
    free(told);
    return err->code;
}

static uint32_t ranks_at(const struct relays *r, uint32_t relay)
{
    uint32_t count = 0;

    for (uint32_t rank = 0; rank < r->config.ranks; rank++)
        count += relays_home(r, rank) == relay;
    return count;
}

static const char *link_address(const struct relays *r, uint32_t from, uint32_t to)
{
    return r->config.links ? r->config.links[from * r->config.relays + to]
                           : r->relay[to].party.address;
}

static int tell_link(struct relays *r, uint32_t from, uint32_t to, uint32_t flags,
                     struct cw_err *err)
{
    struct cw_link link = {.peer = to, .flags = flags, .incarnation = r->relay[to].incarnation};
    uint8_t body[CW_LINK_SIZE + CW_LINK_ADDRESS_MAX];
    uint8_t key[CW_KEY_SIZE];

    cw_cred_link_key(key, r->keys[to], from);
    cw_cred_seal(link.sealed, key, r->keys[from]);
    sodium_memzero(key, sizeof(key));
    snprintf(link.address, sizeof(link.address), "%s", link_address(r, from, to));
    return party_tell(&r->relay[from].party, CW_FRAME_LINK, body,
                      (uint32_t)cw_link_put(body, &link), err);
}

/* Unless it is known who reaches whom, none is reached from behind a gateway by an address of the
 * network that the dispatcher is in. */
static bool higher_connects(const struct relays *r, uint32_t low, uint32_t high)
{
    if (r->config.links)
        return !link_address(r, low, high);
    return ssh_address_inner(r->relay[low].party.address) &&
           !ssh_address_inner(r->relay[high].party.address);
}

static int tell_link_between(struct relays *r, uint32_t low, uint32_t high, struct cw_err *err)
{
    bool reversed = higher_connects(r, low, high);
    uint32_t from = reversed ? high : low;
    uint32_t to = reversed ? low : high;
    bool linked = !r->config.copies || (ranks_at(r, low) && ranks_at(r, high));

    if (tell_link(r, from, to, linked ? 0 : CW_LINK_COPIES, err) < 0)
        return cw_err_wrap(err, "relay %s", r->relay[from].party.address);
    if (r->config.copies && tell_link(r, to, from, CW_LINK_COPIES, err) < 0)
        return cw_err_wrap(err, "relay %s", r->relay[to].party.address);
    return CW_OK;
}

static int tell_all(struct relays *r, struct cw_err *err)
{
    uint32_t relays = r->config.relays;

    err->code = CW_OK;
    for (uint32_t i = 0; i < relays; i++)
        if (tell_routes(r, i, err) < 0)
            return cw_err_wrap(err, "relay %s", r->relay[i].party.address);
    for (uint32_t i = 0; i < relays; i++)
        for (uint32_t j = i + 1; j < relays; j++)
            if (tell_link_between(r, i, j, err) < 0)
                return err->code;
    return CW_OK;
}

static void check_linked(struct relays *r)
{
    for (uint32_t i = 0; i < r->config.relays; i++)
        if (r->config.relays > 1 && !r->relay[i].linked)
            return;
    r->state = READY;
    loop_timer_set(&r->timer, LOOP_NEVER);
    r->config.events->ready(r->config.ctx);
}

static void hear_of_links(struct relay *relay, const struct cw_notice_body *notice)
{
    struct cw_err err;

    if (notice->code == CW_NOTICE_LINKED) {
        relay->linked = true;
        check_linked(relay->of);
    } else if (notice->code == CW_NOTICE_FATAL) {
        cw_err_set(&err, CW_ESYS, "relay %s: %s", relay->party.address, notice->text);
        fail(relay->of, &err);
    }
}

static void give_up_deaf(struct relays *r)
{
    struct cw_err err;

    for (uint32_t i = 0; i < r->config.relays; i++) {
        if (!r->relay[i].deaf || !is_there(&r->relay[i]))
            continue;
        if (r->ending) {
            party_break(&r->relay[i].party);
            r->relay[i].over = true;
            continue;
        }
        cw_err_set(&err, CW_ELIMIT, "it does not acknowledge what it is told: %zu bytes",
                   room(&r->config));
        give_up(&r->relay[i], &err);
    }
}

static void on_timer(void *ctx)
{
    struct relays *r = ctx;
    struct cw_err err;
    uint32_t slow = 0;

    if (r->state == READY) {
        give_up_deaf(r);
        return;
    }
    while (slow + 1 < r->config.relays && r->relay[slow].linked)
        slow++;
    if (r->state == LINKING)
        cw_err_set(&err, CW_ESYS, "relay %s: no links to the other relays of the job after %d s",
                   r->relay[slow].party.address, (int)(LINK_NS / 1000000000));
    else
        cw_err_set(&err, CW_ESYS, "the job's own relay did not start in time");
    fail(r, &err);
}

/* --- sessions --- */

static void on_notice(struct relay *relay, const struct cw_notice_body *notice)
{
    const struct relays_config *config = &relay->of->config;

    if (relay->of->state != READY)
        hear_of_links(relay, notice);
    else
        config->events->notice(config->ctx, relay->number, notice);
}

/* Of a rank that has its log elsewhere a relay says nothing that is true. */
static bool has_log_of(const struct relay *relay, uint32_t rank)
{
    return rank < relay->of->config.ranks && relays_home(relay->of, rank) == relay->number;
}

static bool on_frame(void *ctx, const struct cw_header *header, const uint8_t *body)
{
    struct relay *relay = ctx;
    const struct relays_config *config = &relay->of->config;
    struct cw_notice_body notice;
    struct cw_stats stats;
    struct cw_copy_closed closed;
    struct cw_grown grown;
    struct cw_trim trim;
    struct cw_cover cover;

    if (header->type == CW_FRAME_NOTICE && cw_notice_get(body, header->length, &notice)) {
        on_notice(relay, &notice);
    } else if (header->type == CW_FRAME_STATS && cw_stats_get(body, &stats)) {
        config->events->stats(config->ctx, &stats);
    } else if (header->type == CW_FRAME_GROWN && cw_grown_get(body, &grown)) {
        if (has_log_of(relay, grown.rank))
            config->events->grown(config->ctx, &grown);
    } else if (header->type == CW_FRAME_COPY_CLOSED && cw_copy_closed_get(body, &closed)) {
        config->events->closed(config->ctx, relay->number, &closed);
    } else if (header->type == CW_FRAME_TRIMMED && cw_trim_get(body, &trim)) {
        if (has_log_of(relay, trim.rank))
            config->events->trimmed(config->ctx, &trim);
    } else if (header->type == CW_FRAME_COVERED && cw_cover_get(body, &cover)) {
        config->events->covered(config->ctx, relay->number, cover.token);
    } else {
        return false;
    }
    return true;
}

/* The session is over. */
static void give_up(struct relay *relay, struct cw_err *err)
{
    struct relays *r = relay->of;

    party_break(&relay->party);
    relay->over = true;
    cw_err_wrap(err, "relay %s", relay->party.address);
    if (r->state == READY)
        r->config.events->lost(r->config.ctx, relay->number, err);
    else
        fail(r, err);
}

static void on_broke(void *ctx, struct cw_err *err)
{
    struct relay *relay = ctx;

    if (relay->of->ending) {
        relay->over = true;
        return;
    }
    relay->why = *err;
    if (err->code != CW_ECLOSED || relay->of->config.resume_ms == 0 || !dial(relay, true))
        give_up(relay, err);
}

static const struct party_kind relay_kind = {.name = "relay",
                                             .option = "--relay",
                                             .key_option = "--key-file",
                                             .subject = "the relay",
                                             .refusal = "the relay refuses to go on",
                                             .resumes = true,
                                             .frame = on_frame,
                                             .broke = on_broke};

/* Those that have the job already have their links, too. */
static void begin_links(struct relays *r)
{
    struct cw_err err = {0};

    for (uint32_t i = 0; i < r->config.relays; i++) {
        if (!r->relay[i].opened)
            return;
        r->relay[i].linked |= r->config.take;
    }
    r->state = LINKING;
    loop_timer_set(&r->timer, loop_now_ns(r->config.loop) + LINK_NS);
    if (r->config.relays == 1 || r->config.take)
        check_linked(r);
    else if (tell_all(r, &err) < 0)
        fail(r, &err);
}

/* The connection broke, and there is another, or none came in time. */
static void on_redialled(struct relay *relay, const struct cw_dial_result *result)
{
    const struct relays_config *config = &relay->of->config;
    struct cw_err cause = result->err;
    struct cw_err err;

    if (result->fd >= 0 &&
        party_resume(&relay->party, result->fd, result->welcome.received, &cause) == CW_OK) {
        config->events->resumed(config->ctx, relay->number);
        return;
    }
    cw_err_set(&err, CW_ECLOSED, "%.200s, and the session could not be resumed: %.200s",
               relay->why.text, cause.text);
    give_up(relay, &err);
}

static void on_opened(void *ctx, const struct cw_dial_result *result)
{
    struct relays *r = ctx;
    struct relay *relay = &r->relay[(uint32_t)result->request->tag];
    struct cw_err err = result->err;

    if (relay->over || relay->dials != result->request->tag >> 32) {
        if (result->fd >= 0)
            close(result->fd);
        return;
    }
    if (relay->opened) {
        on_redialled(relay, result);
        return;
    }
    if (result->fd >= 0) {
        party_begin(&relay->party, result->fd, &result->session);
        relay->opened = true;
        if (r->state == STARTING)
            begin_links(r);
        return;
    }
    if (err.code == CW_ESYS)
        cw_err_wrap(&err, "the relay is not reachable");
    else if (err.code != CW_EINVAL)
        cw_err_wrap(&err, "relay %s", relay->party.address);
    fail(r, &err);
}

void relays_hear(struct relays *r, uint32_t relay)
{
    party_hear(&r->relay[relay].party);
}

/* --- our own --- */

bool relays_may_return(const struct relays *r)
{
    return r->config.returns || r->config.addresses;
}

uint32_t relays_restarts(const struct relays *r, uint32_t relay)
{
    return r->relay[relay].restarts;
}

bool relays_listens(const struct relays *r, uint32_t relay)
{
    return r->config.addresses || r->relay[relay].listens;
}

void relays_kill(struct relays *r, uint32_t relay)
{
    r->relay[relay].listens = false;
    r->config.own->kill(r->config.own_ctx, relay);
}

/* Its session goes on at its new address, and it is told where all others are now, and these where
 * it is. */
static void go_on_there(struct relay *relay)
{
    struct relays *r = relay->of;
    struct cw_err err = {0};

    relay->away = false;
    cw_err_set(&relay->why, CW_ECLOSED, "its host is lost");
    for (uint32_t i = 0; i < r->config.relays; i++)
        if (i != relay->number && is_there(&r->relay[i]) && !r->relay[i].away)
            tell_link_between(r, i < relay->number ? i : relay->number,
                              i < relay->number ? relay->number : i, &err);
    if (!err.code && !dial(relay, true))
        cw_err_set(&err, CW_ENOMEM, "no thread to connect to it");
    if (err.code)
        give_up(relay, &err);
}

void relays_away(struct relays *r, uint32_t relay)
{
    struct relay *it = &r->relay[relay];

    it->listens = false;
    it->away = true;
    it->dials++;
    party_break(&it->party);
}

void relays_drop(struct relays *r, uint32_t relay)
{
    relays_away(r, relay);
    r->relay[relay].over = true;
}

int relays_start_again(struct relays *r, uint32_t relay, struct cw_err *err)
{
    err->code = CW_OK;
    r->relay[relay].incarnation++;
    return start_own(&r->relay[relay], err);
}

/* A session that was open before is resumed by itself. */
void relays_own_listens(struct relays *r, uint32_t relay, const char *local, const char *tcp,
                        bool here)
{
    struct relay *it = &r->relay[relay];

    it->listens = true;
    party_listens(&it->party, local, tcp, here);
    if (it->away)
        go_on_there(it);
    if (it->opened)
        r->config.events->back(r->config.ctx, relay);
    else
        open_session(it);
}

void relays_own_ended(struct relays *r, uint32_t relay)
{
    r->relay[relay].listens = false;
    r->relay[relay].restarts++;
}

void relays_own_failed(struct relays *r, uint32_t relay, const struct cw_err *err)
{
    struct cw_err cause = *err;

    r->relay[relay].listens = false;
    if (r->relay[relay].opened)
        give_up(&r->relay[relay], &cause);
    else
        fail(r, err);
}

/* --- questions --- */

uint32_t relays_ask_stats(struct relays *r)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < r->config.relays; i++)
        if (ask(&r->relay[i], CW_FRAME_STATS_ASK, NULL, 0))
            count += ranks_at(r, i);
    return count;
}

bool relays_are_there(const struct relays *r)
{
    for (uint32_t i = 0; i < r->config.relays; i++)
        if (!is_there(&r->relay[i]) && ranks_at(r, i))
            return false;
    return true;
}

bool relays_is_suspended(const struct relays *r, uint32_t relay)
{
    return is_there(&r->relay[relay]) && r->relay[relay].party.fd < 0;
}

void relays_cut(struct relays *r, uint32_t relay, uint32_t what)
{
    /* our own connection that is broken already would break again, as soon as it is resumed */
    if (is_there(&r->relay[relay]) && !(what == CW_CUT_DISPATCHER && relays_is_suspended(r, relay)))
        must_tell(&r->relay[relay], CW_FRAME_CUT, &(uint64_t){what}, CW_WORD_SIZE);
}

void relays_rank_end(struct relays *r, uint32_t rank, uint32_t incarnation)
{
    struct relay *relay = &r->relay[relays_home(r, rank)];
    const struct cw_rank_end end = {rank, incarnation};

    if (is_there(relay))
        must_tell(relay, CW_FRAME_RANK_END, &end, sizeof(end));
}

void relays_copy(struct relays *r, uint32_t relay, const struct cw_copy *copy)
{
    must_tell(&r->relay[relay], CW_FRAME_COPY, copy, sizeof(*copy));
    r->relay[relay].copied = *copy;
    /* it may be silent until it hears of this */
    if (relays_is_suspended(r, relay) && !r->relay[relay].away)
        dial(&r->relay[relay], true);
}

void relays_copy_close(struct relays *r, uint32_t at, const struct cw_copy_close *close)
{
    must_tell(&r->relay[at], CW_FRAME_COPY_CLOSE, close, sizeof(*close));
}

bool relays_checkpoint(struct relays *r, const struct cw_checkpoint *checkpoint)
{
    struct relay *relay = &r->relay[relays_home(r, checkpoint->rank)];

    return ask(relay, CW_FRAME_CHECKPOINT, checkpoint, sizeof(*checkpoint));
}

void relays_trim(struct relays *r, uint32_t rank, const struct cw_point *point)
{
    struct relay *relay = &r->relay[relays_home(r, rank)];
    const struct cw_trim trim = {.rank = rank, .point = *point};

    if (is_there(relay))
        must_tell(relay, CW_FRAME_TRIM, &trim, sizeof(trim));
}

void relays_cover(struct relays *r, uint32_t relay, uint64_t token)
{
    const struct cw_cover cover = {.token = token};

    if (is_there(&r->relay[relay]))
        must_tell(&r->relay[relay], CW_FRAME_COVER, &cover, sizeof(cover));
}

void relays_end(struct relays *r)
{
    for (uint32_t i = 0; r->relay && !r->ending && i < r->config.relays; i++)
        if (is_there(&r->relay[i]))
            must_tell(&r->relay[i], CW_FRAME_JOB_END, NULL, 0);
    r->ending = true;
}

void relays_keep_job(struct relays *r)
{
    r->ending = true;
}

bool relays_are_told(const struct relays *r)
{
    for (uint32_t i = 0; i < r->config.relays; i++)
        if (is_there(&r->relay[i]) && cw_kept_left(&r->relay[i].party.kept) > 0)
            return false;
    return true;
}

const char *relays_address(const struct relays *r, uint32_t relay)
{
    return r->relay[relay].party.address;
}

const char *relays_address_for(const struct relays *r, uint32_t relay, bool is_near)
{
    return party_address_for(&r->relay[relay].party, is_near);
}

void relays_addresses(const struct relays *r, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < r->config.relays && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "",
                                 r->relay[i].party.address);
}

uint32_t relays_home(const struct relays *r, uint32_t rank)
{
    return r->config.homes ? r->config.homes[rank] : 0;
}

void relays_rank_key(const struct relays *r, uint32_t rank, uint32_t incarnation,
                     uint8_t key[CW_KEY_SIZE])
{
    cw_cred_rank_key(key, r->keys[relays_home(r, rank)], rank, incarnation);
}
