/* The directory of one job: private, locked while its dispatcher lives. What a killed dispatcher
 * left is removed by the next start. */
#ifndef DISPATCHER_RUNDIR_H
#define DISPATCHER_RUNDIR_H

#include "common/err.h"

#include <stddef.h>

#define RUNDIR_MAX 80 /* bytes, so that a socket's path in it fits */

struct rundir {
    char path[RUNDIR_MAX];
    int lock_fd;
    int fd; /* of itself; -1: it has none */
};

#define RUNDIR_PLACES_MAX 2
#define RUNDIR_PREFIX_SIZE 40

/* Where it is made. Not to be freed. */
const char *rundir_base(void);

/* Where they are made, in whatever environment, and how the names of this user's begin. Returns how
 * many places there are. */
int rundir_places(char places[RUNDIR_PLACES_MAX][RUNDIR_MAX]);
void rundir_prefix(char prefix[RUNDIR_PREFIX_SIZE]);

/* Errors: CW_ESYS, naming the directory. */
int rundir_make(struct rundir *dir, struct cw_err *err);

/* Puts a symbolic link to `target` into the directory, whose path (`size` bytes) is one that
 * device_path_is_plain. Errors: CW_ESYS. */
int rundir_link(const struct rundir *dir, const char *target, char *path, size_t size,
                struct cw_err *err);

/* Removes the one of this path, if it was left by a process that was killed. */
void rundir_remove_left(const char *path);

/* Removes the directory and all files in it. */
void rundir_remove(struct rundir *dir);

#endif
