/* The units of a job on this node: its relays and its own checkpoint server, processes that are
 * started when they are ordered, kept running, and ended with the node. Each listens at a socket in
 * the node's directory, and for other hosts over TCP. */
#ifndef DISPATCHER_NODE_UNITS_H
#define DISPATCHER_NODE_UNITS_H

#include "common/loop.h"
#include "common/unit.h"
#include "dispatcher/mux/agent_frames.h"
#include "relay/process.h"

#include <sys/types.h>

struct units;

/* What becomes of one, in the order of struct unit_ops. */
struct units_events {
    /* `place`: of a server its directory; of a relay its socket. */
    void (*started)(void *ctx, uint32_t number, pid_t pid, const char *place);
    /* `tcp`: "": it does not listen there. `in_memory`: what it keeps is. */
    void (*listens)(void *ctx, uint32_t number, const char *local, const char *tcp, bool in_memory);
    void (*ended)(void *ctx, uint32_t number, int status, const char *why);
    void (*failed)(void *ctx, uint32_t number, int status, const struct cw_err *err);
    /* The host that it was on is lost. */
    void (*lost)(void *ctx, uint32_t number, const struct cw_err *err);
};

/* Everything borrowed. */
struct units_config {
    struct loop *loop;
    const char *dir;    /* for sockets */
    const uint8_t *job; /* CW_ID_SIZE bytes; for the call */
    const struct units_events *events;
    void *ctx;
};

/* NULL with *err set: CW_ENOMEM. */
struct units *units_new(const struct units_config *config, struct cw_err *err);
/* They end; waits for that, for a bounded time. NULL is allowed. */
void units_free(struct units *units);

/* Starts one. `kept`: what outlives also this process, taken over; NULL: nothing. Errors:
 * CW_EPROTO: it was ordered before; CW_ENOMEM. */
int units_start(struct units *units, const struct agent_unit *order, const struct relay_kept *kept,
                struct cw_err *err);

/* A drill: SIGKILL. */
void units_kill(struct units *units, uint32_t number);

/* Whether this is one's process; it has ended, and the caller has waited for it. NULL is allowed.
 */
bool units_have(const struct units *units, pid_t pid);
bool units_child_ended(struct units *units, pid_t pid, int status);

/* Waits for those that have ended until now. NULL is allowed. */
void units_reap(struct units *units);

#endif
