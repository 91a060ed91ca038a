#include "dispatcher/launch.h"
#include "dispatcher/watcher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* The same numbers in every incarnation, out of the way of a shell's redirections where the
 * descriptor limit allows it. */
#define NUMBERS_FROM 100
#define DESCRIPTORS_MIN 32 /* a lower limit leaves a process no room */

enum { PMI, CONTROL, OUT, ERR, STATUS, PAIRS };

struct pairs {
    int ours[PAIRS];
    int theirs[PAIRS];
    int base;       /* where the rank finds PMI; CONTROL and STATUS follow */
    int watcher[2]; /* ours, its watcher's */
};

/* What the new processes need to know. */
struct launch {
    const struct launch_job *job;
    const struct run_segment *segment;
    const char *path;
    const struct cw_setup *setup;
    const struct pairs *pairs;
};

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_ends(int *fds, int *watcher)
{
    for (int i = 0; i < PAIRS; i++)
        close_one(&fds[i]);
    close_one(watcher);
}

static int open_pair(int which, int fds[2])
{
    if (which == PMI)
        return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
    if (which == CONTROL)
        return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds);
    return pipe2(fds, O_CLOEXEC);
}

/* Returns 0, or -1 with errno set. */
static int pairs_open(struct pairs *pairs)
{
    struct rlimit limit = {.rlim_cur = 2 * NUMBERS_FROM};
    int fds[2];

    getrlimit(RLIMIT_NOFILE, &limit);
    pairs->base = limit.rlim_cur < 2 * NUMBERS_FROM ? (int)limit.rlim_cur / 2 : NUMBERS_FROM;
    pairs->watcher[0] = pairs->watcher[1] = -1;
    for (int i = 0; i < PAIRS; i++)
        pairs->ours[i] = pairs->theirs[i] = -1;
    errno = EMFILE;
    if (limit.rlim_cur < DESCRIPTORS_MIN)
        return -1;
    for (int i = 0; i < PAIRS; i++) {
        if (open_pair(i, fds) < 0)
            return -1;
        pairs->ours[i] = fds[0];
        pairs->theirs[i] = fds[1];
        if (i != STATUS)
            fcntl(fds[0], F_SETFL, O_NONBLOCK);
    }
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pairs->watcher);
}

static void set_number(const char *name, uint32_t value)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", value);
    setenv(name, text, 1);
}

static void set_preload(const char *device_path)
{
    const char *others = getenv("LD_PRELOAD");
    char value[8192];

    if (others && *others)
        snprintf(value, sizeof(value), "%s:%s", device_path, others);
    else
        snprintf(value, sizeof(value), "%s", device_path);
    setenv("LD_PRELOAD", value, 1);
}

static void put_env(const char *const *env, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        putenv((char *)env[i]);
}

/* Hydra, Slurm and others must not reach MPICH in the process: its PMI is ours. */
static void set_environment(const struct launch_job *job, const struct run_segment *segment,
                            const struct cw_setup *setup, int base)
{
    static const char *const foreign[] = {"PMI_PORT", "PMI_ID", "PMI_SPAWNED", "PMIX_RANK"};

    for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++)
        unsetenv(foreign[i]);
    put_env(job->env, job->env_count);
    put_env(segment->env, segment->env_count);
    set_number("PMI_FD", (uint32_t)base);
    set_number("PMI_RANK", setup->rank);
    set_number("PMI_SIZE", setup->ranks);
    set_number(CW_SETUP_ENV, (uint32_t)base + 1);
    /* one plain machine for everyone: looking at the real one takes time and differs between hosts
     */
    setenv("HWLOC_SYNTHETIC", "node:1 core:1 pu:1", 0);
    /* UCX is still loaded, and would print what the program did not when it crashes */
    setenv("UCX_HANDLE_ERRORS", "none", 0);
    set_preload(job->device_path);
}

static void place(int fd, int number)
{
    if (dup2(fd, number) < 0)
        _exit(126);
}

/* Moved out of the way first, so that no placement overwrites what another one still needs. */
static void place_all(const struct launch_job *job, const struct pairs *pairs, uint32_t rank)
{
    int moved[PAIRS];
    int input = rank == 0 ? job->stdin_fd : open("/dev/null", O_RDONLY);

    input = fcntl(input, F_DUPFD_CLOEXEC, pairs->base + 2 + 1);
    for (int i = 0; i < PAIRS; i++)
        moved[i] = fcntl(pairs->theirs[i], F_DUPFD_CLOEXEC, pairs->base + 2 + 1);
    place(input, STDIN_FILENO);
    place(moved[OUT], STDOUT_FILENO);
    place(moved[ERR], STDERR_FILENO);
    place(moved[PMI], pairs->base);
    place(moved[CONTROL], pairs->base + 1);
    place(moved[STATUS], pairs->base + 2);
    fcntl(pairs->base + 2, F_SETFD, FD_CLOEXEC);
    /* what a shell had open is not there in a later incarnation's number either */
    close_range(STDERR_FILENO + 1, (unsigned)pairs->base - 1, 0);
    close_range((unsigned)pairs->base + 3, UINT_MAX, 0);
}

/* errno says why. The dispatcher reads it from the other end. */
static void report_failure(int fd, const char *doing)
{
    char text[256];
    int size = snprintf(text, sizeof(text), "%s: %s", doing, strerror(errno));

    if (write(fd, text, (size_t)size) < 0)
        _exit(126);
    _exit(127);
}

static void default_signals(void)
{
    sigset_t none;

    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the rank's process. */
static void become_rank(void *ctx)
{
    const struct launch *launch = ctx;
    const struct run_segment *segment = launch->segment;
    int status_fd = launch->pairs->base + 2;
    char text[256];

    place_all(launch->job, launch->pairs, launch->setup->rank);
    default_signals();
    setpgid(0, 0);
    /* design rule: every incarnation has the same addresses, because MPICH sends addresses of its
     * requests in active messages and gets them back */
    personality((unsigned long)personality(0xffffffff) | ADDR_NO_RANDOMIZE);
    if (segment->wdir && chdir(segment->wdir) < 0) {
        snprintf(text, sizeof(text), "working directory %.200s", segment->wdir);
        report_failure(status_fd, text);
    }
    set_environment(launch->job, segment, launch->setup, launch->pairs->base);
    execv(launch->path, segment->argv);
    report_failure(status_fd, "exec");
}

/* In the watcher's. */
static void no_fork(void *ctx)
{
    const struct launch *launch = ctx;

    report_failure(launch->pairs->theirs[STATUS], "fork");
}

static _Noreturn void become_watcher(struct launch *launch, uint64_t period_ns)
{
    struct watcher_config config = {.rank = launch->setup->rank,
                                    .incarnation = launch->setup->incarnation,
                                    .period_ns = period_ns,
                                    .fd = launch->pairs->watcher[1],
                                    .become = become_rank,
                                    .no_fork = no_fork,
                                    .ctx = launch};

    watcher_run(&config);
}

/* Waits until the rank's process has become the program, or says why it cannot. */
static int await_exec(const struct pairs *pairs, pid_t *pid, struct cw_err *err)
{
    struct watcher_message m;
    char text[256];
    ssize_t n;

    do
        n = read(pairs->ours[STATUS], text, sizeof(text) - 1);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        text[n] = '\0';
        return cw_err_set(err, CW_ENOTFOUND, "%s", text);
    }
    if (watcher_receive(pairs->watcher[0], &m) != 1 || m.kind != WATCHER_STARTED)
        return cw_err_set(err, CW_ESYS, "the process that was to watch it has ended");
    *pid = m.value;
    return CW_OK;
}

static int send_setup(const struct pairs *pairs, const struct cw_setup *setup, struct cw_err *err)
{
    uint8_t record[CW_SETUP_MAX];
    size_t size = cw_setup_put(record, setup);

    if (send(pairs->ours[CONTROL], record, size, MSG_NOSIGNAL) != (ssize_t)size)
        return cw_err_set(err, CW_ESYS, "sending the setup: %s", strerror(errno));
    return CW_OK;
}

int launch_rank(const struct launch_job *job, const struct run_segment *segment, const char *path,
                const struct cw_setup *setup, struct launch_process *process, struct cw_err *err)
{
    struct pairs pairs;
    struct launch launch = {job, segment, path, setup, &pairs};
    pid_t watcher = -1;
    pid_t pid = 0;

    err->code = CW_OK;
    if (pairs_open(&pairs) < 0)
        cw_err_set(err, CW_ESYS, "opening its descriptors: %s (raise 'ulimit -n'?)",
                   strerror(errno));
    else if (send_setup(&pairs, setup, err) == CW_OK && (watcher = fork()) < 0)
        cw_err_set(err, CW_ESYS, "fork: %s", strerror(errno));
    if (watcher == 0)
        become_watcher(&launch, job->alive_period_ns);
    close_ends(pairs.theirs, &pairs.watcher[1]);
    if (watcher > 0)
        await_exec(&pairs, &pid, err);
    if (err->code) {
        close_ends(pairs.ours, &pairs.watcher[0]);
        return cw_err_wrap(err, "starting rank %u (%s)", setup->rank, path);
    }
    close(pairs.ours[STATUS]);
    *process = (struct launch_process){.pid = pid,
                                       .watcher_pid = watcher,
                                       .watcher_fd = pairs.watcher[0],
                                       .pmi_fd = pairs.ours[PMI],
                                       .control_fd = pairs.ours[CONTROL],
                                       .stdout_fd = pairs.ours[OUT],
                                       .stderr_fd = pairs.ours[ERR]};
    return CW_OK;
}
