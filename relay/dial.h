/* Opens the links that a core wants: connects to the other relay, opens the session as the client,
 * and hands the connection, or why there is none, to the engine by a listener of its own. Each in a
 * thread, for all of that blocks; so one that nobody answers delays no other. */
#ifndef RELAY_DIAL_H
#define RELAY_DIAL_H

#include "relay/engine/engine.h"

#define DIAL_MS 12000           /* for one; the dispatcher waits a little longer, and hears why */
#define DIAL_TRIES 100          /* likewise; the other relay may not know of the job yet */
#define DIAL_PAUSE_MS 50        /* between two of them */
#define DIAL_SESSION_MS 5000    /* for an answer */
#define DIAL_RESUME_PAUSE_MS 20 /* after the first attempt to resume a session; doubled ... */
#define DIAL_RESUME_PAUSE_MAX_MS 500 /* ... up to this */

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
