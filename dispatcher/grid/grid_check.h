/* Whether a grid as a whole can have jobs. Pure: no I/O. */
#ifndef DISPATCHER_GRID_CHECK_H
#define DISPATCHER_GRID_CHECK_H

#include "dispatcher/grid/grid.h"

/* Error: CW_EINVAL: it has no slot for a rank, or more than HOSTS_MAX hosts; or two sites, which
 * are named with their lines, cannot reach each other in either direction. */
int grid_check(const struct grid *grid, struct cw_err *err);

#endif
