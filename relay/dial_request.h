/* What a core wants of a link, as a request to open a session, and what came of it, as the core is
 * told. Pure. */
#ifndef RELAY_DIAL_REQUEST_H
#define RELAY_DIAL_REQUEST_H

#include "common/dial.h"
#include "relay/core/core.h"

#define DIAL_MS 12000           /* for one; the dispatcher waits a little longer, and hears why */
#define DIAL_TRIES 100          /* likewise; the other relay may not know of the job yet */
#define DIAL_PAUSE_MS 50        /* between two of them */
#define DIAL_SESSION_MS 5000    /* for an answer */
#define DIAL_RESUME_PAUSE_MS 20 /* after the first attempt to resume a session; doubled ... */
#define DIAL_RESUME_PAUSE_MAX_MS 500 /* ... up to this */

/* With a copy of the link's key, which the caller wipes. */
void dial_request_of(struct cw_dial_request *request, const struct relay_dial *what);
struct relay_dialled dial_outcome_of(const struct cw_dial_result *result);

#endif
