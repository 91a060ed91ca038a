/* What an agent may say of a thing that it was ordered to start, by the thing's state: a table.
 * docs/protocol.md, "Agents". Pure. */
#ifndef DISPATCHER_AGENT_STATES_H
#define DISPATCHER_AGENT_STATES_H

#include "common/err.h"

#include <stdint.h>

/* Of a process of a rank, a unit, a program that is sent, or a question. As the agent tells it:
 * what it was told since may be on its way. */
enum agent_state {
    AGENT_IS_NOT,     /* nothing was ordered, or all was said of it */
    AGENT_IS_ORDERED, /* the order was sent */
    AGENT_IS_WANTED,  /* a program: its bytes are to come */
    AGENT_IS_STARTED,
    AGENT_IS_LISTENING, /* a unit */
    AGENT_IS_ENDED,     /* likewise: it has ended, and is started again */
};

/* A frame from an agent (enum agent_frame) about a thing in *state, which becomes what it is after
 * that. Errors: CW_EPROTO: it may not come now, or at all; *state stays. */
int agent_state_take(enum agent_state *state, uint32_t type, struct cw_err *err);

#endif
