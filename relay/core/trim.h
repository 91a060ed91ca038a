/* What a dispatcher asks of the logs of ranks: to begin at a point. Done at once, or as soon as the
 * rank is not being handed its log; then it is answered. */
#ifndef RELAY_TRIM_H
#define RELAY_TRIM_H

#include "relay/core/job.h"

/* Tells the dispatcher how much is kept of this rank. */
void trim_tell_bytes(const struct relay_mailbox *mailbox);

/* The image of this point of a rank that is at home here is safe. */
void trim_ask(struct relay_job *job, uint32_t rank, const struct cw_point *point);

/* Does what waited and can be done now, and tells dispatchers of logs that have grown. Returns
 * whether a log was trimmed, or may have been. */
bool trim_settle(struct mailbox_shared *shared);

/* Whether the logs have no room, and an image is on its way that would make some: meanwhile ranks
 * that add to them wait, for so long at most. [MPICH-V] 3.2 and 3.4: a checkpoint lets go of what
 * is logged.  A rank that was asked for one goes on: it has to come to its point. */
bool trim_is_awaited(struct mailbox_shared *shared, uint64_t now_ns);
/* The logs have no room, and no image may come that would make some: one is to be given up. */
bool trim_is_hopeless(const struct mailbox_shared *shared);

#endif
