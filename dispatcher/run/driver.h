/* One job from start to end: feeds the job core with what the parts of the dispatcher tell, and has
 * them do what it orders. */
#ifndef DISPATCHER_DRIVER_H
#define DISPATCHER_DRIVER_H

#include "dispatcher/options/options.h"

/* Runs the job and returns its exit code; says on stderr why it failed. */
int run_job(const struct run_options *options);

#endif
