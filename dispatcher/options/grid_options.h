/* What `causeway run -f` takes from a grid file, in place of other options, and options of grids.
 */
#ifndef DISPATCHER_GRID_OPTIONS_H
#define DISPATCHER_GRID_OPTIONS_H

#include "dispatcher/options/options.h"

/* Where ranks of lost hosts are started again: "site" or "grid". Errors: CW_EINVAL. */
int grid_options_take_restart_at(struct run_options *options, const char *value,
                                 struct cw_err *err);

/* As --host and --launcher-args would say it: the hosts, and how they are reached. Errors: of
 * grid_job_open and grid_job_keep_logs_at; CW_EINVAL: an option that says the same was given,
 * too. */
int grid_options_take(struct run_options *options, struct cw_err *err);

#endif
