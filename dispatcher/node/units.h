/* The units of a job on this node: its relays and its own checkpoint server, processes that are
 * started when they are ordered, kept running, and ended with the node. Each listens at a socket in
 * the node's directory, and for other hosts over TCP. */
#ifndef DISPATCHER_NODE_UNITS_H
#define DISPATCHER_NODE_UNITS_H

#include "common/loop.h"
#include "common/unit.h"
#include "dispatcher/node/group_memory.h"
#include "dispatcher/wire/node_frames.h"
#include "relay/process.h"

#include <sys/types.h>

struct units;

/* Everything borrowed. */
struct units_config {
    struct loop *loop;
    struct mux *mux;        /* where it is told what becomes of them */
    const char *dir;        /* for sockets */
    const uint8_t *job;     /* CW_ID_SIZE bytes; for the call */
    struct relay_kept kept; /* of the relay of NODE_UNIT_KEPT */
    struct group_memory *memory;
};

/* NULL with *err set: CW_ENOMEM. */
struct units *units_new(const struct units_config *config, struct cw_err *err);
/* Another dispatcher is told, what becomes of them: of each once it has ordered it, as if it had
 * been started then. */
void units_begin_again(struct units *units, struct mux *mux);
/* They end; waits for that, for a bounded time. NULL is allowed. */
void units_free(struct units *units);

/* NODE_UNIT_START, or NODE_UNIT_KILL: a drill, SIGKILL. Errors: CW_EPROTO: it makes no sense, or
 * was ordered before; CW_ENOMEM. */
int units_start(struct units *units, const uint8_t *body, size_t size, struct cw_err *err);
int units_kill(struct units *units, const uint8_t *body, size_t size, struct cw_err *err);

/* Whether this is one's process; it has ended, and the caller has waited for it. NULL is allowed.
 */
bool units_have(const struct units *units, pid_t pid);
void units_child_ended(struct units *units, pid_t pid, int status);

#endif
