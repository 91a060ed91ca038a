/* The parts of the engine `uring`: its ring (uring_ring.c), its connections (uring_conn.c) and its
 * loop (uring.c). Everything here belongs to the thread that runs the engine. */
#ifndef RELAY_URING_H
#define RELAY_URING_H

#include "common/spin.h"
#include "relay/engine/accept.h"

#include <liburing.h>
#include <sys/queue.h>

#define URING_IOV_MAX 64
#define URING_STEP_SQES 8 /* operations that serving one completion or connection may ask for */
#define URING_OWN_MAX 64  /* connections that receive into their own blocks */
#define URING_FLUSH_NOW                                                                            \
    (32u << 10) /* bytes received at once that are passed on before the next are received */
#define URING_TICK_MS 1000 /* between looks at connections that are stuck or say nothing */

/* What a completion is of: the low bits of its user data, beside a pointer. */
enum uring_op {
    URING_CANCEL, /* whether it found something is seen by the completion of that */
    URING_SHARED, /* a receive into the shared buffers; struct uring_conn */
    URING_OWN,    /* a receive into the connection's own block; struct uring_conn */
    URING_SEND,   /* struct uring_conn */
    URING_ACCEPT, /* struct uring_listener */
    URING_CALL,   /* somebody waits to be accepted; struct uring_listener */
    URING_STOP,   /* of the engine */
};
#define URING_OP_MASK 7u

/* --- uring_ring.c ----------------------------------------------------------------------------- */
struct uring_ring {
    struct io_uring io;
    struct io_uring_buf_ring *shared; /* buffers for whatever is small */
    uint8_t *bytes;                   /* of them all */
    struct cw_relay_stats *stats;
    uint32_t outstanding; /* operations whose last completion is to come, but for cancels */
    uint32_t refused;     /* system calls in a row that took nothing in */
    int failed;           /* the errno after which the ring is of no use, or 0 */
};

/* Whether io_uring can be used here. Returns 0 or CW_ENOTFOUND. */
int uring_ring_check(struct cw_err *err);

/* Any thread may open and close it; between start and finish it is the caller's. Nothing is
 * outstanding at its end. Return 0, or a negative code with nothing left behind. */
int uring_ring_open(struct uring_ring *r, struct cw_relay_stats *stats, struct cw_err *err);
int uring_ring_start(struct uring_ring *r, struct cw_err *err);
void uring_ring_finish(struct uring_ring *r);
void uring_ring_close(struct uring_ring *r);

/* True when URING_STEP_SQES operations can be asked for; submits others to make room. False when
 * the kernel takes nothing in now. */
bool uring_ring_room(struct uring_ring *r);

/* An operation to be filled in; there is room. */
struct io_uring_sqe *uring_ring_ask(struct uring_ring *r);
/* Names it, and counts it as outstanding unless it is a cancel. */
void uring_ring_name(struct uring_ring *r, struct io_uring_sqe *sqe, void *of, enum uring_op op);
/* Has the operation of that name completed soon. */
void uring_ring_cancel(struct uring_ring *r, void *of, enum uring_op op);

/* True when there is something to submit, or the kernel has work to do for us. */
bool uring_ring_due(const struct uring_ring *r);
/* True when nothing has completed either. */
bool uring_ring_quiet(const struct uring_ring *r);
/* Submits and lets the kernel work. */
void uring_ring_enter(struct uring_ring *r);
/* Also sleeps until something completes or the time is over. */
void uring_ring_wait(struct uring_ring *r, int ms);

/* The next completion, without a system call; false when there is none. */
bool uring_ring_next(struct uring_ring *r, struct io_uring_cqe *cqe);

/* A shared buffer with what was received, and its return to the kernel. */
const uint8_t *uring_ring_buffer(const struct uring_ring *r, const struct io_uring_cqe *cqe);
void uring_ring_give(struct uring_ring *r, const struct io_uring_cqe *cqe);
void uring_ring_receive(struct uring_ring *r, struct io_uring_sqe *sqe, int fd);

/* --- the engine and its connections ----------------------------------------------------------- */
struct uring_listener {
    const struct relay_listener *listener;
    bool armed;
    bool full; /* descriptors have run out: one connection at a time is accepted, or refused */
};

struct uring_conn {
    struct relay_conn *conn;
    LIST_ENTRY(uring_conn) others;
    LIST_ENTRY(uring_conn) in_held;
    int fd;
    enum uring_op receiving; /* URING_SHARED, URING_OWN, or 0 when no receive is under way */
    bool cancelled;          /* ... but is asked to end */
    bool own;                /* is to receive into its own block: in relay_engine.own */
    bool empty;              /* the last receive left nothing in the socket */
    bool sending;
    bool full;           /* the last send did not find room for everything */
    bool held;           /* in relay_engine.held */
    bool ending;         /* is closed as soon as nothing is under way */
    int error;           /* why: an errno, or 0 for ... */
    const char *why;     /* ... this */
    uint32_t small;      /* receives into its own block in a row that were small */
    size_t asked;        /* bytes of the send under way */
    uint64_t input_ns;   /* when it last sent to us */
    uint64_t sending_ns; /* when the send began that is under way */
    struct msghdr msg;
    struct iovec iov[URING_IOV_MAX];
};

struct relay_engine {
    struct uring_ring ring;
    struct relay_engine_config config;
    struct cw_relay_stats *stats;
    struct uring_listener listeners[RELAY_LISTENERS_MAX];
    LIST_HEAD(uring_conns, uring_conn) conns;
    struct uring_conns held;               /* not to be read from yet */
    struct uring_conn *own[URING_OWN_MAX]; /* NULL where free */
    struct relay_spare spare;
    int stop_fd;
    uint64_t stops; /* read from stop_fd */
    bool stopped;
    uint64_t now_ns;
    uint64_t active_ns; /* when something last completed */
    uint64_t tick_ns;
    uint64_t counted_ns;
    struct cw_spin spin;
};

/* Takes it over; without memory it is closed. */
void uring_conn_open(struct relay_engine *e, const struct relay_accepted *accepted);
/* The core has something for it, or is done with it. */
void uring_conn_serve(struct relay_engine *e, struct uring_conn *c);
void uring_conn_serve_ready(struct relay_engine *e);
/* Something of it completed; it may be freed. */
void uring_conn_complete(struct relay_engine *e, struct uring_conn *c, enum uring_op op,
                         const struct io_uring_cqe *cqe);
/* Begins or ends receives as the core wants them now. */
void uring_conn_receive(struct relay_engine *e, struct uring_conn *c);
/* Looks again at all that are held. */
void uring_conn_look_at_held(struct relay_engine *e);
/* Lets go of what a connection holds without need. */
void uring_conn_tick(struct relay_engine *e, struct uring_conn *c);
/* Closes it once nothing of it is under way; the caller cancels that. May free it. */
void uring_conn_abandon(struct relay_engine *e, struct uring_conn *c, const char *why);

#endif
