/* The files of a relay's log that outlives its dispatcher too, though not the kernel: what memory
 * in no file is for other relays. */
#ifndef DISPATCHER_KEPT_LOG_H
#define DISPATCHER_KEPT_LOG_H

#include <stdbool.h>

#define KEPT_LOG_DIR "relay.0" /* of the directory of a job */
#define KEPT_LOG_WAIT_MS 15000

/* Makes them in the directory `dir` of a job, or opens those that are there; the descriptors are
 * the caller's. Waits for a relay that is just ending, at most KEPT_LOG_WAIT_MS. Errors: -1 with
 * errno set. */
int kept_log_open(int dir, bool make, int *memory_fd, int *disk_fd);

#endif
