/* The process of a relay, for those who start one: what is handed down to it, what it says, its
 * end. */
#ifndef RELAY_PROCESS_H
#define RELAY_PROCESS_H

#include "common/frame.h"

#include <stdbool.h>
#include <sys/types.h>

/* What outlives it, and is there for the next one; -1: it was not made yet, or could not be made.
 */
struct relay_kept {
    int state_fd; /* an empty file in memory, for the relay's use */
    int disk_fd;  /* of disk_make_file() */
};

/* Makes what was not made yet; `log_dir` is NULL where the logs have no disk. Where the file cannot
 * be made, the relay says why: it tries as well. All of it is the caller's. Errors: CW_ESYS. */
int relay_kept_make(struct relay_kept *kept, const char *log_dir, struct cw_err *err);
void relay_kept_close(struct relay_kept *kept);

/* The pipes between it and who starts it; -1: closed. */
struct relay_pipes {
    int key_fd;     /* to the relay: its key is in it */
    int ready_fd;   /* to the relay: where it says that it listens */
    int listens_fd; /* becomes readable then, or when it has ended */
};

/* Errors, with all of them closed: CW_ESYS. */
int relay_pipes_open(struct relay_pipes *pipes, const uint8_t key[CW_KEY_SIZE], struct cw_err *err);
/* Once the relay is started: only `listens_fd` stays, the caller's. */
void relay_pipes_pass(struct relay_pipes *pipes);
void relay_pipes_close(struct relay_pipes *pipes);

/* What `listens_fd` says, once it is readable: whether the relay listens. */
bool relay_process_listens(int listens_fd);

/* Waits until it has ended, for a bounded time; then it is killed. */
void relay_process_await_end(pid_t pid);

#endif
