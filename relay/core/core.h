/* The relay's core: mailboxes, matching, events. Pure: it makes no system call, reads no clock and
 * starts no thread. Bytes and times go in; bytes to write, and connections to close, come out.
 * Every engine, the trace tests and the simulator drive it through this file alone.
 *
 * Thread rule: one caller at a time for all functions of one core. */
#ifndef RELAY_CORE_H
#define RELAY_CORE_H

#include "common/frame.h"
#include "relay/core/block.h"

#include <stdint.h>
#include <sys/uio.h>

#define RELAY_JOBS_MAX 256
#define RELAY_MEMORY_MIN (16ull << 20)    /* a smaller memory_max leaves no room for a job */
#define RELAY_HANDSHAKE_NS 10000000000ull /* a connection must have said HELLO by then */
#define RELAY_REPLAY_AHEAD                                                                         \
    (256u << 10)                 /* bytes of a log queued at once for a rank that replays          \
                                  */
#define RELAY_CUT_MIN (8u << 10) /* bytes: fewer are not worth a frame of their own */
#define RELAY_CUT_HEADER (CW_FRAME_HEADER + CW_MESSAGE_SIZE)
#define RELAY_CUT_BACKLOG_MAX                                                                      \
    (8u << 20) /* bytes under way to a slow receiver before its sender waits */
#define RELAY_CUT_WAIT_NS                                                                          \
    50000000ull /* ... and how long the sender waits before we store instead */

struct relay_core;
struct relay_conn;

/* A link that a core wants: to relay `peer` of a job, as relay `self`. */
struct relay_dial {
    uint8_t job[CW_ID_SIZE];
    uint32_t self;
    uint32_t peer;
    uint8_t key[CW_KEY_SIZE];
    char address[CW_LINK_ADDRESS_MAX + 1];
};

/* Who opens them, session and all; the connection, or why there is none, comes back by
 * relay_conn_dialled. All zero: no links can be opened. */
struct relay_dialler {
    void *ctx;
    bool (*dial)(void *ctx, const struct relay_dial *dial); /* false: too many; does not block */
};

struct relay_dialled {
    uint8_t job[CW_ID_SIZE];
    uint32_t peer;
    struct cw_session session;
    char failure[CW_TEXT_MAX + 1]; /* empty: it is open */
};

struct relay_core_config {
    uint8_t key[CW_KEY_SIZE];   /* the relay key, see common/cred.h */
    uint64_t memory_max;        /* bytes of messages and blocks the core may hold */
    struct relay_supply supply; /* of blocks; its ctx outlives the core */
    struct relay_dialler dialler;
    uint64_t log_max; /* of them, in the logs of ranks: beyond it the largest is given up */
};

/* Returns NULL when there is no memory. */
struct relay_core *relay_core_new(const struct relay_core_config *config);

/* Closes and frees every connection and job. */
void relay_core_free(struct relay_core *core);

/* A connection was accepted; its CHALLENGE is queued. `nonce` is fresh random bytes. NULL when
 * there is no memory. The caller keeps `owner` there for itself (relay_conn_owner). */
struct relay_conn *relay_conn_open(struct relay_core *core, const uint8_t nonce[CW_NONCE_SIZE],
                                   uint64_t now_ns, void *owner);
/* Likewise for a connection that our dialler made. */
struct relay_conn *relay_conn_dialled(struct relay_core *core, const struct relay_dialled *dialled,
                                      uint64_t now_ns, void *owner);
void *relay_conn_owner(const struct relay_conn *conn);

/* The connection is gone (end of file, an error, or relay_conn_done was true); frees it. `why` is
 * for the dispatcher's eyes. */
void relay_conn_close(struct relay_conn *conn, const char *why);

/* Where the next bytes that arrive are to be put: at least one byte, valid until relay_conn_input
 * or relay_conn_close of this connection; they may be put there outside of the thread rule. Returns
 * 0, or CW_ENOMEM when the memory bound is reached (the job was told; close it).
 */
int relay_conn_space(struct relay_conn *conn, void **at, size_t *size);

/* Cut-through: bytes of a large message whose receive is posted may go from where they arrive
 * straight to the receiver, without a block between.
 *
 * How many of the bytes that arrive next should be read by relay_conn_space and relay_conn_input,
 * so that cut-through may begin behind them; 0: it will not soon. `peek` copies `size` bytes that
 * are there, `skip` bytes from the first of `there` ones. A hint: nothing relies on it. */
typedef void relay_peek(void *ctx, size_t skip, void *to, size_t size);
size_t relay_conn_before_cut(const struct relay_conn *conn, size_t there, relay_peek *peek,
                             void *ctx);

/* Where the next bytes may go; NULL: only to relay_conn_space. */
struct relay_conn *relay_conn_cut_to(struct relay_conn *conn);

struct relay_cut {
    uint32_t size;             /* bytes that are to go; 0: none can */
    struct relay_conn *to;     /* to where; NULL: not to the receiver any more */
    uint8_t *log;              /* where a log wants them too; NULL: nowhere */
    struct relay_block *block; /* of the log; its reference is the caller's */
};

/* `size` bytes are there, and the receiver has room for them and for RELAY_CUT_HEADER more. Queues
 * a frame's fixed part of so many bytes for the receiver, if nothing is queued there. The first
 * `cut.size` of them must follow it, unless its connection ends meanwhile, and in any case go to
 * the log; then relay_cut_done. */
struct relay_cut relay_conn_cut(struct relay_conn *conn, size_t size);
void relay_cut_done(struct relay_core *core, const struct relay_cut *cut);

/* What there was to write has been written as far as it could be: does what was put off until then,
 * no more than 256 KiB of copies into logs. May be called at any time, or never. */
void relay_core_settle(struct relay_core *core);

/* `size` bytes have been put there. Acts on every frame that is complete. 0: nothing has come; what
 * relay_conn_space took is given back when nothing waits in it. */
void relay_conn_input(struct relay_conn *conn, size_t size);

/* False while bytes that are already under way to a slow receiver should drain first. */
bool relay_conn_wants_input(struct relay_conn *conn, uint64_t now_ns);

/* Fills up to `max` vectors with what is to be written next; returns how many. They stay valid
 * until relay_conn_written, also outside of the thread rule. */
int relay_conn_output(struct relay_conn *conn, struct iovec *iov, int max);
/* Follows each relay_conn_output: so many bytes of it were written, perhaps none. */
void relay_conn_written(struct relay_conn *conn, size_t size);
bool relay_conn_has_output(const struct relay_conn *conn);

/* True when the connection is to be closed now: it was refused or has said BYE, and all is written.
 */
bool relay_conn_done(const struct relay_conn *conn);

/* The next connection that got output, or may have become done, since it was last returned; NULL
 * when there is none. */
struct relay_conn *relay_core_next_ready(struct relay_core *core);

/* Time passes: connections that have not said HELLO in time are marked done. */
void relay_core_tick(struct relay_core *core, uint64_t now_ns);

/* Counters; the engine adds its own. */
struct cw_relay_stats *relay_core_stats(struct relay_core *core);

#endif
