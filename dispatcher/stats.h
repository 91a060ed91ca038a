/* The table of --stats. */
#ifndef DISPATCHER_STATS_H
#define DISPATCHER_STATS_H

#include "common/frame.h"
#include "dispatcher/job.h"

/* One row a rank, then the relay's; to stderr. Both arrays have `ranks` entries. */
void stats_print(const struct cw_stats *stats, const struct job_rank *job_ranks, uint32_t ranks);

#endif
