/* What ranks do over PMI and their control descriptor, and what their watchers tell. */
#include "dispatcher/run_state.h"
#include "dispatcher/watcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- PMI --- */

static void on_pmi_reply(void *ctx, uint32_t rank, const char *line, size_t size)
{
    struct run *run = ctx;
    int fd = run->ranks[rank].process.pmi_fd;

    /* MPICH asks one thing at a time: there is room, unless the process is no MPICH */
    if (fd >= 0 && send(fd, line, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size &&
        errno == EAGAIN)
        job_fail(&run->job, 1, run->now_ns, "rank %u does not read the answers to its PMI requests",
                 rank);
}

static void on_pmi_initialized(void *ctx, uint32_t rank)
{
    struct run *run = ctx;

    run_say(run, "rank %u has called MPI_Init", rank);
    job_rank_initialized(&run->job, rank, run->now_ns);
}

static void on_pmi_finalized(void *ctx, uint32_t rank)
{
    struct run *run = ctx;

    run_say(run, "rank %u has called MPI_Finalize", rank);
    job_rank_finalized(&run->job, rank);
}

static void on_pmi_aborted(void *ctx, uint32_t rank, int exit_code)
{
    struct run *run = ctx;

    job_fail(&run->job, exit_code & 255, run->now_ns, "rank %u (%s) called MPI_Abort with code %d",
             rank, run->job_ranks[rank].program, exit_code);
}

static void on_pmi_forgotten(void *ctx, uint32_t rank)
{
    char why[96];

    snprintf(why, sizeof(why), "it has published or looked up more than %d names", PMI_ANSWERS_MAX);
    run_unlogged(ctx, rank, why);
}

const struct pmi_ops run_pmi_ops = {on_pmi_reply, on_pmi_initialized, on_pmi_finalized,
                                    on_pmi_aborted, on_pmi_forgotten};

void run_unlogged(struct run *run, uint32_t rank, const char *why)
{
    if (run->options->no_log || !job_rank_unlogged(&run->job, rank, why) || run->job.ending)
        return;
    if (rank == JOB_NO_RANK)
        run_tell(run, "the ranks can no longer be restarted: %s", why);
    else
        run_tell(run, "rank %u can no longer be restarted: %s", rank, why);
    job_events_write(&run->events, run->now_ns, JOB_EVENT_WARNING, rank,
                     job_text("text", "can no longer be restarted"), job_text("cause", why));
}

void run_close_watched(struct run *run, int *fd)
{
    if (*fd < 0)
        return;
    run_unwatch(run, *fd);
    close(*fd);
    *fd = -1;
}

/* Takes what a rank's socket has. Returns 0 when there is nothing now, or no more at all: then the
 * socket is closed. */
static size_t take(struct run *run, int *fd, void *bytes, size_t size)
{
    ssize_t n = *fd < 0 ? -1 : recv(*fd, bytes, size, MSG_DONTWAIT);

    if (n > 0)
        return (size_t)n;
    if (*fd >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR)))
        run_close_watched(run, fd);
    return 0;
}

void run_read_pmi(struct run *run, uint32_t rank)
{
    int *fd = &run->ranks[rank].process.pmi_fd;
    char bytes[4096];
    struct cw_err err;
    size_t size;

    while ((size = take(run, fd, bytes, sizeof(bytes))) > 0) {
        if (pmi_input(run->pmi, rank, bytes, size, &err) == CW_OK)
            continue;
        job_fail(&run->job, 1, run->now_ns, "%s", err.text);
        run_close_watched(run, fd);
    }
}

/* --- reports --- */

/* The first one counts: later incarnations are given it, and begin with the same. */
static void take_early(struct run *run, uint32_t rank, const struct cw_report *report)
{
    struct run_rank *r = &run->ranks[rank];

    if (r->has_early)
        return;
    r->early = malloc(report->early_size + 1);
    if (!r->early) {
        run_unlogged(run, rank, "there is no memory for what it read before MPI_Init");
        return;
    }
    memcpy(r->early, report->early, report->early_size);
    r->early_size = (uint32_t)report->early_size;
    r->has_early = true;
}

static void take_report(struct run *run, uint32_t rank, const struct cw_report *report)
{
    const char *fault;

    switch ((enum cw_report_kind)report->kind) {
    case CW_REPORT_EARLY:
        take_early(run, rank, report);
        break;
    case CW_REPORT_DRILL:
        fault = fault_plan_taken(&run->faults, rank, run->job_ranks[rank].incarnation, run->now_ns);
        run_fault_fired(run, run->now_ns, rank, FAULT_KILL, fault);
        break;
    case CW_REPORT_RELAY_LOST:
        if (!run_own_relay_ended(run))
            job_rank_cut(&run->job, rank, report->text, run->now_ns);
        break;
    case CW_REPORT_FATAL:
        job_fail(&run->job, 1, run->now_ns, "rank %u (%s): %s", rank, run->job_ranks[rank].program,
                 report->text);
        break;
    }
}

void run_read_control(struct run *run, uint32_t rank)
{
    int *fd = &run->ranks[rank].process.control_fd;
    uint8_t bytes[CW_SETUP_MAX];
    struct cw_report report;
    size_t size;

    while ((size = take(run, fd, bytes, sizeof(bytes))) > 0) {
        if (cw_report_get(bytes, size, &report))
            take_report(run, rank, &report);
        else
            run_say(run, "rank %u wrote something else than a report to its control descriptor",
                    rank);
    }
}

/* --- watchers --- */

/* What was said before it ended counts first. */
static void hear_out(struct run *run, uint32_t rank)
{
    struct run_rank *r = &run->ranks[rank];

    run_read_relay(run, job_home_of(&run->services, rank)->id);
    run_read_pmi(run, rank);
    run_read_control(run, rank);
    run_close_watched(run, &r->process.pmi_fd);
    run_close_watched(run, &r->process.control_fd);
    run_close_watched(run, &r->process.watcher_fd);
}

static void rank_ended(struct run *run, uint32_t rank, int status)
{
    run->ranks[rank].status = status;
    hear_out(run, rank);
    run->ranks[rank].process.pid = 0;
    run_say(run, "rank %u ended (%s %d)", rank, WIFSIGNALED(status) ? "signal" : "exit code",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    job_rank_ended(&run->job, rank, status, run->now_ns);
    if (run->job_ranks[rank].state == JOB_RANK_ENDED)
        job_events_write(
            &run->events, run->now_ns, JOB_EVENT_RANK_ENDED, rank,
            job_number("incarnation", run->job_ranks[rank].incarnation),
            job_number(WIFSIGNALED(status) ? "signal" : "exit_code",
                       (uint64_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status))));
}

void run_read_watcher(struct run *run, uint32_t rank)
{
    struct run_rank *r = &run->ranks[rank];
    struct watcher_message m;
    int got;

    while (r->process.watcher_fd >= 0) {
        got = watcher_receive(r->process.watcher_fd, &m);
        if (got == 0)
            return;
        if (got < 0) {
            hear_out(run, rank);
            job_watcher_lost(&run->job, rank, run->now_ns);
        } else if (m.kind == WATCHER_EXITED) {
            rank_ended(run, rank, m.value);
        } else if (m.kind == WATCHER_ALIVE) {
            job_rank_alive(&run->job, rank, m.incarnation, run->now_ns);
        }
    }
}
