/* Where the processes of ranks are started, and how: an ops table, so that a job does not depend on
 * the kind of its hosts. */
#ifndef DISPATCHER_LAUNCHER_H
#define DISPATCHER_LAUNCHER_H

#include "common/err.h"
#include "common/setup.h"
#include "dispatcher/loop/loop.h"

#include <stdbool.h>
#include <sys/types.h>

struct agents;
struct channel;
struct channels;

/* The program of some ranks, and what is the same in each of its processes. All borrowed. */
struct launch_program {
    const char *path;       /* of its file */
    char *const *argv;      /* NULL-terminated */
    const char *wdir;       /* NULL: where we are */
    const char *const *env; /* NAME=VALUE, over our own: env_count for all programs ... */
    uint32_t env_count;
    const char *const *more; /* ... and more_count for this one */
    uint32_t more_count;
    const char *device_path;  /* librdevice.so */
    const char *restore_path; /* the program that goes on from an image; NULL: none does */
    bool as_given;            /* what follows holds, else what the launching process has */
    uint32_t umask;           /* as umask(2) */
    int32_t niceness;         /* at least this */
};

/* What a process says, each on a stream of its own. */
enum launch_stream { LAUNCH_PMI, LAUNCH_CONTROL, LAUNCH_STDOUT, LAUNCH_STDERR, LAUNCH_STREAMS };

/* A process that has become its program. Our ends are from now on the callee's. */
struct launch_process {
    uint32_t rank;
    uint32_t incarnation;
    pid_t pid; /* for messages */
    union {
        int fd[LAUNCH_STREAMS];                  /* of the local launcher: non-blocking */
        struct channel *channel[LAUNCH_STREAMS]; /* of the remote one */
    };
};

/* What a launcher tells, in the job's loop. */
struct launcher_events {
    void (*started)(void *ctx, const struct launch_process *process);
    /* CW_ENOTFOUND: the program; CW_EINVAL: it is there, and cannot be executed; CW_ESYS: else. The
     * text names the rank and the program.
     */
    void (*failed)(void *ctx, uint32_t rank, const struct cw_err *err);
    void (*alive)(void *ctx, uint32_t rank, uint32_t incarnation); /* a sign of life */
    void (*ended)(void *ctx, uint32_t rank, int status);           /* as of waitpid(2) */
    /* It is not watched any more, and was ended if it could be reached. */
    void (*lost)(void *ctx, uint32_t rank);
    /* A process that was let go of while it lived has ended. */
    void (*former_ended)(void *ctx, uint32_t rank, uint32_t incarnation);
};

struct launcher_config {
    struct loop *loop; /* borrowed */
    uint32_t ranks;
    uint64_t alive_period_ns; /* between two signs of life of a rank */
    int keep_fd; /* open in whoever watches a rank as long as that lives; at most 2: none */
    struct agents *agents;                /* for remote_launcher: the hosts; borrowed */
    struct channels *channels;            /* ... and where what ranks say is told; borrowed */
    const struct launcher_events *events; /* borrowed */
    void *ctx;                            /* of events */
};

struct launcher_ops {
    /* NULL with *err set: CW_ENOMEM. */
    void *(*open)(const struct launcher_config *config, struct cw_err *err);

    /* Ends the processes that are left, without waiting for them. */
    void (*close)(void *launcher);

    /* Begins to start a process of the rank setup->rank, which has none, at this host; never waits
     * for it.
     * `stdin_fd` is duplicated; -1: it reads nothing. `image_fd`: what the process is to go on from
     * is read there (docs/image-format.md); duplicated, too; -1: it begins at its beginning. The
     * keys of the setup are wiped as soon as it is sent. What becomes of it comes by started() or
     * failed(), never from inside this call; of one with an image, started() says that the restorer
     * runs.
     * Errors: CW_ESYS, CW_ENOMEM, naming the rank and the program; no event comes. */
    int (*start)(void *launcher, const struct launch_program *program, struct cw_setup *setup,
                 uint32_t host, int stdin_fd, int image_fd, struct cw_err *err);

    /* The process is known to run its program, by what it did: what has not been told, started()
     * that is, is told from inside this call. */
    void (*confirm)(void *launcher, uint32_t rank);

    /* For all processes of the rank; does nothing when it has none. A second SIGKILL goes to all
     * that hosts know of it. */
    void (*signal)(void *launcher, uint32_t rank, int signal_number);

    /* Nothing more is heard of the rank's process but former_ended; `kill`: it ends. It is kept
     * otherwise, for as long as the launcher is open. */
    void (*let_go)(void *launcher, uint32_t rank, bool kill);
};

#endif
