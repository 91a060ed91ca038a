/* One thread, io_uring: what [Relay] 4.1 does with poll(), without asking before each read and
 * write. Requests stay with the kernel, and go to it many at a time; it answers in memory that is
 * looked at without a system call.
 *
 * Completions are served in the order of their coming, and a connection has one receive and one
 * send under way: so each is served at most 256 KiB, or the shared buffers once, before the next.
 */
#include "relay/engine/uring.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#define BATCH_MAX 64          /* completions served before something is submitted */
#define LOOKS 32              /* at the ring, while spinning, before the clock is read again */
#define HELD_MS 5             /* between looks at senders that wait for a slow receiver */
#define COUNT_NS 100000000ull /* between counts of context switches */
#define DRAIN_WAIT_MS 100     /* for what was cancelled; then it is cancelled once more ... */
#define DRAIN_TRIES 100       /* ... so often */

/* --- beginning -------------------------------------------------------------------------------- */
static void stop_arm(struct relay_engine *e)
{
    struct io_uring_sqe *sqe = uring_ring_ask(&e->ring);

    io_uring_prep_read(sqe, e->stop_fd, &e->stops, sizeof(e->stops), 0);
    uring_ring_name(&e->ring, sqe, NULL, URING_STOP);
}

static bool one_by_one(const struct uring_listener *l)
{
    return l->full || l->listener->dialled || l->listener->wakes;
}

/* Without a free descriptor an accept fails at once, whether somebody waits or not. */
static void listener_arm(struct relay_engine *e, struct uring_listener *l)
{
    struct io_uring_sqe *sqe = uring_ring_ask(&e->ring);
    int fd = l->listener->fd;

    if (one_by_one(l))
        io_uring_prep_poll_add(sqe, fd, POLLIN);
    else
        io_uring_prep_multishot_accept(sqe, fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    uring_ring_name(&e->ring, sqe, l, one_by_one(l) ? URING_CALL : URING_ACCEPT);
    l->armed = true;
}

/* --- serving ---------------------------------------------------------------------------------- */
/* An accept that stays goes by the limit that held when it was armed. */
static bool beyond_limit(int fd)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)fd >= limit.rlim_cur;
}

static void accept_complete(struct relay_engine *e, struct uring_listener *l,
                            const struct io_uring_cqe *cqe)
{
    bool again = cqe->res >= 0;

    l->armed = cqe->flags & IORING_CQE_F_MORE;
    if (cqe->res == -EMFILE || cqe->res == -ENFILE) {
        again = l->full = true;
    } else if (cqe->res >= 0 && e->stopped) {
        close(cqe->res);
    } else if (cqe->res >= 0 && beyond_limit(cqe->res)) {
        relay_refuse(cqe->res, &e->spare);
    } else if (cqe->res >= 0) {
        l->listener->address.transport->tune(cqe->res);
        uring_conn_open(e, &(struct relay_accepted){.fd = cqe->res});
    }
    /* after any other error, at the next tick: it might be there for ever */
    if (!l->armed && again && !e->stopped)
        listener_arm(e, l);
}

static void call_complete(struct relay_engine *e, struct uring_listener *l)
{
    struct relay_accepted accepted;

    l->armed = false;
    if (e->stopped)
        return;
    l->full = !relay_accept(l->listener, &e->spare, &accepted);
    if (!l->full && !relay_accept_none(e->config.core, &accepted))
        uring_conn_open(e, &accepted);
    listener_arm(e, l);
}

static void complete(struct relay_engine *e, const struct io_uring_cqe *cqe)
{
    enum uring_op op = cqe->user_data & URING_OP_MASK;
    void *of = (void *)(uintptr_t)(cqe->user_data & ~(uint64_t)URING_OP_MASK);

    switch (op) {
    case URING_CANCEL:
        return;
    case URING_STOP:
        e->stopped = true;
        return;
    case URING_ACCEPT:
        accept_complete(e, of, cqe);
        return;
    case URING_CALL:
        call_complete(e, of);
        return;
    default:
        uring_conn_complete(e, of, op, cqe);
    }
}

static void settle(struct relay_engine *e)
{
    while (relay_settle(&e->config))
        uring_conn_serve_ready(e);
}

/* Returns whether there was anything. */
static bool serve(struct relay_engine *e)
{
    struct io_uring_cqe cqe;
    int count = 0;

    while (count < BATCH_MAX && uring_ring_room(&e->ring) && uring_ring_next(&e->ring, &cqe)) {
        count++;
        complete(e, &cqe);
        if (cqe.res >= (int)URING_FLUSH_NOW) {
            uring_conn_serve_ready(e);
            uring_conn_look_at_held(e);
            uring_ring_enter(&e->ring);
            settle(e);
        }
    }
    uring_conn_serve_ready(e);
    return count > 0;
}

/* --- the loop --------------------------------------------------------------------------------- */
static void count_switches(struct relay_engine *e)
{
    struct rusage usage;

    e->counted_ns = e->now_ns;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        e->stats->switches = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}

static void tick(struct relay_engine *e)
{
    struct uring_conn *next;

    e->tick_ns = e->now_ns;
    relay_core_tick(e->config.core, e->now_ns);
    for (int i = 0; i < e->config.listener_count; i++)
        if (!e->listeners[i].armed && uring_ring_room(&e->ring))
            listener_arm(e, &e->listeners[i]);
    for (struct uring_conn *c = LIST_FIRST(&e->conns); c && uring_ring_room(&e->ring); c = next) {
        next = LIST_NEXT(c, others);
        uring_conn_tick(e, c);
    }
    uring_conn_serve_ready(e);
}

/* Looking costs no system call. */
static void spin(struct relay_engine *e)
{
    int looks = cw_spin_shared(&e->spin) ? 0 : LOOKS;

    while (looks > 0 && uring_ring_quiet(&e->ring))
        looks--;
    if (looks == 0)
        e->stats->syscalls += cw_spin_turn(&e->spin, cw_clock_ns());
}

/* There was nothing to do, or `served`: gives the core away, or sleeps. */
static void rest(struct relay_engine *e, bool served)
{
    if (served) {
        /* whoever got a message may share this core */
        if (cw_spin_shared(&e->spin))
            e->stats->syscalls += cw_spin_turn(&e->spin, cw_clock_ns());
    } else if (e->now_ns - e->active_ns < e->config.spin_ns) {
        spin(e);
    } else {
        e->stats->sleeps++;
        uring_ring_wait(&e->ring,
                        !LIST_EMPTY(&e->held) ? HELD_MS : relay_core_tick_ms(e->config.core));
    }
}

static void turn(struct relay_engine *e)
{
    bool served;
    bool due;

    e->now_ns = cw_clock_ns();
    uring_conn_look_at_held(e);
    served = serve(e);
    if (served) {
        e->stats->wakeups++;
        e->active_ns = e->now_ns;
    }
    due = uring_ring_due(&e->ring);
    if (due)
        uring_ring_enter(&e->ring);
    settle(e);
    if (!due)
        rest(e, served);
    if (e->now_ns - e->counted_ns > COUNT_NS)
        count_switches(e);
    if (e->now_ns - e->tick_ns > (uint64_t)relay_core_tick_ms(e->config.core) * 1000000)
        tick(e);
}

static void cancel_all(struct relay_engine *e)
{
    struct io_uring_sqe *sqe = uring_ring_ask(&e->ring);

    io_uring_prep_cancel64(sqe, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
    uring_ring_name(&e->ring, sqe, NULL, URING_CANCEL);
}

/* Everything that is under way ends here: the kernel must not write to memory that is freed. */
static void drain(struct relay_engine *e)
{
    struct io_uring_cqe cqe;
    struct uring_conn *next;

    e->stopped = true;
    for (struct uring_conn *c = LIST_FIRST(&e->conns); c; c = next) {
        next = LIST_NEXT(c, others);
        uring_conn_abandon(e, c, "the relay ends");
    }
    for (int i = 0; i < DRAIN_TRIES && e->ring.outstanding; i++) {
        if (uring_ring_room(&e->ring))
            cancel_all(e);
        uring_ring_wait(&e->ring, DRAIN_WAIT_MS);
        while (uring_ring_next(&e->ring, &cqe))
            complete(e, &cqe);
    }
    if (e->ring.outstanding)
        abort(); /* the kernel keeps what nothing gets out of it */
}

static int uring_run(struct relay_engine *e, struct cw_err *err)
{
    int failed = uring_ring_start(&e->ring, err);

    if (failed)
        return failed;
    stop_arm(e);
    for (int i = 0; i < e->config.listener_count; i++)
        if (uring_ring_room(&e->ring))
            listener_arm(e, &e->listeners[i]);
    while (!e->stopped && !e->ring.failed)
        turn(e);
    failed = e->ring.failed;
    drain(e);
    uring_ring_finish(&e->ring);
    if (failed)
        return cw_err_set(err, CW_ESYS, "io_uring_enter: %s", strerror(failed));
    return CW_OK;
}

/* --- from outside ----------------------------------------------------------------------------- */
static void uring_stop(struct relay_engine *e)
{
    if (eventfd_write(e->stop_fd, 1) < 0)
        abort(); /* an eventfd takes 2^64 of these */
}

static void uring_close(struct relay_engine *e)
{
    uring_ring_close(&e->ring);
    if (e->stop_fd >= 0)
        close(e->stop_fd);
    relay_spare_close(&e->spare);
    free(e);
}

static int uring_open(struct relay_engine **engine, const struct relay_engine_config *config,
                      struct cw_err *err)
{
    struct relay_engine *e = calloc(1, sizeof(*e));
    int failed;

    if (!e)
        return cw_err_set(err, CW_ENOMEM, "no memory for the uring engine");
    e->config = *config;
    e->stats = relay_core_stats(config->core);
    for (int i = 0; i < config->listener_count; i++)
        e->listeners[i].listener = &config->listeners[i];
    failed = uring_ring_open(&e->ring, e->stats, err);
    if (failed) {
        free(e);
        return failed;
    }
    /* blocking: a read of an eventfd that does not block would complete at once, with EAGAIN */
    e->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (relay_spare_open(&e->spare) < 0 || e->stop_fd < 0) {
        cw_err_set(err, CW_ESYS, "opening the uring engine: %s", strerror(errno));
        uring_close(e);
        return err->code;
    }
    *engine = e;
    return CW_OK;
}

const struct relay_engine_ops relay_engine_uring = {
    .name = "uring",
    .summary = "one thread, io_uring: requests in batches, receives that stay",
    .check = uring_ring_check,
    .open = uring_open,
    .run = uring_run,
    .stop = uring_stop,
    .close = uring_close,
};
