/* The embedded relay: a child process that ends with its dispatcher. */
#ifndef DISPATCHER_RELAY_CHILD_H
#define DISPATCHER_RELAY_CHILD_H

#include "common/frame.h"
#include "relay/options.h"

#include <sys/types.h>

#define RELAY_CHILD_READY_NS 60000000000ull /* --log-reserve takes its time */

/* What outlives the relay's process, and is there for the next one; -1: it was not made yet, or
 * could not be made. */
struct relay_child_kept {
    int state_fd; /* an empty file in memory, for the relay's use */
    int disk_fd;  /* of disk_make_file() */
};

struct relay_child_config {
    const char *socket_path;
    const uint8_t *key;         /* CW_KEY_SIZE bytes */
    const char *const *options; /* RELAY_OPTIONS values; NULL: the relay's default */
    uint64_t spin_ns;
    struct relay_child_kept *kept; /* made at the first start; NULL: nothing outlives it */
    const char *log_dir;           /* for `kept`; NULL: the logs have no disk */
};

/* Starts it, without waiting. What is made of config->kept is the caller's, also after an error.
 * Returns its pid, or a negative code: CW_ESYS. *ready_fd is the caller's: it becomes readable when
 * the relay listens, or has ended. */
pid_t relay_child_start(const struct relay_child_config *config, int *ready_fd, struct cw_err *err);

/* What `ready_fd` says, once it is readable: whether the relay listens. */
bool relay_child_listens(int ready_fd);

/* Waits until it has ended, for a bounded time; then it is killed. */
void relay_child_await_end(pid_t pid);

#endif
