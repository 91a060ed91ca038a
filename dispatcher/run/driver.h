/* One job from start to end: feeds the job core with what the parts of the dispatcher tell, and has
 * them do what it orders. */
#ifndef DISPATCHER_DRIVER_H
#define DISPATCHER_DRIVER_H

#include "dispatcher/options/options.h"
#include "dispatcher/state/state_file.h"

/* Runs the job and returns its exit code; says on stderr why it failed. `state`: of a dispatcher
 * before us, which is gone on with, and closed; NULL: the job is a new one. */
int run_job(const struct run_options *options, struct state_file *state);

#endif
