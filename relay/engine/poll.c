/* [Relay] 4.1: one thread, one poll() over all connections, every socket non-blocking. Clients on
 * the same machine may take rings instead (common/wire.h): these are looked at one after the other,
 * and poll() is for when there is nothing in any of them. */
#include "common/clock.h"
#include "common/spin.h"
#include "common/wire.h"
#include "relay/engine/accept.h"
#include "relay/engine/wait_policy.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#define CONNS_MIN 16
#define IOV_MAX_OUT 64
#define HOT_MAX 4             /* connections that are tried without asking poll() first */
#define HOT_NS 1000000ull     /* a connection that was silent for longer is not hot */
#define COUNT_NS 100000000ull /* between counts of context switches */
#define LOOK_READS_MAX                                                                             \
    64            /* of a rank, when all that it has said is to be read: more than its ring */
#define HELD_MS 5 /* between looks at senders that wait for a slow receiver */
#define FLUSH_NOW (32 << 10)  /* bytes read at once that are passed on before the next read */
#define CUTS_MAX 16           /* pieces that go from ring to ring before their copies for the log */
#define CUT_BYTES (256 << 10) /* bytes that do: the first piece that reaches it is the last */

struct poll_conn {
    struct relay_conn *conn;
    int at; /* index in fds and conns */
    struct cw_wire wire;
    bool full;        /* there is more to write than it took */
    bool told_rings;  /* the core knows that it has rings */
    uint64_t sent_ns; /* when it last sent */
};

struct relay_engine {
    struct relay_engine_config config;
    struct cw_relay_stats *stats;
    int stop_fd;
    struct relay_spare spare;
    int fixed; /* entries of fds before the connections: stop, listeners */
    int count; /* entries of fds in use */
    int size;
    struct pollfd *fds;
    struct poll_conn **conns; /* parallel to fds; NULL for the fixed ones */
    bool held;                /* a sender waits for a slow receiver */
    bool said_no_rings;
    int cores; /* that it may run on */
    uint64_t now_ns;
    uint64_t active_ns; /* when a byte last moved */
    uint64_t tick_ns;
    uint64_t counted_ns;
    struct cw_spin spin;
    struct poll_conn *hot[HOT_MAX]; /* who sent last, most recent first; NULL where none */
};

static bool has_rings(const struct poll_conn *c)
{
    return c->wire.mode == CW_WIRE_RINGS;
}

static int grow(struct relay_engine *e)
{
    int size = e->size ? e->size * 2 : CONNS_MIN;
    struct pollfd *fds = realloc(e->fds, (size_t)size * sizeof(*fds));
    struct poll_conn **conns;

    if (!fds)
        return CW_ENOMEM;
    e->fds = fds;
    conns = realloc(e->conns, (size_t)size * sizeof(*conns));
    if (!conns)
        return CW_ENOMEM;
    e->conns = conns;
    e->size = size;
    return CW_OK;
}

static int watch(struct relay_engine *e, int fd, struct poll_conn *conn)
{
    if (e->count == e->size && grow(e) < 0)
        return CW_ENOMEM;
    e->fds[e->count] = (struct pollfd){.fd = fd, .events = POLLIN};
    e->conns[e->count] = conn;
    return e->count++;
}

static void hot_remove(struct relay_engine *e, const struct poll_conn *c)
{
    for (int i = 0; i < HOT_MAX; i++)
        if (e->hot[i] == c)
            e->hot[i] = NULL;
}

/* Moves it to the front; the one that was silent for longest falls out. */
static void hot_touch(struct relay_engine *e, struct poll_conn *c)
{
    int at = 0;

    while (at < HOT_MAX - 1 && e->hot[at] && e->hot[at] != c)
        at++;
    memmove(e->hot + 1, e->hot, (size_t)at * sizeof(*e->hot));
    e->hot[0] = c;
}

static void conn_close(struct relay_engine *e, struct poll_conn *c, const char *why)
{
    struct iovec unread[2];
    int last = --e->count;

    hot_remove(e, c);
    relay_conn_broken(c->conn, why, unread, cw_wire_unread(&c->wire, unread));
    relay_hang_up(c->wire.fd);
    cw_wire_close(&c->wire);
    e->fds[c->at] = e->fds[last];
    e->conns[c->at] = e->conns[last];
    e->conns[c->at]->at = c->at;
    free(c);
}

/* Writes what there is. Returns false when the connection was closed. */
static bool conn_flush(struct relay_engine *e, struct poll_conn *c)
{
    struct iovec iov[IOV_MAX_OUT];
    ssize_t n;

    c->full = false;
    while (relay_conn_has_output(c->conn)) {
        n = cw_wire_send(&c->wire, iov, relay_conn_output(c->conn, iov, IOV_MAX_OUT));
        relay_conn_written(c->conn, n > 0 ? (size_t)n : 0);
        if (n >= 0 || errno == EINTR)
            continue;
        c->full = errno == EAGAIN;
        /* what the client wrote into its ring before it ended is read first */
        if (c->full || (errno == EPIPE && has_rings(c)))
            return true;
        conn_close(e, c, cw_wire_error(errno));
        return false;
    }
    if (!relay_conn_done(c->conn))
        return true;
    conn_close(e, c, "closed by the relay");
    return false;
}

static void flush_ready(struct relay_engine *e)
{
    struct relay_conn *conn;

    do
        while ((conn = relay_core_next_ready(e->config.core)))
            conn_flush(e, relay_conn_owner(conn));
    while (relay_settle(&e->config));
}

static void peek_ring(void *ctx, size_t skip, void *to, size_t size)
{
    const struct cw_ring *ring = ctx;

    cw_ring_peek(ring, skip, to, size);
}

/* A piece of payload goes from ring to ring, if it can. Returns how much, and where the log still
 * wants it; size 0: it cannot. */
static struct relay_cut pass_piece(struct relay_engine *e, struct poll_conn *c)
{
    struct relay_conn *to = relay_conn_cut_to(c->conn);
    struct poll_conn *receiver = to ? relay_conn_owner(to) : NULL;
    size_t there = cw_ring_there(&c->wire.in);
    struct relay_cut cut = {0};
    size_t room;

    if (there < RELAY_CUT_MIN || !receiver || !has_rings(receiver) || receiver->wire.ended)
        return cut;
    room = cw_ring_room(&receiver->wire.out);
    if (room < RELAY_CUT_HEADER + RELAY_CUT_MIN)
        return cut;
    room -= RELAY_CUT_HEADER;
    cut = relay_conn_cut(c->conn, there < room ? there : room);
    if (cut.size == 0)
        return cut;
    if (!cut.to || !conn_flush(e, receiver))
        receiver = NULL;
    cw_wire_pass(&c->wire, receiver ? &receiver->wire : NULL, cut.size);
    return cut;
}

/* Passes payload from ring to ring. The log's copy is made afterwards, when the receiver has the
 * payload, and from the sender's ring, since the receiver is reading the other ring then. Returns
 * false when nothing could be passed. */
static bool cut_through(struct relay_engine *e, struct poll_conn *c)
{
    struct relay_cut cuts[CUTS_MAX];
    size_t passed = 0;
    int count = 0;

    while (count < CUTS_MAX && passed < CUT_BYTES) {
        cuts[count] = pass_piece(e, c);
        if (cuts[count].size == 0)
            break;
        passed += cuts[count++].size;
    }
    if (count == 0)
        return false;
    for (int i = 0; i < count; i++) {
        if (cuts[i].log)
            cw_ring_keep(&c->wire.in, passed, cuts[i].log, cuts[i].size);
        passed -= cuts[i].size;
        relay_cut_done(&cuts[i]);
    }
    cw_wire_release(&c->wire, 0);
    c->sent_ns = e->now_ns;
    return true;
}

static void tell_rings(struct poll_conn *c)
{
    c->told_rings = true;
    relay_conn_set_rings(c->conn);
}

/* What outlives us need not stay in the ring. */
static void release_acted(struct poll_conn *c)
{
    if (has_rings(c) && c->wire.holds)
        cw_wire_release(&c->wire, relay_conn_held(c->conn));
}

/* Returns false when there was nothing to read, or nothing is to be read now. */
static bool conn_read(struct relay_engine *e, struct poll_conn *c)
{
    size_t there = has_rings(c) ? cw_ring_there(&c->wire.in) : 0;
    size_t before;
    void *at;
    size_t size;
    ssize_t n;

    if (there >= RELAY_CUT_MIN && cut_through(e, c))
        return true;
    before =
        there >= RELAY_CUT_MIN ? relay_conn_before_cut(c->conn, there, peek_ring, &c->wire.in) : 0;
    if (relay_conn_space(c->conn, &at, &size) < 0)
        return true;
    if (before > 0 && before < size)
        size = before;
    n = cw_wire_recv(&c->wire, &(struct iovec){at, size}, 1);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        relay_conn_input(c->conn, 0); /* an idle connection holds no block */
        release_acted(c);             /* it may have waited for the disk */
        return false;
    }
    if (n > 0) {
        c->sent_ns = e->now_ns;
        if (!has_rings(c))
            hot_touch(e, c);
        else if (!c->told_rings)
            tell_rings(c);
        relay_conn_input(c->conn, (size_t)n);
        release_acted(c);
    } else {
        conn_close(e, c, n == 0 ? "its connection ended" : cw_wire_error(errno));
    }
    if (n >= FLUSH_NOW)
        flush_ready(e);
    return true;
}

/* Once: many clients may come. */
static void say_no_rings(struct relay_engine *e)
{
    if (e->said_no_rings)
        return;
    e->said_no_rings = true;
    dprintf(STDERR_FILENO,
            "causeway relay: making rings for a client: %s; it gets the socket instead, which is "
            "slower; free memory, raise 'ulimit -n', or choose --rings off\n",
            strerror(errno));
}

/* Returns 0, or a negative code after which the descriptor is still the caller's. */
static int conn_open(struct relay_engine *e, const struct relay_accepted *accepted)
{
    struct poll_conn *c = calloc(1, sizeof(*c));

    if (!c)
        return CW_ENOMEM;
    c->wire = (struct cw_wire){.fd = accepted->fd, .calls = &e->stats->syscalls};
    c->at = watch(e, c->wire.fd, c);
    if (c->at < 0) {
        free(c);
        return CW_ENOMEM;
    }
    c->conn = relay_accept_conn(e->config.core, accepted, e->now_ns, c);
    if (!c->conn) {
        e->count--;
        free(c);
        return CW_ENOMEM;
    }
    if (e->config.rings && accepted->is_local && !cw_wire_offer(&c->wire))
        say_no_rings(e);
    if (relay_core_outlives(e->config.core))
        cw_wire_hold(&c->wire);
    return CW_OK;
}

static void accept_some(struct relay_engine *e, const struct relay_listener *listener)
{
    struct relay_accepted accepted;

    for (int i = 0; i < RELAY_ACCEPT_MAX && relay_accept(listener, &e->spare, &accepted); i++)
        if (!relay_accept_none(e->config.core, &accepted) && conn_open(e, &accepted) < 0)
            close(accepted.fd);
}

/* Returns false when there was nothing to do. */
static bool serve_ring(struct relay_engine *e, struct poll_conn *c)
{
    bool writes = c->full && cw_ring_writable(&c->wire.out);
    bool reads = cw_ring_readable(&c->wire.in) || c->wire.ended;

    if (writes && !conn_flush(e, c))
        return true;
    reads = reads && (c->wire.ended || relay_conn_wants_input(c->conn, e->now_ns));
    return (reads && conn_read(e, c)) || writes;
}

static bool serve_rings(struct relay_engine *e)
{
    bool served = false;

    for (int i = e->count - 1; i >= e->fixed; i--) {
        if (has_rings(e->conns[i]))
            served |= serve_ring(e, e->conns[i]);
        if (i > e->count)
            i = e->count;
    }
    if (served)
        flush_ready(e);
    return served;
}

static void serve(struct relay_engine *e)
{
    for (int i = e->count - 1; i >= e->fixed; i--) {
        struct poll_conn *c = e->conns[i];
        short got = e->fds[i].revents;

        if (!got)
            continue;
        if (has_rings(c))
            serve_ring(e, c);
        else if ((!c->full || conn_flush(e, c)) && got & (POLLIN | POLLHUP | POLLERR))
            conn_read(e, c);
        /* a close moves the last entry, which was served already, to its place */
        if (i > e->count)
            i = e->count;
    }
    for (int i = 1; i < e->fixed; i++)
        if (e->fds[i].revents)
            accept_some(e, &e->config.listeners[i - 1]);
    flush_ready(e);
}

/* What poll() is to wait for. Returns false when it must not wait. */
static bool choose(struct relay_engine *e, bool sleeps)
{
    bool may_sleep = sleeps;

    e->held = false;
    for (int i = e->fixed; i < e->count; i++) {
        struct poll_conn *c = e->conns[i];
        bool wants = relay_conn_wants_input(c->conn, e->now_ns);

        e->held |= !wants;
        if (has_rings(c) && !sleeps) {
            e->fds[i].events = POLLIN;
            continue;
        }
        e->fds[i].fd = c->wire.fd;
        e->fds[i].events = cw_wire_sleep(&c->wire, wants, c->full);
        may_sleep &= !has_rings(c) || e->fds[i].events;
    }
    return may_sleep;
}

static void wake_rings(struct relay_engine *e)
{
    for (int i = e->fixed; i < e->count; i++)
        if (has_rings(e->conns[i]))
            cw_wire_woke(&e->conns[i]->wire, e->fds[i].revents);
}

/* While the relay spins, a client that sent lately most likely sends next: reading from it at once
 * spares the poll(). Returns true when something was read. */
static bool serve_hot(struct relay_engine *e)
{
    /* in an exchange it is the other one's turn: the longest silent first */
    for (int i = HOT_MAX - 1; i >= 0; i--) {
        struct poll_conn *c = e->hot[i];

        if (c && relay_conn_wants_input(c->conn, e->now_ns) && conn_read(e, c)) {
            flush_ready(e);
            return true;
        }
    }
    return false;
}

static void hot_expire(struct relay_engine *e)
{
    for (int i = 0; i < HOT_MAX; i++)
        if (e->hot[i] && e->now_ns - e->hot[i]->sent_ns > HOT_NS)
            e->hot[i] = NULL;
}

/* Adds what the clients do that share rings with the relay. */
static void count_clients(const struct relay_engine *e, struct relay_wait_facts *facts)
{
    int cpu = sched_getcpu();

    facts->counted = true;
    facts->cores = e->cores;
    for (int i = e->fixed; i < e->count; i++) {
        const struct cw_wire *wire = &e->conns[i]->wire;

        if (!has_rings(e->conns[i]))
            continue;
        facts->ranks++;
        if (cw_wire_computes(wire)) {
            facts->computing++;
            facts->beside |= cw_wire_other_cpu(wire) == cpu;
        }
    }
}

/* `looks`: since `asked_ns` it has not slept. */
static enum relay_wait_step choose_step(const struct relay_engine *e, bool looks, uint64_t asked_ns,
                                        uint64_t now_ns)
{
    struct relay_wait_facts facts = {.spin_ns = e->config.spin_ns,
                                     .idle_ns = now_ns - e->active_ns,
                                     .asked_ns = now_ns - asked_ns,
                                     .looks = looks};
    enum relay_wait_step step = relay_wait_choose(&facts);

    if (step == RELAY_WAIT_COUNT) {
        count_clients(e, &facts);
        step = relay_wait_choose(&facts);
    }
    return step;
}

/* Looks into the rings and at the hot connections, until it is time to ask poll() about all. */
static void spin(struct relay_engine *e)
{
    uint64_t asked_ns = e->now_ns;
    uint64_t now_ns;

    hot_expire(e);
    do {
        bool in_rings = serve_rings(e);
        bool served = serve_hot(e) || in_rings;

        now_ns = cw_clock_ns();
        if (served) {
            e->stats->wakeups++;
            e->active_ns = e->now_ns = now_ns;
        }
        /* also after success: the receiver of a message may share this core */
        if (!served || cw_spin_shared(&e->spin))
            e->stats->syscalls += cw_spin_turn(&e->spin, now_ns);
    } while (choose_step(e, true, asked_ns, now_ns) == RELAY_WAIT_LOOK);
}

/* Reads all that is there of a rank's connection. False: not now. */
static bool read_all(struct relay_engine *e, struct poll_conn *c)
{
    int count = e->count;

    for (int i = 0; i < LOOK_READS_MAX; i++) {
        if (!relay_conn_wants_input(c->conn, e->now_ns))
            return false;
        if (!conn_read(e, c))
            return true;
        if (e->count != count) /* it may be gone */
            return false;
    }
    return true;
}

/* What ranks have said by now is read before the dispatcher hears what is covered. */
static void look(struct relay_engine *e)
{
    bool all = true;

    if (!relay_core_covers(e->config.core))
        return;
    for (int i = e->fixed; i < e->count && all; i++)
        all = !relay_conn_is_rank(e->conns[i]->conn) || read_all(e, e->conns[i]);
    if (all)
        relay_core_looked(e->config.core);
    flush_ready(e);
}

static int wait_ms(struct relay_engine *e, bool sleeps)
{
    if (!choose(e, sleeps))
        return 0;
    return e->held || relay_core_covers(e->config.core) ? HELD_MS
                                                        : relay_core_tick_ms(e->config.core);
}

static void count_switches(struct relay_engine *e)
{
    struct rusage usage;

    e->counted_ns = e->now_ns;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        e->stats->switches = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}

static int poll_run(struct relay_engine *e, struct cw_err *err)
{
    for (;;) {
        bool sleeps;
        int timeout;
        int n;

        e->now_ns = cw_clock_ns();
        sleeps = choose_step(e, false, e->now_ns, e->now_ns) == RELAY_WAIT_SLEEP;
        timeout = wait_ms(e, sleeps);
        n = poll(e->fds, (nfds_t)e->count, timeout);
        e->stats->syscalls++;
        e->stats->sleeps += timeout > 0;
        if (n < 0 && errno != EINTR)
            return cw_err_set(err, CW_ESYS, "poll over %d descriptors: %s", e->count,
                              strerror(errno));
        if (sleeps || n > 0)
            wake_rings(e);
        if (n > 0) {
            if (e->fds[0].revents)
                return CW_OK;
            e->stats->wakeups++;
            serve(e);
            e->active_ns = cw_clock_ns();
        }
        if (!sleeps)
            spin(e);
        else if (serve_rings(e))
            e->active_ns = cw_clock_ns();
        look(e);
        if (e->now_ns - e->counted_ns > COUNT_NS)
            count_switches(e);
        if (e->now_ns - e->tick_ns > (uint64_t)relay_core_tick_ms(e->config.core) * 1000000) {
            e->tick_ns = e->now_ns;
            relay_core_tick(e->config.core, e->now_ns);
            flush_ready(e);
        }
    }
}

static void poll_stop(struct relay_engine *e)
{
    if (eventfd_write(e->stop_fd, 1) < 0)
        abort(); /* an eventfd takes 2^64 of these */
}

static void poll_close(struct relay_engine *e)
{
    while (e->count > e->fixed)
        conn_close(e, e->conns[e->count - 1], "the relay ends");
    if (e->stop_fd >= 0)
        close(e->stop_fd);
    relay_spare_close(&e->spare);
    free(e->fds);
    free(e->conns);
    free(e);
}

static int poll_open(struct relay_engine **engine, const struct relay_engine_config *config,
                     struct cw_err *err)
{
    struct relay_engine *e = calloc(1, sizeof(*e));
    cpu_set_t cores;
    bool ok;

    if (!e)
        return cw_err_set(err, CW_ENOMEM, "no memory for the poll engine");
    e->config = *config;
    e->cores = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
    e->stats = relay_core_stats(config->core);
    e->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ok = relay_spare_open(&e->spare) == CW_OK && e->stop_fd >= 0 && watch(e, e->stop_fd, NULL) >= 0;
    for (int i = 0; ok && i < config->listener_count; i++)
        ok = watch(e, config->listeners[i].fd, NULL) >= 0;
    e->fixed = e->count;
    if (!ok) {
        cw_err_set(err, CW_ESYS, "opening the poll engine: %s", strerror(errno));
        poll_close(e);
        return err->code;
    }
    *engine = e;
    return CW_OK;
}

const struct relay_engine_ops relay_engine_poll = {
    .name = "poll",
    .summary = "one thread, poll() over all connections",
    .open = poll_open,
    .run = poll_run,
    .stop = poll_stop,
    .close = poll_close,
};
