/* One job from start to end: the process around the job core. */
#ifndef DISPATCHER_RUN_H
#define DISPATCHER_RUN_H

#include "dispatcher/options.h"

/* Runs the job and returns its exit code; says on stderr why it failed. */
int run_job(const struct run_options *options);

#endif
