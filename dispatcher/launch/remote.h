/* The processes of ranks on the hosts of a job, by their nodes (nodes.h). In the job's loop. */
#ifndef DISPATCHER_REMOTE_H
#define DISPATCHER_REMOTE_H

#include "dispatcher/job/liveness.h"
#include "dispatcher/launch/nodes.h"
#include "dispatcher/wire/channel.h"

struct remote;

/* A process that has become its program. Its channels are from now on the callee's. */
struct remote_process {
    struct cw_process id;
    pid_t pid; /* for messages; 0: not known */
    struct channel *channel[LAUNCH_STREAMS];
};

struct remote_events {
    void (*started)(void *ctx, const struct remote_process *process);
    /* CW_ENOTFOUND: the program; CW_EINVAL: it is there, and cannot be executed; CW_ESYS: else. The
     * text names the rank and the program. */
    void (*failed)(void *ctx, struct cw_process process, const struct cw_err *err);
    /* LIFE_BACK: a sign of life. LIFE_ENDED: ended(), or the next, follows once it passes the
     * rank's gate. LIFE_DEAD: it is not watched any more, and was ended if it could be reached. */
    void (*life)(void *ctx, struct cw_process process, enum life_what what);
    void (*ended)(void *ctx, struct cw_process process, int status); /* as of waitpid(2) */
    /* A process that was detached while it lived has ended. */
    void (*superseded_ended)(void *ctx, struct cw_process process);
};

/* All but `ranks` is borrowed. */
struct remote_config {
    struct loop *loop;
    uint32_t ranks;
    struct nodes *nodes;
    struct channels *channels; /* where what ranks say is told */
    /* Of each rank: what it says, and how it ended, waits there; NULL: passes at once. */
    struct gate *const *gates;
    const struct remote_events *events;
    void *ctx;
};

/* A user of the nodes; the memory goes with them. NULL with *err set: CW_ENOMEM. */
struct remote *remote_new(const struct remote_config *config, struct cw_err *err);

/* Ends the processes that are left, without waiting for them, and tells nothing any more. What
 * ranks have printed passes until there are no nodes. */
void remote_close(struct remote *remote);

/* Begins to start setup->process, a copy of a rank that has no process, at this host; never waits
 * for it. `stdin_fd` is duplicated; -1: it reads nothing. `image_fd`: what the process is to
 * go on from is read there (docs/image-format.md); duplicated, too; -1: it begins at its beginning.
 * The keys of the setup are wiped as soon as it is sent. What becomes of it comes by started() or
 * failed(), never from inside this call; of one with an image, started() says that the restorer
 * runs. Errors: CW_ESYS, CW_ENOMEM, CW_ECLOSED, naming the rank and the program; no event comes. */
int remote_start(struct remote *remote, const struct launch_program *program,
                 struct cw_setup *setup, uint32_t host, int stdin_fd, int image_fd,
                 struct cw_err *err);

/* Of these the incarnation is of no matter: a copy of a rank has one process at a time.
 *
 * The process is known to run its program, by what it did: what has not been told, started() that
 * is, is told from inside this call. */
void remote_confirm(struct remote *remote, struct cw_process process);

/* Something may pass the gates: it is told. Where a host is lost, what waits of its ranks is
 * dropped: their successors say it again. */
void remote_pass(struct remote *remote);

/* For all processes of the rank; does nothing when it has none. A second SIGKILL goes to all that
 * hosts know of it. */
void remote_signal(const struct remote *remote, struct cw_process process, int signal_number);

/* What its process is at its host; 0: there is none, or that is not known yet. `remote` NULL: none
 * is left. */
pid_t remote_pid(const struct remote *remote, struct cw_process process);

/* Nothing more is heard of the rank's process but superseded_ended; `kill`: it ends. It is kept
 * otherwise, until remote_close. */
void remote_detach(struct remote *remote, struct cw_process process, bool kill);

/* Times of another machine's CLOCK_MONOTONIC, which began when that was booted. All zero: nothing
 * is known yet. */
struct far_clock {
    bool known;
    int64_t behind_ns; /* of ours, and how long a message takes: the least that was seen */
};

/* When that was by our clock, of a time that is heard of now: too late by at most what the fastest
 * message took until now. Pure. */
uint64_t far_clock_here(struct far_clock *clock, uint64_t now_ns, uint64_t then_ns);

#endif
