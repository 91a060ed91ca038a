/* Where a job's own checkpoint server keeps images: on a disk rather than in memory, which images
 * are to spare. */
#ifndef DISPATCHER_IMAGE_DIR_H
#define DISPATCHER_IMAGE_DIR_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

#define IMAGE_DIR_MAX 256 /* bytes of its path */

struct image_dir {
    char path[IMAGE_DIR_MAX];
    bool chosen;       /* by us: it is made by the server, and goes with it */
    bool missing;      /* it was not there */
    bool in_memory;    /* its file system is */
    uint64_t free_max; /* half of what is free there, bytes */
    int held_fd;       /* locked while we live; -1: it is not */
};

/* `wanted` is the user's; NULL: a name that is not taken yet is chosen, and directories that jobs
 * have left there are removed: those that nobody holds. Makes nothing. Errors: CW_EINVAL. */
int image_dir_choose(struct image_dir *dir, const char *wanted, struct cw_err *err);

/* The server has made it: no other start takes it away from now on, whatever becomes of the server.
 */
void image_dir_hold(struct image_dir *dir);

/* Removes what a server that was killed has left: a directory that was chosen, and any other one
 * that was not there before and is empty. */
void image_dir_remove(struct image_dir *dir);

#endif
