#include "dispatcher/servers/servers.h"
#include "common/cred.h"
#include "common/keyfile.h"
#include "common/secret.h"
#include "common/transport.h"
#include "dispatcher/servers/party.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tags of connections: of a session, the number of its server; of the n-th fetch this, and n times
 * SERVERS_FETCHES_MAX, and its place */
#define FETCH_TAG (1ull << 32)

struct server {
    struct servers *of;
    uint32_t number;
    bool wanted;
    bool gone;
    bool dialing;
    struct party party;
    struct loop_timer timer; /* to the next try */
    uint64_t pause_ns;       /* before it */
};

/* An image that is being fetched, over a connection of its own. */
struct fetch {
    struct servers *of;
    bool used;
    uint32_t server;
    uint32_t rank;
    uint32_t number;
    uint64_t tag; /* of its connection, while that is being opened */
    struct party party;
    struct loop_timer timer; /* its time is up */
};

struct image_at {
    uint32_t server;
    uint32_t number; /* 0: none */
};

struct servers {
    struct servers_config config;
    uint32_t count;
    struct server *server; /* owned */
    /* of the job at each, and of our own server; as cw_secret_alloc made them; owned */
    uint8_t (*keys)[CW_KEY_SIZE];
    struct fetch *fetches;    /* SERVERS_FETCHES_MAX; owned */
    struct image_at *waiting; /* of each rank, what waits for a free one; owned */
    uint32_t waiting_count;
    uint64_t fetch_count; /* that have begun until now */
    struct opener *opener;
};

static void on_opened(void *ctx, const struct cw_dial_result *result);
static void on_try(void *ctx);
static void on_fetch_time(void *ctx);
static const struct party_kind server_kind, fetch_kind;
static int open_own(struct servers *s, struct cw_err *err);

/* --- making --- */

static int init_server(struct servers *s, uint32_t number, struct cw_err *err)
{
    struct party *party = &s->server[number].party;

    if (s->config.count)
        return party_find(party, s->config.addresses[number], s->config.key_file, s->config.job_id,
                          err);
    cw_cred_job_key(party->key, s->keys[s->count], s->config.job_id);
    return s->config.socket_dir ? open_own(s, err) : CW_OK;
}

static int allocate(struct servers *s, struct cw_err *err)
{
    s->server = calloc(s->count, sizeof(*s->server));
    s->keys = cw_secret_alloc((s->count + 1) * sizeof(*s->keys));
    s->fetches = calloc(SERVERS_FETCHES_MAX, sizeof(*s->fetches));
    s->waiting = calloc(s->config.ranks, sizeof(*s->waiting));
    if (!s->server || !s->keys || !s->fetches || !s->waiting)
        return cw_err_set(err, CW_ENOMEM, "no memory for sessions with checkpoint servers");
    err->code = CW_OK;
    for (uint32_t i = 0; i < s->count && !err->code; i++) {
        struct server *server = &s->server[i];

        *server = (struct server){.of = s, .number = i};
        loop_timer_add(s->config.loop, &server->timer, on_try, server);
        party_init(&server->party, s->config.loop, &server_kind, server, SERVERS_TOLD_MAX, err);
        server->party.key = s->keys[i];
    }
    for (uint32_t i = 0; i < SERVERS_FETCHES_MAX && !err->code; i++) {
        struct fetch *f = &s->fetches[i];

        *f = (struct fetch){.of = s};
        loop_timer_add(s->config.loop, &f->timer, on_fetch_time, f);
        party_init(&f->party, s->config.loop, &fetch_kind, f, CW_FRAME_HEADER + CW_IMAGE_REF_SIZE,
                   err);
        f->party.exactly = true;
    }
    if (err->code)
        return err->code;
    s->opener = opener_new(s->config.loop, on_opened, s, err);
    return s->opener ? CW_OK : err->code;
}

struct servers *servers_new(const struct servers_config *config, struct cw_err *err)
{
    struct servers *s = calloc(1, sizeof(*s));

    if (!s) {
        cw_err_set(err, CW_ENOMEM, "no memory for sessions with checkpoint servers");
        return NULL;
    }
    s->config = *config;
    s->count = config->count ? config->count : config->own;
    if (allocate(s, err) < 0) {
        servers_free(s);
        return NULL;
    }
    if (!config->count && config->key)
        memcpy(s->keys[s->count], config->key, CW_KEY_SIZE);
    else if (!config->count)
        cw_key_random(s->keys[s->count]);
    for (uint32_t i = 0; i < s->count; i++)
        if (init_server(s, i, err) < 0) {
            servers_free(s);
            return NULL;
        }
    for (uint32_t i = 0; i < config->count; i++)
        servers_want(s, i);
    return s;
}

void servers_free(struct servers *s)
{
    if (!s)
        return;
    opener_free(s->opener);
    for (uint32_t i = 0; s->server && i < s->count; i++) {
        party_free(&s->server[i].party);
        loop_timer_remove(&s->server[i].timer);
    }
    for (uint32_t i = 0; s->fetches && i < SERVERS_FETCHES_MAX; i++) {
        party_free(&s->fetches[i].party);
        loop_timer_remove(&s->fetches[i].timer);
    }
    free(s->server);
    free(s->fetches);
    free(s->waiting);
    cw_secret_free(s->keys, (s->count + 1) * sizeof(*s->keys));
    free(s);
}

/* --- sessions --- */

/* Returns false when there is no room for that. */
static bool dial(struct servers *s, const struct server *server, uint64_t tag, uint32_t time_ms,
                 uint32_t tries)
{
    struct cw_dial_request request = {.hello = {.rank = s->config.ranks},
                                      .tag = tag,
                                      .time_ms = time_ms,
                                      .session_ms = SERVERS_OPEN_MS,
                                      .tries = tries,
                                      .pause_ms = SERVERS_PAUSE_MIN_NS / 1000000,
                                      .pause_max_ms = SERVERS_PAUSE_MAX_NS / 1000000};

    return party_dial(&server->party, s->opener, &request, s->config.job_id);
}

static void lose(struct server *server, struct cw_err *err)
{
    struct servers *s = server->of;

    party_break(&server->party);
    if (server->gone)
        return;
    server->pause_ns = server->pause_ns ? 2 * server->pause_ns : SERVERS_PAUSE_MIN_NS;
    if (server->pause_ns > SERVERS_PAUSE_MAX_NS)
        server->pause_ns = SERVERS_PAUSE_MAX_NS;
    loop_timer_set(&server->timer, loop_now_ns(s->config.loop) + server->pause_ns);
    cw_err_wrap(err, "checkpoint server %s", server->party.address);
    s->config.events->lost(s->config.ctx, server->number, err);
}

static void on_try(void *ctx)
{
    struct server *server = ctx;
    struct cw_err err = {0};

    if (server->dialing || server->gone || server->party.fd >= 0)
        return;
    server->dialing = dial(server->of, server, server->number, SERVERS_OPEN_MS, 1);
    if (server->dialing)
        return;
    cw_err_set(&err, CW_ENOMEM, "no thread to connect to it");
    lose(server, &err);
}

static bool on_frame(void *ctx, const struct cw_header *header, const uint8_t *body)
{
    struct server *server = ctx;
    const struct servers_config *config = &server->of->config;
    struct cw_stored stored;

    if (header->type == CW_FRAME_STORED && cw_stored_get(body, &stored)) {
        config->events->stored(config->ctx, server->number, &stored);
    } else if (header->type == CW_FRAME_HELD && cw_stored_get(body, &stored)) {
        config->events->held(config->ctx, server->number, &stored);
    } else if (header->type == CW_FRAME_HELD_END) {
        server->pause_ns = 0;
        config->events->held_end(config->ctx, server->number);
    } else {
        return false;
    }
    return true;
}

static void on_broke(void *ctx, struct cw_err *err)
{
    lose(ctx, err);
}

#define SERVER_KIND                                                                                \
    .name = "checkpoint server", .option = "--ckpt-server", .key_option = "--ckpt-key-file",       \
    .subject = "it", .refusal = "refused"

static const struct party_kind server_kind = {SERVER_KIND, .frame = on_frame, .broke = on_broke};

static void open_session(struct server *server, const struct cw_dial_result *result)
{
    struct servers *s = server->of;
    struct cw_err err = result->err;

    server->dialing = false;
    if (result->fd < 0) {
        lose(server, &err);
        return;
    }
    if (server->gone) {
        close(result->fd);
        return;
    }
    party_begin(&server->party, result->fd, &result->session);
    s->config.events->opens(s->config.ctx, server->number);
}

void servers_want(struct servers *s, uint32_t number)
{
    struct server *server = &s->server[number];

    if (server->wanted)
        return;
    server->wanted = true;
    if (s->config.count)
        on_try(server);
    else
        s->config.start(s->config.start_ctx, number, server->party.far, s->keys[s->count]);
}

void servers_drop(struct servers *s, uint32_t number, uint32_t rank, uint32_t image)
{
    struct server *server = &s->server[number];
    struct cw_err err = {0};

    if (server->party.fd >= 0 &&
        party_tell(&server->party, CW_FRAME_DROP, &(struct cw_image_ref){rank, image},
                   CW_IMAGE_REF_SIZE, &err) < 0)
        lose(server, &err);
}

/* --- our own --- */

void servers_own_listens(struct servers *s, uint32_t number, const char *local, const char *far,
                         bool here)
{
    struct server *server = &s->server[number];

    party_listens(&server->party, local, far, here);
    server->pause_ns = 0;
    on_try(server);
}

/* Over TCP it has the same port for each of its processes. */
static int open_own(struct servers *s, struct cw_err *err)
{
    struct party *party = &s->server[0].party;
    char wanted[CW_ADDRESS_MAX];

    snprintf(party->address, sizeof(party->address), "unix:%s/images", s->config.socket_dir);
    strcpy(party->near, party->address);
    if (!s->config.host)
        return CW_OK;
    snprintf(wanted, sizeof(wanted), "tcp:%s:0", s->config.host);
    if (cw_address_choose_port(wanted, party->far, err) < 0)
        return cw_err_wrap(err, "a checkpoint server that other hosts reach");
    return CW_OK;
}

/* --- fetching --- */

static void begin_fetch(struct servers *s, struct fetch *f, uint32_t rank,
                        const struct image_at *at);

static void next_fetch(struct servers *s, struct fetch *free_one)
{
    for (uint32_t rank = 0; s->waiting_count && rank < s->config.ranks; rank++) {
        struct image_at at = s->waiting[rank];

        if (!at.number)
            continue;
        s->waiting[rank].number = 0;
        s->waiting_count--;
        begin_fetch(s, free_one, rank, &at);
        return;
    }
}

/* With the descriptor of its stream, or with an error. */
static void end_fetch(struct fetch *f, int fd, const struct cw_err *err)
{
    struct servers *s = f->of;
    uint32_t rank = f->rank;
    uint32_t number = f->number;

    loop_timer_set(&f->timer, LOOP_NEVER);
    party_break(&f->party);
    f->used = false;
    s->config.events->fetched(s->config.ctx, rank, number, fd, err);
    if (!f->used)
        next_fetch(s, f);
}

static void fail_fetch(struct fetch *f, struct cw_err *err)
{
    cw_err_wrap(err, "checkpoint server %s", f->of->server[f->server].party.address);
    end_fetch(f, -1, err);
}

/* It is a session like the other one, which is told the same. The bytes of a stream follow. */
static bool on_fetch_frame(void *ctx, const struct cw_header *header, const uint8_t *body)
{
    struct fetch *f = ctx;
    struct cw_stored stored;

    if (header->type == CW_FRAME_IMAGE)
        end_fetch(f, party_release(&f->party), NULL);
    else if (header->type == CW_FRAME_STORED || header->type == CW_FRAME_HELD)
        return cw_stored_get(body, &stored);
    else
        return header->type == CW_FRAME_HELD_END;
    return true;
}

static void on_fetch_broke(void *ctx, struct cw_err *err)
{
    fail_fetch(ctx, err);
}

static const struct party_kind fetch_kind = {SERVER_KIND, .frame = on_fetch_frame,
                                             .broke = on_fetch_broke};

static void on_fetch_time(void *ctx)
{
    struct fetch *f = ctx;
    struct cw_err err = {0};

    if (f->of->server[f->server].gone)
        cw_err_set(&err, CW_ECLOSED, "it is lost, with all that it had");
    else
        cw_err_set(&err, CW_ETIME, "no image came in %d s", SERVERS_FETCH_MS / 1000);
    fail_fetch(f, &err);
}

static void open_fetch(struct fetch *f, const struct cw_dial_result *result)
{
    struct cw_image_ref ref = {f->rank, f->number};
    struct cw_err err = result->err;

    f->tag = 0;
    if (result->fd < 0) {
        err.code = CW_ETIME; /* whatever the reason, nothing is known of the image */
        fail_fetch(f, &err);
        return;
    }
    party_begin(&f->party, result->fd, &result->session);
    if (party_tell(&f->party, CW_FRAME_FETCH, &ref, sizeof(ref), &err) < 0)
        fail_fetch(f, &err);
}

static void on_opened(void *ctx, const struct cw_dial_result *result)
{
    struct servers *s = ctx;
    uint64_t tag = result->request->tag;
    struct fetch *f = &s->fetches[tag % SERVERS_FETCHES_MAX];

    if (tag < FETCH_TAG)
        open_session(&s->server[tag], result);
    else if (f->used && f->tag == tag)
        open_fetch(f, result);
    else if (result->fd >= 0)
        close(result->fd);
}

/* That it cannot begin is told by its timer, not from inside of servers_fetch. */
static void begin_fetch(struct servers *s, struct fetch *f, uint32_t rank,
                        const struct image_at *at)
{
    f->used = true;
    f->server = at->server;
    f->rank = rank;
    f->number = at->number;
    f->tag = FETCH_TAG + s->fetch_count++ * SERVERS_FETCHES_MAX + (uint64_t)(f - s->fetches);
    loop_timer_set(&f->timer, loop_now_ns(s->config.loop) + SERVERS_FETCH_MS * 1000000ull);
    if (s->server[f->server].gone || !dial(s, &s->server[f->server], f->tag, SERVERS_FETCH_MS, 0))
        loop_timer_set(&f->timer, loop_now_ns(s->config.loop));
}

void servers_fetch(struct servers *s, uint32_t server, uint32_t rank, uint32_t number)
{
    struct image_at at = {server, number};

    for (uint32_t i = 0; i < SERVERS_FETCHES_MAX; i++)
        if (!s->fetches[i].used) {
            begin_fetch(s, &s->fetches[i], rank, &at);
            return;
        }
    s->waiting_count += s->waiting[rank].number == 0;
    s->waiting[rank] = at;
}

void servers_gone(struct servers *s, uint32_t number)
{
    struct server *server = &s->server[number];

    server->gone = true;
    party_break(&server->party);
    loop_timer_set(&server->timer, LOOP_NEVER);
    for (uint32_t i = 0; i < SERVERS_FETCHES_MAX; i++)
        if (s->fetches[i].used && s->fetches[i].server == number)
            loop_timer_set(&s->fetches[i].timer, loop_now_ns(s->config.loop));
}

/* --- questions --- */

const char *servers_address(const struct servers *s, uint32_t server, bool is_near)
{
    return party_address_for(&s->server[server].party, is_near);
}

void servers_rank_key(const struct servers *s, uint32_t server, uint32_t rank, uint32_t incarnation,
                      uint8_t key[CW_KEY_SIZE])
{
    cw_cred_rank_key(key, s->keys[server], rank, incarnation);
}
