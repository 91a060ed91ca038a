/* Jobs that nodes on this host go on with alone, and of whose state they have a copy. */
#ifndef DISPATCHER_HELD_JOBS_H
#define DISPATCHER_HELD_JOBS_H

#include "common/err.h"

#include <limits.h>
#include <stdbool.h>

/* Whether it is to be found here, and not a directory of --job-dir. */
bool held_jobs_names(const char *job);

/* Finds the one whose identifier begins with `job`, or "-": the only one. `dir` gets where its
 * state is. Errors: CW_ENOTFOUND; CW_EINVAL: there are several; CW_EBUSY: its dispatcher lives;
 * CW_ESYS. */
int held_jobs_find(const char *job, char dir[PATH_MAX], struct cw_err *err);

#endif
