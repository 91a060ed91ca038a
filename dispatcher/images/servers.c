#include "dispatcher/images/servers.h"
#include "common/cred.h"
#include "common/keyfile.h"
#include "common/secret.h"
#include "common/transport.h"
#include "dispatcher/images/server_link.h"
#include "dispatcher/relays/opener.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Tags of connections: of a session, the number of its server; of the n-th fetch this, and n times
 * SERVERS_FETCHES_MAX, and its place */
#define FETCH_TAG (1ull << 32)

struct keys {
    uint8_t server[CW_KEY_SIZE];
    uint8_t job[CW_KEY_SIZE];
};

struct server {
    struct servers *of;
    uint32_t number;
    char address[CW_ADDRESS_MAX];
    struct keys *keys;
    bool wanted;
    bool dialing;
    struct server_link link;
    struct loop_watch watch; /* of the link */
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
    bool came;    /* its stream begins */
    struct server_link link;
    struct loop_watch watch;
    struct loop_timer timer; /* its time is up */
};

struct servers {
    struct servers_config config;
    uint32_t count;
    struct server *server; /* owned */
    struct keys *keys;     /* of each; as cw_secret_alloc made them; owned */
    struct fetch *fetches; /* SERVERS_FETCHES_MAX; owned */
    uint32_t *waiting;     /* of each rank, the image that waits for a free one; 0: none. Owned */
    uint32_t waiting_count;
    uint64_t fetch_count;       /* that have begun until now */
    char local[CW_ADDRESS_MAX]; /* of our own, where it stands ... */
    char far[CW_ADDRESS_MAX];   /* ... and on other hosts; "": there are none */
    struct opener *opener;
};

static void on_opened(void *ctx, const struct cw_dial_result *result);
static void on_try(void *ctx);
static void on_fetch_time(void *ctx);
static int open_own(struct servers *s, struct cw_err *err);

/* --- making --- */

static int load_key(const struct servers_config *config, struct server *server, struct cw_err *err)
{
    char beside[CW_ADDRESS_MAX + 8];

    if (config->key_file)
        return cw_key_load(config->key_file, server->keys->server, err);
    if (strncmp(server->address, "unix:", 5) != 0)
        return cw_err_set(
            err, CW_EINVAL,
            "--ckpt-server %s needs --ckpt-key-file FILE, the key of that checkpoint server",
            server->address);
    snprintf(beside, sizeof(beside), "%s.key", server->address + 5);
    if (access(beside, F_OK) < 0)
        return cw_err_set(err, CW_ENOTFOUND,
                          "--ckpt-server %s: no key beside it (%s); is a checkpoint server running "
                          "there?",
                          server->address, beside);
    return cw_key_load(beside, server->keys->server, err);
}

static int init_server(struct servers *s, uint32_t number, struct cw_err *err)
{
    struct server *server = &s->server[number];

    if (s->config.count) {
        snprintf(server->address, sizeof(server->address), "%s", s->config.addresses[number]);
        if (load_key(&s->config, server, err) < 0)
            return err->code;
    } else {
        cw_key_random(server->keys->server);
        if (s->config.socket_dir && open_own(s, err) < 0)
            return err->code;
    }
    cw_cred_job_key(server->keys->job, server->keys->server, s->config.job_id);
    return CW_OK;
}

static int allocate(struct servers *s, struct cw_err *err)
{
    s->server = calloc(s->count, sizeof(*s->server));
    s->keys = cw_secret_alloc(s->count * sizeof(*s->keys));
    s->fetches = calloc(SERVERS_FETCHES_MAX, sizeof(*s->fetches));
    s->waiting = calloc(s->config.ranks, sizeof(*s->waiting));
    if (!s->server || !s->keys || !s->fetches || !s->waiting)
        return cw_err_set(err, CW_ENOMEM, "no memory for sessions with checkpoint servers");
    for (uint32_t i = 0; i < s->count; i++) {
        s->server[i] = (struct server){.of = s, .number = i, .keys = &s->keys[i]};
        s->server[i].link.fd = s->server[i].watch.fd = -1;
        loop_timer_add(s->config.loop, &s->server[i].timer, on_try, &s->server[i]);
    }
    for (uint32_t i = 0; i < SERVERS_FETCHES_MAX; i++) {
        s->fetches[i] = (struct fetch){.of = s};
        s->fetches[i].link.fd = s->fetches[i].watch.fd = -1;
        loop_timer_add(s->config.loop, &s->fetches[i].timer, on_fetch_time, &s->fetches[i]);
    }
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
    s->count = config->count ? config->count : 1;
    if (allocate(s, err) < 0) {
        servers_free(s);
        return NULL;
    }
    for (uint32_t i = 0; i < s->count; i++)
        if (init_server(s, i, err) < 0) {
            servers_free(s);
            return NULL;
        }
    for (uint32_t i = 0; i < config->count; i++)
        servers_want(s, i);
    return s;
}

static void close_link(struct servers *s, struct server_link *link, struct loop_watch *watch)
{
    loop_unwatch(s->config.loop, watch);
    server_link_close(link);
}

void servers_free(struct servers *s)
{
    if (!s)
        return;
    opener_free(s->opener);
    for (uint32_t i = 0; s->server && i < s->count; i++) {
        close_link(s, &s->server[i].link, &s->server[i].watch);
        loop_timer_remove(s->config.loop, &s->server[i].timer);
    }
    for (uint32_t i = 0; s->fetches && i < SERVERS_FETCHES_MAX; i++) {
        close_link(s, &s->fetches[i].link, &s->fetches[i].watch);
        loop_timer_remove(s->config.loop, &s->fetches[i].timer);
    }
    free(s->server);
    free(s->fetches);
    free(s->waiting);
    cw_secret_free(s->keys, s->count * sizeof(*s->keys));
    free(s);
}

/* --- sessions --- */

/* Returns false when there is no room for that. */
static bool dial(struct servers *s, const struct server *server, uint64_t tag, uint32_t time_ms,
                 uint32_t tries)
{
    struct cw_dial_request request = {
        .hello = {.role = CW_ROLE_DISPATCHER, .rank = s->config.ranks},
        .tag = tag,
        .time_ms = time_ms,
        .session_ms = SERVERS_OPEN_MS,
        .tries = tries,
        .pause_ms = SERVERS_PAUSE_MIN_NS / 1000000,
        .pause_max_ms = SERVERS_PAUSE_MAX_NS / 1000000};
    bool added;

    memcpy(request.hello.job, s->config.job_id, CW_ID_SIZE);
    memcpy(request.key, server->keys->job, CW_KEY_SIZE);
    snprintf(request.address, sizeof(request.address), "%s", server->address);
    added = opener_add(s->opener, &request);
    sodium_memzero(&request, sizeof(request));
    return added;
}

static void lose(struct server *server, struct cw_err *err)
{
    struct servers *s = server->of;

    close_link(s, &server->link, &server->watch);
    server->pause_ns = server->pause_ns ? 2 * server->pause_ns : SERVERS_PAUSE_MIN_NS;
    if (server->pause_ns > SERVERS_PAUSE_MAX_NS)
        server->pause_ns = SERVERS_PAUSE_MAX_NS;
    loop_timer_set(&server->timer, loop_now_ns(s->config.loop) + server->pause_ns);
    cw_err_wrap(err, "checkpoint server %s", server->address);
    s->config.events->lost(s->config.ctx, server->number, err);
}

static void on_try(void *ctx)
{
    struct server *server = ctx;
    struct cw_err err = {0};

    if (server->dialing || server->link.fd >= 0)
        return;
    server->dialing = dial(server->of, server, server->number, SERVERS_OPEN_MS, 1);
    if (server->dialing)
        return;
    cw_err_set(&err, CW_ENOMEM, "no thread to connect to it");
    lose(server, &err);
}

static void on_held(void *ctx, const struct cw_stored *held)
{
    const struct servers_config *config = &((struct server *)ctx)->of->config;

    config->events->held(config->ctx, held);
}

static void on_held_end(void *ctx)
{
    struct server *server = ctx;

    server->pause_ns = 0;
    server->of->config.events->held_end(server->of->config.ctx, server->number);
}

static void on_stored(void *ctx, const struct cw_stored *stored)
{
    struct server *server = ctx;

    server->of->config.events->stored(server->of->config.ctx, server->number, stored);
}

static const struct server_link_ops session_ops = {on_held, on_held_end, on_stored, NULL};

static void pump(struct server *server)
{
    bool more = server_link_flush(&server->link);

    loop_change(server->of->config.loop, &server->watch, EPOLLIN | (more ? EPOLLOUT : 0));
}

static void on_session(void *ctx)
{
    struct server *server = ctx;
    struct cw_err err = {0};

    if (server->link.fd < 0)
        return;
    if (server_link_input(&server->link, &session_ops, server, &err) < 0)
        lose(server, &err);
    else
        pump(server);
}

static void open_session(struct server *server, const struct cw_dial_result *result)
{
    struct servers *s = server->of;
    struct cw_err err = result->err;

    server->dialing = false;
    if (result->fd < 0) {
        lose(server, &err);
        return;
    }
    server_link_begin(&server->link, result->fd, &result->session);
    s->config.events->opens(s->config.ctx, server->number);
    loop_watch(s->config.loop, &server->watch, result->fd, EPOLLIN, on_session, server);
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
        s->config.start(s->config.start_ctx, s->far, s->keys[0].server);
}

void servers_hear(struct servers *s, uint32_t server)
{
    on_session(&s->server[server]);
}

void servers_drop(struct servers *s, uint32_t number, uint32_t rank, uint32_t image)
{
    struct server *server = &s->server[number];
    struct cw_err err = {0};

    if (server->link.fd < 0)
        return;
    if (server_link_tell(&server->link, CW_FRAME_DROP, &(struct cw_image_ref){rank, image}, &err) <
        0)
        lose(server, &err);
    else
        pump(server);
}

/* --- our own --- */

void servers_own_listens(struct servers *s, const char *local, const char *far, bool here)
{
    snprintf(s->local, sizeof(s->local), "%s", local);
    snprintf(s->far, sizeof(s->far), "%s", far);
    snprintf(s->server[0].address, sizeof(s->server[0].address), "%s",
             far[0] && !here ? far : local);
    s->server[0].pause_ns = 0;
    on_try(&s->server[0]);
}

/* The same port for each of its processes. */
static int listen_for_others(struct servers *s, struct cw_err *err)
{
    char wanted[CW_ADDRESS_MAX];

    snprintf(wanted, sizeof(wanted), "tcp:%s:0", s->config.host);
    if (cw_address_choose_port(wanted, s->far, err) < 0)
        return cw_err_wrap(err, "a checkpoint server that other hosts reach");
    return CW_OK;
}

static int open_own(struct servers *s, struct cw_err *err)
{
    snprintf(s->local, sizeof(s->local), "unix:%s/images", s->config.socket_dir);
    strcpy(s->server[0].address, s->local);
    if (s->config.host && listen_for_others(s, err) < 0)
        return err->code;
    return CW_OK;
}

/* --- fetching --- */

static void begin_fetch(struct servers *s, struct fetch *f, uint32_t rank, uint32_t number);

static void next_fetch(struct servers *s, struct fetch *free_one)
{
    for (uint32_t rank = 0; s->waiting_count && rank < s->config.ranks; rank++) {
        uint32_t number = s->waiting[rank];

        if (!number)
            continue;
        s->waiting[rank] = 0;
        s->waiting_count--;
        begin_fetch(s, free_one, rank, number);
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
    close_link(s, &f->link, &f->watch);
    f->used = false;
    s->config.events->fetched(s->config.ctx, rank, number, fd, err);
    if (!f->used)
        next_fetch(s, f);
}

static void fail_fetch(struct fetch *f, struct cw_err *err)
{
    cw_err_wrap(err, "checkpoint server %s", f->of->server[f->server].address);
    end_fetch(f, -1, err);
}

static void ignore_held(void *ctx, const struct cw_stored *held)
{
    (void)ctx;
    (void)held;
}

static void ignore_end(void *ctx)
{
    (void)ctx;
}

static void on_image(void *ctx)
{
    ((struct fetch *)ctx)->came = true;
}

/* It is a session like the other one, which is told the same. */
static const struct server_link_ops fetch_ops = {ignore_held, ignore_end, ignore_held, on_image};

static void on_fetch_time(void *ctx)
{
    struct fetch *f = ctx;
    struct cw_err err = {0};

    cw_err_set(&err, CW_ETIME, "no image came in %d s", SERVERS_FETCH_MS / 1000);
    fail_fetch(f, &err);
}

static void hand_over(struct fetch *f)
{
    loop_unwatch(f->of->config.loop, &f->watch);
    end_fetch(f, server_link_release(&f->link), NULL);
}

static void on_fetching(void *ctx)
{
    struct fetch *f = ctx;
    struct cw_err err = {0};

    if (server_link_input(&f->link, &fetch_ops, f, &err) < 0)
        fail_fetch(f, &err);
    else if (f->came)
        hand_over(f);
    else
        server_link_flush(&f->link);
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
    server_link_begin(&f->link, result->fd, &result->session);
    if (server_link_tell(&f->link, CW_FRAME_FETCH, &ref, &err) < 0) {
        fail_fetch(f, &err);
        return;
    }
    server_link_flush(&f->link); /* a few bytes: a new connection takes them at once */
    loop_watch(f->of->config.loop, &f->watch, result->fd, EPOLLIN, on_fetching, f);
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
static void begin_fetch(struct servers *s, struct fetch *f, uint32_t rank, uint32_t number)
{
    f->used = true;
    f->came = false;
    f->server = servers_of_rank(s, rank);
    f->rank = rank;
    f->number = number;
    f->tag = FETCH_TAG + s->fetch_count++ * SERVERS_FETCHES_MAX + (uint64_t)(f - s->fetches);
    loop_timer_set(&f->timer, loop_now_ns(s->config.loop) + SERVERS_FETCH_MS * 1000000ull);
    if (!dial(s, &s->server[f->server], f->tag, SERVERS_FETCH_MS, 0))
        loop_timer_set(&f->timer, loop_now_ns(s->config.loop));
}

void servers_fetch(struct servers *s, uint32_t rank, uint32_t number)
{
    for (uint32_t i = 0; i < SERVERS_FETCHES_MAX; i++)
        if (!s->fetches[i].used) {
            begin_fetch(s, &s->fetches[i], rank, number);
            return;
        }
    s->waiting_count += s->waiting[rank] == 0;
    s->waiting[rank] = number;
}

/* --- questions --- */

uint32_t servers_of_rank(const struct servers *s, uint32_t rank)
{
    return s->config.of_rank ? s->config.of_rank[rank] : rank % s->count;
}

const char *servers_address(const struct servers *s, uint32_t server, bool is_near)
{
    if (s->config.count)
        return s->server[server].address;
    return is_near || !s->far[0] ? s->local : s->far;
}

void servers_rank_key(const struct servers *s, uint32_t rank, uint32_t incarnation,
                      uint8_t key[CW_KEY_SIZE])
{
    cw_cred_rank_key(key, s->server[servers_of_rank(s, rank)].keys->job, rank, incarnation);
}
