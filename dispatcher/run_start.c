/* Everything that is opened before the job's loop begins, and the ranks' start. */
#include "common/clock.h"
#include "common/cred.h"
#include "dispatcher/device_path.h"
#include "dispatcher/program.h"
#include "dispatcher/run_state.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define DESCRIPTORS_A_RANK 6 /* PMI, control, two pipes, two files */

static int check_program(struct run *run, uint32_t i, struct cw_err *err)
{
    const struct run_segment *segment = &run->options->segments[i];
    struct program_info info;

    if (segment->wdir && access(segment->wdir, X_OK) < 0)
        return cw_err_set(err, CW_ENOTFOUND, "working directory %s: %s", segment->wdir,
                          strerror(errno));
    if (program_resolve(segment->argv[0], segment->wdir, run->paths[i], PATH_MAX, err) < 0 ||
        program_inspect(run->paths[i], &info, err) < 0)
        return err->code;
    if (!program_can_run(info.kind))
        return cw_err_set(err, CW_EINVAL, "%s: %s", run->paths[i], program_explain(info.kind));
    return CW_OK;
}

/* Local and shared: more processes than cores, the relay counted, must not spin long. */

/* As nohup and shells ask it of us. */
static bool is_ignored(int signal_number)
{
    struct sigaction action;

    return sigaction(signal_number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static int open_signals(struct run *run, struct cw_err *err)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (!is_ignored(numbers[i]))
            sigaddset(&set, numbers[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    run->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (run->signal_fd < 0 || run_watch(run, run->signal_fd, SOURCE_SIGNAL, 0, EPOLLIN) < 0)
        return cw_err_set(err, CW_ESYS, "signalfd: %s", strerror(errno));
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return CW_OK;
}

static int open_input(struct run *run, struct cw_err *err)
{
    if (input_open(&run->input, err) < 0)
        return err->code;
    run->stdin_polled = run_watch(run, STDIN_FILENO, SOURCE_STDIN, 0, EPOLLONESHOT) == 0;
    run_watch(run, run->input.to, SOURCE_PUMP, 0, EPOLLONESHOT);
    return CW_OK;
}

static int open_output(struct run *run, struct cw_err *err)
{
    output_sink_open_fd(&run->sinks[0], STDOUT_FILENO, "standard output");
    output_sink_open_fd(&run->sinks[1], STDERR_FILENO, "standard error");
    if (run->options->output_dir && mkdir(run->options->output_dir, 0777) < 0 && errno != EEXIST)
        return cw_err_set(err, CW_ESYS, "--output-dir %s: %s", run->options->output_dir,
                          strerror(errno));
    return CW_OK;
}

static int allocate(struct run *run, struct cw_err *err)
{
    uint32_t n = run->options->ranks;
    uint32_t rank = 0;

    run->ranks = calloc(n, sizeof(*run->ranks));
    run->job_ranks = calloc(n, sizeof(*run->job_ranks));
    run->appnums = calloc(n, sizeof(*run->appnums));
    run->segment_of = calloc(n, sizeof(*run->segment_of));
    run->paths = calloc(run->options->segment_count, sizeof(*run->paths));
    if (!run->ranks || !run->job_ranks || !run->appnums || !run->segment_of || !run->paths)
        return cw_err_set(err, CW_ENOMEM, "no memory for a job of %u ranks", n);
    for (uint32_t i = 0; i < run->options->segment_count; i++)
        for (uint32_t j = 0; j < run->options->segments[i].ranks; j++, rank++) {
            run->segment_of[rank] = &run->options->segments[i];
            run->appnums[rank] = i;
            run->job_ranks[rank].program = run->options->segments[i].argv[0];
        }
    for (rank = 0; rank < n; rank++) {
        run->ranks[rank].process.pmi_fd = run->ranks[rank].process.control_fd = -1;
        for (int which = 0; which < 2; which++)
            run->ranks[rank].streams[which].fd = run->ranks[rank].files[which].fd = -1;
    }
    job_init(&run->job, n, run->job_ranks);
    return CW_OK;
}

static int open_pmi(struct run *run, struct cw_err *err)
{
    char name[2 * CW_ID_SIZE + 16] = "causeway_";
    struct pmi_config config = {
        .ranks = run->options->ranks, .kvsname = name, .appnums = run->appnums};

    sodium_bin2hex(name + strlen(name), 2 * CW_ID_SIZE + 1, run->job_id, CW_ID_SIZE);
    run->pmi = pmi_new(&config, &run_pmi_ops, run);
    return run->pmi ? CW_OK : cw_err_set(err, CW_ENOMEM, "no memory for PMI");
}

static int adopt_streams(struct run *run, uint32_t rank, struct cw_err *err)
{
    static const char *const suffixes[2] = {"out", "err"};
    struct run_rank *r = &run->ranks[rank];
    int fds[2] = {r->process.stdout_fd, r->process.stderr_fd};

    for (int which = 0; which < 2; which++) {
        struct output_sink *sink = &run->sinks[which];

        if (run->options->output_dir) {
            sink = &r->files[which];
            if (output_sink_open_file(sink, run->options->output_dir, rank, suffixes[which], err) <
                0)
                return err->code;
        }
        if (output_stream_open(&r->streams[which], fds[which], rank, sink, run->options->tag_output,
                               err) < 0)
            return err->code;
        run_stream_update(run, rank, which, fds[which]);
    }
    return CW_OK;
}

static int start_rank(struct run *run, const struct launch_job *job, uint32_t rank,
                      struct cw_err *err)
{
    const struct run_segment *segment = run->segment_of[rank];
    struct run_rank *r = &run->ranks[rank];
    struct cw_setup setup = {.rank = rank,
                             .ranks = run->options->ranks,
                             .incarnation = 1,
                             .spin_ns = run_choose_spin(run->options)};

    memcpy(setup.job, run->job_id, sizeof(setup.job));
    cw_cred_rank_key(setup.key, run->job_key, rank, setup.incarnation);
    snprintf(setup.address, sizeof(setup.address), "%s", run->relay_address);
    if (launch_rank(job, segment, run->paths[run->appnums[rank]], &setup, &r->process, err) < 0)
        return err->code;
    job_rank_started(&run->job, rank);
    run_watch(run, r->process.pmi_fd, SOURCE_PMI, rank, EPOLLIN);
    run_watch(run, r->process.control_fd, SOURCE_CONTROL, rank, EPOLLIN);
    run_say(run, "rank %u started (pid %d, %s)", rank, (int)r->process.pid, segment->argv[0]);
    return adopt_streams(run, rank, err);
}

void run_start_ranks(struct run *run)
{
    struct launch_job job = {.device_path = run->device_path,
                             .env = run->options->env,
                             .env_count = run->options->env_count,
                             .ranks = run->options->ranks,
                             .stdin_fd = run->input.rank_end};
    struct cw_err err = {0};

    for (uint32_t rank = 0; rank < run->options->ranks; rank++) {
        run->now_ns = cw_clock_ns();
        if (start_rank(run, &job, rank, &err) < 0) {
            job_fail(&run->job, err.code == CW_ENOTFOUND ? 127 : 1, run->now_ns, "%s", err.text);
            break;
        }
    }
    close(run->input.rank_end);
    run->input.rank_end = -1;
    if (run->options->timeout_ns)
        run->timeout_at_ns = run->now_ns + run->options->timeout_ns;
}

static void raise_descriptor_limit(uint32_t ranks)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < ranks * DESCRIPTORS_A_RANK + 64) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int run_open_all(struct run *run, struct cw_err *err)
{
    if (allocate(run, err) < 0 || device_path_find(run->device_path, err) < 0)
        return err->code;
    for (uint32_t i = 0; i < run->options->segment_count; i++) {
        if (check_program(run, i, err) == CW_OK)
            continue;
        /* as a shell says it */
        run->open_exit_code = err->code == CW_ENOTFOUND ? 127 : 126;
        return err->code;
    }
    raise_descriptor_limit(run->options->ranks);
    run->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (run->epoll_fd < 0)
        return cw_err_set(err, CW_ESYS, "epoll: %s", strerror(errno));
    /* a relay elsewhere may keep us waiting: until it is there, signals end us as they end anyone
     */
    if (run->options->relay && run_open_relay(run, err) < 0)
        return err->code;
    if (open_signals(run, err) < 0 || open_output(run, err) < 0)
        return err->code;
    if ((!run->options->relay && run_open_relay(run, err) < 0) || open_pmi(run, err) < 0)
        return err->code;
    return open_input(run, err);
}
