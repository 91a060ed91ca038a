#include "dispatcher/node/node.h"
#include "common/secret.h"
#include "common/signals.h"
#include "dispatcher/node/children.h"
#include "dispatcher/node/door.h"
#include "dispatcher/node/facts.h"
#include "dispatcher/node/hosted.h"
#include "dispatcher/node/stager.h"
#include "dispatcher/node/units.h"
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
#include <unistd.h>

struct node {
    struct loop *loop;
    struct signals signals;
    struct rundir dir;
    bool dir_made;
    struct wire wire;
    struct greeting greeting;
    struct door *door;
    struct mux *mux; /* NULL: it has no session yet */
    node_answer *answer;
    struct hosted *hosted; /* NULL: it has no job; its host is asked */
    struct units *units;
    struct stager *stager;
    uint8_t *key; /* of the session; of cw_secret_alloc */
    bool here;    /* see node_run */
    struct node_kept kept;
    uint64_t timeout_ns;
    uint64_t period_ns;
    struct loop_timer timer; /* the next sign of life */
    uint64_t looked_ns;      /* when it was last due */
    bool ending;             /* the dispatcher says so */
    bool over;
    struct cw_err why;
};

/* --- its end --- */

static void end_with(struct node *a, const struct cw_err *err)
{
    if (a->over)
        return;
    a->why = *err;
    a->over = true;
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
static int give_answer(struct node *a, const uint8_t *body, size_t size, struct cw_err *err)
{
    json_t *request = json_object_read(body, size, err);
    json_t *answer = request ? a->answer(request, err) : NULL;
    char *text;

    if (!answer)
        answer = json_pack("{s:o}", "failed", json_value_text(err->text));
    text = json_dumps(answer, JSON_COMPACT);
    if (!text)
        cw_err_set(err, CW_ENOMEM, "no memory for an answer");
    else
        err->code = mux_send(a->mux, NODE_ANSWER, text, strlen(text), err);
    free(text);
    json_decref(answer);
    json_decref(request);
    return err->code;
}

static int on_frame(void *ctx, uint32_t type, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct node *a = ctx;
    int taken;

    if (!a->hosted && type == NODE_ASK)
        return give_answer(a, body, size, err);
    if (!a->hosted)
        return cw_err_set(err, CW_EPROTO, "a frame of the type %u without a job", type);
    taken = hosted_frame(a->hosted, type, body, size, err);
    if (taken > 0 && type == NODE_CLOSE) /* and what ranks started and left behind */
        children_kill(is_service, a);
    if (taken != 0)
        return taken < 0 ? taken : CW_OK;
    switch (type) {
    case NODE_STAGE:
        return stager_take(a->stager, body, size, err);
    case NODE_UNIT_START:
        return units_start(a->units, body, size, err);
    case NODE_UNIT_KILL:
        return units_kill(a->units, body, size, err);
    case NODE_END:
        a->ending = true;
        wire_hold(&a->wire); /* its end is told once all is removed */
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

/* How long it was silent, or how long we were: what came meanwhile is of no use any more. */
static void on_timer(void *ctx)
{
    struct node *a = ctx;
    uint64_t now_ns = loop_now_ns(a->loop);
    uint64_t since_ns = a->mux ? now_ns - a->wire.heard_ns : 0;
    struct cw_err err;

    if (a->mux && now_ns - a->looked_ns > since_ns)
        since_ns = now_ns - a->looked_ns;
    if (a->mux && since_ns > a->timeout_ns)
        end_with(a, (cw_err_set(&err, CW_ETIME, "nothing was heard of the dispatcher for %.1f s",
                                (double)since_ns / 1e9),
                     &err));
    else if (!a->mux)
        end_with(a, (cw_err_set(&err, CW_ETIME, "nothing was heard of a dispatcher"), &err));
    a->looked_ns = now_ns;
    if (a->over)
        return;
    mux_ping(a->mux);
    loop_timer_set(&a->timer, now_ns + a->period_ns);
    if (!a->here)
        loop_timer_hasten(&a->timer, a->wire.heard_ns + a->timeout_ns + 1);
}

static void keep_time(struct node *a, const struct greeting_open *open)
{
    a->timeout_ns = open->timeout_ns;
    a->period_ns = open->timeout_ns / NODE_PERIODS;
    if (a->period_ns > NODE_PERIOD_MAX_NS)
        a->period_ns = NODE_PERIOD_MAX_NS;
    a->looked_ns = loop_now_ns(a->loop);
    loop_timer_set(&a->timer, a->looked_ns + a->period_ns);
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

static int serve_job(struct node *a, const struct greeting_open *open, struct cw_err *err)
{
    struct hosted_config config = {.loop = a->loop,
                                   .mux = a->mux,
                                   .ranks = open->ranks,
                                   .alive_period_ns = open->alive_period_ns,
                                   .keep_fd = a->kept.keep_fd,
                                   .connected = is_connected,
                                   .ctx = a};
    struct units_config units = {
        .loop = a->loop, .mux = a->mux, .dir = a->dir.path, .job = open->job, .kept = a->kept.log};

    memcpy(a->key, open->key, CW_KEY_SIZE);
    set_stack_limit(open->stack_bytes);
    children_adopt();
    a->hosted = hosted_new(&config, err);
    a->units = a->hosted ? units_new(&units, err) : NULL;
    a->stager = a->units ? stager_new(a->loop, a->mux, err) : NULL;
    return a->stager ? CW_OK : err->code;
}

static int serve(struct node *a, const struct greeting_open *open, struct cw_err *err)
{
    a->mux = a->wire.mux = mux_new(&mux_ops, a, err);
    if (!a->mux || mux_connect(a->mux, 0, err) < 0 ||
        (open->ranks > 0 && serve_job(a, open, err) < 0))
        return err->code;
    keep_time(a, open);
    wire_begin(&a->wire);
    return CW_OK;
}

static int open_door(struct node *a, struct cw_err *err);

/* The dispatcher looks at the versions of both. */
static int take_open(struct node *a, const uint8_t *body, size_t size, struct cw_err *err)
{
    uint8_t bytes[GREETING_HEADER + GREETING_FRAME_MAX];
    struct greeting_hello hello;
    struct greeting_open open;

    if (!greeting_get_open(body, size, &open))
        return cw_err_set(err, CW_EPROTO, "a greeting that makes no sense");
    if (open.ranks > 0 && open_door(a, err) < 0)
        return err->code;
    facts_get(&hello, a->dir.path);
    wire_greet(&a->wire, bytes, greeting_put_hello(bytes, &hello), err);
    if (open.protocol != hello.protocol || strcmp(open.version, hello.version) != 0)
        return CW_OK; /* it ends the connection */
    err->code = CW_OK;
    serve(a, &open, err);
    sodium_memzero(&open, sizeof(open));
    return err->code;
}

/* Of the connection over the standard streams. */
static long on_greeting(void *ctx, const uint8_t *bytes, size_t size, struct cw_err *err)
{
    struct node *a = ctx;
    enum greeting_type type;
    size_t body_size;
    long used = greeting_take(&a->greeting, bytes, size, &type, &body_size, err);
    int failed;

    if (used < 0 || type == GREETING_NONE)
        return used;
    if (type != GREETING_OPEN || a->mux)
        return cw_err_set(err, CW_EPROTO, "a greeting that makes no sense");
    failed = take_open(a, a->greeting.bytes + GREETING_HEADER, body_size, err);
    sodium_memzero(&a->greeting, sizeof(a->greeting));
    return failed ? failed : used;
}

/* Another connection may come, for a time. What breaks the protocol ends all. */
static void on_broke(void *ctx, const struct cw_err *err)
{
    struct node *a = ctx;

    if (a->ending)
        return;
    if (a->mux && !a->hosted && err->code == CW_ECLOSED)
        a->ending = true;
    else if (a->here || !a->hosted || (err->code != CW_ECLOSED && err->code != CW_ESYS))
        end_with(a, err);
}

static const struct wire_ops wire_ops = {on_greeting, on_broke};

/* --- another connection --- */

/* Of the dispatcher of this job: the one before is of no use any more. Over that it may have heard
 * more since it asked for this one. */
static int on_attach(void *ctx, const struct greeting_attach *attach, struct wire *from,
                     struct cw_err *err)
{
    struct node *a = ctx;
    uint8_t bytes[GREETING_HEADER + GREETING_FRAME_MAX];
    struct greeting_attached attached = {.from = attach->received};

    if (!a->mux || sodium_memcmp(attach->key, a->key, CW_KEY_SIZE) != 0)
        return cw_err_set(err, CW_EAUTH, "this node serves another job");
    if (attached.from < mux_acknowledged(a->mux))
        attached.from = mux_acknowledged(a->mux);
    if (wire_move(&a->wire, from, err) < 0)
        return err->code;
    if (mux_connect(a->mux, attached.from, err) < 0) {
        wire_close(&a->wire); /* the dispatcher sees that, and does not wait */
        return err->code;
    }
    attached.received = mux_received(a->mux);
    wire_greet(&a->wire, bytes, greeting_put_attached(bytes, &attached), err);
    wire_begin(&a->wire);
    return CW_OK;
}

static int open_door(struct node *a, struct cw_err *err)
{
    a->dir_made = rundir_make(&a->dir, err) == CW_OK;
    if (a->dir_made)
        a->door = door_open(a->loop, a->dir.path, on_attach, a, err);
    return a->door ? CW_OK : err->code;
}

/* --- signals --- */

static void on_child_ended(void *ctx, pid_t pid, int status)
{
    units_child_ended(((struct node *)ctx)->units, pid, status);
}

static void on_signal(void *ctx, int number)
{
    struct node *a = ctx;
    struct cw_err err;

    if (number == SIGCHLD)
        children_reap(on_child_ended, a);
    else if (number == SIGTERM)
        end_with(a, (cw_err_set(&err, CW_ECLOSED, "it was told to end by SIGTERM"), &err));
}

/* --- opening and closing --- */

/* What children print on stdout must not get into the session. Errors: CW_ESYS. */
static int take_streams(struct node *a, struct cw_err *err)
{
    int in_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    int out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (in_fd < 0 || out_fd < 0 || null < 0)
        return cw_err_set(err, CW_ESYS, "opening its descriptors: %s", strerror(errno));
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    close(null);
    if (wire_open(&a->wire, in_fd, out_fd, err) < 0)
        return cw_err_wrap(err, "a node is started by 'causeway run --host'; its standard input "
                                "and output are no connection");
    return wire_greet(&a->wire, GREETING_MAGIC, strlen(GREETING_MAGIC), err);
}

static int open_all(struct node *a, struct cw_err *err)
{
    if (!a->here)
        setsid();
    a->key = cw_secret_alloc(CW_KEY_SIZE);
    if (!a->key)
        return cw_err_set(err, CW_ENOMEM, "no memory for a key");
    a->loop = loop_new(err);
    if (!a->loop || signals_open(&a->signals, a->loop, on_signal, a, err) < 0)
        return err->code;
    wire_init(&a->wire, a->loop, &wire_ops, a);
    greeting_init(&a->greeting, false);
    loop_timer_add(a->loop, &a->timer, on_timer, a);
    loop_timer_set(&a->timer, loop_now_ns(a->loop) + NODE_OPEN_NS);
    return take_streams(a, err);
}

static void close_all(struct node *a)
{
    hosted_free(a->hosted);
    if (a->units)
        children_kill(is_service, a);
    units_free(a->units);
    stager_free(a->stager);
    door_close(a->door);
    if (a->dir_made)
        rundir_remove(&a->dir);
    /* the dispatcher takes it for the end of all */
    if (a->loop)
        wire_end(&a->wire);
    mux_free(a->mux);
    signals_close(&a->signals);
    if (a->loop)
        loop_timer_remove(&a->timer);
    loop_free(a->loop);
    cw_secret_free(a->key, CW_KEY_SIZE);
}

/* --- running --- */

int node_run(const struct node_kept *kept, node_answer *answer, struct cw_err *err)
{
    struct node *a = calloc(1, sizeof(*a));
    int code;

    if (!a)
        return cw_err_set(err, CW_ENOMEM, "no memory for a node");
    a->here = kept;
    a->kept = kept ? *kept : (struct node_kept){-1, {-1, -1}};
    a->answer = answer;
    err->code = CW_OK;
    if (open_all(a, err) == CW_OK) {
        while (!a->over && !a->ending)
            loop_turn(a->loop, LOOP_NEVER);
        *err = a->why;
    }
    code = err->code;
    close_all(a);
    free(a);
    return code;
}
