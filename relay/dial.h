/* Opens the links that a core wants: connects to the other relay, opens the session as the client,
 * and hands the connection, or why there is none, to the engine by a listener of its own. Each in a
 * thread, for all of that blocks; so one that nobody answers delays no other. */
#ifndef RELAY_DIAL_H
#define RELAY_DIAL_H

#include "relay/engine/engine.h"

struct dial;

/* NULL with *err set: CW_ESYS, CW_ENOMEM. */
struct dial *dial_open(struct cw_err *err);
/* The engine is closed, and the core freed. */
void dial_close(struct dial *dial);

/* To be given to an engine beside the others; belongs to the dial. */
struct relay_listener dial_listener(const struct dial *dial);
/* To be given to the same engine. Any thread. */
struct relay_dialler dial_dialler(struct dial *dial);

#endif
