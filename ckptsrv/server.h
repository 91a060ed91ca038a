/* A checkpoint server: it keeps images of ranks, in a directory of its own. docs/protocol.md,
 * section "Checkpoint servers"; docs/checkpoint-store.md. */
#ifndef CKPTSRV_SERVER_H
#define CKPTSRV_SERVER_H

#include "common/frame.h"

#include <stdbool.h>

#define CKPTSRV_LISTENERS_MAX 8

struct ckptsrv_config {
    const char *dir; /* made when missing, mode 700; locked by one server at a time */
    const char *addresses[CKPTSRV_LISTENERS_MAX]; /* unix:PATH or tcp:HOST:PORT */
    int address_count;
    const uint8_t *key; /* CW_KEY_SIZE bytes: the server's key, as a relay key */
    uint64_t max_bytes; /* of blocks on disk; 0: as much as the disk has */
    /* -1, or: a line with each address, as it is now, when it listens; or one with a '!' and why it
     * does not; then closed. */
    int ready_fd;
    bool ephemeral;     /* at the end images go, and the directory where the server made it: */
    const uint8_t *job; /* ... those of this job, CW_ID_SIZE bytes; NULL: of all jobs */
};

/* Serves until SIGTERM, SIGINT or SIGHUP; leaves no socket. It takes over
 * the handling of signals: for a process of its own. Errors: CW_ESYS, CW_EINVAL, CW_ENOMEM;
 * CW_EBUSY: another server uses the directory. */
int ckptsrv_run(const struct ckptsrv_config *config, struct cw_err *err);

#endif
