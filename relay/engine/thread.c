/* [Relay] 4.2: one thread per connection, which sleeps in a blocking read until its client speaks,
 * and lets the core act on what it said. Answers are written at once by whoever made them, as far
 * as the sockets take them; the rest is for the connection's sender, a thread that is started when
 * it is needed first: a condition wakes it. */
#include "relay/engine/shared.h"
#include "relay/engine/wait_policy.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define READERS_MAX 16 /* threads that read at a time: each holds a block of the core's */

struct relay_engine {
    struct shared shared;
    int spinners;
    int readers;
    pthread_cond_t read_next; /* there are fewer than READERS_MAX */
};

struct thread_conn {
    struct shared_conn base;
    struct relay_engine *engine;
    pthread_cond_t read;  /* it may be read again */
    pthread_cond_t write; /* something is left to write */
    bool has_sender;
};

static struct thread_conn *of(struct shared_conn *c)
{
    return (struct thread_conn *)c;
}

/* One of its threads ends. */
static void conn_leave(struct thread_conn *c)
{
    struct shared *s = &c->engine->shared;

    shared_release(s, &c->base);
    shared_thread_end(s);
}

/* However many are woken at once, their blocks are few. */
static size_t look_again(struct thread_conn *c, struct cw_spin *spin)
{
    struct relay_engine *e = c->engine;
    struct shared *s = &e->shared;
    uint64_t spin_ns;
    size_t size;

    while (e->readers == READERS_MAX)
        pthread_cond_wait(&e->read_next, &s->lock);
    spin_ns = relay_wait_thread_ns(s->config.spin_ns, e->spinners);
    e->readers++;
    e->spinners++;
    size = shared_fill(s, &c->base, spin_ns, spin);
    e->spinners--;
    e->readers--;
    pthread_cond_signal(&e->read_next);
    return size;
}

/* One byte is looked at, not taken: a block of the core's is only held while bytes come. */
static void wait_readable(struct thread_conn *c)
{
    struct shared *s = &c->engine->shared;
    char byte;

    s->stats->sleeps++;
    s->stats->syscalls++;
    shared_leave(s);
    recv(c->base.fd, &byte, 1, MSG_PEEK); /* errors are seen by the next read, too */
    shared_enter(s);
}

static void *receive(void *arg)
{
    struct thread_conn *c = arg;
    struct shared *s = &c->engine->shared;
    struct cw_spin spin = {0};

    shared_enter(s);
    while (!c->base.ended) {
        size_t size;

        if (!shared_wants_input(s, &c->base, cw_clock_ns())) {
            shared_cond_wait(s, &c->read, SHARED_HELD_NS);
            continue;
        }
        size = look_again(c, &spin);
        if (size > 0)
            shared_input(s, &c->base, size);
        /* who does not spin most likely finds nothing now: one look less */
        if (size == 0 || s->config.spin_ns == 0)
            wait_readable(c);
    }
    conn_leave(c);
    return NULL;
}

static void *send_rest(void *arg)
{
    struct thread_conn *c = arg;
    struct shared *s = &c->engine->shared;

    shared_enter(s);
    while (!c->base.ended) {
        struct pollfd writable = {.fd = c->base.fd, .events = POLLOUT};

        if (!c->base.left) {
            pthread_cond_wait(&c->write, &s->lock);
            continue;
        }
        s->stats->sleeps++;
        s->stats->syscalls++;
        shared_leave(s);
        poll(&writable, 1, -1);
        shared_enter(s);
        if (!c->base.ended)
            shared_write(s, &c->base);
        shared_flush(s);
    }
    conn_leave(c);
    return NULL;
}

static int start_thread(struct shared *s, void *(*body)(void *), struct shared_conn *c)
{
    struct cw_err err = {0};

    if (shared_thread_start(s, body, c, &err) < 0)
        dprintf(STDERR_FILENO, "causeway relay: a connection was refused: %s\n", err.text);
    return err.code;
}

static void thread_output(struct shared *s, struct shared_conn *c)
{
    shared_write(s, c);
    if (!c->left || c->ended)
        return;
    if (of(c)->has_sender) {
        pthread_cond_signal(&of(c)->write);
        return;
    }
    if (start_thread(s, send_rest, c) < 0) {
        shared_end(s, c, "its relay could not start a thread");
        return;
    }
    of(c)->has_sender = true;
    c->users++;
}

static int thread_opened(struct shared *s, struct shared_conn *c)
{
    of(c)->engine = (struct relay_engine *)s;
    if (fcntl(c->fd, F_SETFL, 0) < 0) /* blocking; all but wait_readable asks for the contrary */
        return CW_ESYS;
    shared_cond_init(&of(c)->read);
    shared_cond_init(&of(c)->write);
    return start_thread(s, receive, c);
}

static void thread_resume(struct shared *s, struct shared_conn *c)
{
    (void)s;
    pthread_cond_signal(&of(c)->read);
}

static void thread_ended(struct shared *s, struct shared_conn *c)
{
    (void)s;
    pthread_cond_signal(&of(c)->read);
    pthread_cond_signal(&of(c)->write);
}

static int thread_start(struct shared *s, struct cw_err *err)
{
    (void)s;
    (void)err;
    return CW_OK; /* there are no connections yet */
}

static void thread_stopping(struct shared *s)
{
    (void)s; /* every connection has ended, and its threads with it */
}

static int thread_prepare(struct relay_engine *e, struct cw_err *err)
{
    (void)err;
    shared_cond_init(&e->read_next);
    return CW_OK;
}

static void thread_release(struct relay_engine *e)
{
    pthread_cond_destroy(&e->read_next);
}

static const struct shared_ops shared_ops = {
    .name = "thread",
    .engine_size = sizeof(struct relay_engine),
    .prepare = thread_prepare,
    .release = thread_release,
    .conn_size = sizeof(struct thread_conn),
    .start = thread_start,
    .opened = thread_opened,
    .output = thread_output,
    .resume = thread_resume,
    .ended = thread_ended,
    .stopping = thread_stopping,
};

static int thread_open(struct relay_engine **engine, const struct relay_engine_config *config,
                       struct cw_err *err)
{
    return shared_open(engine, &shared_ops, config, err);
}

const struct relay_engine_ops relay_engine_thread = {
    .name = "thread",
    .summary = "one thread a connection, blocking reads",
    .open = thread_open,
    .run = shared_run,
    .stop = shared_stop,
    .close = shared_close,
};
