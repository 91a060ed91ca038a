/* Where a job's own checkpoint server keeps images: on a disk rather than in memory, which images
 * are to spare. */
#ifndef DISPATCHER_IMAGE_DIR_H
#define DISPATCHER_IMAGE_DIR_H

#include "common/err.h"
#include "common/frame.h"

#include <stdbool.h>
#include <stdint.h>

#define IMAGE_DIR_MAX 256 /* bytes of its path */

struct image_dir {
    char path[IMAGE_DIR_MAX];
    bool chosen;    /* by us: it is made by the server, and goes with it */
    bool missing;   /* it was not there */
    bool in_memory; /* its file system is */
    /* for all that is there, bytes: what others have there, and half of what is free or ours */
    uint64_t bytes_max;
    char job[2 * CW_ID_SIZE + 1]; /* whose images are in a directory of this name below */
    bool keeps;                   /* they are to be there for a dispatcher after us */
    int held_fd;                  /* locked while we live; -1: it is not */
};

/* Whether image_dir_choose would find a place on this machine. Changes nothing. */
int image_dir_check(const char *wanted, struct cw_err *err);

/* `wanted` is the user's; NULL: a name that is not taken yet is chosen. What jobs have left there
 * whose dispatchers do not live any more is removed. Makes nothing. `job`: CW_ID_SIZE bytes.
 * `keeps`: the images outlive us; who has the directory keeps others out. Errors: CW_EINVAL. */
int image_dir_choose(struct image_dir *dir, const char *wanted, const uint8_t *job, bool keeps,
                     struct cw_err *err);

/* The server has made it: no other start takes it away from now on, or in a directory of the user's
 * the images of this job, whatever becomes of the server. */
void image_dir_hold(struct image_dir *dir);

/* Our server has ended. Removes what it has left if it was killed: a directory that was chosen; of
 * another one the images of our job, and that itself if it was not there before and is empty. */
void image_dir_remove(struct image_dir *dir);

#endif
