/* Connections of the engine `uring`. Of each at most one receive and one send are under way.
 *
 * Who says little receives into the shared buffers, by one request that stays: it costs no memory
 * while nothing comes, and a copy of what does. Who sends much receives into its own block, one
 * request at a time, and nothing is copied; such a block is held while the kernel may write to it,
 * so only a few connections have that turn, and lose it when they fall silent. */
#include "relay/engine/uring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN_MIN 8192u          /* bytes received at once that make it worth a block of its own */
#define OWN_SMALL_MAX 8u       /* receives in a row below that: it is no longer worth it */
#define OWN_SILENT_NS 1000000u /* who said nothing for longer loses its turn to one who does */
#define OWN_IDLE_NS (URING_TICK_MS * 1000000ull) /* ... and after this long, to nobody */
#define STUCK_NS (URING_TICK_MS * 1000000ull)    /* a send that may be of no use any more */

/* --- end -------------------------------------------------------------------------------------- */
static void held_remove(struct uring_conn *c)
{
    if (c->held)
        LIST_REMOVE(c, in_held);
    c->held = false;
}

static void own_leave(struct relay_engine *e, struct uring_conn *c)
{
    for (int i = 0; i < URING_OWN_MAX; i++)
        if (e->own[i] == c)
            e->own[i] = NULL;
    c->own = false;
}

static void conn_free(struct relay_engine *e, struct uring_conn *c)
{
    assert(!c->receiving && !c->sending);
    held_remove(c);
    own_leave(e, c);
    LIST_REMOVE(c, others);
    relay_conn_broken(c->conn, c->error ? strerror(c->error) : c->why, NULL, 0);
    relay_hang_up(c->fd);
    free(c);
}

static void receive_cancel(struct relay_engine *e, struct uring_conn *c)
{
    if (!c->cancelled)
        uring_ring_cancel(&e->ring, c, c->receiving);
    c->cancelled = true;
}

/* May free it. */
static void conn_end(struct relay_engine *e, struct uring_conn *c, int error, const char *why)
{
    if (c->ending)
        return;
    c->ending = true;
    c->error = error;
    c->why = why;
    if (c->receiving)
        receive_cancel(e, c);
    if (c->sending)
        uring_ring_cancel(&e->ring, c, URING_SEND);
    if (!c->receiving && !c->sending)
        conn_free(e, c);
}

void uring_conn_abandon(struct relay_engine *e, struct uring_conn *c, const char *why)
{
    if (!c->ending)
        c->why = why;
    c->ending = true;
    if (!c->receiving && !c->sending)
        conn_free(e, c);
}

/* --- receiving -------------------------------------------------------------------------------- */
static void receive_shared(struct relay_engine *e, struct uring_conn *c)
{
    struct io_uring_sqe *sqe = uring_ring_ask(&e->ring);

    uring_ring_receive(&e->ring, sqe, c->fd);
    uring_ring_name(&e->ring, sqe, c, URING_SHARED);
    c->receiving = URING_SHARED;
}

static void receive_own(struct relay_engine *e, struct uring_conn *c)
{
    struct io_uring_sqe *sqe;
    void *at;
    size_t size;

    /* without memory the core is done with it, and says so */
    if (relay_conn_space(c->conn, &at, &size) < 0)
        return;
    sqe = uring_ring_ask(&e->ring);
    io_uring_prep_recv(sqe, c->fd, at, size, 0);
    sqe->ioprio = c->empty ? IORING_RECVSEND_POLL_FIRST : 0;
    uring_ring_name(&e->ring, sqe, c, URING_OWN);
    c->receiving = URING_OWN;
}

static void hold(struct relay_engine *e, struct uring_conn *c)
{
    if (c->held || c->ending)
        return;
    c->held = true;
    LIST_INSERT_HEAD(&e->held, c, in_held);
}

static void input_copy(struct uring_conn *c, const uint8_t *bytes, size_t size)
{
    void *at;
    size_t room;

    for (; size > 0; bytes += room, size -= room) {
        if (relay_conn_space(c->conn, &at, &room) < 0)
            return;
        if (room > size)
            room = size;
        memcpy(at, bytes, room);
        relay_conn_input(c->conn, room);
    }
}

void uring_conn_receive(struct relay_engine *e, struct uring_conn *c)
{
    bool wanted;

    if (c->ending)
        return;
    wanted = relay_conn_wants_input(c->conn, e->now_ns);
    if (c->receiving && (!wanted || c->own != (c->receiving == URING_OWN)))
        receive_cancel(e, c);
    if (c->receiving)
        return;
    if (!wanted)
        hold(e, c);
    else if (c->own)
        receive_own(e, c);
    else
        receive_shared(e, c);
}

void uring_conn_look_at_held(struct relay_engine *e)
{
    struct uring_conn *next;

    for (struct uring_conn *c = LIST_FIRST(&e->held); c && uring_ring_room(&e->ring); c = next) {
        next = LIST_NEXT(c, in_held);
        held_remove(c);
        uring_conn_receive(e, c);
    }
}

/* A block of its own from the next receive on, if there is a turn to be had. */
static void own_enter(struct relay_engine *e, struct uring_conn *c)
{
    struct uring_conn *out;
    int at = 0;

    for (int i = 1; i < URING_OWN_MAX && e->own[at]; i++)
        if (!e->own[i] || e->own[i]->input_ns < e->own[at]->input_ns)
            at = i;
    out = e->own[at];
    if (out && e->now_ns - out->input_ns < OWN_SILENT_NS)
        return;
    if (out) {
        own_leave(e, out);
        uring_conn_receive(e, out);
    }
    e->own[at] = c;
    c->own = true;
    c->small = 0;
}

/* Which way it should receive, after so many bytes came at once. */
static void own_decide(struct relay_engine *e, struct uring_conn *c, size_t size)
{
    if (size >= OWN_MIN) {
        c->small = 0;
        if (!c->own)
            own_enter(e, c);
    } else if (c->own && ++c->small == OWN_SMALL_MAX) {
        own_leave(e, c);
    }
}

static void receive_complete(struct relay_engine *e, struct uring_conn *c, enum uring_op op,
                             const struct io_uring_cqe *cqe)
{
    size_t size = cqe->res > 0 ? (size_t)cqe->res : 0;

    if (!(cqe->flags & IORING_CQE_F_MORE)) {
        c->receiving = 0;
        c->cancelled = false;
    }
    c->empty = !(cqe->flags & IORING_CQE_F_SOCK_NONEMPTY);
    if (op == URING_OWN)
        relay_conn_input(c->conn, size); /* of nothing: lets go of its block */
    else if (size && !c->ending)
        input_copy(c, uring_ring_buffer(&e->ring, cqe), size);
    uring_ring_give(&e->ring, cqe);
    if (size) {
        c->input_ns = e->now_ns;
        own_decide(e, c, size);
    } else if (cqe->res == 0) {
        conn_end(e, c, 0, "its connection ended");
        return;
    } else if (cqe->res != -ECANCELED && cqe->res != -ENOBUFS && cqe->res != -EINTR) {
        conn_end(e, c, -cqe->res, NULL);
        return;
    }
    if (size >= URING_FLUSH_NOW)
        hold(e, c);
    else
        uring_conn_receive(e, c);
}

/* --- sending ----------------------------------------------------------------------------------
 * Not with IORING_OP_SENDMSG_ZC: over TCP on one machine 16 KiB took 40 us instead of 10, 256 KiB
 * 120 to 130 instead of 75 to 110, 1 MiB 410 to 940 instead of 220 to 830 (time between cause and
 * second completion; Linux 6.18). The kernel copies for a receiver on this machine all the same,
 * and what is sent is held until the second completion. */
static void send_begin(struct relay_engine *e, struct uring_conn *c)
{
    struct io_uring_sqe *sqe = uring_ring_ask(&e->ring);

    c->msg.msg_iov = c->iov;
    c->msg.msg_iovlen = (size_t)relay_conn_output(c->conn, c->iov, URING_IOV_MAX);
    c->asked = 0;
    for (size_t i = 0; i < c->msg.msg_iovlen; i++)
        c->asked += c->iov[i].iov_len;
    if (c->msg.msg_iovlen == 1)
        io_uring_prep_send(sqe, c->fd, c->iov->iov_base, c->iov->iov_len, MSG_NOSIGNAL);
    else
        io_uring_prep_sendmsg(sqe, c->fd, &c->msg, MSG_NOSIGNAL);
    sqe->ioprio = c->full ? IORING_RECVSEND_POLL_FIRST : 0;
    uring_ring_name(&e->ring, sqe, c, URING_SEND);
    c->sending = true;
    c->sending_ns = e->now_ns;
}

static void send_complete(struct relay_engine *e, struct uring_conn *c, int result)
{
    c->sending = false;
    c->full = result < 0 || (size_t)result < c->asked;
    relay_conn_written(c->conn, result > 0 ? (size_t)result : 0);
    if (result < 0 && result != -ECANCELED && result != -EINTR && result != -EAGAIN)
        conn_end(e, c, -result, NULL);
    else
        uring_conn_serve(e, c);
}

void uring_conn_serve(struct relay_engine *e, struct uring_conn *c)
{
    if (c->ending || c->sending)
        return;
    if (relay_conn_has_output(c->conn))
        send_begin(e, c);
    else if (relay_conn_done(c->conn))
        conn_end(e, c, 0, "closed by the relay");
}

void uring_conn_serve_ready(struct relay_engine *e)
{
    struct relay_conn *conn;

    while (uring_ring_room(&e->ring) && (conn = relay_core_next_ready(e->config.core)))
        uring_conn_serve(e, relay_conn_owner(conn));
}

/* --- all -------------------------------------------------------------------------------------- */
void uring_conn_complete(struct relay_engine *e, struct uring_conn *c, enum uring_op op,
                         const struct io_uring_cqe *cqe)
{
    bool ending = c->ending;

    if (op == URING_SEND)
        send_complete(e, c, cqe->res);
    else
        receive_complete(e, c, op, cqe);
    if (ending && !c->receiving && !c->sending)
        conn_free(e, c);
}

void uring_conn_tick(struct relay_engine *e, struct uring_conn *c)
{
    if (c->own && e->now_ns - c->input_ns > OWN_IDLE_NS) {
        own_leave(e, c);
        uring_conn_receive(e, c);
    }
    /* the core may have dropped what is to be sent; it gets it back, and says so */
    if (c->sending && !c->ending && e->now_ns - c->sending_ns > STUCK_NS &&
        !relay_conn_wants_input(c->conn, e->now_ns))
        uring_ring_cancel(&e->ring, c, URING_SEND);
}

void uring_conn_open(struct relay_engine *e, const struct relay_accepted *accepted)
{
    struct uring_conn *c = calloc(1, sizeof(*c));

    if (c)
        c->conn = relay_accept_conn(e->config.core, accepted, e->now_ns, c);
    if (!c || !c->conn) {
        free(c);
        close(accepted->fd);
        return;
    }
    c->fd = accepted->fd;
    LIST_INSERT_HEAD(&e->conns, c, others);
    uring_conn_receive(e, c);
}
