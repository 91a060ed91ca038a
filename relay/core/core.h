/* The relay's core: mailboxes, matching, events. Pure: it makes no system call, reads no clock and
 * starts no thread. Bytes and times go in; bytes to write, and connections to close, come out.
 * Every engine, the trace tests and the simulator drive it through this file alone.
 *
 * Thread rule: one caller at a time for all functions of one core. */
#ifndef RELAY_CORE_H
#define RELAY_CORE_H

#include "relay/core/bounds.h"
#include "relay/core/requests.h"
#include "relay/log/commit.h"

#include <sys/uio.h>

struct relay_core;
struct relay_conn;

/* Memory for a copy of another relay's log: as config.ledger, with its region. */
struct relay_copy_memory {
    struct ledger_memory *memory; /* NULL: there is none */
    struct relay_region region;
};

struct relay_core_config {
    const uint8_t *key;         /* the relay key, see common/cred.h; outlives the core */
    uint64_t memory_max;        /* bytes the core may hold, but for the records of connections */
    struct relay_region region; /* for blocks; outlives the core */
    uint64_t log_memory;        /* of them, in the logs of ranks ... */
    uint64_t log_disk;          /* ... and on disk; when both are spent, a log is given up */
    struct ledger_memory
        *ledger; /* what outlives the process, with the region; NULL: nothing does */
    struct relay_journal journal; /* of that, where it is to survive more: the loss of power, or of
                                     the host (copies) */
    uint32_t incarnation;         /* of this relay in its job; 0: the first one */
    struct relay_copy_memory copies[CW_RELAYS_MAX]; /* of the relays of a job, by number */
    struct relay_channel channel;                   /* of which what ranks decide is part of that */
};

/* What came of the jobs of the relay whose place this one takes. */
struct relay_returned {
    uint32_t jobs;
    uint32_t sessions;
    uint32_t lost;             /* jobs that cannot go on ... */
    uint32_t unread;           /* ... since what was left of them cannot be read, now at least */
    char why[CW_TEXT_MAX + 1]; /* the last of them */
};

/* Returns NULL when there is no memory. */
struct relay_core *relay_core_new(const struct relay_core_config *config);

/* To be called first, where there is a ledger: takes up what was left there, and adds up what came
 * of it in *returned, which is zero at first. False: what relay_core_next_io asks for is to be
 * carried out, and then this is to be called again. */
bool relay_core_return(struct relay_core *core, struct relay_returned *returned);

/* Closes and frees every connection and job. */
void relay_core_free(struct relay_core *core);

/* A connection was accepted; its CHALLENGE is queued. `nonce` is fresh random bytes. Where too many
 * have not proven who they are, the oldest of them is refused. NULL when there is no memory. The
 * caller keeps `owner` there for itself (relay_conn_owner). */
struct relay_conn *relay_conn_open(struct relay_core *core, const uint8_t nonce[CW_NONCE_SIZE],
                                   uint64_t now_ns, void *owner);
/* A link that relay_core_next_dial asked for is open, session and all; else as relay_conn_open. */
struct relay_conn *relay_conn_dialled(struct relay_core *core, const struct relay_dialled *dialled,
                                      uint64_t now_ns, void *owner);
/* A link that was asked for cannot be opened, and `failure` says why. */
void relay_core_undialled(struct relay_core *core, const struct relay_dialled *dialled);
void *relay_conn_owner(const struct relay_conn *conn);

/* The connection is gone (end of file, an error, or relay_conn_done was true); frees it. `why` is
 * for the dispatcher's eyes. */
void relay_conn_close(struct relay_conn *conn, const char *why);

/* The connection broke, or relay_conn_done was true, and the engine forgets it: its session ends,
 * or is suspended until it is resumed over another connection. `unread`: `count` vectors of bytes
 * that were sent and that the other side has certainly not received, for they went through rings
 * and were not taken; copied. A negative count: the other side broke the rings, and the session
 * ends.
 */
void relay_conn_broken(struct relay_conn *conn, const char *why, const struct iovec *unread,
                       int count);

/* Whether something outlives the process. Then what has come through rings must stay there until
 * relay_conn_input has returned, but for the last relay_conn_held bytes: these were not acted on.
 */
bool relay_core_outlives(const struct relay_core *core);
size_t relay_conn_held(const struct relay_conn *conn);

/* Its bytes go through rings from now on: what was written need not be kept. Before the first byte
 * that came that way is given to relay_conn_input. */
void relay_conn_set_rings(struct relay_conn *conn);

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
size_t relay_conn_before_cut(const struct relay_conn *conn, size_t there, relay_peek *peek,
                             void *ctx);

/* Returns the receiver that can take payload directly, or NULL. */
struct relay_conn *relay_conn_cut_to(struct relay_conn *conn);

/* `size` bytes are there, and the receiver has room for them and for RELAY_CUT_HEADER more. Queues
 * a frame's fixed part of so many bytes for the receiver, if nothing is queued there. The first
 * `cut.size` of them must follow it, unless its connection ends meanwhile, and in any case go to
 * the log; then relay_cut_done. */
struct relay_cut relay_conn_cut(struct relay_conn *conn, size_t size);
void relay_cut_done(const struct relay_cut *cut);

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

/* True when the connection is to be closed now: it was refused or has said BYE, and all is written;
 * or it is to be broken. */
bool relay_conn_done(const struct relay_conn *conn);

/* The next connection that got output, or may have become done, since it was last returned; NULL
 * when there is none. */
struct relay_conn *relay_core_next_ready(struct relay_core *core);

/* The next link that is to be opened, or job whose links need not be opened any more; false: there
 * is none. To be asked after whatever may have caused one, and after relay_core_io_done. */
bool relay_core_next_dial(struct relay_core *core, struct relay_dial *dial);

/* What is to be written to the disk of the logs, or read from there, next; false: nothing. To be
 * asked after everything else. Each is followed by relay_core_io_done, in any order, unless the
 * core is freed before. */
bool relay_core_next_io(struct relay_core *core, struct relay_log_io *io);
void relay_core_io_done(struct relay_core *core, const struct relay_log_done *done);

/* Memory of the region that can go back to the system; false: none. To be asked now and then. */
bool relay_core_next_surplus(struct relay_core *core, struct relay_pages *pages);

/* Time passes: connections that have not said HELLO in time are marked done, sessions that were not
 * resumed in time are given up, and what was received is acknowledged. */
void relay_core_tick(struct relay_core *core, uint64_t now_ns);

/* How long to wait at most between two calls of it, in milliseconds. */
int relay_core_tick_ms(const struct relay_core *core);

/* How many jobs there are. */
uint32_t relay_core_jobs(const struct relay_core *core);

/* A dispatcher has asked what is covered (COVER): all that the ranks had said by now is to be read
 * first. So each connection with relay_conn_is_rank is to be read until nothing is there, and then
 * this is to be said. Not while one of them does not want input. */
bool relay_core_covers(const struct relay_core *core);
void relay_core_looked(struct relay_core *core);
bool relay_conn_is_rank(const struct relay_conn *conn);

/* Counters; the engine adds its own. */
struct cw_relay_stats *relay_core_stats(struct relay_core *core);

#endif
