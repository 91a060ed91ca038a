/* What a dispatcher asks of the logs of ranks: to begin at a point. Done at once, or as soon as the
 * rank is not being handed its log; then it is answered. */
#ifndef RELAY_TRIM_H
#define RELAY_TRIM_H

#include "relay/core/job.h"

/* The image of this point of a rank that is at home here is safe. */
void trim_ask(struct relay_job *job, uint32_t rank, const struct cw_point *point);

/* Does what waited and can be done now. Returns whether there was anything. */
bool trim_settle(struct mailbox_shared *shared);

#endif
