/* Signals: those that we get, those that the ranks get, and what ends with the job. */
#include "common/clock.h"
#include "dispatcher/run_state.h"
#include "dispatcher/watcher.h"

#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LEFT_BEHIND_ROUNDS 2000 /* a millisecond each */

/* How a rank ended its watcher says; here its watcher is waited for, and what ranks left behind. */
static void reap(struct run *run)
{
    struct run_relay *relay;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        relay = run_relay_of(run, pid);
        if (relay)
            run_relay_ended(relay, status);
    }
}

void run_signal_ranks(struct run *run, int signal_number)
{
    run->kills += signal_number == SIGKILL;
    for (uint32_t rank = 0; rank < run->options->ranks; rank++) {
        const struct launch_process *process = &run->ranks[rank].process;

        if (process->watcher_fd < 0)
            continue;
        watcher_signal(process->watcher_fd, signal_number);
        /* a watcher that does not do as it is told takes its rank along */
        if (signal_number == SIGKILL && run->kills > 1)
            kill(process->watcher_pid, SIGKILL);
    }
}

void run_read_signals(struct run *run)
{
    struct signalfd_siginfo info;

    while (read(run->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        int number = (int)info.ssi_signo;

        if (number == SIGCHLD) {
            reap(run);
        } else if (number == SIGUSR1 || number == SIGUSR2) {
            job_signal_passed_on(&run->job, number);
            run_signal_ranks(run, number);
        } else {
            job_interrupt(&run->job, number, run->now_ns);
        }
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
        if (run_relay_of(run, pid) || waitpid(pid, NULL, WNOHANG) != 0)
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

/* --- drills --- */

static bool runs(void *ctx, uint32_t rank)
{
    const struct run *run = ctx;

    return job_rank_runs(&run->job, rank) && run->ranks[rank].process.pid > 0 &&
           run->ranks[rank].shot != run->job_ranks[rank].incarnation;
}

void run_fault_fired(struct run *run, uint64_t at_ns, uint32_t rank, enum fault_kind kind,
                     const char *fault)
{
    if (!fault)
        return;
    if (kind == FAULT_KILL)
        run->ranks[rank].shot = run->job_ranks[rank].incarnation;
    run_say(run, "drill: %s: rank %u", fault, rank);
    job_events_write(&run->events, at_ns, JOB_EVENT_FAULT_FIRED, rank, job_text("fault", fault),
                     job_text("kind", fault_kind_name(kind)),
                     job_number("incarnation", run->job_ranks[rank].incarnation));
}

void run_fire_faults(struct run *run)
{
    struct fault_shot shot;

    while (!run->job.ending &&
           fault_plan_next(&run->faults, run->now_ns, run->options->ranks, runs, run, &shot)) {
        uint64_t at_ns = cw_clock_ns();

        kill(-run->ranks[shot.rank].process.pid, fault_kind_signal(shot.kind));
        run_fault_fired(run, at_ns, shot.rank, shot.kind, shot.text);
    }
}
