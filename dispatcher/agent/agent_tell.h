/* What an agent tells the dispatcher, outside of streams. */
#ifndef DISPATCHER_AGENT_TELL_H
#define DISPATCHER_AGENT_TELL_H

#include "dispatcher/mux/agent_frames.h"

/* Sends an event (struct agent_event) of this type. What cannot be told ends the session: mux_input
 * says so. */
void agent_tell(struct mux *mux, uint32_t type, uint32_t of, uint32_t value, const char *text);

#endif
