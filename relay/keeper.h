/* Keeps a relay: runs it as a child process, and what its log is in outlives that process; when it
 * dies, another one goes on with that. This process listens as well, so the place stays the same,
 * and who connects meanwhile waits. */
#ifndef RELAY_KEEPER_H
#define RELAY_KEEPER_H

#include "common/frame.h"

/* What a child gets; it owns them. */
struct keeper_child {
    int key_fd;   /* the relay's key, as of cw_key_write_fd */
    int ready_fd; /* a line to it says that the relay listens */
    int state_fd; /* of struct relay_kept */
    int disk_fd;
};

struct keeper_config {
    const uint8_t *key;  /* of the relay: CW_KEY_SIZE bytes */
    const char *log_dir; /* NULL: the logs have no disk */
    void *ctx;
    /* In a child: runs the relay. Returns its exit code, once it has said on stderr why. */
    int (*run)(void *ctx, const struct keeper_child *child);
    /* The first child listens. */
    void (*listens)(void *ctx);
};

/* Returns when SIGTERM, SIGINT or SIGHUP came, or the relay ended for good; no child is left then.
 * To be called by a process of one thread. Returns an exit code, and *err says why if nobody has
 * said it yet: CW_ESYS. */
int keeper_run(const struct keeper_config *config, struct cw_err *err);

#endif
