/* The directory of one job: private, locked while its dispatcher lives. What a killed dispatcher
 * left is removed by the next start. */
#ifndef DISPATCHER_RUNDIR_H
#define DISPATCHER_RUNDIR_H

#include "common/err.h"

#define RUNDIR_MAX 80 /* bytes, so that a socket's path in it fits */

struct rundir {
    char path[RUNDIR_MAX];
    int lock_fd;
};

/* Errors: CW_ESYS, naming the directory. */
int rundir_make(struct rundir *dir, struct cw_err *err);

/* Removes the directory and all files in it. */
void rundir_remove(struct rundir *dir);

#endif
