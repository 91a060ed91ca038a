/* The job's relay: starting it, opening the job there, hearing of it, and ending it. */
#include "common/cred.h"
#include "common/keyfile.h"
#include "dispatcher/relay_child.h"
#include "dispatcher/run_state.h"

#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RELAY_END_MS 5000 /* for the embedded relay to end */
#define SPIN_NS 50000ull  /* where a core has at most SPIN_RANKS_A_CORE ranks; else none spins */
#define SPIN_RANKS_A_CORE 2

uint64_t run_choose_spin(const struct run_options *options)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (options->spin_ns != UINT64_MAX)
        return options->spin_ns;
    return options->ranks <= SPIN_RANKS_A_CORE * cores ? SPIN_NS : 0;
}

static int key_of_relay(struct run *run, struct cw_err *err)
{
    char beside[CW_ADDRESS_MAX + 8];

    if (run->options->key_file)
        return cw_key_load(run->options->key_file, run->relay_key, err);
    if (strncmp(run->options->relay, "unix:", 5) != 0)
        return cw_err_set(err, CW_EINVAL, "--relay %s needs --key-file FILE, the key of that relay",
                          run->options->relay);
    snprintf(beside, sizeof(beside), "%s.key", run->options->relay + 5);
    if (access(beside, F_OK) < 0)
        return cw_err_set(err, CW_ENOTFOUND,
                          "--relay %s: no key beside it (%s); is a relay running there?",
                          run->options->relay, beside);
    return cw_key_load(beside, run->relay_key, err);
}

static int start_own_relay(struct run *run, struct cw_err *err)
{
    struct relay_child_config config = {.key = run->relay_key,
                                        .options = run->options->relay_options,
                                        .spin_ns = run_choose_spin(run->options)};
    char path[RUNDIR_MAX + 16];
    pid_t pid;

    snprintf(path, sizeof(path), "%s/relay", run->dir.path);
    snprintf(run->relay_address, sizeof(run->relay_address), "unix:%s", path);
    config.socket_path = path;
    cw_key_random(run->relay_key);
    pid = relay_child_start(&config, err);
    if (pid < 0)
        return err->code;
    run->relay_pid = pid;
    run_say(run, "relay started (pid %d, %s)", (int)pid, run->relay_address);
    return CW_OK;
}

int run_open_relay(struct run *run, struct cw_err *err)
{
    uint32_t flags = run->options->no_log ? 0 : CW_HELLO_LOG;
    int failed;

    randombytes_buf(run->job_id, sizeof(run->job_id));
    if (run->options->relay)
        snprintf(run->relay_address, sizeof(run->relay_address), "%s", run->options->relay);
    failed = run->options->relay ? key_of_relay(run, err) : start_own_relay(run, err);
    if (failed)
        return failed;
    cw_cred_job_key(run->job_key, run->relay_key, run->job_id);
    if (relay_link_open(&run->link, run->relay_address, run->job_id, run->options->ranks, flags,
                        run->relay_key, err) < 0)
        return err->code;
    run_watch(run, run->link.fd, SOURCE_RELAY, 0, EPOLLIN);
    /* one relay is home of all */
    return job_service_add(&run->services, SERVICE_RELAY, run->relay_address, 0,
                           run->options->ranks, err);
}

void run_relay_ended(struct run *run, int status)
{
    run->relay_pid = 0;
    if (WIFSIGNALED(status))
        job_fail(&run->job, 1, run->now_ns,
                 "the relay %s was killed by signal %d (%s); the messages in "
                 "it are lost, so the job ends",
                 run->relay_address, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        job_fail(&run->job, 1, run->now_ns, "the relay %s ended with code %d, so the job ends",
                 run->relay_address, WEXITSTATUS(status));
}

bool run_own_relay_ended(struct run *run)
{
    int status;

    if (!run->relay_pid || waitpid(run->relay_pid, &status, WNOHANG) != run->relay_pid)
        return false;
    run_relay_ended(run, status);
    return true;
}

/* --- what it tells of the ranks --- */

static void rank_back(struct run *run, uint32_t rank, uint64_t repeated)
{
    const struct job_rank *r = &run->job_ranks[rank];
    uint64_t took_ns = run->now_ns - r->up_ns;

    if (r->incarnation < 2 || run->job.ending)
        return;
    run_tell(run, "rank %u is back: it repeated %" PRIu64 " events in %.2f s and goes on", rank,
             repeated, (double)took_ns / 1e9);
    job_events_write(&run->events, run->now_ns, JOB_EVENT_RANK_LIVE, rank,
                     job_number("incarnation", r->incarnation), job_number("events", repeated),
                     job_seconds("seconds", took_ns));
}

static void rank_up(struct run *run, const struct cw_notice_body *notice)
{
    bool live = job_rank_up(&run->job, notice->rank, notice->incarnation, notice->acts,
                            notice->event, run->now_ns);

    job_events_write(&run->events, run->now_ns, JOB_EVENT_RANK_UP, notice->rank,
                     job_number("incarnation", notice->incarnation));
    if (live)
        rank_back(run, notice->rank, 0);
    else if (notice->incarnation > 1)
        job_events_write(&run->events, run->now_ns, JOB_EVENT_RANK_REPLAYING, notice->rank,
                         job_number("incarnation", notice->incarnation),
                         job_number("events", notice->event), job_number("acts", notice->acts));
}

static void on_rank_notice(struct run *run, const struct cw_notice_body *notice)
{
    switch (notice->code) {
    case CW_NOTICE_RANK_UP:
        rank_up(run, notice);
        break;
    case CW_NOTICE_RANK_LIVE:
        if (job_rank_live(&run->job, notice->rank, notice->incarnation))
            rank_back(run, notice->rank, notice->event);
        break;
    case CW_NOTICE_RANK_LOST:
        job_rank_lost(&run->job, notice->rank, notice->incarnation, notice->acts, notice->event,
                      notice->text, run->now_ns);
        break;
    }
}

static void on_notice(void *ctx, const struct cw_notice_body *notice)
{
    struct run *run = ctx;

    if (notice->rank == JOB_NO_RANK)
        run_say(run, "relay: %s", notice->text);
    else
        run_say(run, "relay: rank %u: %s", notice->rank, notice->text);
    if (notice->code == CW_NOTICE_FATAL || notice->code == CW_NOTICE_DIVERGED)
        job_fail(&run->job, 1, run->now_ns, "%s", notice->text);
    else if (notice->rank < run->options->ranks || notice->rank == JOB_NO_RANK) {
        if (notice->code == CW_NOTICE_UNLOGGED)
            run_unlogged(run, notice->rank, notice->text);
        else if (notice->rank != JOB_NO_RANK)
            on_rank_notice(run, notice);
    }
}

static void on_stats(void *ctx, const struct cw_stats *stats)
{
    run_take_stats(ctx, stats);
}

static const struct relay_link_ops link_ops = {on_notice, on_stats};

void run_read_relay(struct run *run)
{
    struct cw_err err = {0};

    if (run->link.fd < 0 || relay_link_input(&run->link, &link_ops, run, &err) == CW_OK)
        return;
    run_unwatch(run, run->link.fd);
    relay_link_close(&run->link);
    cw_err_wrap(&err, "relay %s", run->relay_address);
    if (!run_own_relay_ended(run))
        job_relay_lost(&run->job, err.text, run->now_ns);
}

void run_stop_relay(struct run *run)
{
    int status;

    relay_link_close(&run->link);
    if (run->relay_pid <= 0)
        return;
    kill(run->relay_pid, SIGTERM);
    for (int ms = 0; ms < RELAY_END_MS; ms++) {
        struct timespec t = {.tv_nsec = 1000000};

        if (waitpid(run->relay_pid, &status, WNOHANG) != 0)
            return;
        nanosleep(&t, NULL);
    }
    kill(run->relay_pid, SIGKILL);
    waitpid(run->relay_pid, &status, 0);
}
