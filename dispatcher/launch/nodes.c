#include "dispatcher/launch/nodes.h"
#include "common/cred.h"
#include "common/secret.h"
#include "dispatcher/launch/node_commands.h"
#include "dispatcher/wire/wire.h"

#include <assert.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

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
    bool here; /* a child of ours, which ends when its connection does */
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
    const char *taken; /* until it has greeted: the directory of one that is taken over, or NULL */
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
    struct node_commands commands;
    struct node *node;            /* owned */
    uint8_t (*keys)[CW_KEY_SIZE]; /* of sessions; of cw_secret_alloc */
    struct {
        const struct nodes_user *ops;
        void *ctx;
    } user[NODES_USERS];
    uint32_t users;
    struct loop_timer timer;
    uint64_t period_ns;
    uint64_t looked_ns; /* when the timer was here last */
    uint32_t starting;
    uint32_t ready;
    uint32_t next; /* the first that waits for its turn */
    bool ending;
    bool failed;
    bool told; /* ready() */
};

static uint64_t now_of(const struct nodes *nodes)
{
    return loop_now_ns(nodes->config.loop);
}

static const char *name_of(const struct node *n)
{
    return node_commands_name(&n->of->commands, n->host);
}

/* --- its end --- */

static void close_way(struct way *way)
{
    wire_close(&way->wire);
    node_child_kill(&way->child);
}

static struct way *other_way(struct node *n)
{
    return &n->way[n->now == &n->way[0]];
}

static void set_mux(struct node *n, struct mux *mux)
{
    n->mux = n->way[0].wire.mux = n->way[1].wire.mux = mux;
}

static void let_go(struct node *n)
{
    close_way(&n->way[0]);
    close_way(&n->way[1]);
    n->of->starting -= n->state == NODE_STARTING;
    n->state = NODE_GONE;
}

/* The one before ends by itself within the timeout. */
static void try_to_return(struct node *n)
{
    struct nodes *nodes = n->of;
    uint64_t pause_ns = n->here ? 0 : nodes->config.timeout_ns;

    n->state = n->returns++ < NODES_RETURNS_MAX && !nodes->ending ? NODE_AWAY : NODE_GONE;
    if (pause_ns < NODES_RETURN_MIN_NS)
        pause_ns = NODES_RETURN_MIN_NS;
    for (uint32_t i = 1; i < n->returns && pause_ns < NODES_RETURN_MAX_NS; i++)
        pause_ns *= 2;
    n->try_ns = now_of(nodes) + pause_ns;
}

static void fail(struct node *n, struct cw_err *err)
{
    struct nodes *nodes = n->of;

    let_go(n);
    n->silent = false;
    cw_err_wrap(err, "host %s", name_of(n));
    if (n->returns)
        try_to_return(n);
    if (nodes->ending || nodes->failed || n->returns)
        return;
    nodes->failed = true;
    nodes->config.events->failed(nodes->config.ctx, n->host, err);
}

static void tell_users_lost(struct nodes *nodes, uint32_t host)
{
    for (uint32_t i = 0; i < nodes->users; i++)
        nodes->user[i].ops->lost(nodes->user[i].ctx, host);
}

static void lose(struct node *n, struct cw_err *err)
{
    struct nodes *nodes = n->of;

    let_go(n);
    n->silent = false;
    if (n->here)
        cw_err_wrap(err, "the node of this machine (causeway node, pid %u)", n->facts.pid);
    else
        cw_err_wrap(err, "host %s", name_of(n));
    tell_users_lost(nodes, n->host);
    mux_free(n->mux);
    set_mux(n, NULL);
    try_to_return(n);
    if (!nodes->ending)
        nodes->config.events->lost(nodes->config.ctx, n->host, err);
}

/* --- the session --- */

static int on_frame(void *ctx, uint32_t type, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct node *n = ctx;
    struct nodes *nodes = n->of;

    for (uint32_t i = 0; i < nodes->users; i++)
        if (type >= nodes->user[i].ops->first && type <= nodes->user[i].ops->last)
            return nodes->user[i].ops->frame(nodes->user[i].ctx, n->host, type, body, size, err);
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
    const struct node *n = way->of;
    const struct nodes_config *config = &n->of->config;
    uint8_t bytes[GREETING_HEADER + GREETING_FRAME_MAX];
    struct greeting_open open = {.protocol = GREETING_PROTOCOL,
                                 .version = CAUSEWAY_VERSION,
                                 .ranks = config->ranks,
                                 .timeout_ns = config->timeout_ns,
                                 .orphan_ns = config->orphan_ns,
                                 .alive_period_ns = config->alive_period_ns,
                                 .stack_bytes = stack_limit()};
    struct greeting_attach attach = {.protocol = GREETING_PROTOCOL};
    size_t size;

    memcpy(open.job, config->job_id, CW_ID_SIZE);
    memcpy(open.key, n->of->keys[n->host], CW_KEY_SIZE);
    memcpy(attach.key, open.key, CW_KEY_SIZE);
    if (config->orphan_ns)
        cw_cred_node_key(open.node_key, config->relay_key, n->host);
    if (n->mux)
        attach.received = mux_received(n->mux);
    size = n->mux     ? greeting_put_attach(bytes, &attach)
           : n->taken ? greeting_put_take(bytes, &open)
                      : greeting_put_open(bytes, &open);
    wire_greet(&way->wire, bytes, size, err);
    sodium_memzero(&open, sizeof(open));
    sodium_memzero(&attach, sizeof(attach));
    sodium_memzero(bytes, sizeof(bytes));
}

static int take_hello(struct node *n, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct nodes *nodes = n->of;

    if (!greeting_get_hello(body, size, &n->facts))
        return cw_err_set(err, CW_EPROTO, "its node answers something that makes no sense");
    if (!greeting_is_ours(&n->facts))
        return cw_err_set(err, CW_EINVAL,
                          "it has Causeway %s (nodes' protocol %u), and here is Causeway %s "
                          "(protocol %u): install the same version on all hosts",
                          n->facts.version, n->facts.protocol, CAUSEWAY_VERSION, GREETING_PROTOCOL);
    set_mux(n, mux_new(&mux_ops, n, err));
    if (!n->mux || mux_connect(n->mux, 0, err) < 0)
        return err->code;
    wire_begin(&n->now->wire);
    n->state = NODE_THERE;
    n->taken = NULL;
    n->heard_ns = now_of(nodes);
    nodes->starting--;
    if (n->returns == 0)
        nodes->ready++;
    else
        nodes->config.events->back(nodes->config.ctx, n->host);
    n->returns = 0;
    loop_timer_set(&nodes->timer, now_of(nodes));
    return CW_OK;
}

/* The session goes on over this way. */
static int take_attached(struct way *way, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct node *n = way->of;
    struct nodes *nodes = n->of;
    struct greeting_attached attached;

    if (!greeting_get_attached(body, size, &attached))
        return cw_err_set(err, CW_EPROTO, "its node answers something that makes no sense");
    close_way(n->now);
    n->now = way;
    if (mux_connect(n->mux, attached.received, err) < 0 ||
        mux_expect(n->mux, attached.from, err) < 0)
        return err->code;
    wire_begin(&way->wire);
    n->state = NODE_THERE;
    n->heard_ns = now_of(nodes);
    n->trying = false;
    nodes->config.events->resumed(nodes->config.ctx, n->host);
    return CW_OK;
}

static int take_greeting(struct way *way, enum greeting_type type, size_t size, struct cw_err *err)
{
    struct node *n = way->of;
    const uint8_t *body = way->greeting.bytes + GREETING_HEADER;
    char why[GREETING_TEXT_MAX + 1];

    if (type == GREETING_HELLO && !n->mux)
        return take_hello(n, body, size, err);
    if (type == GREETING_ATTACHED && n->mux)
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

/* The launcher has more to say than that its connection ended: it is given time for that. */
static void explain_later(struct node *n, const struct cw_err *err)
{
    n->why = *err;
    if (err->code != CW_ECLOSED && err->code != CW_ESYS) {
        fail(n, &n->why);
        return;
    }
    n->explain_ns = now_of(n->of) + NODES_EXPLAIN_NS;
    if (n->now->child.pid == 0)
        n->explain_ns = now_of(n->of);
    loop_timer_hasten(&n->of->timer, n->explain_ns);
}

/* A busy sshd has ended the connection: another one is tried in a while, not all at once. */
static bool try_again(struct node *n)
{
    uint64_t pause_ns = NODES_DROP_PAUSE_NS << n->drops;

    if (n->drops == NODES_DROPS_MAX || n->of->ending || !node_child_was_dropped(&n->now->child))
        return false;
    n->drops++;
    if (pause_ns > NODES_DROP_PAUSE_MAX_NS)
        pause_ns = NODES_DROP_PAUSE_MAX_NS;
    close_way(n->now);
    n->explain_ns = 0;
    n->again_ns = now_of(n->of) + pause_ns + pause_ns / 8 * (n->host % 8);
    loop_timer_hasten(&n->of->timer, n->again_ns);
    return true;
}

static void explain(struct node *n)
{
    const char *launcher = node_commands_launcher(&n->of->commands, n->host);
    char said[CW_ERR_TEXT_MAX / 2];
    char noise[MARKER_NOISE_KEPT + 1];
    struct cw_err err;

    if (try_again(n))
        return;
    node_child_why(&n->now->child, said, sizeof(said));
    marker_noise(&n->now->greeting.marker, noise, sizeof(noise));
    cw_err_set(&err, CW_ESYS, "no node could be started by %s: %s%s%s%s; try: %s %s %s --version",
               launcher, said[0] ? said : n->why.text,
               noise[0] ? " (on its standard output came: \"" : "", noise, noise[0] ? "\")" : "",
               launcher, name_of(n), node_commands_causeway(&n->of->commands, n->host));
    fail(n, &err);
}

static void note_heard(struct node *n)
{
    if (n->now->wire.heard_ns > n->heard_ns)
        n->heard_ns = n->now->wire.heard_ns;
}

/* A try over the other way that has begun goes on. */
static void suspend(struct node *n, const struct cw_err *err)
{
    struct nodes *nodes = n->of;

    note_heard(n);
    close_way(n->now);
    n->state = NODE_SUSPENDED;
    if (!n->trying) {
        n->pause_ns = NODES_PAUSE_MIN_NS;
        n->try_ns = now_of(nodes);
        loop_timer_hasten(&nodes->timer, n->try_ns);
    }
    nodes->config.events->suspended(nodes->config.ctx, n->host, err);
}

static void try_later(struct node *n)
{
    struct nodes *nodes = n->of;

    close_way(other_way(n));
    n->trying = false;
    n->try_ns = now_of(nodes) + n->pause_ns;
    n->pause_ns = 2 * n->pause_ns < NODES_PAUSE_MAX_NS ? 2 * n->pause_ns : NODES_PAUSE_MAX_NS;
    loop_timer_hasten(&nodes->timer, n->try_ns);
}

static bool may_resume(const struct node *n, const struct cw_err *err)
{
    return !n->here && (err->code == CW_ECLOSED || err->code == CW_ESYS);
}

static void on_broke(void *ctx, const struct cw_err *err)
{
    struct way *way = ctx;
    struct node *n = way->of;
    struct cw_err why = *err;

    if (n->state == NODE_STARTING)
        explain_later(n, err);
    else if (n->of->ending && way == n->now)
        lose(n, &why);
    else if (way != n->now && err->code != CW_EAUTH)
        try_later(n);
    else if (!may_resume(n, err))
        lose(n, &why);
    else
        suspend(n, err);
}

static const struct wire_ops wire_ops = {on_greeting, on_broke};

/* Each of many tries in vain may say the same. */
static bool on_said(void *ctx, const char *line)
{
    struct node *n = ((struct way *)ctx)->of;

    if (strcmp(n->said, line) == 0)
        return true;
    snprintf(n->said, sizeof(n->said), "%s", line);
    n->of->config.events->said(n->of->config.ctx, n->host, line);
    return true;
}

/* A new node, or another connection with this one. */
static int connect_by(struct way *way, struct cw_err *err)
{
    static struct launch_command command;
    const struct node *n = way->of;
    const char *attach = n->mux ? n->facts.dir : n->taken;
    int in_fd, out_fd;

    greeting_init(&way->greeting, true);
    if (node_commands_make(&n->of->commands, n->host, attach, &command, err) < 0 ||
        node_child_start(&way->child, &command, &in_fd, &out_fd, err) < 0)
        return err->code;
    return wire_open(&way->wire, out_fd, in_fd, err);
}

/* --- what is due --- */

static void connect_first(struct node *n)
{
    struct cw_err err = {0};

    n->explain_ns = n->again_ns = 0;
    n->until_ns = now_of(n->of) + NODES_START_NS;
    if (connect_by(n->now, &err) < 0)
        fail(n, &err);
}

static void start(struct node *n)
{
    n->trying = false;
    n->drops = 0;
    n->state = NODE_STARTING;
    n->of->starting++;
    connect_first(n);
}

static void look_at_start(struct node *n)
{
    struct nodes *nodes = n->of;
    struct cw_err err;

    if (n->again_ns) {
        if (n->again_ns <= now_of(nodes))
            connect_first(n);
        return;
    }
    if (n->explain_ns && (n->explain_ns <= now_of(nodes) || n->now->child.pid == 0))
        explain(n);
    else if (n->until_ns <= now_of(nodes) && !n->explain_ns)
        explain_later(n, (cw_err_set(&err, CW_ECLOSED, "it does not answer within %d s",
                                     (int)(NODES_START_NS / 1000000000)),
                          &err));
}

/* One that does not come to its end may be slow: it has half of the timeout. */
static void try_other_way(struct node *n)
{
    struct nodes *nodes = n->of;
    struct cw_err err;

    if (n->try_ns > now_of(nodes))
        return;
    if (n->trying) {
        try_later(n);
        return;
    }
    n->trying = true;
    n->try_ns = now_of(nodes) + nodes->config.timeout_ns / 2;
    if (connect_by(other_way(n), &err) < 0)
        try_later(n);
}

/* Where nothing comes any more the connection may be broken without a word, or slow: both ways are
 * tried, and the first one is good. */
static void look_at_session(struct node *n)
{
    struct nodes *nodes = n->of;

    note_heard(n);
    if (n->here)
        return;
    mux_ping(n->mux);
    if (now_of(nodes) - n->heard_ns > NODES_SILENCE * nodes->period_ns) {
        try_other_way(n);
    } else if (n->trying) {
        close_way(other_way(n));
        n->trying = false;
    } else {
        n->pause_ns = NODES_PAUSE_MIN_NS;
        n->try_ns = 0;
    }
}

static void look_at_silence(struct node *n)
{
    struct nodes *nodes = n->of;
    bool silent =
        now_of(nodes) - n->heard_ns > NODES_SILENCE * nodes->period_ns || n->state != NODE_THERE;
    struct cw_err err;

    if (silent != n->silent)
        nodes->config.events->silent(nodes->config.ctx, n->host, silent);
    n->silent = silent;
    if (now_of(nodes) - n->heard_ns <= nodes->config.timeout_ns)
        return;
    cw_err_set(&err, CW_ETIME, "nothing was heard of it for %.1f s (%s)",
               (double)(now_of(nodes) - n->heard_ns) / 1e9,
               nodes_here(nodes) ? "--host-timeout" : "is it stopped?");
    lose(n, &err);
}

/* Signs of life that nobody was there to hear count as given: a dispatcher that was stopped must
 * not take its own node for lost. Others end meanwhile, unless they are to go on alone. */
static void forgive_silence(struct nodes *nodes)
{
    uint64_t away_ns = now_of(nodes) - nodes->looked_ns;
    uint32_t i = nodes->config.orphan_ns ? 0 : nodes_here(nodes);

    nodes->looked_ns = now_of(nodes);
    for (; away_ns > NODES_SILENCE * nodes->period_ns && i <= nodes_here(nodes); i++)
        nodes->node[i].heard_ns = nodes->looked_ns;
}

static uint64_t next_look(const struct nodes *nodes)
{
    uint64_t at_ns = now_of(nodes) + nodes->period_ns;

    for (uint32_t i = 0; i < nodes->count; i++) {
        const struct node *n = &nodes->node[i];

        if ((n->state == NODE_SUSPENDED || n->state == NODE_AWAY || n->trying) && n->try_ns < at_ns)
            at_ns = n->try_ns;
        if (n->state == NODE_STARTING && n->explain_ns && n->explain_ns < at_ns)
            at_ns = n->explain_ns;
        if (n->state == NODE_STARTING && n->again_ns && n->again_ns < at_ns)
            at_ns = n->again_ns;
    }
    return at_ns;
}

static void advance(struct nodes *nodes)
{
    while (!nodes->failed && !nodes->ending && nodes->next < nodes->count &&
           nodes->starting < NODES_STARTS_MAX)
        start(&nodes->node[nodes->next++]);
}

static void on_timer(void *ctx)
{
    struct nodes *nodes = ctx;

    forgive_silence(nodes);
    advance(nodes);
    for (uint32_t i = 0; i < nodes->count; i++) {
        struct node *n = &nodes->node[i];

        if (n->state == NODE_STARTING)
            look_at_start(n);
        else if (n->state == NODE_THERE)
            look_at_session(n);
        else if (n->state == NODE_SUSPENDED)
            try_other_way(n);
        else if (n->state == NODE_AWAY && n->try_ns <= now_of(nodes) && !nodes->ending &&
                 nodes->starting < NODES_STARTS_MAX)
            start(n);
        if (n->state == NODE_THERE || n->state == NODE_SUSPENDED)
            look_at_silence(n);
    }
    loop_timer_set(&nodes->timer, next_look(nodes));
    if (!nodes->told && nodes->ready == nodes->count && !nodes->failed) {
        nodes->told = true;
        nodes->config.events->ready(nodes->config.ctx);
    }
}

/* --- all of them --- */

struct nodes *nodes_new(const struct nodes_config *config, struct cw_err *err)
{
    uint32_t count = config->hosts->count + 1;
    struct nodes *nodes = calloc(1, sizeof(*nodes));

    if (nodes) {
        nodes->config = *config;
        nodes->count = config->own ? count : count - 1;
        nodes->node = calloc(count, sizeof(*nodes->node));
        nodes->keys = cw_secret_alloc(count * sizeof(*nodes->keys));
    }
    if (!nodes || !nodes->node || !nodes->keys) {
        if (nodes)
            cw_secret_free(nodes->keys, count * sizeof(*nodes->keys));
        if (nodes)
            free(nodes->node);
        free(nodes);
        cw_err_set(err, CW_ENOMEM, "no memory for %u hosts", count);
        return NULL;
    }
    node_commands_init(&nodes->commands, &nodes->config);
    nodes->period_ns = nodes->config.timeout_ns / NODES_PERIODS;
    if (nodes->period_ns > NODES_PERIOD_MAX_NS)
        nodes->period_ns = NODES_PERIOD_MAX_NS;
    randombytes_buf(nodes->keys, count * sizeof(*nodes->keys));
    for (uint32_t i = 0; i < count; i++) {
        struct node *n = &nodes->node[i];

        n->of = nodes;
        n->host = i;
        n->here = i == config->hosts->count;
        n->taken = config->taken && !n->here ? config->taken[i] : NULL;
        n->now = &n->way[0];
        for (int j = 0; j < 2; j++) {
            n->way[j].of = n;
            wire_init(&n->way[j].wire, config->loop, &wire_ops, &n->way[j]);
            node_child_init(&n->way[j].child, config->loop, on_said, &n->way[j]);
            n->way[j].child.here = n->here;
            if (n->here)
                memcpy(n->way[j].child.kept_fds, config->kept_fds, sizeof(config->kept_fds));
        }
    }
    loop_timer_add(config->loop, &nodes->timer, on_timer, nodes);
    return nodes;
}

void nodes_free(struct nodes *nodes)
{
    if (!nodes)
        return;
    nodes->ending = true;
    for (uint32_t i = 0; i < nodes->count; i++) {
        if (nodes->node[i].mux)
            tell_users_lost(nodes, i);
        let_go(&nodes->node[i]);
        mux_free(nodes->node[i].mux);
    }
    for (uint32_t i = 0; i < nodes->users; i++)
        if (nodes->user[i].ops->over)
            nodes->user[i].ops->over(nodes->user[i].ctx);
    for (uint32_t i = 0; i < nodes_count(nodes); i++)
        for (int j = 0; j < 2; j++)
            wire_end(&nodes->node[i].way[j].wire);
    loop_timer_remove(&nodes->timer);
    cw_secret_free(nodes->keys, nodes_count(nodes) * sizeof(*nodes->keys));
    free(nodes->node);
    free(nodes);
}

void nodes_add_user(struct nodes *nodes, const struct nodes_user *user, void *ctx)
{
    assert(nodes->users < NODES_USERS);
    nodes->user[nodes->users].ops = user;
    nodes->user[nodes->users++].ctx = ctx;
}

void nodes_open(struct nodes *nodes)
{
    loop_timer_set(&nodes->timer, 0);
}

/* From this one on. */
static bool any_left(const struct nodes *nodes, uint32_t first)
{
    for (uint32_t i = first; i < nodes->count; i++)
        if (nodes->node[i].mux)
            return true;
    return false;
}

/* One that has not greeted yet ends with its connection. */
void nodes_end(struct nodes *nodes)
{
    uint64_t began_ns;
    struct cw_err err;

    if (!nodes || nodes->ending)
        return;
    nodes->ending = true;
    for (uint32_t i = 0; i < nodes->count; i++)
        if (nodes->node[i].state == NODE_STARTING) {
            let_go(&nodes->node[i]);
        } else if (nodes->node[i].mux) {
            mux_send(nodes->node[i].mux, NODE_END, NULL, 0, &err);
            if (nodes->node[i].state == NODE_THERE)
                wire_finish(&nodes->node[i].now->wire);
        }
    began_ns = loop_look(nodes->config.loop);
    while (any_left(nodes, 0) && now_of(nodes) < began_ns + NODES_END_NS)
        loop_turn(nodes->config.loop, began_ns + NODES_END_NS);
    while (any_left(nodes, nodes_here(nodes)) && now_of(nodes) < began_ns + NODES_END_OWN_NS)
        loop_turn(nodes->config.loop, began_ns + NODES_END_OWN_NS);
}

/* --- processes --- */

static struct way *way_of(const struct nodes *nodes, pid_t pid)
{
    for (uint32_t i = 0; nodes && pid > 0 && i < nodes->count; i++)
        for (int j = 0; j < 2; j++)
            if (nodes->node[i].way[j].child.pid == pid)
                return &nodes->node[i].way[j];
    return NULL;
}

bool nodes_has_child(const struct nodes *nodes, pid_t pid)
{
    return way_of(nodes, pid);
}

bool nodes_child_ended(struct nodes *nodes, pid_t pid, int status)
{
    struct way *way = way_of(nodes, pid);

    if (!way)
        return false;
    node_child_ended(&way->child, status);
    if (way->of->state == NODE_STARTING)
        loop_timer_set(&nodes->timer, now_of(nodes));
    return true;
}

/* --- what is told to them --- */

struct mux *nodes_mux(struct nodes *nodes, uint32_t host)
{
    return nodes->node[host].mux;
}

int nodes_tell(struct nodes *nodes, uint32_t host, uint32_t type, const void *body, size_t size,
               struct cw_err *err)
{
    if (!nodes->node[host].mux)
        return cw_err_set(err, CW_ECLOSED, "host %s is lost", nodes_name(nodes, host));
    return mux_send(nodes->node[host].mux, type, body, size, err);
}

int nodes_tell_event(struct nodes *nodes, uint32_t host, uint32_t type, uint32_t of, uint32_t value,
                     struct cw_err *err)
{
    struct node_event event = {.of = of, .value = value};
    uint8_t body[NODE_EVENT_MAX];

    return nodes_tell(nodes, host, type, body, node_event_put(body, &event), err);
}

const struct node_commands *nodes_commands(const struct nodes *nodes)
{
    return &nodes->commands;
}

uint32_t nodes_here(const struct nodes *nodes)
{
    return nodes->config.hosts->count;
}

uint32_t nodes_count(const struct nodes *nodes)
{
    return nodes_here(nodes) + 1;
}

const char *nodes_name(const struct nodes *nodes, uint32_t host)
{
    return name_of(&nodes->node[host]);
}

const struct greeting_hello *nodes_facts(const struct nodes *nodes, uint32_t host)
{
    return &nodes->node[host].facts;
}
