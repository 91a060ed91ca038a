/* Starting the processes of one rank, its watcher and its own: descriptors, environment, and what
 * keeps its incarnations alike. */
#ifndef DISPATCHER_LAUNCH_H
#define DISPATCHER_LAUNCH_H

#include "common/setup.h"
#include "dispatcher/options.h"

#include <sys/types.h>

struct launch_job {
    const char *device_path; /* librdevice.so */
    const char *const *env;  /* for all ranks: --genv */
    uint32_t env_count;
    uint32_t ranks;
    int stdin_fd;             /* for rank 0; the caller's */
    uint64_t alive_period_ns; /* between two signs of life */
};

/* Our ends of what the process got; all non-blocking. The caller closes them. */
struct launch_process {
    pid_t pid;         /* of the rank; also its process group */
    pid_t watcher_pid; /* its parent, our child */
    int watcher_fd;    /* see watcher.h */
    int pmi_fd;
    int control_fd;
    int stdout_fd;
    int stderr_fd;
};

/* Forks a watcher, which forks and watches the rank. `path` is the program's file. Errors: CW_ESYS,
 * CW_ENOTFOUND; they name the rank and the program.
 */
int launch_rank(const struct launch_job *job, const struct run_segment *segment, const char *path,
                const struct cw_setup *setup, struct launch_process *process, struct cw_err *err);

#endif
