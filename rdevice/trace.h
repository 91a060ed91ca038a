/* For those who look for what a program does not repeat. With CAUSEWAY_TRACE=DIR in its environment
 * a rank writes each operation, with the call stack, to DIR/rank.R.N (N: its incarnation), and
 * incarnation N compares what it repeats with what N - 1 did. Differences go to
 * DIR/rank.R.N.difference as text. docs/operations.md, "Restarts". Without the variable nothing
 * is done. The files are for the same librdevice.so and program alone.
 *
 * Below all other files of the device: the binding (ucp.c) says what happens. For the thread that
 * calls MPI. */
#ifndef RDEVICE_TRACE_H
#define RDEVICE_TRACE_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum trace_kind {
    TRACE_NONE, /* behind the last operation of a trace */
    TRACE_SEND,
    TRACE_RECEIVE,
    TRACE_CANCEL,
    TRACE_PROBE, /* that found a message */
    TRACE_EVENT, /* taken */
    TRACE_KINDS
};

struct trace_operation {
    uint32_t kind;
    uint32_t peer;    /* of a send: to which rank; else 0 */
    uint64_t tag;     /* of an active message: its handler */
    uint64_t size;    /* bytes: of the message, or of the room for it */
    uint64_t address; /* of its first piece */
    uint64_t polls;   /* the poll clock */
    uint64_t acts;    /* made so far */
};

extern bool trace_on;
extern bool trace_repeating; /* the rank repeats what an earlier incarnation did, else it is live */

/* When the rank knows who it is. Returns -1, with `err`, when the files cannot be made. */
int trace_begin(uint32_t rank, uint32_t incarnation, struct cw_err *err);

/* Only where trace_on. `pieces`: the message, where it is known; else count 0. */
void trace_add(const struct trace_operation *operation, const struct iovec *pieces, int count);

/* The process ends with an error, as `text` says: if it repeats, what comes next in the earlier
 * trace is said, too. */
void trace_end(const char *text);

#endif
