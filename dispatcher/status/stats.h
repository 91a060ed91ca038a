/* The table of --stats. */
#ifndef DISPATCHER_STATS_H
#define DISPATCHER_STATS_H

#include "common/frame.h"
#include "dispatcher/job/job.h"
#include "dispatcher/options/options.h"

#include <stdio.h>

/* One row a rank, then one a relay. Both arrays have options->ranks entries. */
void stats_print(FILE *to, const struct cw_stats *stats, const struct job_rank *job_ranks,
                 const struct run_options *options);

#endif
