/* The table of --stats. */
#ifndef DISPATCHER_STATS_H
#define DISPATCHER_STATS_H

#include "common/frame.h"

/* One row a rank, then the relay's; to stderr. `stats` has `ranks` entries. */
void stats_print(const struct cw_stats *stats, uint32_t ranks);

#endif
