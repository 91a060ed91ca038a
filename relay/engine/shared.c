#include "relay/engine/shared.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/thread.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define IOV_MAX_OUT 64
#define COUNT_NS 100000000ull /* between counts of context switches */

/* --- the mutex -------------------------------------------------------------------------------- */
void shared_enter(struct shared *s)
{
    pthread_mutex_lock(&s->lock);
}

static void flush_ready(struct shared *s)
{
    struct relay_conn *conn;

    while ((conn = relay_core_next_ready(s->config.core))) {
        struct shared_conn *c = relay_conn_owner(conn);

        c->users++;
        if (relay_conn_done(conn))
            shared_end(s, c, "closed by the relay");
        else if (!c->ended && !c->writing && !c->left && relay_conn_has_output(conn))
            s->ops->output(s, c);
        shared_release(s, c);
    }
}

void shared_flush(struct shared *s)
{
    do
        flush_ready(s);
    while (relay_settle(&s->config));
}

void shared_leave(struct shared *s)
{
    struct shared_conns dead;
    struct shared_conn *c;

    shared_flush(s);
    dead = s->dead;
    LIST_INIT(&s->dead);
    pthread_mutex_unlock(&s->lock);
    while ((c = LIST_FIRST(&dead))) {
        LIST_FIRST(&dead) = LIST_NEXT(c, others);
        relay_hang_up(c->fd);
        free(c);
    }
}

void shared_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

void shared_cond_wait(struct shared *s, pthread_cond_t *cond, uint64_t ns)
{
    uint64_t until = cw_clock_ns() + ns;
    struct timespec at = {.tv_sec = (time_t)(until / 1000000000ull),
                          .tv_nsec = (long)(until % 1000000000ull)};

    pthread_cond_timedwait(cond, &s->lock, &at);
}

/* --- connections ------------------------------------------------------------------------------ */
static void bury(struct shared *s, struct shared_conn *c)
{
    relay_conn_broken(c->conn, c->why, NULL, 0);
    s->held -= c->held;
    LIST_REMOVE(c, others);
    LIST_INSERT_HEAD(&s->dead, c, others);
}

void shared_end(struct shared *s, struct shared_conn *c, const char *why)
{
    if (c->ended)
        return;
    c->ended = true;
    snprintf(c->why, sizeof(c->why), "%s", why);
    /* who sleeps in a system call on it returns; what was written still arrives */
    shutdown(c->fd, SHUT_RDWR);
    s->ops->ended(s, c);
}

void shared_release(struct shared *s, struct shared_conn *c)
{
    assert(c->users > 0);
    if (--c->users > 0)
        return;
    assert(c->ended && !c->writing);
    bury(s, c);
}

/* Without memory it is closed. */
static void open_conn(struct shared *s, const struct relay_accepted *accepted)
{
    struct shared_conn *c;

    shared_enter(s);
    if (relay_accept_none(s->config.core, accepted)) {
        shared_leave(s);
        return;
    }
    c = calloc(1, s->ops->conn_size);
    if (c)
        c->conn = relay_accept_conn(s->config.core, accepted, cw_clock_ns(), c);
    if (!c || !c->conn) {
        shared_leave(s);
        free(c);
        close(accepted->fd);
        return;
    }
    c->fd = accepted->fd;
    c->users = 1;
    LIST_INSERT_HEAD(&s->conns, c, others);
    if (s->ops->opened(s, c) < 0) {
        shared_end(s, c, "its relay has no room for it");
        shared_release(s, c);
    }
    shared_leave(s);
}

/* --- moving bytes ----------------------------------------------------------------------------- */
static void count_switches(struct shared *s, uint64_t now_ns)
{
    struct rusage usage;

    if (now_ns - s->counted_ns < COUNT_NS)
        return;
    s->counted_ns = now_ns;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        s->stats->switches = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}

bool shared_wants_input(struct shared *s, struct shared_conn *c, uint64_t now_ns)
{
    bool wants = relay_conn_wants_input(c->conn, now_ns);

    s->held += !wants - c->held;
    c->held = !wants;
    return wants;
}

/* Bytes have left: senders that waited for that may go on. */
static void resume(struct shared *s)
{
    uint64_t now_ns = s->held ? cw_clock_ns() : 0;
    int left = s->held;

    for (struct shared_conn *c = LIST_FIRST(&s->conns); c && left > 0; c = LIST_NEXT(c, others)) {
        left -= c->held;
        if (c->held && relay_conn_wants_input(c->conn, now_ns)) {
            c->held = false;
            s->held--;
            s->ops->resume(s, c);
        }
    }
}

/* recv, again and again for a while where nothing comes. */
static ssize_t recv_patiently(int fd, void *at, size_t size, uint64_t spin_ns, struct cw_spin *spin,
                              uint64_t *calls)
{
    ssize_t n = recv(fd, at, size, MSG_DONTWAIT);
    uint64_t until = n < 0 && spin_ns ? cw_clock_ns() + spin_ns : 0;

    *calls = 1;
    while (n < 0 && errno == EAGAIN && until && cw_clock_ns() < until) {
        *calls += cw_spin_turn(spin, cw_clock_ns());
        n = recv(fd, at, size, MSG_DONTWAIT);
        ++*calls;
    }
    return n;
}

size_t shared_fill(struct shared *s, struct shared_conn *c, uint64_t spin_ns, struct cw_spin *spin)
{
    uint64_t calls;
    void *at;
    size_t size;
    ssize_t n;
    int error;

    if (c->ended || relay_conn_space(c->conn, &at, &size) < 0)
        return 0;
    pthread_mutex_unlock(&s->lock);
    n = recv_patiently(c->fd, at, size, spin_ns, spin, &calls);
    error = errno;
    pthread_mutex_lock(&s->lock);
    s->stats->syscalls += calls;
    if (n > 0)
        return (size_t)n;
    relay_conn_input(c->conn, 0); /* gives the space back */
    if (n == 0)
        shared_end(s, c, "its connection ended");
    else if (error != EAGAIN && error != EINTR)
        shared_end(s, c, strerror(error));
    return 0;
}

void shared_input(struct shared *s, struct shared_conn *c, size_t size)
{
    s->stats->wakeups++;
    relay_conn_input(c->conn, size);
    shared_flush(s);
    count_switches(s, cw_clock_ns());
}

void shared_write(struct shared *s, struct shared_conn *c)
{
    struct iovec iov[IOV_MAX_OUT];
    struct msghdr msg = {.msg_iov = iov};
    ssize_t n = 0;
    int error;

    assert(!c->writing);
    c->writing = true;
    c->left = false;
    for (int i = 0; !c->ended && !c->left && relay_conn_has_output(c->conn); i++) {
        msg.msg_iovlen = (size_t)relay_conn_output(c->conn, iov, IOV_MAX_OUT);
        pthread_mutex_unlock(&s->lock);
        n = msg.msg_iovlen == 1
                ? send(c->fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT)
                : sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        error = errno;
        pthread_mutex_lock(&s->lock);
        s->stats->syscalls++;
        relay_conn_written(c->conn, n > 0 ? (size_t)n : 0);
        if (n < 0 && error != EAGAIN && error != EINTR)
            shared_end(s, c, strerror(error));
        c->left = relay_conn_has_output(c->conn) &&
                  (i + 1 == SHARED_WRITES_MAX || (n < 0 && error == EAGAIN));
        resume(s);
    }
    c->writing = false;
    if (relay_conn_done(c->conn))
        shared_end(s, c, "closed by the relay");
}

/* --- threads ---------------------------------------------------------------------------------- */
int shared_thread_start(struct shared *s, void *(*body)(void *), void *arg, struct cw_err *err)
{
    pthread_t thread;
    int failed = cw_thread_start(&thread, SHARED_STACK_BYTES, body, arg);

    if (failed)
        return cw_err_set(err, CW_ESYS,
                          "thread %d of the relay could not be started: %s; raise 'ulimit -u' and "
                          "'ulimit -v', or choose another --engine",
                          s->threads + 1, strerror(failed));
    s->threads++;
    return CW_OK;
}

/* Each joins the one that ended before it: so at most one is ever left to be joined. */
void shared_thread_end(struct shared *s)
{
    bool any;
    pthread_t before;

    shared_flush(s);
    any = s->any_ended;
    before = s->last_ended;
    s->any_ended = true;
    s->last_ended = pthread_self();
    if (--s->threads == 0)
        pthread_cond_signal(&s->all_ended);
    shared_leave(s);
    if (any)
        pthread_join(before, NULL);
}

static void end_threads(struct shared *s)
{
    struct shared_conn *c;

    shared_enter(s);
    s->stops = true;
    LIST_FOREACH (c, &s->conns, others)
        shared_end(s, c, "the relay ends");
    s->ops->stopping(s);
    while (s->threads > 0)
        pthread_cond_wait(&s->all_ended, &s->lock);
    shared_leave(s);
    if (s->any_ended)
        pthread_join(s->last_ended, NULL);
}

/* --- an engine's life ------------------------------------------------------------------------- */
static struct shared *of(struct relay_engine *e)
{
    return (struct shared *)e;
}

static int open_own(struct shared *s, struct cw_err *err)
{
    s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->stop_fd < 0 || relay_spare_open(&s->spare) < 0) {
        cw_err_set(err, CW_ESYS, "opening the %s engine: %s", s->ops->name, strerror(errno));
        cw_close(&s->stop_fd);
        return err->code;
    }
    pthread_mutex_init(&s->lock, NULL);
    shared_cond_init(&s->all_ended);
    return CW_OK;
}

int shared_open(struct relay_engine **engine, const struct shared_ops *ops,
                const struct relay_engine_config *config, struct cw_err *err)
{
    struct relay_engine *e = calloc(1, ops->engine_size);

    if (!e)
        return cw_err_set(err, CW_ENOMEM, "no memory for the %s engine", ops->name);
    of(e)->ops = ops;
    of(e)->config = *config;
    of(e)->tick_ms = RELAY_TICK_MS;
    of(e)->stats = relay_core_stats(config->core);
    if (ops->prepare(e, err) < 0 || open_own(of(e), err) < 0) {
        ops->release(e);
        free(e);
        return err->code;
    }
    *engine = e;
    return CW_OK;
}

static void accept_some(struct shared *s, const struct relay_listener *listener)
{
    struct relay_accepted accepted;

    for (int i = 0; i < RELAY_ACCEPT_MAX && relay_accept(listener, &s->spare, &accepted); i++)
        open_conn(s, &accepted);
    if (!listener->wakes)
        return;
    shared_enter(s);
    shared_leave(s);
}

static void tick(struct shared *s)
{
    uint64_t now_ns = cw_clock_ns();

    shared_enter(s);
    relay_core_tick(s->config.core, now_ns);
    s->tick_ms = relay_core_tick_ms(s->config.core);
    count_switches(s, now_ns);
    shared_leave(s);
}

static int serve_listeners(struct shared *s, struct cw_err *err)
{
    struct pollfd fds[1 + RELAY_LISTENERS_MAX] = {{.fd = s->stop_fd, .events = POLLIN}};
    int count = s->config.listener_count;
    uint64_t tick_ns = cw_clock_ns();

    for (int i = 0; i < count; i++)
        fds[1 + i] = (struct pollfd){.fd = s->config.listeners[i].fd, .events = POLLIN};
    for (;;) {
        int n = poll(fds, (nfds_t)count + 1, s->tick_ms);

        if (n < 0 && errno != EINTR)
            return cw_err_set(err, CW_ESYS, "poll over %d listeners: %s", count, strerror(errno));
        if (n > 0 && fds[0].revents)
            return CW_OK;
        for (int i = 0; n > 0 && i < count; i++)
            if (fds[1 + i].revents)
                accept_some(s, &s->config.listeners[i]);
        if (cw_clock_ns() - tick_ns >= (uint64_t)s->tick_ms * 1000000) {
            tick_ns = cw_clock_ns();
            tick(s);
        }
    }
}

int shared_run(struct relay_engine *e, struct cw_err *err)
{
    struct shared *s = of(e);
    int failed;

    shared_enter(s);
    failed = s->ops->start(s, err);
    shared_leave(s);
    if (!failed)
        failed = serve_listeners(s, err);
    end_threads(s);
    return failed;
}

void shared_stop(struct relay_engine *e)
{
    if (eventfd_write(of(e)->stop_fd, 1) < 0)
        abort(); /* an eventfd takes 2^64 of these */
}

void shared_close(struct relay_engine *e)
{
    struct shared *s = of(e);
    struct shared_conn *c;

    shared_enter(s);
    while ((c = LIST_FIRST(&s->conns))) {
        snprintf(c->why, sizeof(c->why), "the relay ends");
        c->ended = true;
        bury(s, c);
    }
    shared_leave(s);
    close(s->stop_fd);
    relay_spare_close(&s->spare);
    pthread_cond_destroy(&s->all_ended);
    pthread_mutex_destroy(&s->lock);
    s->ops->release(e);
    free(e);
}
