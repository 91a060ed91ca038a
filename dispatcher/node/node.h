/* The process `causeway node`: what a job has at one host. It is started by the dispatcher, over
 * ssh or the like, and speaks to it over its standard streams (docs/protocol.md, "Nodes"); when
 * that connection breaks, over another one that comes to the socket in its directory. Without the
 * dispatcher it ends itself, and all that it has started. */
#ifndef DISPATCHER_NODE_H
#define DISPATCHER_NODE_H

#include "common/err.h"
#include "relay/process.h"

#include <jansson.h>
#include <stdbool.h>

#define NODE_SOCKET "node"               /* in its directory */
#define NODE_OPEN_NS 60000000000ull      /* for the dispatcher to say what job it is */
#define NODE_PERIOD_MAX_NS 1000000000ull /* between two signs of life */
#define NODE_PERIODS 4u                  /* of these in the time of silence */

/* What this host answers to a question (NODE_ASK); the caller's. It may take its time: whoever
 * asks waits. NULL with *err set: why there is no answer. */
typedef json_t *node_answer(const json_t *request, struct cw_err *err);

/* What the dispatcher of this machine hands down; -1: nothing. */
struct node_kept {
    int keep_fd;           /* open as long as a process of a rank may live */
    struct relay_kept log; /* of NODE_UNIT_KEPT */
};

/* Runs until the job is over, or nobody asks any more, or the node is told to end. `kept`: it was
 * started by the dispatcher itself, and ends with that connection; NULL: it was not. Errors: of
 * every kind, before it serves a job. */
int node_run(const struct node_kept *kept, node_answer *answer, struct cw_err *err);

#endif
