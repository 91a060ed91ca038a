/* Memory, and what logs may hold of it, are the relay's; each of its jobs has an equal share. While
 * there is room a job may hold more. When there is none, the job that holds the most gives way, not
 * the one that asks; unless it is the same, or nobody is beyond its share. */
#ifndef RELAY_SHARE_H
#define RELAY_SHARE_H

#include "relay/core/job.h"

/* As relay_memory wants it; ctx is a job_set. */
bool share_relieve(void *ctx, struct relay_pool *asker);
/* The logs have neither memory nor disk: gives up the largest of the job whose logs hold the most.
 * False: there is none. */
bool share_logs(struct job_set *set);

#endif
