#include "dispatcher/node/node.h"
#include "common/secret.h"
#include "common/signals.h"
#include "common/tree.h"
#include "dispatcher/node/attach_socket.h"
#include "dispatcher/node/children.h"
#include "dispatcher/node/facts.h"
#include "dispatcher/node/hosted.h"
#include "dispatcher/node/stager.h"
#include "dispatcher/node/units.h"
#include "dispatcher/state/state_copy.h"
#include "dispatcher/status/json_value.h"
#include "dispatcher/status/rundir.h"
#include "dispatcher/wire/greeting.h"
#include "dispatcher/wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <syslog.h>
#include <unistd.h>

struct node {
    struct loop *loop;
    struct signals signals;
    struct rundir dir;
    bool dir_made;
    struct wire wire;
    struct greeting greeting;
    struct attach_socket *attach_socket;
    struct mux *mux; /* NULL: it has no session yet */
    node_answer *answer;
    struct group_memory memory; /* of its ranks */
    struct hosted *hosted;      /* NULL: it has no job; its host is asked */
    struct units *units;
    struct stager *stager;
    uint8_t *key;      /* of the session; of cw_secret_alloc */
    uint8_t *node_key; /* for another dispatcher; likewise */
    bool here;         /* see node_run */
    struct node_kept kept;
    uint64_t timeout_ns; /* of silence, until it is left alone ... */
    uint64_t orphan_ns;  /* ... and from then on, until it ends */
    uint64_t period_ns;
    struct loop_timer timer; /* the next sign of life */
    uint64_t looked_ns;      /* when it was last due */
    bool ending;             /* the dispatcher says so */
    bool over;
    struct cw_err why;
};

/* --- its end --- */

static void end_with(struct node *n, const struct cw_err *err)
{
    if (n->over)
        return;
    n->why = *err;
    n->over = true;
}

static bool is_service(void *ctx, pid_t pid)
{
    return units_have(((const struct node *)ctx)->units, pid);
}

/* --- the session --- */

static bool is_connected(void *ctx)
{
    return ((struct node *)ctx)->wire.in_session;
}

/* What was begun is done to its end, also if whoever asks is gone. */
static int give_answer(struct node *n, const uint8_t *body, size_t size, struct cw_err *err)
{
    json_t *request = json_object_read(body, size, err);
    json_t *answer = request ? n->answer(request, err) : NULL;
    char *text;

    if (!answer)
        answer = json_pack("{s:o}", "failed", json_value_text(err->text));
    text = json_dumps(answer, JSON_COMPACT);
    if (!text)
        cw_err_set(err, CW_ENOMEM, "no memory for an answer");
    else
        err->code = mux_send(n->mux, NODE_ANSWER, text, strlen(text), err);
    free(text);
    json_decref(answer);
    json_decref(request);
    return err->code;
}

static void forget_state(const struct node *n)
{
    char path[RUNDIR_MAX + sizeof(STATE_COPY_DIR)];

    snprintf(path, sizeof(path), "%s/" STATE_COPY_DIR, n->dir.path);
    cw_tree_remove(path);
}

static int on_frame(void *ctx, uint32_t type, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct node *n = ctx;
    int taken;

    if (!n->hosted && type == NODE_ASK)
        return give_answer(n, body, size, err);
    if (!n->hosted)
        return cw_err_set(err, CW_EPROTO, "a frame of the type %u without a job", type);
    taken = hosted_frame(n->hosted, type, body, size, err);
    if (taken > 0 && type == NODE_CLOSE) /* and what ranks started and left behind */
        children_kill(is_service, n);
    if (taken != 0)
        return taken < 0 ? taken : CW_OK;
    switch (type) {
    case NODE_STAGE:
        return stager_take(n->stager, body, size, err);
    case NODE_UNIT_START:
        return units_start(n->units, body, size, err);
    case NODE_UNIT_KILL:
        return units_kill(n->units, body, size, err);
    case NODE_FORGET:
        forget_state(n);
        return CW_OK;
    case NODE_END:
        n->ending = true;
        wire_hold(&n->wire); /* its end is told once all is removed */
        return CW_OK;
    default:
        return cw_err_set(err, CW_EPROTO, "a frame of the unknown type %u", type);
    }
}

static void on_output(void *ctx)
{
    wire_flush_soon(&((struct node *)ctx)->wire);
}

static const struct mux_ops mux_ops = {on_frame, on_output};

/* Its standard error may have ended with who read that. */
static void end_alone(struct node *n, uint64_t since_ns)
{
    struct cw_err err;

    cw_err_set(&err, CW_ETIME, "nothing was heard of %s for %.1f s%s",
               n->orphan_ns ? "causeway run" : "the dispatcher", (double)since_ns / 1e9,
               n->orphan_ns ? ", and no other one came (--orphan-timeout): the job ends here" : "");
    if (n->orphan_ns)
        syslog(LOG_USER | LOG_WARNING, "causeway node: %s", err.text);
    end_with(n, &err);
}

/* How long it was silent, or how long we were: what came meanwhile is of no use any more. */
static void on_timer(void *ctx)
{
    struct node *n = ctx;
    uint64_t now_ns = loop_now_ns(n->loop);
    uint64_t since_ns = n->mux ? now_ns - n->wire.heard_ns : 0;
    struct cw_err err;

    if (n->mux && now_ns - n->looked_ns > since_ns)
        since_ns = now_ns - n->looked_ns;
    if (n->mux && since_ns > n->timeout_ns && since_ns - n->timeout_ns > n->orphan_ns)
        end_alone(n, since_ns);
    else if (!n->mux)
        end_with(n, (cw_err_set(&err, CW_ETIME, "nothing was heard of a dispatcher"), &err));
    n->looked_ns = now_ns;
    if (n->over)
        return;
    mux_ping(n->mux);
    loop_timer_set(&n->timer, now_ns + n->period_ns);
    if (!n->here)
        loop_timer_hasten(&n->timer, n->wire.heard_ns + n->timeout_ns + n->orphan_ns + 1);
}

static void keep_time(struct node *n, const struct greeting_open *open)
{
    n->timeout_ns = n->here ? LOOP_NEVER : open->timeout_ns;
    n->orphan_ns = n->here ? 0 : open->orphan_ns;
    n->period_ns = open->timeout_ns / NODE_PERIODS;
    if (n->period_ns > NODE_PERIOD_MAX_NS)
        n->period_ns = NODE_PERIOD_MAX_NS;
    n->looked_ns = loop_now_ns(n->loop);
    loop_timer_set(&n->timer, n->looked_ns + n->period_ns);
}

/* Where a process has its memory depends on it. */
static void set_stack_limit(uint64_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_STACK, &limit) < 0)
        return;
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    setrlimit(RLIMIT_STACK, &limit);
}

static struct hosted_config hosted_config_of(struct node *n, const struct greeting_open *open)
{
    return (struct hosted_config){.loop = n->loop,
                                  .mux = n->mux,
                                  .ranks = open->ranks,
                                  .alive_period_ns = open->alive_period_ns,
                                  .keep_fd = n->kept.keep_fd,
                                  .memory = &n->memory,
                                  .connected = is_connected,
                                  .ctx = n};
}

static int serve_job(struct node *n, const struct greeting_open *open, struct cw_err *err)
{
    struct hosted_config config = hosted_config_of(n, open);
    struct units_config units = {.loop = n->loop,
                                 .mux = n->mux,
                                 .dir = n->dir.path,
                                 .job = open->job,
                                 .kept = n->kept.log,
                                 .memory = &n->memory};

    memcpy(n->key, open->key, CW_KEY_SIZE);
    memcpy(n->node_key, open->node_key, CW_KEY_SIZE);
    set_stack_limit(open->stack_bytes);
    children_adopt();
    n->hosted = hosted_new(&config, err);
    n->units = n->hosted ? units_new(&units, err) : NULL;
    n->stager = n->units ? stager_new(n->loop, n->mux, err) : NULL;
    return n->stager ? CW_OK : err->code;
}

static int serve(struct node *n, const struct greeting_open *open, struct cw_err *err)
{
    n->mux = n->wire.mux = mux_new(&mux_ops, n, err);
    if (!n->mux || mux_connect(n->mux, 0, err) < 0 ||
        (open->ranks > 0 && serve_job(n, open, err) < 0))
        return err->code;
    keep_time(n, open);
    wire_begin(&n->wire);
    return CW_OK;
}

static int open_attach_socket(struct node *n, struct cw_err *err);

/* The dispatcher looks at the versions of both. */
static int take_open(struct node *n, const uint8_t *body, size_t size, struct cw_err *err)
{
    uint8_t bytes[GREETING_HEADER + GREETING_FRAME_MAX];
    struct greeting_hello hello;
    struct greeting_open open;

    if (!greeting_get_open(body, size, &open))
        return cw_err_set(err, CW_EPROTO, "a greeting that makes no sense");
    if (open.ranks > 0 && open_attach_socket(n, err) < 0)
        return err->code;
    facts_get(&hello, n->dir.path);
    wire_greet(&n->wire, bytes, greeting_put_hello(bytes, &hello), err);
    if (open.protocol != hello.protocol || strcmp(open.version, hello.version) != 0)
        return CW_OK; /* it ends the connection */
    err->code = CW_OK;
    serve(n, &open, err);
    sodium_memzero(&open, sizeof(open));
    return err->code;
}

/* Of the connection over the standard streams. */
static long on_greeting(void *ctx, const uint8_t *bytes, size_t size, struct cw_err *err)
{
    struct node *n = ctx;
    enum greeting_type type;
    size_t body_size;
    long used = greeting_take(&n->greeting, bytes, size, &type, &body_size, err);
    int failed;

    if (used < 0 || type == GREETING_NONE)
        return used;
    if (type != GREETING_OPEN || n->mux)
        return cw_err_set(err, CW_EPROTO, "a greeting that makes no sense");
    failed = take_open(n, n->greeting.bytes + GREETING_HEADER, body_size, err);
    sodium_memzero(&n->greeting, sizeof(n->greeting));
    return failed ? failed : used;
}

/* Another connection may come, for a time. What breaks the protocol ends all. */
static void on_broke(void *ctx, const struct cw_err *err)
{
    struct node *n = ctx;

    if (n->ending)
        return;
    if (n->mux && !n->hosted && err->code == CW_ECLOSED)
        n->ending = true;
    else if (n->here || !n->hosted || (err->code != CW_ECLOSED && err->code != CW_ESYS))
        end_with(n, err);
}

static const struct wire_ops wire_ops = {on_greeting, on_broke};

/* --- another connection --- */

/* Of the dispatcher of this job: the one before is of no use any more. Over that it may have heard
 * more since it asked for this one. */
static int attach(struct node *n, const struct greeting_attach *attach, struct wire *from,
                  struct cw_err *err)
{
    uint8_t bytes[GREETING_HEADER + GREETING_FRAME_MAX];
    struct greeting_attached attached = {.from = attach->received};

    if (!n->mux || sodium_memcmp(attach->key, n->key, CW_KEY_SIZE) != 0)
        return cw_err_set(err, CW_EAUTH,
                          "this node serves another job, or another dispatcher of this one");
    if (attached.from < mux_acknowledged(n->mux))
        attached.from = mux_acknowledged(n->mux);
    if (wire_move(&n->wire, from, err) < 0)
        return err->code;
    if (mux_connect(n->mux, attached.from, err) < 0) {
        wire_close(&n->wire); /* the dispatcher sees that, and does not wait */
        return err->code;
    }
    attached.received = mux_received(n->mux);
    wire_greet(&n->wire, bytes, greeting_put_attached(bytes, &attached), err);
    wire_begin(&n->wire);
    return CW_OK;
}

/* Ranks of the dispatcher before end; the others go on. What was on its way to it is lost with the
 * session, which nobody resumes. */
static int serve_successor(struct node *n, const struct greeting_open *open, struct cw_err *err)
{
    struct hosted_config config = hosted_config_of(n, open);
    struct mux *old = n->mux;
    struct mux *mux = mux_new(&mux_ops, n, err);

    if (!mux)
        return err->code;
    config.mux = n->mux = n->wire.mux = mux;
    memcpy(n->key, open->key, CW_KEY_SIZE);
    hosted_begin_again(n->hosted, &config);
    stager_free(n->stager);
    n->stager = stager_new(n->loop, mux, err);
    units_begin_again(n->units, mux);
    children_kill(is_service, n);
    mux_free(old);
    if (!n->stager || mux_connect(mux, 0, err) < 0)
        return err->code;
    keep_time(n, open);
    wire_begin(&n->wire);
    return CW_OK;
}

static bool may_take(const struct node *n, const struct greeting_open *open)
{
    return n->hosted && !sodium_is_zero(n->node_key, CW_KEY_SIZE) &&
           sodium_memcmp(open->node_key, n->node_key, CW_KEY_SIZE) == 0;
}

/* The one before is fenced: its connection is gone, and it knows no key for another one. */
static int take(struct node *n, const struct greeting_open *open, struct wire *from,
                struct cw_err *err)
{
    uint8_t bytes[GREETING_HEADER + GREETING_FRAME_MAX];
    struct greeting_hello hello;

    if (!may_take(n, open))
        return cw_err_set(err, CW_EAUTH, "this node serves another job, or cannot be taken over");
    if (wire_move(&n->wire, from, err) < 0)
        return err->code;
    facts_get(&hello, n->dir.path);
    wire_greet(&n->wire, bytes, greeting_put_hello(bytes, &hello), err);
    if (strcmp(open->version, hello.version) == 0 && serve_successor(n, open, err) < 0) {
        end_with(n, err); /* there is nobody else to serve */
        err->code = CW_OK;
    }
    return CW_OK;
}

/* Whether there is a dispatcher. */
static int look(struct node *n, struct wire *from, struct cw_err *err)
{
    uint64_t silent_ns = loop_now_ns(n->loop) - n->wire.heard_ns;
    uint8_t bytes[GREETING_HEADER + GREETING_FRAME_MAX];
    struct greeting_hello hello;

    if (!n->hosted || sodium_is_zero(n->node_key, CW_KEY_SIZE))
        return cw_err_set(err, CW_EAUTH, "its job cannot be taken over");
    if (n->wire.in_session && silent_ns < n->timeout_ns)
        return cw_err_set(err, CW_EBUSY,
                          "its causeway run lives: it was heard %.1f s ago (--host-timeout: %g s)",
                          (double)silent_ns / 1e9, (double)n->timeout_ns / 1e9);
    facts_get(&hello, n->dir.path);
    wire_greet(from, bytes, greeting_put_hello(bytes, &hello), err);
    wire_flush(from);
    return CW_OK;
}

static int on_attach(void *ctx, uint32_t type, const uint8_t *body, size_t size, struct wire *from,
                     struct cw_err *err)
{
    struct greeting_attach attaches;
    struct greeting_open takes;
    int failed;

    if (type == GREETING_LOOK)
        return look(ctx, from, err);
    if (type == GREETING_ATTACH && greeting_get_attach(body, size, &attaches))
        failed = attach(ctx, &attaches, from, err);
    else if (type == GREETING_TAKE && greeting_get_open(body, size, &takes))
        failed = take(ctx, &takes, from, err);
    else
        return cw_err_set(err, CW_EAUTH, "a greeting that makes no sense");
    sodium_memzero(&attaches, sizeof(attaches));
    sodium_memzero(&takes, sizeof(takes));
    return failed;
}

static int open_attach_socket(struct node *n, struct cw_err *err)
{
    n->dir_made = rundir_make(&n->dir, err) == CW_OK;
    if (n->dir_made)
        n->attach_socket = attach_socket_open(n->loop, n->dir.path, on_attach, n, err);
    return n->attach_socket ? CW_OK : err->code;
}

/* --- signals --- */

static void on_child_ended(void *ctx, pid_t pid, int status)
{
    units_child_ended(((struct node *)ctx)->units, pid, status);
}

static void on_signal(void *ctx, int number)
{
    struct node *n = ctx;
    struct cw_err err;

    if (number == SIGCHLD)
        children_reap(on_child_ended, n);
    else if (number == SIGTERM)
        end_with(n, (cw_err_set(&err, CW_ECLOSED, "it was told to end by SIGTERM"), &err));
}

/* --- opening and closing --- */

/* What children print on stdout must not get into the session. Errors: CW_ESYS. */
static int take_streams(struct node *n, struct cw_err *err)
{
    int in_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    int out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (in_fd < 0 || out_fd < 0 || null < 0)
        return cw_err_set(err, CW_ESYS, "opening its descriptors: %s", strerror(errno));
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    close(null);
    if (wire_open(&n->wire, in_fd, out_fd, err) < 0)
        return cw_err_wrap(err, "a node is started by 'causeway run --host'; its standard input "
                                "and output are no connection");
    return wire_greet(&n->wire, GREETING_MAGIC, strlen(GREETING_MAGIC), err);
}

static int open_all(struct node *n, struct cw_err *err)
{
    if (!n->here)
        setsid();
    n->key = cw_secret_alloc(CW_KEY_SIZE);
    n->node_key = cw_secret_alloc(CW_KEY_SIZE);
    if (!n->key || !n->node_key)
        return cw_err_set(err, CW_ENOMEM, "no memory for a key");
    n->loop = loop_new(err);
    if (!n->loop || signals_open(&n->signals, n->loop, on_signal, n, err) < 0)
        return err->code;
    wire_init(&n->wire, n->loop, &wire_ops, n);
    greeting_init(&n->greeting, false);
    loop_timer_add(n->loop, &n->timer, on_timer, n);
    loop_timer_set(&n->timer, loop_now_ns(n->loop) + NODE_OPEN_NS);
    return take_streams(n, err);
}

static void close_all(struct node *n)
{
    hosted_free(n->hosted);
    if (n->units)
        children_kill(is_service, n);
    units_free(n->units);
    group_memory_close(&n->memory);
    stager_free(n->stager);
    attach_socket_close(n->attach_socket);
    if (n->dir_made)
        rundir_remove(&n->dir);
    /* the dispatcher takes it for the end of all */
    if (n->loop)
        wire_end(&n->wire);
    mux_free(n->mux);
    signals_close(&n->signals);
    if (n->loop)
        loop_timer_remove(&n->timer);
    loop_free(n->loop);
    cw_secret_free(n->key, CW_KEY_SIZE);
    cw_secret_free(n->node_key, CW_KEY_SIZE);
}

/* --- running --- */

int node_run(const struct node_kept *kept, node_answer *answer, struct cw_err *err)
{
    struct node *n = calloc(1, sizeof(*n));
    int code;

    if (!n)
        return cw_err_set(err, CW_ENOMEM, "no memory for a node");
    n->here = kept;
    n->kept = kept ? *kept : (struct node_kept){-1, {-1, -1}};
    n->answer = answer;
    group_memory_init(&n->memory);
    err->code = CW_OK;
    if (open_all(n, err) == CW_OK) {
        while (!n->over && !n->ending)
            loop_turn(n->loop, LOOP_NEVER);
        *err = n->why;
    }
    code = err->code;
    close_all(n);
    free(n);
    return code;
}
