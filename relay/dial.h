/* Opens the links that a core wants: connects to the other relay, opens the session as the client,
 * and hands the connection to the engine by a listener of its own. In a thread, for both block. */
#ifndef RELAY_DIAL_H
#define RELAY_DIAL_H

#include "relay/engine/engine.h"

#define DIAL_QUEUE_MAX 64    /* links waiting to be opened */
#define DIAL_TRIES 100       /* for one; the other relay may not know of the job yet */
#define DIAL_PAUSE_MS 50     /* between two of them */
#define DIAL_SESSION_MS 5000 /* for an answer */

struct dial;

/* NULL with *err set: CW_ESYS, CW_ENOMEM. */
struct dial *dial_open(struct cw_err *err);
/* The engine is closed. */
void dial_close(struct dial *dial);

/* To be given to an engine beside the others; belongs to the dial. */
struct relay_listener dial_listener(const struct dial *dial);
/* To be given to a core. Any thread. */
struct relay_dialler dial_dialler(struct dial *dial);

#endif
