/* The table of --stats. */
#ifndef DISPATCHER_STATS_H
#define DISPATCHER_STATS_H

#include "common/frame.h"
#include "dispatcher/job/job.h"

#include <stdio.h>

/* One row a rank, then one a relay. The arrays have `ranks` entries; `homes`: each rank's relay;
 * NULL: there is one. */
void stats_print(FILE *to, const struct cw_stats *stats, const struct job_rank *job_ranks,
                 uint32_t ranks, const uint8_t *homes, uint32_t relays);

#endif
