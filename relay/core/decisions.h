/* What the ranks of this host decide in channel memory, copied from there into their logs: before
 * each commit, so that it is part of it whatever they did before, and others hear of behind it. So
 * the ranks can be started again where their host is lost with that memory, by what they decided
 * alone: what they had said to each other they say again. docs/protocol.md, "Channel memory". */
#ifndef RELAY_DECISIONS_H
#define RELAY_DECISIONS_H

#include "relay/core/job.h"

/* A memory of the core's, for decisions of all its jobs. */
void decisions_init(struct decisions *decisions, const struct relay_channel *channel);

/* Takes what the ranks of all jobs, or this one, have decided by now. A log for which there is no
 * memory, or that cannot be read, is given up. Nothing happens where there is no channel memory. */
void decisions_take_all(struct job_set *set);
void decisions_take(struct relay_mailbox *mailbox);

/* A job was taken up that another process of the relay has left, or a relay of another host:
 * whichever of its ranks was not in the memory that we have has lost its own. The first time that
 * this is found what they decided is cut to what goes together. Returns 0 or CW_ENOMEM. */
int decisions_return(struct relay_job *job);

#endif
