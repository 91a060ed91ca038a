#include "dispatcher/run.h"
#include "common/cred.h"
#include "common/keyfile.h"
#include "common/transport.h"
#include "dispatcher/device_path.h"
#include "dispatcher/input.h"
#include "dispatcher/job.h"
#include "dispatcher/launch.h"
#include "dispatcher/output.h"
#include "dispatcher/pmi.h"
#include "dispatcher/program.h"
#include "dispatcher/relay_child.h"
#include "dispatcher/relay_link.h"
#include "dispatcher/rundir.h"
#include "dispatcher/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX 256
#define LOST_NS 1000000000ull      /* a rank that lost its relay may still tell why it ends */
#define AFTERMATH_NS 2000000000ull /* for the last output of processes that ranks left behind */
#define STATS_NS 5000000000ull     /* for the relay's answer */
#define RELAY_END_MS 5000          /* for the embedded relay to end */
#define SPIN_NS 50000ull           /* when cores are not short */
#define SPIN_CROWDED_NS 5000ull    /* when ranks share cores */
#define DESCRIPTORS_A_RANK 6       /* PMI, control, two pipes, two files */

enum source_kind {
    SOURCE_SIGNAL,
    SOURCE_RELAY,
    SOURCE_STDIN,
    SOURCE_PUMP,
    SOURCE_PMI,
    SOURCE_CONTROL,
    SOURCE_OUT,
    SOURCE_ERR
};

struct run_rank {
    struct launch_process process; /* pid 0 once it was reaped */
    struct output_stream streams[2];
    bool watched[2];
    struct output_sink files[2]; /* with --output-dir */
};

struct run {
    const struct run_options *options;
    struct rundir dir;
    bool dir_made;
    char relay_address[CW_ADDRESS_MAX];
    uint8_t relay_key[CW_KEY_SIZE];
    uint8_t job_key[CW_KEY_SIZE];
    uint8_t job_id[CW_ID_SIZE];
    pid_t relay_pid; /* 0: not ours */
    bool relay_lost;
    struct relay_link link;
    struct cw_stats *stats;
    uint32_t stats_received;

    struct job job;
    struct job_rank *job_ranks;
    struct run_rank *ranks;
    uint32_t *appnums;
    const struct run_segment **segment_of;
    struct pmi *pmi;
    char device_path[PATH_MAX];
    char (*paths)[PATH_MAX]; /* of each segment's program */

    struct output_sink sinks[2];
    struct input_pump input;
    bool stdin_polled; /* stdin is of a kind that epoll takes */
    int epoll_fd;
    int signal_fd;
    uint64_t now_ns;
    uint64_t timeout_at_ns; /* 0: none */
    uint64_t lost_at_ns;    /* when to take `lost` for the reason; 0: nothing lost */
    char lost[CW_ERR_TEXT_MAX];
};

static uint64_t clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void say(const struct run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(const struct run *run, const char *fmt, ...)
{
    va_list ap;

    if (!run->options->verbose)
        return;
    fputs("causeway: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

/* --- watching descriptors ------------------------------------------------------------------------
 */

static uint64_t source(enum source_kind kind, uint32_t rank)
{
    return (uint64_t)kind << 32 | rank;
}

static int watch(struct run *run, int fd, enum source_kind kind, uint32_t rank, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.u64 = source(kind, rank)};

    return epoll_ctl(run->epoll_fd, EPOLL_CTL_ADD, fd, &e);
}

static void unwatch(struct run *run, int fd)
{
    epoll_ctl(run->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* --- what ranks do over PMI and their control descriptor -----------------------------------------
 */

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

    say(run, "rank %u has called MPI_Init", rank);
    job_rank_initialized(&run->job, rank, run->now_ns);
}

static void on_pmi_finalized(void *ctx, uint32_t rank)
{
    struct run *run = ctx;

    say(run, "rank %u has called MPI_Finalize", rank);
    job_rank_finalized(&run->job, rank);
}

static void on_pmi_aborted(void *ctx, uint32_t rank, int exit_code)
{
    struct run *run = ctx;

    job_fail(&run->job, exit_code & 255, run->now_ns, "rank %u (%s) called MPI_Abort with code %d",
             rank, run->job_ranks[rank].program, exit_code);
}

static const struct pmi_ops pmi_ops = {on_pmi_reply, on_pmi_initialized, on_pmi_finalized,
                                       on_pmi_aborted};

static void close_watched(struct run *run, int *fd)
{
    if (*fd < 0)
        return;
    unwatch(run, *fd);
    close(*fd);
    *fd = -1;
}

static void read_pmi(struct run *run, uint32_t rank)
{
    int *fd = &run->ranks[rank].process.pmi_fd;
    char bytes[4096];
    struct cw_err err;

    while (*fd >= 0) {
        ssize_t n = recv(*fd, bytes, sizeof(bytes), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            close_watched(run, fd);
            return;
        }
        if (pmi_input(run->pmi, rank, bytes, (size_t)n, &err) < 0) {
            job_fail(&run->job, 1, run->now_ns, "%s", err.text);
            close_watched(run, fd);
        }
    }
}

static void relay_lost(struct run *run, const char *text);

static void read_control(struct run *run, uint32_t rank)
{
    int *fd = &run->ranks[rank].process.control_fd;
    uint8_t bytes[CW_SETUP_MAX];
    struct cw_report report;

    while (*fd >= 0) {
        ssize_t n = recv(*fd, bytes, sizeof(bytes), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            close_watched(run, fd);
        } else if (cw_report_get(bytes, (size_t)n, &report)) {
            if (report.kind == CW_REPORT_RELAY_LOST)
                relay_lost(run, report.text);
            else
                job_fail(&run->job, 1, run->now_ns, "rank %u (%s): %s", rank,
                         run->job_ranks[rank].program, report.text);
        }
    }
}

/* --- the relay -----------------------------------------------------------------------------------
 */

static void relay_ended(struct run *run, int status)
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
static void relay_lost(struct run *run, const char *text)
{
    int status;

    if (run->job.ending)
        return;
    if (run->relay_pid && waitpid(run->relay_pid, &status, WNOHANG) == run->relay_pid)
        relay_ended(run, status);
    else if (!run->lost_at_ns) {
        run->lost_at_ns = run->now_ns + LOST_NS;
        snprintf(run->lost, sizeof(run->lost), "%s", text);
    }
}

static void on_notice(void *ctx, const struct cw_notice_body *notice)
{
    struct run *run = ctx;

    if (notice->rank == UINT32_MAX)
        say(run, "relay: %s", notice->text);
    else
        say(run, "relay: rank %u: %s", notice->rank, notice->text);
    if (notice->code == CW_NOTICE_FATAL) {
        job_fail(&run->job, 1, run->now_ns, "%s", notice->text);
    } else if (notice->code == CW_NOTICE_RANK_LOST && !run->lost_at_ns) {
        /* most often the process has ended, and its exit status says more */
        run->lost_at_ns = run->now_ns + LOST_NS;
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

static void read_relay(struct run *run)
{
    struct cw_err err = {0};

    if (run->link.fd < 0 || relay_link_input(&run->link, &link_ops, run, &err) == CW_OK)
        return;
    unwatch(run, run->link.fd);
    relay_link_close(&run->link);
    run->relay_lost = true;
    cw_err_wrap(&err, "relay %s", run->relay_address);
    relay_lost(run, err.text);
}

/* --- processes -----------------------------------------------------------------------------------
 */

static void rank_ended(struct run *run, uint32_t rank, int status)
{
    struct run_rank *r = &run->ranks[rank];

    /* what it said before it ended counts first */
    read_pmi(run, rank);
    read_control(run, rank);
    r->process.pid = 0;
    close_watched(run, &r->process.pmi_fd);
    close_watched(run, &r->process.control_fd);
    say(run, "rank %u ended (%s %d)", rank, WIFSIGNALED(status) ? "signal" : "exit code",
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
            relay_ended(run, status);
            continue;
        }
        while (rank < run->options->ranks && run->ranks[rank].process.pid != pid)
            rank++;
        if (rank < run->options->ranks)
            rank_ended(run, rank, status);
    }
}

static void signal_ranks(struct run *run, int signal_number)
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

static void read_signals(struct run *run)
{
    struct signalfd_siginfo info;

    while (read(run->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            reap(run);
        else if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2)
            signal_ranks(run, (int)info.ssi_signo);
        else
            job_interrupt(&run->job, (int)info.ssi_signo, run->now_ns);
    }
}

/* --- output --------------------------------------------------------------------------------------
 */

static void output_failed(struct run *run, const struct cw_err *err)
{
    if (err->code == CW_ECLOSED)
        job_fail(&run->job, 128 + SIGPIPE, run->now_ns, "%s", err->text);
    else
        job_fail(&run->job, 1, run->now_ns, "%s; the job ends", err->text);
}

static void stream_update(struct run *run, uint32_t rank, int which, int fd_before)
{
    struct run_rank *r = &run->ranks[rank];
    bool wants = output_stream_wants_input(&r->streams[which]);

    if (wants == r->watched[which])
        return;
    if (wants)
        watch(run, r->streams[which].fd, SOURCE_OUT + which, rank, EPOLLIN);
    else if (r->streams[which].fd >= 0)
        unwatch(run, fd_before);
    r->watched[which] = wants;
}

static void read_output(struct run *run, uint32_t rank, int which)
{
    struct output_stream *stream = &run->ranks[rank].streams[which];
    struct cw_err err = {0};
    int fd = stream->fd;

    if (stream->fd >= 0 && output_stream_read(stream, run->now_ns, &err) < 0) {
        output_failed(run, &err);
        stream->used = 0;
    }
    stream_update(run, rank, which, fd);
}

static uint64_t output_deadline(struct run *run)
{
    uint64_t first = UINT64_MAX;

    for (uint32_t rank = 0; rank < run->options->ranks; rank++)
        for (int which = 0; which < 2; which++) {
            uint64_t at = output_stream_deadline_ns(&run->ranks[rank].streams[which], run->now_ns);

            first = at < first ? at : first;
        }
    return first;
}

static void output_tick(struct run *run)
{
    for (uint32_t rank = 0; rank < run->options->ranks; rank++)
        for (int which = 0; which < 2; which++) {
            struct output_stream *stream = &run->ranks[rank].streams[which];
            struct cw_err err = {0};
            int fd = stream->fd;

            if (!stream->used)
                continue;
            if (output_stream_tick(stream, run->now_ns, &err) < 0) {
                output_failed(run, &err);
                stream->used = 0;
            }
            stream_update(run, rank, which, fd);
        }
}

static bool output_open(const struct run *run)
{
    for (uint32_t rank = 0; rank < run->options->ranks; rank++)
        for (int which = 0; which < 2; which++)
            if (run->ranks[rank].streams[which].fd >= 0 || run->ranks[rank].streams[which].used)
                return true;
    return false;
}

/* --- the loop ------------------------------------------------------------------------------------
 */

static void handle(struct run *run, uint64_t data)
{
    uint32_t rank = (uint32_t)data;

    switch ((enum source_kind)(data >> 32)) {
    case SOURCE_SIGNAL:
        read_signals(run);
        break;
    case SOURCE_RELAY:
        read_relay(run);
        break;
    case SOURCE_STDIN:
        input_move(&run->input, true);
        break;
    case SOURCE_PUMP:
        input_move(&run->input, !run->stdin_polled);
        break;
    case SOURCE_PMI:
        read_pmi(run, rank);
        break;
    case SOURCE_CONTROL:
        read_control(run, rank);
        break;
    case SOURCE_OUT:
        read_output(run, rank, 0);
        break;
    case SOURCE_ERR:
        read_output(run, rank, 1);
        break;
    }
}

/* stdin is watched one shot at a time, so that what rank 0 does not read yet stays where it is. */
static void input_watch(struct run *run)
{
    struct epoll_event read_event = {.events = EPOLLIN | EPOLLONESHOT,
                                     .data.u64 = source(SOURCE_STDIN, 0)};
    struct epoll_event write_event = {.events = EPOLLOUT | EPOLLONESHOT,
                                      .data.u64 = source(SOURCE_PUMP, 0)};

    if (input_wants_read(&run->input)) {
        if (run->stdin_polled)
            epoll_ctl(run->epoll_fd, EPOLL_CTL_MOD, STDIN_FILENO, &read_event);
        else
            input_move(&run->input, true);
    }
    if (input_wants_write(&run->input))
        epoll_ctl(run->epoll_fd, EPOLL_CTL_MOD, run->input.to, &write_event);
}

/* One turn: waits until something happens, at the latest at `until_ns`, and handles it. */
static void turn(struct run *run, uint64_t until_ns)
{
    struct epoll_event events[EVENTS_MAX];
    uint64_t deadline = output_deadline(run);
    int timeout_ms = -1;
    int n;

    input_watch(run);
    deadline = deadline < until_ns ? deadline : until_ns;
    if (deadline <= run->now_ns)
        timeout_ms = 0;
    else if (deadline != UINT64_MAX)
        timeout_ms = (int)((deadline - run->now_ns) / 1000000) + 1;
    n = epoll_wait(run->epoll_fd, events, EVENTS_MAX, timeout_ms);
    run->now_ns = clock_ns();
    for (int i = 0; i < n; i++)
        handle(run, events[i].data.u64);
    if (output_deadline(run) <= run->now_ns + OUTPUT_RETRY_NS)
        output_tick(run);
}

static uint64_t next_deadline(const struct run *run)
{
    uint64_t first = job_deadline_ns(&run->job);

    if (run->timeout_at_ns && !run->job.ending && run->timeout_at_ns < first)
        first = run->timeout_at_ns;
    if (run->lost_at_ns && !run->job.ending && run->lost_at_ns < first)
        first = run->lost_at_ns;
    return first;
}

static void check_time(struct run *run)
{
    if (run->timeout_at_ns && run->now_ns >= run->timeout_at_ns)
        job_fail(&run->job, JOB_EXIT_TIMEOUT, run->now_ns,
                 "the job ran out of its time (--timeout)");
    if (run->lost_at_ns && run->now_ns >= run->lost_at_ns)
        job_fail(&run->job, 1, run->now_ns, "%s", run->lost);
}

static void run_until_done(struct run *run)
{
    for (;;) {
        enum job_action action;

        check_time(run);
        action = job_next(&run->job, run->now_ns);
        if (action == JOB_DONE)
            return;
        if (action == JOB_SIGNAL) {
            signal_ranks(run, run->job.signal_number);
            continue;
        }
        turn(run, next_deadline(run));
    }
}

/* Processes that the ranks started and left behind became our children: they end with the job. */
static void end_left_behind(const struct run *run)
{
    char path[64];
    FILE *f;
    int pid;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    f = fopen(path, "re");
    while (f && fscanf(f, "%d", &pid) == 1)
        if (pid != run->relay_pid && waitpid(pid, NULL, WNOHANG) == 0)
            kill(pid, SIGKILL);
    if (f)
        fclose(f);
}

/* All ranks have ended: their last output is passed on. */
static void finish_output(struct run *run)
{
    uint64_t until = run->now_ns + AFTERMATH_NS;

    while (output_open(run) && run->now_ns < until)
        turn(run, run->now_ns + OUTPUT_RETRY_NS);
}

static void collect_stats(struct run *run)
{
    uint64_t until = run->now_ns + STATS_NS;
    struct cw_err err;

    if (!run->options->stats || run->link.fd < 0)
        return;
    run->stats = calloc(run->options->ranks, sizeof(*run->stats));
    if (!run->stats || relay_link_ask_stats(&run->link, &err) < 0)
        return;
    while (run->stats_received < run->options->ranks && run->link.fd >= 0 && run->now_ns < until)
        turn(run, until);
    if (run->stats_received == run->options->ranks)
        stats_print(run->stats, run->options->ranks);
    else
        fprintf(stderr, "causeway: the relay %s gave no statistics\n", run->relay_address);
}

/* --- start and end -------------------------------------------------------------------------------
 */

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
static uint64_t choose_spin(const struct run_options *options)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (options->spin_ns != UINT64_MAX)
        return options->spin_ns;
    return (long)options->ranks <= cores ? SPIN_NS : SPIN_CROWDED_NS;
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
                                        .spin_ns = choose_spin(run->options)};
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
    say(run, "relay started (pid %d, %s)", (int)pid, run->relay_address);
    return CW_OK;
}

static int open_relay(struct run *run, struct cw_err *err)
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
    watch(run, run->link.fd, SOURCE_RELAY, 0, EPOLLIN);
    return CW_OK;
}

static int open_signals(struct run *run, struct cw_err *err)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        sigaddset(&set, numbers[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    run->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    run->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (run->signal_fd < 0 || run->epoll_fd < 0 ||
        watch(run, run->signal_fd, SOURCE_SIGNAL, 0, EPOLLIN) < 0)
        return cw_err_set(err, CW_ESYS, "signalfd or epoll: %s", strerror(errno));
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return CW_OK;
}

static int open_input(struct run *run, struct cw_err *err)
{
    if (input_open(&run->input, err) < 0)
        return err->code;
    run->stdin_polled = watch(run, STDIN_FILENO, SOURCE_STDIN, 0, EPOLLONESHOT) == 0;
    watch(run, run->input.to, SOURCE_PUMP, 0, EPOLLONESHOT);
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
    run->pmi = pmi_new(&config, &pmi_ops, run);
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
        stream_update(run, rank, which, fds[which]);
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
                             .spin_ns = choose_spin(run->options)};

    memcpy(setup.job, run->job_id, sizeof(setup.job));
    cw_cred_rank_key(setup.key, run->job_key, rank, setup.incarnation);
    snprintf(setup.address, sizeof(setup.address), "%s", run->relay_address);
    if (launch_rank(job, segment, run->paths[run->appnums[rank]], &setup, &r->process, err) < 0)
        return err->code;
    job_rank_started(&run->job, rank);
    watch(run, r->process.pmi_fd, SOURCE_PMI, rank, EPOLLIN);
    watch(run, r->process.control_fd, SOURCE_CONTROL, rank, EPOLLIN);
    say(run, "rank %u started (pid %d, %s)", rank, (int)r->process.pid, segment->argv[0]);
    return adopt_streams(run, rank, err);
}

static void start_ranks(struct run *run)
{
    struct launch_job job = {.device_path = run->device_path,
                             .env = run->options->env,
                             .env_count = run->options->env_count,
                             .ranks = run->options->ranks,
                             .stdin_fd = run->input.rank_end};
    struct cw_err err = {0};

    for (uint32_t rank = 0; rank < run->options->ranks; rank++) {
        run->now_ns = clock_ns();
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

static void stop_relay(struct run *run)
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

static void cleanup(struct run *run)
{
    stop_relay(run);
    end_left_behind(run);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    for (uint32_t rank = 0; run->ranks && rank < run->options->ranks; rank++)
        for (int which = 0; which < 2; which++) {
            output_stream_close(&run->ranks[rank].streams[which]);
            output_sink_close(&run->ranks[rank].files[which]);
        }
    input_close(&run->input);
    if (run->dir_made)
        rundir_remove(&run->dir);
    pmi_free(run->pmi);
    free(run->stats);
    free(run->ranks);
    free(run->job_ranks);
    free(run->appnums);
    free(run->segment_of);
    free(run->paths);
}

static void raise_descriptor_limit(uint32_t ranks)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < ranks * DESCRIPTORS_A_RANK + 64) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int open_all(struct run *run, struct cw_err *err)
{
    if (allocate(run, err) < 0 || device_path_find(run->device_path, err) < 0)
        return err->code;
    for (uint32_t i = 0; i < run->options->segment_count; i++)
        if (check_program(run, i, err) < 0)
            return err->code;
    raise_descriptor_limit(run->options->ranks);
    if (open_signals(run, err) < 0 || open_output(run, err) < 0 || open_relay(run, err) < 0 ||
        open_pmi(run, err) < 0)
        return err->code;
    return open_input(run, err);
}

static void report(const struct run *run)
{
    if (run->job.reason[0])
        fprintf(stderr, "causeway: %s\n", run->job.reason);
    else if (run->job.no_mpi)
        fprintf(stderr,
                "causeway: note: no rank called MPI_Init; %s ran as %u separate processes\n",
                run->job_ranks[0].program, run->options->ranks);
}

/* As a shell says it: 127 not found, 126 found but not to be executed. */
static int exit_code_of(const struct cw_err *err)
{
    return err->code == CW_ENOTFOUND ? 127 : err->code == CW_EINVAL ? 126 : 1;
}

int run_job(const struct run_options *options)
{
    struct run *run = calloc(1, sizeof(*run));
    struct cw_err err = {0};
    int code;

    if (!run)
        return 1;
    run->options = options;
    run->link.fd = run->input.to = run->input.rank_end = -1;
    if (open_all(run, &err) < 0) {
        fprintf(stderr, "causeway: %s\n", err.text);
        code = exit_code_of(&err);
    } else {
        start_ranks(run);
        run_until_done(run);
        end_left_behind(run);
        finish_output(run);
        collect_stats(run);
        report(run);
        code = run->job.exit_code;
    }
    cleanup(run);
    free(run);
    return code;
}
