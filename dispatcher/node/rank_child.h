/* What becomes the program of a rank: its descriptors, its environment, and what keeps the
 * incarnations of a rank alike. All memory is prepared before fork(2); between fork and execve(2)
 * there are async-signal-safe calls alone, for the dispatcher may have other threads. */
#ifndef DISPATCHER_RANK_CHILD_H
#define DISPATCHER_RANK_CHILD_H

#include "dispatcher/wire/node_frames.h"

enum { RANK_CHILD_STATUS = LAUNCH_STREAMS, RANK_CHILD_ENDS };

/* What could not be done, as the child writes it to RANK_CHILD_STATUS; nothing, when it has become
 * the program. */
struct rank_child_failure {
    enum { RANK_CHILD_EXEC, RANK_CHILD_RESTORE, RANK_CHILD_WDIR, RANK_CHILD_FORK } doing;
    int error; /* errno */
};

/* Of the channel memory, and of the file behind it; -1: there is none. */
struct channel_fds {
    int memory, file;
};

struct rank_child {
    const struct launch_program *program; /* borrowed */
    char **env;                           /* of the program; owned */
    char *own[12];                        /* of its settings, those that were made; owned */
    int own_count;
    int base; /* where the rank finds PMI; CONTROL, STATUS, the image and channel memory follow */
    int ends[RANK_CHILD_ENDS];  /* the child's; borrowed */
    int stdin_fd;               /* borrowed; -1: it reads nothing */
    int image_fd;               /* borrowed; -1: it does not go on from an image */
    struct channel_fds channel; /* borrowed */
    char numbers[5][16];        /* of the restorer's descriptors, ... */
    char *restore_argv[7];      /* ... its arguments */
};

/* Numbers of descriptors from the limit of open files, and the environment of rank
 * setup->process.rank. Returns 0, or -1 with errno set. `ends` and `stdin_fd` are set by the caller
 * afterwards. */
int rank_child_prepare(struct rank_child *child, const struct launch_program *program,
                       const struct cw_setup *setup, int image_fd,
                       const struct channel_fds *channel);
void rank_child_forget(struct rank_child *child);

/* In the rank's process; does not return. `ctx` is a struct rank_child. */
void rank_child_become(void *ctx);

/* In its parent: there is no such process, errno says why. */
void rank_child_no_fork(void *ctx);

/* A failure of the child for people. */
int rank_child_explain(const struct rank_child_failure *failure,
                       const struct launch_program *program, struct cw_err *err);

#endif
