#include "dispatcher/launch/nodes.h"
#include "common/secret.h"
#include "dispatcher/wire/wire.h"

#include <assert.h>
#include <limits.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A way to a node: a launcher's process, and the connection that it leads to. */
struct way {
    struct node *of;
    struct node_child child;
    struct wire wire;
    struct greeting greeting;
};

struct node {
    struct nodes *of;
    uint32_t host;
    bool here; /* a child of ours, which needs no signs of life */
    enum {
        NODE_WAITING,   /* for its turn */
        NODE_STARTING,  /* until it has greeted */
        NODE_THERE,     /* its session is open ... */
        NODE_SUSPENDED, /* ... without a connection */
        NODE_AWAY,      /* ... is over; another node is tried at try_ns */
        NODE_GONE,      /* for good */
    } state;
    struct way way[2];
    struct way *now; /* that of the session; the other one may become it */
    struct greeting_hello facts;
    struct mux *mux;
    uint64_t until_ns;   /* STARTING: it must have greeted */
    uint64_t explain_ns; /* STARTING: its connection has ended, and why is told then; 0: no */
    struct cw_err why;   /* ... */
    uint64_t again_ns;   /* STARTING: another connection is tried then; 0: no */
    uint32_t drops;      /* that were ended before somebody could log in */
    uint64_t heard_ns;
    uint64_t try_ns;   /* of the next try to go on over the other way, or the end of this one */
    uint64_t pause_ns; /* after it */
    bool trying;
    bool silent;                        /* which was told */
    uint32_t returns;                   /* how often another node was tried since it was lost */
    char said[NODE_CHILD_LINE_MAX + 1]; /* last, on its stderr */
};

struct nodes {
    struct nodes_config config;
    uint32_t count; /* of nodes that are to be there */
    char causeway[PATH_MAX];
    char own_host[HOST_NAME_MAX + 1];
    struct node *node;            /* owned */
    uint8_t (*keys)[CW_KEY_SIZE]; /* of sessions; of cw_secret_alloc */
    struct {
        const struct nodes_user *ops;
        void *ctx;
    } user[NODES_USERS];
    uint32_t users;
    struct loop_timer timer;
    uint64_t period_ns;
    uint32_t starting;
    uint32_t ready;
    uint32_t next; /* the first that waits for its turn */
    bool ending;
    bool failed;
    bool told; /* ready() */
};

static uint64_t now_of(const struct nodes *a)
{
    return loop_now_ns(a->config.loop);
}

static const char *name_of(const struct node *g)
{
    return g->here ? "localhost" : g->of->config.hosts->host[g->host].name;
}

static uint64_t timeout_of(const struct node *g)
{
    return g->here ? LOOP_NEVER : g->of->config.timeout_ns;
}

/* --- its end --- */

static void close_way(struct way *way)
{
    wire_close(&way->wire);
    node_child_kill(&way->child);
}

static struct way *other_way(struct node *g)
{
    return &g->way[g->now == &g->way[0]];
}

static void set_mux(struct node *g, struct mux *mux)
{
    g->mux = g->way[0].wire.mux = g->way[1].wire.mux = mux;
}

static void let_go(struct node *g)
{
    close_way(&g->way[0]);
    close_way(&g->way[1]);
    g->of->starting -= g->state == NODE_STARTING;
    g->state = NODE_GONE;
}

/* The one before ends by itself within the timeout. */
static void try_to_return(struct node *g)
{
    struct nodes *a = g->of;
    uint64_t pause_ns = g->here ? 0 : a->config.timeout_ns;

    g->state = g->returns++ < NODES_RETURNS_MAX && !a->ending ? NODE_AWAY : NODE_GONE;
    if (pause_ns < NODES_RETURN_MIN_NS)
        pause_ns = NODES_RETURN_MIN_NS;
    for (uint32_t i = 1; i < g->returns && pause_ns < NODES_RETURN_MAX_NS; i++)
        pause_ns *= 2;
    g->try_ns = now_of(a) + pause_ns;
}

static void fail(struct node *g, struct cw_err *err)
{
    struct nodes *a = g->of;

    let_go(g);
    g->silent = false;
    cw_err_wrap(err, "host %s", name_of(g));
    if (g->returns)
        try_to_return(g);
    if (a->ending || a->failed || g->returns)
        return;
    a->failed = true;
    a->config.events->failed(a->config.ctx, g->host, err);
}

static void tell_users_lost(struct nodes *a, uint32_t host)
{
    for (uint32_t i = 0; i < a->users; i++)
        a->user[i].ops->lost(a->user[i].ctx, host);
}

static void lose(struct node *g, struct cw_err *err)
{
    struct nodes *a = g->of;

    let_go(g);
    g->silent = false;
    cw_err_wrap(err, "host %s", name_of(g));
    tell_users_lost(a, g->host);
    mux_free(g->mux);
    set_mux(g, NULL);
    try_to_return(g);
    if (!a->ending)
        a->config.events->lost(a->config.ctx, g->host, err);
}

/* --- the session --- */

static int on_frame(void *ctx, uint32_t type, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct node *g = ctx;
    struct nodes *a = g->of;

    for (uint32_t i = 0; i < a->users; i++)
        if (type >= a->user[i].ops->first && type <= a->user[i].ops->last)
            return a->user[i].ops->frame(a->user[i].ctx, g->host, type, body, size, err);
    return cw_err_set(err, CW_EPROTO,
                      "its node sends a frame of the type %u, which nothing was "
                      "ordered for",
                      type);
}

static void on_output(void *ctx)
{
    wire_flush_soon(&((struct node *)ctx)->now->wire);
}

static const struct mux_ops mux_ops = {on_frame, on_output};

/* --- greetings --- */

static uint64_t stack_limit(void)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

    getrlimit(RLIMIT_STACK, &limit);
    return limit.rlim_cur;
}

static void greet(struct way *way, struct cw_err *err)
{
    const struct node *g = way->of;
    const struct nodes_config *config = &g->of->config;
    uint8_t bytes[GREETING_HEADER + GREETING_FRAME_MAX];
    struct greeting_open open = {.protocol = GREETING_PROTOCOL,
                                 .version = CAUSEWAY_VERSION,
                                 .ranks = config->ranks,
                                 .timeout_ns = timeout_of(g),
                                 .alive_period_ns = config->alive_period_ns,
                                 .stack_bytes = stack_limit()};
    struct greeting_attach attach = {.protocol = GREETING_PROTOCOL};
    size_t size;

    memcpy(open.job, config->job_id, CW_ID_SIZE);
    memcpy(open.key, g->of->keys[g->host], CW_KEY_SIZE);
    memcpy(attach.key, open.key, CW_KEY_SIZE);
    if (g->mux)
        attach.received = mux_received(g->mux);
    size = g->mux ? greeting_put_attach(bytes, &attach) : greeting_put_open(bytes, &open);
    wire_greet(&way->wire, bytes, size, err);
    sodium_memzero(&open, sizeof(open));
    sodium_memzero(&attach, sizeof(attach));
    sodium_memzero(bytes, sizeof(bytes));
}

static int take_hello(struct node *g, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct nodes *a = g->of;

    if (!greeting_get_hello(body, size, &g->facts))
        return cw_err_set(err, CW_EPROTO, "its node answers something that makes no sense");
    if (g->facts.protocol != GREETING_PROTOCOL || strcmp(g->facts.version, CAUSEWAY_VERSION) != 0)
        return cw_err_set(err, CW_EINVAL,
                          "it has Causeway %s (nodes' protocol %u), and here is Causeway %s "
                          "(protocol %u): install the same version on all hosts",
                          g->facts.version, g->facts.protocol, CAUSEWAY_VERSION, GREETING_PROTOCOL);
    set_mux(g, mux_new(&mux_ops, g, err));
    if (!g->mux || mux_connect(g->mux, 0, err) < 0)
        return err->code;
    wire_begin(&g->now->wire);
    g->state = NODE_THERE;
    g->heard_ns = now_of(a);
    a->starting--;
    if (g->returns == 0)
        a->ready++;
    else
        a->config.events->back(a->config.ctx, g->host);
    g->returns = 0;
    loop_timer_set(&a->timer, now_of(a));
    return CW_OK;
}

/* The session goes on over this way. */
static int take_attached(struct way *way, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct node *g = way->of;
    struct nodes *a = g->of;
    struct greeting_attached attached;

    if (!greeting_get_attached(body, size, &attached))
        return cw_err_set(err, CW_EPROTO, "its node answers something that makes no sense");
    close_way(g->now);
    g->now = way;
    if (mux_connect(g->mux, attached.received, err) < 0 ||
        mux_expect(g->mux, attached.from, err) < 0)
        return err->code;
    wire_begin(&way->wire);
    g->state = NODE_THERE;
    g->heard_ns = now_of(a);
    g->trying = false;
    a->config.events->resumed(a->config.ctx, g->host);
    return CW_OK;
}

static int take_greeting(struct way *way, enum greeting_type type, size_t size, struct cw_err *err)
{
    struct node *g = way->of;
    const uint8_t *body = way->greeting.bytes + GREETING_HEADER;
    char why[GREETING_TEXT_MAX + 1];

    if (type == GREETING_HELLO && !g->mux)
        return take_hello(g, body, size, err);
    if (type == GREETING_ATTACHED && g->mux)
        return take_attached(way, body, size, err);
    if (type == GREETING_REFUSED && greeting_get_refused(body, size, why))
        return cw_err_set(err, CW_EAUTH, "%s", why);
    return cw_err_set(err, CW_EPROTO, "its node answers something that makes no sense");
}

static long on_greeting(void *ctx, const uint8_t *bytes, size_t size, struct cw_err *err)
{
    struct way *way = ctx;
    bool magic = way->greeting.magic;
    enum greeting_type type;
    size_t body_size;
    long used = greeting_take(&way->greeting, bytes, size, &type, &body_size, err);

    if (used < 0)
        return used;
    if (magic && !way->greeting.magic)
        greet(way, err);
    if (type == GREETING_NONE)
        return used;
    return take_greeting(way, type, body_size, err) < 0 ? err->code : used;
}

/* --- connections --- */

static const char *node_program(const struct node *g)
{
    const char *own = g->here ? g->of->config.own : g->of->config.hosts->host[g->host].causeway;

    return own ? own : g->of->causeway;
}

static const char *launcher_of(const struct node *g)
{
    return g->here ? "ssh" : g->of->config.launcher;
}

/* The launcher has more to say than that its connection ended: it is given time for that. */
static void explain_later(struct node *g, const struct cw_err *err)
{
    g->why = *err;
    if (err->code != CW_ECLOSED && err->code != CW_ESYS) {
        fail(g, &g->why);
        return;
    }
    g->explain_ns = now_of(g->of) + NODES_EXPLAIN_NS;
    if (g->now->child.pid == 0)
        g->explain_ns = now_of(g->of);
    loop_timer_hasten(&g->of->timer, g->explain_ns);
}

/* A busy sshd has ended the connection: another one is tried in a while, not all at once. */
static bool try_again(struct node *g)
{
    uint64_t pause_ns = NODES_DROP_PAUSE_NS << g->drops;

    if (g->drops == NODES_DROPS_MAX || g->of->ending || !node_child_was_dropped(&g->now->child))
        return false;
    g->drops++;
    if (pause_ns > NODES_DROP_PAUSE_MAX_NS)
        pause_ns = NODES_DROP_PAUSE_MAX_NS;
    close_way(g->now);
    g->explain_ns = 0;
    g->again_ns = now_of(g->of) + pause_ns + pause_ns / 8 * (g->host % 8);
    loop_timer_hasten(&g->of->timer, g->again_ns);
    return true;
}

static void explain(struct node *g)
{
    char said[CW_ERR_TEXT_MAX / 2];
    char noise[MARKER_NOISE_KEPT + 1];
    struct cw_err err;

    if (try_again(g))
        return;
    node_child_why(&g->now->child, said, sizeof(said));
    marker_noise(&g->now->greeting.marker, noise, sizeof(noise));
    cw_err_set(&err, CW_ESYS, "no node could be started by %s: %s%s%s%s; try: %s %s %s --version",
               launcher_of(g), said[0] ? said : g->why.text,
               noise[0] ? " (on its standard output came: \"" : "", noise, noise[0] ? "\")" : "",
               launcher_of(g), name_of(g), node_program(g));
    fail(g, &err);
}

static void note_heard(struct node *g)
{
    if (g->now->wire.heard_ns > g->heard_ns)
        g->heard_ns = g->now->wire.heard_ns;
}

/* A try over the other way that has begun goes on. */
static void suspend(struct node *g, const struct cw_err *err)
{
    struct nodes *a = g->of;

    note_heard(g);
    close_way(g->now);
    g->state = NODE_SUSPENDED;
    if (!g->trying) {
        g->pause_ns = NODES_PAUSE_MIN_NS;
        g->try_ns = now_of(a);
        loop_timer_hasten(&a->timer, g->try_ns);
    }
    a->config.events->suspended(a->config.ctx, g->host, err);
}

static void try_later(struct node *g)
{
    struct nodes *a = g->of;

    close_way(other_way(g));
    g->trying = false;
    g->try_ns = now_of(a) + g->pause_ns;
    g->pause_ns = 2 * g->pause_ns < NODES_PAUSE_MAX_NS ? 2 * g->pause_ns : NODES_PAUSE_MAX_NS;
    loop_timer_hasten(&a->timer, g->try_ns);
}

static bool may_resume(const struct node *g, const struct cw_err *err)
{
    return !g->here && (err->code == CW_ECLOSED || err->code == CW_ESYS);
}

static void on_broke(void *ctx, const struct cw_err *err)
{
    struct way *way = ctx;
    struct node *g = way->of;
    struct cw_err why = *err;

    if (g->state == NODE_STARTING)
        explain_later(g, err);
    else if (g->of->ending && way == g->now)
        lose(g, &why);
    else if (way != g->now && err->code != CW_EAUTH)
        try_later(g);
    else if (!may_resume(g, err))
        lose(g, &why);
    else
        suspend(g, err);
}

static const struct wire_ops wire_ops = {on_greeting, on_broke};

/* Each of many tries in vain may say the same. */
static bool on_said(void *ctx, const char *line)
{
    struct node *g = ((struct way *)ctx)->of;

    if (strcmp(g->said, line) == 0)
        return true;
    snprintf(g->said, sizeof(g->said), "%s", line);
    g->of->config.events->said(g->of->config.ctx, g->host, line);
    return true;
}

/* A new node, or another connection with this one. */
static int connect_by(struct way *way, struct cw_err *err)
{
    static struct launch_command command;
    const struct node *g = way->of;
    const struct nodes *a = g->of;
    uint64_t connect_s = a->config.timeout_ns / 1000000000 + 1;
    const char *first[] = {"node", NULL};
    const char *again[] = {"node", "--attach", g->facts.dir, NULL};
    char kept[64];
    const char *here[] = {"node", "--here", kept, NULL};
    struct launch_command_config config = {.launcher = launcher_of(g),
                                           .args = a->config.launcher_args,
                                           .host = name_of(g),
                                           .own_host = a->own_host,
                                           .causeway = node_program(g),
                                           .words = g->mux ? again : first};
    int in_fd, out_fd;

    snprintf(kept, sizeof(kept), "%d,%d,%d", a->config.kept_fds[0], a->config.kept_fds[1],
             a->config.kept_fds[2]);
    if (g->here)
        config.words = here;
    config.connect_s = NODES_CONNECT_MAX_S;
    if (g->mux && connect_s < config.connect_s)
        config.connect_s = (uint32_t)connect_s;
    greeting_init(&way->greeting, true);
    if (launch_command_make(&command, &config, err) < 0 ||
        node_child_start(&way->child, &command, &in_fd, &out_fd, err) < 0)
        return err->code;
    return wire_open(&way->wire, out_fd, in_fd, err);
}

/* --- what is due --- */

static void connect_first(struct node *g)
{
    struct cw_err err = {0};

    g->explain_ns = g->again_ns = 0;
    g->until_ns = now_of(g->of) + NODES_START_NS;
    if (connect_by(g->now, &err) < 0)
        fail(g, &err);
}

static void start(struct node *g)
{
    g->trying = false;
    g->drops = 0;
    g->state = NODE_STARTING;
    g->of->starting++;
    connect_first(g);
}

static void look_at_start(struct node *g)
{
    struct nodes *a = g->of;
    struct cw_err err;

    if (g->again_ns) {
        if (g->again_ns <= now_of(a))
            connect_first(g);
        return;
    }
    if (g->explain_ns && (g->explain_ns <= now_of(a) || g->now->child.pid == 0))
        explain(g);
    else if (g->until_ns <= now_of(a) && !g->explain_ns)
        explain_later(g, (cw_err_set(&err, CW_ECLOSED, "it does not answer within %d s",
                                     (int)(NODES_START_NS / 1000000000)),
                          &err));
}

/* One that does not come to its end may be slow: it has half of the timeout. */
static void try_other_way(struct node *g)
{
    struct nodes *a = g->of;
    struct cw_err err;

    if (g->try_ns > now_of(a))
        return;
    if (g->trying) {
        try_later(g);
        return;
    }
    g->trying = true;
    g->try_ns = now_of(a) + a->config.timeout_ns / 2;
    if (connect_by(other_way(g), &err) < 0)
        try_later(g);
}

/* Where nothing comes any more the connection may be broken without a word, or slow: both ways are
 * tried, and the first one is good. */
static void look_at_session(struct node *g)
{
    struct nodes *a = g->of;

    if (g->here)
        return;
    note_heard(g);
    mux_ping(g->mux);
    if (now_of(a) - g->heard_ns > NODES_SILENCE * a->period_ns) {
        try_other_way(g);
    } else if (g->trying) {
        close_way(other_way(g));
        g->trying = false;
    } else {
        g->pause_ns = NODES_PAUSE_MIN_NS;
        g->try_ns = 0;
    }
}

static void look_at_silence(struct node *g)
{
    struct nodes *a = g->of;
    bool silent = now_of(a) - g->heard_ns > NODES_SILENCE * a->period_ns || g->state != NODE_THERE;
    struct cw_err err;

    if (g->here)
        return;
    if (silent != g->silent)
        a->config.events->silent(a->config.ctx, g->host, silent);
    g->silent = silent;
    if (now_of(a) - g->heard_ns <= a->config.timeout_ns)
        return;
    cw_err_set(&err, CW_ETIME, "nothing was heard of it for %.1f s (--host-timeout)",
               (double)(now_of(a) - g->heard_ns) / 1e9);
    lose(g, &err);
}

static uint64_t next_look(const struct nodes *a)
{
    uint64_t at_ns = now_of(a) + a->period_ns;

    for (uint32_t i = 0; i < a->count; i++) {
        const struct node *g = &a->node[i];

        if ((g->state == NODE_SUSPENDED || g->state == NODE_AWAY || g->trying) && g->try_ns < at_ns)
            at_ns = g->try_ns;
        if (g->state == NODE_STARTING && g->explain_ns && g->explain_ns < at_ns)
            at_ns = g->explain_ns;
        if (g->state == NODE_STARTING && g->again_ns && g->again_ns < at_ns)
            at_ns = g->again_ns;
    }
    return at_ns;
}

static void advance(struct nodes *a)
{
    while (!a->failed && !a->ending && a->next < a->count && a->starting < NODES_STARTS_MAX)
        start(&a->node[a->next++]);
}

static void on_timer(void *ctx)
{
    struct nodes *a = ctx;

    advance(a);
    for (uint32_t i = 0; i < a->count; i++) {
        struct node *g = &a->node[i];

        if (g->state == NODE_STARTING)
            look_at_start(g);
        else if (g->state == NODE_THERE)
            look_at_session(g);
        else if (g->state == NODE_SUSPENDED)
            try_other_way(g);
        else if (g->state == NODE_AWAY && g->try_ns <= now_of(a) && !a->ending &&
                 a->starting < NODES_STARTS_MAX)
            start(g);
        if (g->state == NODE_THERE || g->state == NODE_SUSPENDED)
            look_at_silence(g);
    }
    loop_timer_set(&a->timer, next_look(a));
    if (!a->told && a->ready == a->count && !a->failed) {
        a->told = true;
        a->config.events->ready(a->config.ctx);
    }
}

/* --- all of them --- */

struct nodes *nodes_new(const struct nodes_config *config, struct cw_err *err)
{
    uint32_t count = config->hosts->count + 1;
    struct nodes *a = calloc(1, sizeof(*a));
    ssize_t n;

    if (a) {
        a->config = *config;
        a->count = config->own ? count : count - 1;
        a->node = calloc(count, sizeof(*a->node));
        a->keys = cw_secret_alloc(count * sizeof(*a->keys));
    }
    if (!a || !a->node || !a->keys) {
        if (a)
            cw_secret_free(a->keys, count * sizeof(*a->keys));
        if (a)
            free(a->node);
        free(a);
        cw_err_set(err, CW_ENOMEM, "no memory for %u hosts", count);
        return NULL;
    }
    n = readlink("/proc/self/exe", a->causeway, sizeof(a->causeway) - 1);
    a->causeway[n > 0 ? n : 0] = '\0';
    if (config->causeway)
        snprintf(a->causeway, sizeof(a->causeway), "%s", config->causeway);
    gethostname(a->own_host, sizeof(a->own_host) - 1);
    a->period_ns = a->config.timeout_ns / NODES_PERIODS;
    if (a->period_ns > NODES_PERIOD_MAX_NS)
        a->period_ns = NODES_PERIOD_MAX_NS;
    randombytes_buf(a->keys, count * sizeof(*a->keys));
    for (uint32_t i = 0; i < count; i++) {
        struct node *g = &a->node[i];

        g->of = a;
        g->host = i;
        g->here = i == config->hosts->count;
        g->now = &g->way[0];
        for (int j = 0; j < 2; j++) {
            g->way[j].of = g;
            wire_init(&g->way[j].wire, config->loop, &wire_ops, &g->way[j]);
            node_child_init(&g->way[j].child, config->loop, on_said, &g->way[j]);
            g->way[j].child.here = g->here;
            if (g->here)
                memcpy(g->way[j].child.kept_fds, config->kept_fds, sizeof(config->kept_fds));
        }
    }
    loop_timer_add(config->loop, &a->timer, on_timer, a);
    return a;
}

void nodes_free(struct nodes *a)
{
    if (!a)
        return;
    a->ending = true;
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->node[i].mux)
            tell_users_lost(a, i);
        let_go(&a->node[i]);
        mux_free(a->node[i].mux);
    }
    for (uint32_t i = 0; i < a->users; i++)
        if (a->user[i].ops->over)
            a->user[i].ops->over(a->user[i].ctx);
    for (uint32_t i = 0; i < nodes_count(a); i++)
        for (int j = 0; j < 2; j++)
            wire_end(&a->node[i].way[j].wire);
    loop_timer_remove(&a->timer);
    cw_secret_free(a->keys, nodes_count(a) * sizeof(*a->keys));
    free(a->node);
    free(a);
}

void nodes_add_user(struct nodes *a, const struct nodes_user *user, void *ctx)
{
    assert(a->users < NODES_USERS);
    a->user[a->users].ops = user;
    a->user[a->users++].ctx = ctx;
}

void nodes_open(struct nodes *a)
{
    loop_timer_set(&a->timer, 0);
}

/* From this one on. */
static bool any_left(const struct nodes *a, uint32_t first)
{
    for (uint32_t i = first; i < a->count; i++)
        if (a->node[i].mux)
            return true;
    return false;
}

/* One that has not greeted yet ends with its connection. */
void nodes_end(struct nodes *a)
{
    uint64_t began_ns;
    struct cw_err err;

    if (!a || a->ending)
        return;
    a->ending = true;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->node[i].state == NODE_STARTING) {
            let_go(&a->node[i]);
        } else if (a->node[i].mux) {
            mux_send(a->node[i].mux, NODE_END, NULL, 0, &err);
            if (a->node[i].state == NODE_THERE)
                wire_finish(&a->node[i].now->wire);
        }
    began_ns = loop_look(a->config.loop);
    while (any_left(a, 0) && now_of(a) < began_ns + NODES_END_NS)
        loop_turn(a->config.loop, began_ns + NODES_END_NS);
    while (any_left(a, nodes_here(a)) && now_of(a) < began_ns + NODES_END_OWN_NS)
        loop_turn(a->config.loop, began_ns + NODES_END_OWN_NS);
}

/* --- processes --- */

static struct way *way_of(const struct nodes *a, pid_t pid)
{
    for (uint32_t i = 0; a && pid > 0 && i < a->count; i++)
        for (int j = 0; j < 2; j++)
            if (a->node[i].way[j].child.pid == pid)
                return &a->node[i].way[j];
    return NULL;
}

bool nodes_has_child(const struct nodes *a, pid_t pid)
{
    return way_of(a, pid);
}

bool nodes_child_ended(struct nodes *a, pid_t pid, int status)
{
    struct way *way = way_of(a, pid);

    if (!way)
        return false;
    node_child_ended(&way->child, status);
    if (way->of->state == NODE_STARTING)
        loop_timer_set(&a->timer, now_of(a));
    return true;
}

/* --- what is told to them --- */

bool nodes_is_there(const struct nodes *a, uint32_t host)
{
    return a->node[host].mux;
}

struct mux *nodes_mux(struct nodes *a, uint32_t host)
{
    return a->node[host].mux;
}

int nodes_tell(struct nodes *a, uint32_t host, uint32_t type, const void *body, size_t size,
               struct cw_err *err)
{
    if (!a->node[host].mux)
        return cw_err_set(err, CW_ECLOSED, "host %s is lost", nodes_name(a, host));
    return mux_send(a->node[host].mux, type, body, size, err);
}

int nodes_tell_event(struct nodes *a, uint32_t host, uint32_t type, uint32_t of, uint32_t value,
                     struct cw_err *err)
{
    struct node_event event = {.of = of, .value = value};
    uint8_t body[NODE_EVENT_MAX];

    return nodes_tell(a, host, type, body, node_event_put(body, &event), err);
}

uint32_t nodes_here(const struct nodes *a)
{
    return a->config.hosts->count;
}

uint32_t nodes_count(const struct nodes *a)
{
    return nodes_here(a) + 1;
}

const char *nodes_name(const struct nodes *a, uint32_t host)
{
    return name_of(&a->node[host]);
}

const struct greeting_hello *nodes_facts(const struct nodes *a, uint32_t host)
{
    return &a->node[host].facts;
}
