/* The job's relay: starting it, opening the job there, hearing of it, and ending it. */
#include "common/cred.h"
#include "common/keyfile.h"
#include "dispatcher/relay_child.h"
#include "dispatcher/run_state.h"
#include "dispatcher/stats.h"

#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STATS_NS 5000000000ull /* for the relay's answer */
#define RELAY_END_MS 5000      /* for the embedded relay to end */
#define SPIN_NS 50000ull /* where a core has at most SPIN_RANKS_A_CORE ranks; else none spins */
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
                                        .engine = run->options->engine,
                                        .memory_max = run->options->memory_max,
                                        .spin_ns = run_choose_spin(run->options)};
    char path[RUNDIR_MAX + 16];
    pid_t pid;

    if (rundir_make(&run->dir, err) < 0)
        return err->code;
    run->dir_made = true;
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
    int failed;

    randombytes_buf(run->job_id, sizeof(run->job_id));
    if (run->options->relay)
        snprintf(run->relay_address, sizeof(run->relay_address), "%s", run->options->relay);
    failed = run->options->relay ? key_of_relay(run, err) : start_own_relay(run, err);
    if (failed)
        return failed;
    cw_cred_job_key(run->job_key, run->relay_key, run->job_id);
    if (relay_link_open(&run->link, run->relay_address, run->job_id, run->options->ranks,
                        run->relay_key, err) < 0)
        return err->code;
    run_watch(run, run->link.fd, SOURCE_RELAY, 0, EPOLLIN);
    return CW_OK;
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

/* Our own relay's death says more than a broken connection. */
void run_relay_lost(struct run *run, const char *text)
{
    int status;

    if (run->job.ending)
        return;
    if (run->relay_pid && waitpid(run->relay_pid, &status, WNOHANG) == run->relay_pid)
        run_relay_ended(run, status);
    else if (!run->lost_at_ns) {
        run->lost_at_ns = run->now_ns + RUN_LOST_NS;
        snprintf(run->lost, sizeof(run->lost), "%s", text);
    }
}

static void on_notice(void *ctx, const struct cw_notice_body *notice)
{
    struct run *run = ctx;

    if (notice->rank == UINT32_MAX)
        run_say(run, "relay: %s", notice->text);
    else
        run_say(run, "relay: rank %u: %s", notice->rank, notice->text);
    if (notice->code == CW_NOTICE_FATAL) {
        job_fail(&run->job, 1, run->now_ns, "%s", notice->text);
    } else if (notice->code == CW_NOTICE_RANK_LOST && !run->lost_at_ns) {
        /* most often the process has ended, and its exit status says more */
        run->lost_at_ns = run->now_ns + RUN_LOST_NS;
        snprintf(run->lost, sizeof(run->lost), "rank %u lost its relay: %s", notice->rank,
                 notice->text);
    }
}

static void on_stats(void *ctx, const struct cw_stats *stats)
{
    struct run *run = ctx;

    if (!run->stats || stats->rank >= run->options->ranks)
        return;
    run->stats[stats->rank] = *stats;
    run->stats_received++;
}

static const struct relay_link_ops link_ops = {on_notice, on_stats};

void run_read_relay(struct run *run)
{
    struct cw_err err = {0};

    if (run->link.fd < 0 || relay_link_input(&run->link, &link_ops, run, &err) == CW_OK)
        return;
    run_unwatch(run, run->link.fd);
    relay_link_close(&run->link);
    run->relay_lost = true;
    cw_err_wrap(&err, "relay %s", run->relay_address);
    run_relay_lost(run, err.text);
}

void run_collect_stats(struct run *run)
{
    uint64_t until = run->now_ns + STATS_NS;
    struct cw_err err;

    if (!run->options->stats || run->link.fd < 0)
        return;
    run->stats = calloc(run->options->ranks, sizeof(*run->stats));
    if (!run->stats || relay_link_ask_stats(&run->link, &err) < 0)
        return;
    while (run->stats_received < run->options->ranks && run->link.fd >= 0 && run->now_ns < until)
        run_turn(run, until);
    if (run->stats_received == run->options->ranks)
        stats_print(run->stats, run->options->ranks);
    else
        fprintf(stderr, "causeway: the relay %s gave no statistics\n", run->relay_address);
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
