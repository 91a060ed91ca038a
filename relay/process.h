/* What is handed down to the process of a relay, by those who start one. */
#ifndef RELAY_PROCESS_H
#define RELAY_PROCESS_H

#include "common/err.h"

/* What outlives it, and is there for the next one; -1: it was not made yet, or could not be made.
 */
struct relay_kept {
    int state_fd; /* an empty file in memory, for the relay's use */
    int disk_fd;  /* of disk_make_file() */
};

/* Makes what was not made yet; `log_dir` is NULL where the logs have no disk. Where the file cannot
 * be made, the relay says why: it tries as well. All of it is the caller's. Errors: CW_ESYS. */
int relay_kept_make(struct relay_kept *kept, const char *log_dir, struct cw_err *err);
/* Likewise, of one that goes on from a copy of its log, which is in this file in memory. */
void relay_kept_take(struct relay_kept *kept, int state_fd, const char *log_dir);
void relay_kept_close(struct relay_kept *kept);

#endif
