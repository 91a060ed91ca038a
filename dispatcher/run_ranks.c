/* What ranks do over PMI and their control descriptor, and how they end. */
#include "dispatcher/run_state.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LEFT_BEHIND_ROUNDS 2000 /* a millisecond each */

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

const struct pmi_ops run_pmi_ops = {on_pmi_reply, on_pmi_initialized, on_pmi_finalized,
                                    on_pmi_aborted};

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

void run_read_control(struct run *run, uint32_t rank)
{
    int *fd = &run->ranks[rank].process.control_fd;
    uint8_t bytes[CW_SETUP_MAX];
    struct cw_report report;
    size_t size;

    while ((size = take(run, fd, bytes, sizeof(bytes))) > 0) {
        if (!cw_report_get(bytes, size, &report))
            run_say(run, "rank %u wrote something else than a report to its control descriptor",
                    rank);
        else if (report.kind == CW_REPORT_RELAY_LOST)
            run_relay_lost(run, report.text);
        else
            job_fail(&run->job, 1, run->now_ns, "rank %u (%s): %s", rank,
                     run->job_ranks[rank].program, report.text);
    }
}

static void rank_ended(struct run *run, uint32_t rank, int status)
{
    struct run_rank *r = &run->ranks[rank];

    /* what it said before it ended counts first */
    run_read_pmi(run, rank);
    run_read_control(run, rank);
    r->process.pid = 0;
    run_close_watched(run, &r->process.pmi_fd);
    run_close_watched(run, &r->process.control_fd);
    run_say(run, "rank %u ended (%s %d)", rank, WIFSIGNALED(status) ? "signal" : "exit code",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    job_rank_ended(&run->job, rank, status, run->now_ns);
}

static void reap(struct run *run)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        uint32_t rank = 0;

        if (pid == run->relay_pid) {
            run_relay_ended(run, status);
            continue;
        }
        while (rank < run->options->ranks && run->ranks[rank].process.pid != pid)
            rank++;
        if (rank < run->options->ranks)
            rank_ended(run, rank, status);
    }
}

void run_signal_ranks(struct run *run, int signal_number)
{
    for (uint32_t rank = 0; rank < run->options->ranks; rank++) {
        pid_t pid = run->ranks[rank].process.pid;

        if (pid <= 0)
            continue;
        /* the group may not be there yet, or not any more */
        if (kill(-pid, signal_number) < 0)
            kill(pid, signal_number);
        if (signal_number == SIGTERM)
            kill(-pid, SIGCONT);
    }
}

void run_read_signals(struct run *run)
{
    struct signalfd_siginfo info;

    while (read(run->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            reap(run);
        else if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2)
            run_signal_ranks(run, (int)info.ssi_signo);
        else
            job_interrupt(&run->job, (int)info.ssi_signo, run->now_ns);
    }
}

/* Kills every child but the relay. Returns how many there were. */
static int kill_children(const struct run *run)
{
    char path[64];
    FILE *f;
    int count = 0;
    int pid;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    f = fopen(path, "re");
    while (f && fscanf(f, "%d", &pid) == 1) {
        if (pid == run->relay_pid || waitpid(pid, NULL, WNOHANG) != 0)
            continue;
        kill(pid, SIGKILL);
        count++;
    }
    if (f)
        fclose(f);
    return count;
}

void run_end_left_behind(const struct run *run)
{
    struct timespec pause = {.tv_nsec = 1000000};

    /* whoever is killed leaves us its own children */
    for (int i = 0; i < LEFT_BEHIND_ROUNDS && kill_children(run) > 0; i++)
        nanosleep(&pause, NULL);
}
