/* A connection of the relay: its session, what waits to be written, what was read and not acted on
 * yet. It ends by itself when it is refused or has no memory; it only marks why then, and whoever
 * drives it looks for such marks (conn_next_ended) and tells those concerned. */
#ifndef RELAY_CONN_H
#define RELAY_CONN_H

#include "common/stranger.h"
#include "relay/core/bounds.h"
#include "relay/core/out.h"

#include <sys/queue.h>

#define CONN_NOBODY UINT32_MAX /* no rank's number */

struct relay_conn;

/* What a connection has before it has proven who it is: room for one frame each way, and for
 * REFUSED, in its own record. A process without a key takes no memory from jobs. */
struct hello_buffer {
    bool outside;     /* the connection has not been let in */
    uint32_t queued;  /* bytes of `out` ... */
    uint32_t written; /* ... and how many of them have left */
    uint8_t in[CW_FRAME_HEADER + CW_HELLO_SIZE];
    uint8_t
        out[CW_FRAME_HEADER + CW_CHALLENGE_SIZE + CW_FRAME_HEADER + CW_NOTICE_SIZE + CW_TEXT_MAX];
};

TAILQ_HEAD(conn_queue, relay_conn);

/* All connections of a core. */
struct conn_set {
    struct relay_core *core; /* whose they are; not looked into here */
    struct relay_pool *pool; /* that pays for those which belong to no job */
    struct log_store *store; /* of logs, and of what is queued and outlives the process */
    struct cw_relay_stats *stats;
    LIST_HEAD(, relay_conn) all;
    struct conn_queue ready;
    struct relay_conn *ended; /* marked, the last one first */
    struct cw_strangers strangers;
};

enum conn_state {
    CONN_NEW = 1,        /* CHALLENGE sent */
    CONN_RANK = 2,       /* WELCOME sent, or LIVE received */
    CONN_DISPATCHER = 4, /* WELCOME sent */
    CONN_REPEATING = 8,  /* WELCOME sent: the rank repeats what an earlier incarnation did */
    CONN_LINK = 32,      /* another relay of the job */
    CONN_CLOSING = 16,   /* REFUSED or FAREWELL sent: nothing more is read */
    CONN_COPY = 64,      /* another relay, of whose log a copy is kept here */
    CONN_COPIED = 128,   /* another relay, which keeps a copy of our log */
};

/* Why a connection ended by itself. */
enum conn_ended { CONN_NOT_ENDED, CONN_REFUSED, CONN_NO_MEMORY, CONN_LOST };

struct relay_conn {
    struct conn_set *set;
    void *owner; /* the engine's */
    struct hello_buffer hello;
    LIST_ENTRY(relay_conn) of_set;
    TAILQ_ENTRY(relay_conn) in_ready;
    bool is_ready;
    enum conn_state state;
    uint64_t opened_ns;
    struct cw_stranger stranger;
    struct cw_session session;
    struct out_queue out;
    bool writing;         /* the engine holds what conn_output gave it: */
    uint32_t written;     /* so many pieces ... */
    uint64_t acked_early; /* an ACK of bytes that the engine holds, and may have sent; 0: none */
    bool discarded;       /* ... and lets go of all that is queued, once it does not */
    bool rings;           /* its bytes go through rings, which keep what is not taken */
    bool lent;            /* the engine may be reading into its block */

    /* the session outlives the connection */
    bool broken;           /* the engine is to end the connection, as if it had broken */
    bool suspended;        /* there is no connection, nor an owner */
    uint64_t suspended_ns; /* 0: since before the next tick */
    bool owes_ack;         /* something but ACK was received since the last one was sent */

    struct ledger_entry entry;             /* of the session, where it outlives the process */
    uint32_t hello_noted[COMMITS_OUT_MAX]; /* bytes queued there that are part of commits: out.h */
    uint32_t hello_stable;
    uint64_t acted_noted[COMMITS_OUT_MAX]; /* likewise, how much of the other side's stream was
                                              acted on */
    uint64_t acted_stable;
    uint64_t anew; /* it did, and our stream began anew at this position: an opener that has
                      received less does not know it yet */

    /* whom it speaks for; not looked into here */
    struct relay_job *job;
    struct relay_rank *rank;
    uint32_t rank_number;    /* CONN_NOBODY: of none */
    uint32_t peer;           /* CONN_LINK: the other relay's number */
    struct transfer *source; /* whose payload is that of the frame at hand */

    /* how it ended */
    struct relay_conn *next_ended;
    enum conn_ended ended; /* marked, and not looked at yet */
    bool told;             /* those concerned know that it ends, or need not know */
    char why[CW_TEXT_MAX + 1];

    /* input */
    struct relay_block *block; /* NULL while nothing is read */
    uint32_t start;            /* of bytes not yet acted on */
    uint32_t end;
    uint32_t payload_left; /* of the frame at hand, still to come */
};

void conn_set_init(struct conn_set *set, struct relay_core *core, struct relay_pool *pool,
                   struct cw_relay_stats *stats);

/* A connection of the set, on which nothing has been said. NULL without memory. */
struct relay_conn *conn_new(struct conn_set *set, uint64_t now_ns, void *owner);
void conn_free(struct relay_conn *conn);
/* Frees it, and drops its mark. */
void conn_forget(struct relay_conn *conn);
/* It has proven who it is: from now on what it takes is of the job's pool. Its stream begins.
 * `keeps`: the session may be resumed. */
void conn_join(struct relay_conn *conn, struct relay_job *job, struct relay_pool *pool, bool keeps);

/* --- a session that outlives its connection */
/* The engine moves its bytes through rings from now on. */
void conn_set_rings(struct relay_conn *conn);
/* The engine is to end the connection; the session stays. */
void conn_break(struct relay_conn *conn);
/* There is no connection any more. `unread`: bytes sent through rings that the other side has not
 * taken. Returns 0, or CW_ENOMEM: it cannot be resumed. */
int conn_suspend(struct relay_conn *conn, const struct iovec *unread, int count);
/* The suspended session `old` goes on over this connection, whose handshake is done; the other side
 * has received `received` bytes of its stream. Returns whether it does: not when that is hostile,
 * and then nothing is changed. `old` is freed. */
bool conn_resume(struct relay_conn *conn, struct relay_conn *old, uint64_t received);

/* The session outlives the process from now on; `out`: with what is queued on it. False: it cannot,
 * and has ended. */
bool conn_outlive(struct relay_conn *conn, bool out, void (*save)(const void *conn, void *body));

/* --- frames out */
/* Queues a frame with this body; false without memory (the connection has ended then). */
bool conn_frame(struct relay_conn *conn, uint8_t type, const void *body, size_t size);
/* Queues a frame with a fixed part, which the caller fills, and `size` bytes of payload at `at`, in
 * `block` or, when that is NULL, elsewhere. NULL without memory. */
uint8_t *conn_data_frame(struct relay_conn *conn, uint8_t type, size_t fixed, const uint8_t *at,
                         uint32_t size, struct relay_block *block);
/* Queues the fixed part of a frame whose `size` bytes of payload the engine writes behind it. NULL
 * as above. */
uint8_t *conn_frame_of(struct relay_conn *conn, uint8_t type, size_t fixed, uint32_t size);
/* REFUSED or NOTICE. */
void conn_notice(struct relay_conn *conn, uint8_t type, const struct cw_notice_body *notice);
/* ACK. */
void conn_ack(struct relay_conn *conn);

/* --- its end */
/* Nothing more is read or, but for what is queued, written. Marks nothing. */
void conn_end(struct relay_conn *conn);
/* What is queued is not written any more. */
void conn_discard(struct relay_conn *conn);
/* Sends REFUSED, ends it, and marks it with this text. */
void conn_refuse(struct relay_conn *conn, uint32_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Ends it at once, and marks it with a text that says what the memory is held by. */
void conn_out_of_memory(struct relay_conn *conn, const char *doing);
/* Nobody will resume its session: marks it, if that is suspended. */
void conn_lose(struct relay_conn *conn);
/* A connection with a mark, which it loses; `ended` and `why` stay. NULL: there is none. */
struct relay_conn *conn_next_ended(struct conn_set *set);

/* --- what the engine does with it: as the functions of core.h say */
void conn_ready(struct relay_conn *conn);
struct relay_conn *conn_next_ready(struct conn_set *set);
int conn_space(struct relay_conn *conn, void **at, size_t *size);
int conn_output(struct relay_conn *conn, struct iovec *iov, int max);
void conn_written(struct relay_conn *conn, size_t size);
/* How much of the other side's stream was acted on. */
static inline uint64_t conn_acted(const struct relay_conn *conn)
{
    return conn->session.received - (conn->end - conn->start);
}
/* The other side has received all before `position` of our stream. It can say so before the engine
 * does. False: it acknowledges what was not sent. */
bool conn_acknowledge(struct relay_conn *conn, uint64_t position);
#define CONN_ACK_REFUSED "ACK of what was not sent"
/* It is lost when our host is: where copies are what survives, it need not wait for them. */
static inline bool conn_is_inside(const struct relay_conn *conn)
{
    return conn->rank_number != CONN_NOBODY && conn->set->store->commit.copies;
}
/* Whether what it says is held back until it survives the loss of power, or of our host. */
static inline bool conn_is_held(const struct relay_conn *conn)
{
    return conn->entry.ledger && commit_holds(&conn->set->store->commit) && !conn_is_inside(conn);
}
/* How much of the other side's stream was acted on can be told. */
static inline bool conn_may_tell_acted(const struct relay_conn *conn)
{
    return !conn_is_held(conn) || conn->acted_stable == conn_acted(conn);
}
/* Bytes that are queued before it has proved its key and have not left. */
static inline uint32_t conn_hello_left(const struct relay_conn *conn)
{
    return conn->hello.queued - conn->hello.written;
}
static inline bool conn_has_output(const struct relay_conn *conn)
{
    bool held = conn_is_held(conn);

    if (conn->broken)
        return false;
    if (conn_hello_left(conn) > 0)
        return !held || conn->hello_stable == conn->hello.queued;
    return held ? out_stable(&conn->out) > 0 : conn->out.bytes > 0;
}
/* What is queued on all of them is part of this commit; which has ended, or there will be none. */
void conn_set_note(struct conn_set *set, uint64_t commit);
void conn_set_free(struct conn_set *set, uint64_t commit);
/* Nothing is held back any more. */
void conn_set_release(struct conn_set *set);
static inline bool conn_done(const struct relay_conn *conn)
{
    return conn->broken ||
           (conn->state == CONN_CLOSING && conn_hello_left(conn) == 0 && conn->out.bytes == 0);
}

/* --- input */
/* The bytes that are not acted on yet. */
static inline const uint8_t *conn_input(const struct relay_conn *conn)
{
    return (conn->hello.outside ? conn->hello.in : conn->block->bytes) + conn->start;
}
/* `size` more bytes are where conn_space said. */
void conn_arrived(struct relay_conn *conn, size_t size);
/* Takes what is here of the payload of the frame at hand; returns how many bytes, from where
 * conn_input was. */
static inline uint32_t conn_take(struct relay_conn *conn)
{
    uint32_t there = conn->end - conn->start;
    uint32_t size = there < conn->payload_left ? there : conn->payload_left;

    conn->payload_left -= size;
    conn->start += size;
    return size;
}
/* All that could be acted on was: an idle connection holds no block. */
void conn_input_done(struct relay_conn *conn);

/* --- strangers */
/* Refuses the one that came first, where there is no room for one more. A rank that is expected
 * never has to go: there is a place for each of the `ranks`. */
void conn_make_room(struct conn_set *set, uint32_t ranks);

#endif
