/* The memory in which a relay keeps copies of other relays' logs: a file in memory for each relay
 * of the job, on descriptors that follow each other. It outlives the relay's process. */
#ifndef DISPATCHER_COPY_FDS_H
#define DISPATCHER_COPY_FDS_H

#include "common/err.h"

#include <stdint.h>

#define COPY_FDS_FIRST 64 /* where the search for so many free descriptors begins */

struct copy_fds {
    int first;
    uint32_t count; /* 0: none were made */
};

/* Empty files, which are the caller's. Errors: CW_ESYS; there is nothing to be closed. */
int copy_fds_make(struct copy_fds *fds, uint32_t count, struct cw_err *err);
void copy_fds_close(struct copy_fds *fds); /* zeroed is allowed */

/* Gives the file of this relay away, and puts an empty one in its place. Returns a descriptor.
 * Errors: CW_EINVAL: there is none for it; CW_ESYS. */
int copy_fds_take(struct copy_fds *fds, uint32_t relay, struct cw_err *err);

#endif
