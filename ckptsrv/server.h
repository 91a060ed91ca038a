/* A checkpoint server: it keeps images of ranks, in a directory of its own. docs/protocol.md,
 * section "Checkpoint servers"; docs/checkpoint-store.md. */
#ifndef CKPTSRV_SERVER_H
#define CKPTSRV_SERVER_H

#include "common/frame.h"

#include <stdbool.h>
#include <sys/types.h>

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
    int life_fd;        /* -1, or: the server ends when the other end of this pipe is closed */
    bool ephemeral;     /* at the end images go, and the directory where the server made it: */
    const uint8_t *job; /* ... those of this job, CW_ID_SIZE bytes; NULL: of all jobs */
};

/* Serves until SIGTERM, SIGINT or SIGHUP, or the end of `life_fd`; leaves no socket. It takes over
 * the handling of signals: for a process of its own. Errors: CW_ESYS, CW_EINVAL, CW_ENOMEM;
 * CW_EBUSY: another server uses the directory. */
int ckptsrv_run(const struct ckptsrv_config *config, struct cw_err *err);

/* A server in a child process. */
struct ckptsrv_child {
    pid_t pid;      /* the caller waits for it */
    int listens_fd; /* becomes readable when it listens, or has ended */
    int life_fd;    /* closing it ends the server; it closes with the caller's process too */
};

/* Starts one, without waiting: fork, and execve of this program (/proc/self/exe) as `causeway
 * ckptsrv`. `key` goes down through a pipe; ready_fd and life_fd of `config` are not looked at. The
 * descriptors of `child` are the caller's. Errors: CW_ESYS. */
int ckptsrv_child_start(const struct ckptsrv_config *config, struct ckptsrv_child *child,
                        struct cw_err *err);

/* What `listens_fd` says, once it is readable: whether the server listens. On false `why` is what
 * it has said of that, of `size` bytes; "": nothing. */
bool ckptsrv_child_listens(int listens_fd, char *why, size_t size);

#endif
