/* What a node may say of a thing that it was ordered to start, by the thing's state: a table.
 * docs/protocol.md, "Nodes". Pure. */
#ifndef DISPATCHER_NODE_STATES_H
#define DISPATCHER_NODE_STATES_H

#include "common/err.h"

#include <stdint.h>

/* Of a process of a rank, a unit, a program that is sent, or a question. As the node tells it:
 * what it was told since may be on its way. */
enum node_state {
    NODE_IS_NOT,     /* nothing was ordered, or all was said of it */
    NODE_IS_ORDERED, /* the order was sent */
    NODE_IS_WANTED,  /* a program: its bytes are to come */
    NODE_IS_STARTED,
    NODE_IS_LISTENING, /* a unit */
    NODE_IS_ENDED,     /* likewise: it has ended, and is started again */
};

/* A frame from a node (enum node_frame) about a thing in *state, which becomes what it is after
 * that. Errors: CW_EPROTO: it may not come now, or at all; *state stays. */
int node_state_take(enum node_state *state, uint32_t type, struct cw_err *err);

#endif
