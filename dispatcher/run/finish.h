/* What is left to be done once no rank of a job runs any more. */
#ifndef DISPATCHER_FINISH_H
#define DISPATCHER_FINISH_H

#include "dispatcher/run/parts.h"

/* The last output, the relays' counters with --stats, and that relays are told of the end. Turns
 * the loop, for a bounded time. */
void finish_parts(struct parts *parts);

#endif
