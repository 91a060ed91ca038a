/* What is left to be done once no rank of a job runs any more. */
#ifndef DISPATCHER_FINISH_H
#define DISPATCHER_FINISH_H

#include "dispatcher/run/parts.h"

/* The last output of ranks, whose processes have ended. Turns the loop while nobody reads our
 * outputs; for a bounded time only once the job is hurried, and for pipes that are still open.
 * False: some is lost, for nobody took it. */
bool finish_output(struct parts *parts);

/* The relays' counters with --stats, and that relays are told of the end. Turns the loop, but for
 * what is printed for a bounded time. */
void finish_parts(struct parts *parts);

/* Our own lines on stderr, as finish_output. */
void finish_own_lines(struct parts *parts);

#endif
