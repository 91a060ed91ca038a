/* The job core: what the ranks do comes in as events; what is to be done about it, and how the job
 * ends, comes out. Pure: no I/O, no clock (times are given), no thread. */
#ifndef DISPATCHER_JOB_H
#define DISPATCHER_JOB_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

#define JOB_GRACE_NS 2000000000ull /* between asking the ranks to end and killing them */
#define JOB_EXIT_TIMEOUT 124       /* exit code of a job that ran out of time, as timeout(1) */

enum job_rank_state {
    JOB_RANK_NONE,      /* not started */
    JOB_RANK_STARTED,   /* runs; has not called MPI_Init */
    JOB_RANK_MPI,       /* has called MPI_Init */
    JOB_RANK_FINALIZED, /* has called MPI_Finalize */
    JOB_RANK_ENDED,
};

struct job_rank {
    enum job_rank_state state;
    bool called_init;
    bool called_finalize;
    const char *program; /* borrowed; for messages */
};

/* What the driver is to do next; each is asked for once. */
enum job_action {
    JOB_NOTHING,
    JOB_SIGNAL, /* send job->signal_number to every rank that runs */
    JOB_DONE,   /* no rank runs: report and exit with job->exit_code */
};

struct job {
    uint32_t ranks;
    uint32_t running;
    uint32_t in_mpi;       /* ranks in JOB_RANK_MPI */
    uint32_t without_init; /* ranks that ended well and never called MPI_Init */
    bool ending;
    bool no_mpi; /* all ended, and none ever called MPI_Init */
    int exit_code;
    char reason[CW_ERR_TEXT_MAX]; /* empty when all is well */
    int signal_number;
    bool signal_due;
    uint64_t kill_at_ns; /* when grace is over; 0: no kill is due */
    struct job_rank *rank;
};

/* `rank` is the caller's array of `ranks` zeroed entries, with `program` set. */
void job_init(struct job *job, uint32_t ranks, struct job_rank *rank);

void job_rank_started(struct job *job, uint32_t rank);
void job_rank_initialized(struct job *job, uint32_t rank, uint64_t now_ns);
void job_rank_finalized(struct job *job, uint32_t rank);

/* `status` is that of waitpid(2). */
void job_rank_ended(struct job *job, uint32_t rank, int status, uint64_t now_ns);

/* The job is to end with this exit code and reason; the first call decides. */
void job_fail(struct job *job, int exit_code, uint64_t now_ns, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* A person or a scheduler wants the job to end: the first time the ranks get `signal_number` and a
 * moment, the second time they are killed. */
void job_interrupt(struct job *job, int signal_number, uint64_t now_ns);

/* When job_next may have something new by time alone; UINT64_MAX: never. */
uint64_t job_deadline_ns(const struct job *job);

enum job_action job_next(struct job *job, uint64_t now_ns);

#endif
