/* What the dispatcher tells of a job of several relays: where ranks are at home, and where the
 * other relays are. */
#ifndef RELAY_ROUTE_H
#define RELAY_ROUTE_H

#include "relay/core/job.h"

/* A ROUTE or LINK frame, with this body. Returns 0, CW_EPROTO (it does not add up) or CW_ENOMEM. */
int route_tell(struct relay_job *job, uint8_t type, const uint8_t *body, size_t size);

/* --- for who comes after us */
/* Takes up what was told before, of which the job's entry has saved the end. Returns 0, CW_ENOMEM,
 * or CW_EPROTO: it makes no sense. */
int route_return(struct relay_job *job, struct chain_end end);

#endif
