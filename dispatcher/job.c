#include "dispatcher/job.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

void job_init(struct job *job, uint32_t ranks, struct job_rank *rank)
{
    *job = (struct job){.ranks = ranks, .rank = rank};
}

static void set_state(struct job *job, uint32_t rank, enum job_rank_state state)
{
    job->in_mpi -= job->rank[rank].state == JOB_RANK_MPI;
    job->in_mpi += state == JOB_RANK_MPI;
    job->rank[rank].state = state;
}

static void ask_to_end(struct job *job, int signal_number, uint64_t now_ns)
{
    job->ending = true;
    job->signal_number = signal_number;
    job->signal_due = job->running > 0;
    job->kill_at_ns = now_ns + JOB_GRACE_NS;
}

void job_fail(struct job *job, int exit_code, uint64_t now_ns, const char *fmt, ...)
{
    va_list ap;

    if (job->ending)
        return;
    if (!job->reason[0]) {
        job->exit_code = exit_code;
        va_start(ap, fmt);
        vsnprintf(job->reason, sizeof(job->reason), fmt, ap);
        va_end(ap);
    }
    ask_to_end(job, SIGTERM, now_ns);
}

void job_interrupt(struct job *job, int signal_number, uint64_t now_ns)
{
    if (job->ending) {
        job->kill_at_ns = now_ns;
        return;
    }
    job->exit_code = 128 + signal_number;
    snprintf(job->reason, sizeof(job->reason), "ended by signal %d (%s)", signal_number,
             strsignal(signal_number));
    ask_to_end(job, signal_number, now_ns);
}

void job_rank_started(struct job *job, uint32_t rank)
{
    assert(job->rank[rank].state == JOB_RANK_NONE);
    set_state(job, rank, JOB_RANK_STARTED);
    job->running++;
}

/* MPI_Init is collective: who ended without it leaves the others waiting for ever. */
static void check_missing(struct job *job, uint64_t now_ns)
{
    uint32_t rank = 0;

    if (job->in_mpi == 0 || job->without_init == 0)
        return;
    while (job->rank[rank].state != JOB_RANK_ENDED || job->rank[rank].called_init)
        rank++;
    job_fail(job, 1, now_ns,
             "rank %u (%s) ended without calling MPI_Init, and %u others wait for it in MPI", rank,
             job->rank[rank].program, job->in_mpi);
}

void job_rank_initialized(struct job *job, uint32_t rank, uint64_t now_ns)
{
    if (job->rank[rank].state != JOB_RANK_STARTED)
        return;
    job->rank[rank].called_init = true;
    set_state(job, rank, JOB_RANK_MPI);
    check_missing(job, now_ns);
}

void job_rank_finalized(struct job *job, uint32_t rank)
{
    if (job->rank[rank].state != JOB_RANK_MPI)
        return;
    job->rank[rank].called_finalize = true;
    set_state(job, rank, JOB_RANK_FINALIZED);
}

static void ended_badly(struct job *job, uint32_t rank, int status, uint64_t now_ns)
{
    const struct job_rank *r = &job->rank[rank];

    if (WIFSIGNALED(status)) {
        job_fail(job, 128 + WTERMSIG(status), now_ns, "rank %u (%s) was killed by signal %d (%s)",
                 rank, r->program, WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (!r->called_finalize) {
        job_fail(job, WEXITSTATUS(status), now_ns, "rank %u (%s) exited with code %d%s", rank,
                 r->program, WEXITSTATUS(status),
                 r->called_init ? " without calling MPI_Finalize" : "");
    } else if (!job->ending && job->exit_code == 0) {
        /* the others have left MPI too, or are about to: they end by themselves */
        job->exit_code = WEXITSTATUS(status);
        snprintf(job->reason, sizeof(job->reason), "rank %u (%s) exited with code %d", rank,
                 r->program, WEXITSTATUS(status));
    }
}

void job_rank_ended(struct job *job, uint32_t rank, int status, uint64_t now_ns)
{
    struct job_rank *r = &job->rank[rank];

    assert(r->state != JOB_RANK_NONE && r->state != JOB_RANK_ENDED && job->running > 0);
    set_state(job, rank, JOB_RANK_ENDED);
    job->running--;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        ended_badly(job, rank, status, now_ns);
    } else if (!r->called_init) {
        job->without_init++;
        job->no_mpi = job->without_init == job->ranks;
        check_missing(job, now_ns);
    } else if (!r->called_finalize) {
        job_fail(job, 1, now_ns, "rank %u (%s) called MPI_Init and ended without MPI_Finalize",
                 rank, r->program);
    }
}

uint64_t job_deadline_ns(const struct job *job)
{
    return job->kill_at_ns && job->running ? job->kill_at_ns : UINT64_MAX;
}

enum job_action job_next(struct job *job, uint64_t now_ns)
{
    if (job->running == 0)
        return JOB_DONE;
    if (job->signal_due) {
        job->signal_due = false;
        return JOB_SIGNAL;
    }
    if (job->kill_at_ns && now_ns >= job->kill_at_ns) {
        job->signal_number = SIGKILL;
        job->kill_at_ns = now_ns + JOB_GRACE_NS; /* again, should one have been started meanwhile */
        return JOB_SIGNAL;
    }
    return JOB_NOTHING;
}
