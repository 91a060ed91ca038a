/* [Relay] 4.3: a pool of threads, leader and followers. One thread at a time is in poll(). When it
 * leaves it, it takes sockets that are ready out of the observed set, lets the next one enter
 * poll(), serves what it took, and puts it back. */
#include "relay/engine/observed.h"

#include <stdlib.h>

struct relay_engine {
    struct shared shared;
    struct observed set; /* the leader's */
    bool led;            /* a thread observes it */
    pthread_cond_t turn; /* nobody does */
    uint32_t begin; /* the entry of the set that the next search begins at: all get their turn */
};

struct pool_conn {
    struct shared_conn base;
    bool taken; /* out of the observed set */
    short events;
    struct pool_conn *next_taken;
};

static struct pool_conn *of(struct shared_conn *c)
{
    return (struct pool_conn *)c;
}

/* Nobody else uses the set now: what has ended leaves it. */
static void observe(struct relay_engine *e)
{
    struct shared *s = &e->shared;
    struct shared_conn *next;

    observed_begin(&e->set);
    for (struct shared_conn *c = LIST_FIRST(&s->conns); c; c = next) {
        next = LIST_NEXT(c, others);
        if (of(c)->taken)
            continue;
        if (c->ended) {
            of(c)->taken = true; /* for good: others may use it still */
            shared_release(s, c);
        } else {
            observed_add_input(s, &e->set, c, c->left ? POLLOUT : 0);
        }
    }
}

/* Takes a fair share of what is ready: the next leader finds the rest. */
static struct pool_conn *take(struct relay_engine *e, int ready)
{
    uint32_t threads = e->shared.config.pools.threads;
    uint32_t share = ((uint32_t)ready + threads - 1) / threads;
    uint32_t count = (uint32_t)e->set.count - 1;
    struct pool_conn *first = NULL;
    struct pool_conn **last = &first;

    for (uint32_t i = 0; i < count && share > 0; i++) {
        uint32_t at = 1 + (e->begin + i) % count;
        struct pool_conn *c = of(e->set.conns[at]);

        if (!e->set.fds[at].revents)
            continue;
        c->taken = true;
        c->events = e->set.fds[at].revents;
        *last = c;
        last = &c->next_taken;
        if (--share == 0)
            e->begin = at;
    }
    *last = NULL;
    return first;
}

static void let_next_in(struct relay_engine *e, bool *leads)
{
    if (!*leads)
        return;
    *leads = false;
    e->led = false;
    pthread_cond_signal(&e->turn);
}

/* Waking a thread takes longer than serving a small read: the only socket that was ready is read
 * first, and the next leader let in before more is done only where that takes long. */
static void serve(struct relay_engine *e, struct pool_conn *c, bool *leads)
{
    struct shared *s = &e->shared;
    size_t size = 0;

    if ((c->events & POLLOUT) && !c->base.ended)
        shared_write(s, &c->base);
    if (c->events & (POLLIN | POLLHUP | POLLERR))
        size = shared_fill(s, &c->base, 0, NULL);
    if (size >= SHARED_LARGE)
        let_next_in(e, leads);
    if (size > 0)
        shared_input(s, &c->base, size);
}

static void put_back(struct relay_engine *e, struct pool_conn *c)
{
    struct pool_conn *next;

    for (; c; c = next) {
        next = c->next_taken;
        c->taken = false;
    }
    if (e->led)
        observed_interrupt(&e->shared, &e->set);
}

/* One turn as the leader. */
static void lead(struct relay_engine *e)
{
    bool leads = true;
    struct pool_conn *taken;
    int ready;

    e->led = true;
    observe(e);
    ready = observed_wait(&e->shared, &e->set);
    taken = take(e, ready);
    if (ready > 1)
        let_next_in(e, &leads);
    for (struct pool_conn *c = taken; c; c = c->next_taken)
        serve(e, c, &leads);
    if (leads)
        e->led = false; /* this thread leads again, for nobody was called */
    put_back(e, taken);
}

static void *work(void *arg)
{
    struct relay_engine *e = arg;
    struct shared *s = &e->shared;

    shared_enter(s);
    while (!s->stops) {
        if (e->led)
            pthread_cond_wait(&e->turn, &s->lock);
        else
            lead(e);
    }
    shared_thread_end(s);
    return NULL;
}

/* What the leader should know of a connection that it may observe. */
static void pool_tell(struct shared *s, struct shared_conn *c)
{
    struct relay_engine *e = (struct relay_engine *)s;

    if (!of(c)->taken)
        observed_interrupt(s, &e->set);
}

static int pool_opened(struct shared *s, struct shared_conn *c)
{
    pool_tell(s, c);
    return CW_OK;
}

static void pool_output(struct shared *s, struct shared_conn *c)
{
    shared_write(s, c);
    if (c->left)
        pool_tell(s, c);
}

static void pool_stopping(struct shared *s)
{
    struct relay_engine *e = (struct relay_engine *)s;

    observed_interrupt(s, &e->set);
    pthread_cond_broadcast(&e->turn);
}

static int pool_start(struct shared *s, struct cw_err *err)
{
    int failed = CW_OK;

    for (uint32_t i = 0; i < s->config.pools.threads && !failed; i++)
        failed = shared_thread_start(s, work, s, err);
    return failed;
}

static int pool_prepare(struct relay_engine *e, struct cw_err *err)
{
    pthread_cond_init(&e->turn, NULL);
    return observed_open(&e->set, err);
}

static void pool_release(struct relay_engine *e)
{
    observed_close(&e->set);
    pthread_cond_destroy(&e->turn);
}

static const struct shared_ops shared_ops = {
    .name = "pool",
    .engine_size = sizeof(struct relay_engine),
    .prepare = pool_prepare,
    .release = pool_release,
    .conn_size = sizeof(struct pool_conn),
    .start = pool_start,
    .opened = pool_opened,
    .output = pool_output,
    .resume = pool_tell,
    .ended = pool_tell,
    .stopping = pool_stopping,
};

static int pool_open(struct relay_engine **engine, const struct relay_engine_config *config,
                     struct cw_err *err)
{
    return shared_open(engine, &shared_ops, config, err);
}

const struct relay_engine_ops relay_engine_pool = {
    .name = "pool",
    .summary = "a pool of threads that take turns at poll()",
    .open = pool_open,
    .run = shared_run,
    .stop = shared_stop,
    .close = shared_close,
};
