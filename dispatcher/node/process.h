/* One process of a rank on this machine, with a watcher as its parent (watcher.h): its start, its
 * signs of life, its end. In a loop, which never waits for it. */
#ifndef DISPATCHER_PROCESS_H
#define DISPATCHER_PROCESS_H

#include "common/loop.h"
#include "dispatcher/node/rank_child.h"
#include "dispatcher/wire/node_frames.h"

#include <sys/types.h>

/* started() or failed(), never from inside process_start; after started() ended() or lost(), once.
 */
struct process_events {
    /* It has become its program, or runs the restorer; its descriptors are from now on the
     * callee's. */
    void (*started)(void *ctx);
    /* CW_ENOTFOUND: the program; CW_EINVAL: it is there, and cannot be executed; CW_ESYS: else. The
     * text names the rank and the program. */
    void (*failed)(void *ctx, const struct cw_err *err);
    void (*alive)(void *ctx);             /* a sign of life */
    void (*ended)(void *ctx, int status); /* as of waitpid(2) */
    void (*lost)(void *ctx);              /* its watcher is gone */
};

struct process {
    /* set by the caller; all borrowed */
    struct loop *loop;
    const struct process_events *events;
    void *ctx;
    const struct launch_program *program;
    uint64_t alive_period_ns; /* between two signs of life */
    int keep_fd;              /* open in its watcher as long as that lives; at most 2: none */
    /* its own */
    uint32_t rank;
    uint32_t incarnation;
    pid_t pid;              /* 0: it is not known yet */
    int fd[LAUNCH_STREAMS]; /* our ends, non-blocking; -1 once they are handed over */
    pid_t watcher_pid;      /* its parent, our child */
    int kills;
    int watcher_fd;           /* see watcher.h; -1: it is gone */
    struct loop_watch status; /* until it has become the program, or says why it cannot */
    struct loop_watch watch;  /* from then on: of watcher_fd */
};

/* There is none. */
void process_init(struct process *process);

/* Starts it. `stdin_fd` is duplicated; -1: it reads nothing. `image_fd`: what it is to go on from
 * is read there (docs/image-format.md); duplicated, too; -1: it begins at its beginning.
 * `channel`: its channel memory; duplicated, too. The keys of the setup are wiped.
 * Errors: CW_ESYS, naming the rank and the program; nothing is told. */
int process_start(struct process *process, struct cw_setup *setup, int stdin_fd, int image_fd,
                  const struct channel_fds *channel, struct cw_err *err);

/* For all processes of the rank. A second SIGKILL goes to its watcher, too. */
void process_signal(struct process *process, int signal_number);
/* SIGKILL, also where its watcher is gone or stopped. */
void process_kill(struct process *process);

/* More will be told of it. */
bool process_is_watched(const struct process *process);
/* Nothing more is told; without us a watcher ends its rank. */
void process_close(struct process *process);

#endif
