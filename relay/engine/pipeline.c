/* [Relay] 4.4: threads of three roles. Receivers (A) read, loggers (B) let the core log, match and
 * answer, senders (C) write. The connections are shared out among the threads of A and of C, each
 * of which waits in a poll() of its own, which is interrupted when there is something new for it.
 * With no loggers the receivers do their work, as in the paper: there is little of it. */
#include "relay/engine/observed.h"

#include <stdlib.h>

#define FILLED_MAX 256u /* reads that wait for a logger; a receiver waits when there are more */

struct role {
    struct relay_engine *engine;
    struct observed set;
};

struct pipeline_conn {
    struct shared_conn base;
    struct role *receiver; /* NULL when it has let go of it */
    struct role *sender;
    size_t filled; /* bytes that were read and are at a logger; until then it is not read again */
};

struct relay_engine {
    struct shared shared;
    struct role *receivers;
    struct role *senders;
    uint32_t opened;                          /* connections so far: they are dealt out in turn */
    struct pipeline_conn *filled[FILLED_MAX]; /* a ring */
    uint32_t filled_first;
    uint32_t filled_count;
    pthread_cond_t filled_more;
    pthread_cond_t filled_less;
};

static struct pipeline_conn *of(struct shared_conn *c)
{
    return (struct pipeline_conn *)c;
}

/* --- A: receiving ----------------------------------------------------------------------------- */
static void pass_to_logger(struct relay_engine *e, struct pipeline_conn *c, size_t size)
{
    c->filled = size;
    while (e->filled_count == FILLED_MAX && !e->shared.stops)
        pthread_cond_wait(&e->filled_less, &e->shared.lock);
    if (e->shared.stops)
        return;
    e->filled[(e->filled_first + e->filled_count++) % FILLED_MAX] = c;
    pthread_cond_signal(&e->filled_more);
}

static void receive_from(struct relay_engine *e, struct pipeline_conn *c)
{
    size_t size = shared_fill(&e->shared, &c->base, 0, NULL);

    if (size == 0)
        return;
    if (e->shared.config.pools.loggers > 0)
        pass_to_logger(e, c, size);
    else
        shared_input(&e->shared, &c->base, size);
}

static void observe_for_input(struct role *r)
{
    struct shared *s = &r->engine->shared;
    struct shared_conn *next;

    observed_begin(&r->set);
    for (struct shared_conn *c = LIST_FIRST(&s->conns); c; c = next) {
        next = LIST_NEXT(c, others);
        if (of(c)->receiver != r || of(c)->filled > 0)
            continue;
        if (c->ended) {
            of(c)->receiver = NULL;
            shared_release(s, c);
        } else {
            observed_add_input(s, &r->set, c, 0);
        }
    }
}

static void *receive(void *arg)
{
    struct role *r = arg;
    struct shared *s = &r->engine->shared;

    shared_enter(s);
    while (!s->stops) {
        observe_for_input(r);
        if (observed_wait(s, &r->set) == 0)
            continue;
        for (int i = 1; i < r->set.count && !s->stops; i++)
            if (r->set.fds[i].revents)
                receive_from(r->engine, of(r->set.conns[i]));
    }
    shared_thread_end(s);
    return NULL;
}

/* --- B: logging and matching ------------------------------------------------------------------ */
static void *log_and_match(void *arg)
{
    struct relay_engine *e = arg;
    struct shared *s = &e->shared;

    shared_enter(s);
    while (!s->stops) {
        struct pipeline_conn *c = e->filled[e->filled_first];

        if (e->filled_count == 0) {
            pthread_cond_wait(&e->filled_more, &s->lock);
            continue;
        }
        e->filled_first = (e->filled_first + 1) % FILLED_MAX;
        e->filled_count--;
        pthread_cond_signal(&e->filled_less);
        shared_input(s, &c->base, c->filled);
        c->filled = 0;
        observed_interrupt(s, &c->receiver->set);
    }
    shared_thread_end(s);
    return NULL;
}

/* --- C: sending ------------------------------------------------------------------------------- */
/* Writes where there is something new to write, and observes where something is left. Returns
 * whether it wrote: then there may be more. */
static bool send_and_observe(struct role *r)
{
    struct shared *s = &r->engine->shared;
    struct shared_conn *next;
    bool wrote = false;

    observed_begin(&r->set);
    for (struct shared_conn *c = LIST_FIRST(&s->conns); c; c = next) {
        bool ours = of(c)->sender == r;

        if (ours && !c->ended && !c->left && relay_conn_has_output(c->conn)) {
            shared_write(s, c);
            wrote = true;
        }
        next = LIST_NEXT(c, others);
        if (ours && c->ended) {
            of(c)->sender = NULL;
            shared_release(s, c);
        } else if (ours && c->left) {
            observed_add(&r->set, c, POLLOUT);
        }
    }
    return wrote;
}

static void *send_out(void *arg)
{
    struct role *r = arg;
    struct shared *s = &r->engine->shared;

    shared_enter(s);
    while (!s->stops) {
        if (send_and_observe(r) || observed_wait(s, &r->set) == 0)
            continue;
        for (int i = 1; i < r->set.count; i++)
            if (r->set.fds[i].revents)
                r->set.conns[i]->left = false;
    }
    shared_thread_end(s);
    return NULL;
}

/* --- between them ----------------------------------------------------------------------------- */
static int pipeline_opened(struct shared *s, struct shared_conn *c)
{
    struct relay_engine *e = (struct relay_engine *)s;

    of(c)->receiver = &e->receivers[e->opened % s->config.pools.receivers];
    of(c)->sender = &e->senders[e->opened % s->config.pools.senders];
    e->opened++;
    c->users++; /* one is the receiver, the other the sender */
    observed_interrupt(s, &of(c)->receiver->set);
    observed_interrupt(s, &of(c)->sender->set);
    return CW_OK;
}

static void pipeline_output(struct shared *s, struct shared_conn *c)
{
    if (of(c)->sender)
        observed_interrupt(s, &of(c)->sender->set);
}

static void pipeline_resume(struct shared *s, struct shared_conn *c)
{
    if (of(c)->receiver)
        observed_interrupt(s, &of(c)->receiver->set);
}

static void pipeline_ended(struct shared *s, struct shared_conn *c)
{
    pipeline_output(s, c);
    pipeline_resume(s, c);
}

static void pipeline_stopping(struct shared *s)
{
    struct relay_engine *e = (struct relay_engine *)s;

    for (uint32_t i = 0; i < s->config.pools.receivers; i++)
        observed_interrupt(s, &e->receivers[i].set);
    for (uint32_t i = 0; i < s->config.pools.senders; i++)
        observed_interrupt(s, &e->senders[i].set);
    pthread_cond_broadcast(&e->filled_more);
    pthread_cond_broadcast(&e->filled_less);
}

static int pipeline_start(struct shared *s, struct cw_err *err)
{
    struct relay_engine *e = (struct relay_engine *)s;
    int failed = CW_OK;

    for (uint32_t i = 0; i < s->config.pools.receivers && !failed; i++)
        failed = shared_thread_start(s, receive, &e->receivers[i], err);
    for (uint32_t i = 0; i < s->config.pools.loggers && !failed; i++)
        failed = shared_thread_start(s, log_and_match, e, err);
    for (uint32_t i = 0; i < s->config.pools.senders && !failed; i++)
        failed = shared_thread_start(s, send_out, &e->senders[i], err);
    return failed;
}

static void close_roles(struct role *roles, uint32_t count)
{
    for (uint32_t i = 0; roles && i < count; i++)
        observed_close(&roles[i].set);
    free(roles);
}

static struct role *open_roles(struct relay_engine *e, uint32_t count, struct cw_err *err)
{
    struct role *roles = calloc(count, sizeof(*roles));

    if (!roles) {
        cw_err_set(err, CW_ENOMEM, "no memory for %u threads of the pipeline engine", count);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        roles[i].engine = e;
        if (observed_open(&roles[i].set, err) < 0) {
            close_roles(roles, i + 1);
            return NULL;
        }
    }
    return roles;
}

static int pipeline_prepare(struct relay_engine *e, struct cw_err *err)
{
    pthread_cond_init(&e->filled_more, NULL);
    pthread_cond_init(&e->filled_less, NULL);
    e->receivers = open_roles(e, e->shared.config.pools.receivers, err);
    e->senders = e->receivers ? open_roles(e, e->shared.config.pools.senders, err) : NULL;
    return e->senders ? CW_OK : err->code;
}

static void pipeline_release(struct relay_engine *e)
{
    close_roles(e->receivers, e->shared.config.pools.receivers);
    close_roles(e->senders, e->shared.config.pools.senders);
    pthread_cond_destroy(&e->filled_more);
    pthread_cond_destroy(&e->filled_less);
}

static const struct shared_ops shared_ops = {
    .name = "pipeline",
    .engine_size = sizeof(struct relay_engine),
    .prepare = pipeline_prepare,
    .release = pipeline_release,
    .conn_size = sizeof(struct pipeline_conn),
    .start = pipeline_start,
    .opened = pipeline_opened,
    .output = pipeline_output,
    .resume = pipeline_resume,
    .ended = pipeline_ended,
    .stopping = pipeline_stopping,
};

static int pipeline_open(struct relay_engine **engine, const struct relay_engine_config *config,
                         struct cw_err *err)
{
    return shared_open(engine, &shared_ops, config, err);
}

const struct relay_engine_ops relay_engine_pipeline = {
    .name = "pipeline",
    .summary = "threads that receive, that log and match, that send",
    .open = pipeline_open,
    .run = shared_run,
    .stop = shared_stop,
    .close = shared_close,
};
