/* The hosts of a Slurm allocation, from the variables that Slurm sets. Pure: no I/O. */
#ifndef DISPATCHER_SLURM_H
#define DISPATCHER_SLURM_H

#include "dispatcher/hosts/host_list.h"

#define SLURM_GROUPS_MAX 4 /* brackets in a name */

/* Adds the hosts of SLURM_JOB_NODELIST, as "node[01-03,07],x", with as many slots as
 * SLURM_TASKS_PER_NODE says, as "2(x3),1"; without it, their number is not said. SLURM_NNODES must
 * agree, if it is there. Without SLURM_JOB_NODELIST nothing is added. `get` is as getenv(3).
 * Errors: CW_EINVAL, naming the variable, its value and what was expected; CW_ENOMEM. */
int host_list_slurm(struct host_list *list, char *(*get)(const char *name), struct cw_err *err);

#endif
