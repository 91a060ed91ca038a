/* Everything that is opened before the job's loop begins. */
#include "common/clock.h"
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

#define DESCRIPTORS_A_RANK 7 /* PMI, control, watcher, two pipes, two files */

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
    if (input_open(&run->input, !run->options->no_log, err) < 0)
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
    struct job_config config = {.ranks = n,
                                .slots = run->options->slots ? run->options->slots : n,
                                .recover = !run->options->no_log,
                                .restarts_max = run->options->max_restarts,
                                .alive_timeout_ns = run->options->alive_timeout_ns};
    uint32_t rank = 0;

    run->relays = calloc(run->options->relays, sizeof(*run->relays));
    run->ranks = calloc(n, sizeof(*run->ranks));
    run->job_ranks = calloc(n, sizeof(*run->job_ranks));
    run->slot_used = calloc(config.slots, sizeof(*run->slot_used));
    run->stats = calloc(n, sizeof(*run->stats));
    run->appnums = calloc(n, sizeof(*run->appnums));
    run->segment_of = calloc(n, sizeof(*run->segment_of));
    run->paths = calloc(run->options->segment_count, sizeof(*run->paths));
    if (!run->relays || !run->ranks || !run->job_ranks || !run->slot_used || !run->stats ||
        !run->appnums || !run->segment_of || !run->paths)
        return cw_err_set(err, CW_ENOMEM, "no memory for a job of %u ranks", n);
    for (uint32_t i = 0; i < run->options->relays; i++) {
        run->relays[i].run = run;
        run->relays[i].link.fd = -1;
    }
    for (uint32_t i = 0; i < run->options->segment_count; i++)
        for (uint32_t j = 0; j < run->options->segments[i].ranks; j++, rank++) {
            run->segment_of[rank] = &run->options->segments[i];
            run->appnums[rank] = i;
            run->job_ranks[rank].program = run->options->segments[i].argv[0];
        }
    for (rank = 0; rank < n; rank++) {
        run->ranks[rank].process.pmi_fd = run->ranks[rank].process.control_fd =
            run->ranks[rank].process.watcher_fd = -1;
        for (int which = 0; which < 2; which++)
            run->ranks[rank].streams[which].fd = run->ranks[rank].files[which].fd = -1;
    }
    job_init(&run->job, &config, run->job_ranks, run->slot_used);
    run->faults = run->options->faults;
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

static void raise_descriptor_limit(uint32_t ranks)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < ranks * DESCRIPTORS_A_RANK + 64) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int open_dir(struct run *run, struct cw_err *err)
{
    run->dir_made = rundir_make(&run->dir, err) == CW_OK;
    return run->dir_made ? CW_OK : err->code;
}

static int open_events(struct run *run, struct cw_err *err)
{
    char relays[CW_RELAYS_MAX * CW_ADDRESS_MAX];
    char id[2 * CW_ID_SIZE + 1];

    run_relay_addresses(run, relays, sizeof(relays));
    run->now_ns = cw_clock_ns();
    if (job_events_open(&run->events, run->options->events, run->now_ns, err) < 0)
        return err->code;
    sodium_bin2hex(id, sizeof(id), run->job_id, CW_ID_SIZE);
    job_events_write(&run->events, run->now_ns, JOB_EVENT_JOB_STARTED, JOB_EVENTS_NO_RANK,
                     job_text("job", id), job_number("ranks", run->options->ranks),
                     job_number("pid", (uint64_t)getpid()), job_text("relay", relays));
    return CW_OK;
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
    if (run->options->relay_count && run_open_relays(run, err) < 0)
        return err->code;
    if (open_signals(run, err) < 0 || open_output(run, err) < 0 || open_dir(run, err) < 0)
        return err->code;
    if ((!run->options->relay_count && run_open_relays(run, err) < 0) || open_pmi(run, err) < 0)
        return err->code;
    if (run_open_status(run, err) < 0 || open_events(run, err) < 0)
        return err->code;
    return open_input(run, err);
}
