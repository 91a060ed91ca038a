#include "relay/keeper.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/signals.h"
#include "relay/process.h"
#include "relay/restarts.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEVER UINT64_MAX
#define NS_IN_MS 1000000u
#define NS_IN_S 1000000000u

struct keeper {
    const struct keeper_config *config;
    struct relay_kept kept;
    struct relay_restarts restarts;
    sigset_t before; /* the signals that were blocked before us */
    int signals;     /* a signalfd */
    int listens_fd;  /* -1, or until the child listens */
    pid_t pid;       /* 0: it has ended */
    uint64_t due_ns; /* the time of its next start, or by which it has to listen; NEVER */
    bool listened;   /* once */
    bool late;       /* it was killed, for it did not listen in time */
    bool over;
    int code;
};

static void keeper_end(struct keeper *k, int code)
{
    k->over = true;
    k->code = code;
}

/* --- a child ---------------------------------------------------------------------------------- */

/* The name tells it from its keeper, whose command line it has. */
static _Noreturn void become_relay(const struct keeper *k, const struct relay_pipes *pipes,
                                   pid_t parent)
{
    const struct keeper_child child = {pipes->key_fd, pipes->ready_fd, k->kept.state_fd,
                                       k->kept.disk_fd};

    prctl(PR_SET_NAME, "causeway-relay");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* it died before that */
    close(k->signals);
    close(pipes->listens_fd);
    sigprocmask(SIG_SETMASK, &k->before, NULL);
    exit(k->config->run(k->config->ctx, &child));
}

static int start(struct keeper *k, struct cw_err *err)
{
    struct relay_pipes pipes;
    pid_t parent = getpid();
    pid_t pid;

    if (relay_pipes_open(&pipes, k->config->key, err) < 0)
        return err->code;
    pid = fork();
    if (pid == 0)
        become_relay(k, &pipes, parent);
    if (pid < 0) {
        cw_err_set(err, CW_ESYS, "starting the relay: fork: %s", strerror(errno));
        relay_pipes_close(&pipes);
        return err->code;
    }
    relay_pipes_pass(&pipes);
    k->pid = pid;
    k->late = false;
    k->listens_fd = pipes.listens_fd;
    return CW_OK;
}

/* --- what happens ----------------------------------------------------------------------------- */

/* The relay has ended, as `how` says, or could not be started. */
static void start_later(struct keeper *k, const char *how, struct cw_err *err)
{
    if (relay_restarts_next(&k->restarts, cw_clock_ns(), &k->due_ns)) {
        fprintf(stderr, "causeway relay: %s; starting it again on its log (%u of %u)\n", how,
                k->restarts.in_row, RELAY_RESTARTS_MAX);
    } else {
        cw_err_set(err, CW_ESYS, "%s, after it was started again %u times", how,
                   k->restarts.in_row);
        keeper_end(k, 1);
    }
}

/* It listens, or has ended: then SIGCHLD says more. */
static void on_ready(struct keeper *k)
{
    bool listens = relay_process_listens(k->listens_fd);

    close(k->listens_fd);
    k->listens_fd = -1;
    if (!listens)
        return;
    k->due_ns = NEVER;
    if (!k->listened)
        k->config->listens(k->config->ctx);
    k->listened = true;
}

static void describe_end(const struct keeper *k, int status, char *how, size_t size)
{
    if (k->late)
        snprintf(how, size, "the relay did not listen for %llu s and was killed",
                 RELAY_RETURN_NS_MAX / NS_IN_S);
    else if (WIFSIGNALED(status))
        snprintf(how, size, "the relay was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, size, "the relay ended with code %d", WEXITSTATUS(status));
}

/* One that never listened has no jobs, and another one would not listen either. One that ends well
 * was asked to. */
static void on_end(struct keeper *k, int status, struct cw_err *err)
{
    char how[128];

    k->pid = 0;
    k->due_ns = NEVER;
    if (k->listens_fd >= 0)
        on_ready(k);
    describe_end(k, status, how, sizeof(how));
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || !k->listened)) {
        keeper_end(k, WEXITSTATUS(status));
    } else if (k->listened) {
        start_later(k, how, err);
    } else {
        cw_err_set(err, CW_ESYS, "%s before it listened", how);
        keeper_end(k, 1);
    }
}

static void on_timer(struct keeper *k, struct cw_err *err)
{
    struct cw_err why = {0};

    k->due_ns = NEVER;
    if (k->pid > 0) {
        k->late = true;
        kill(k->pid, SIGKILL);
    } else if (start(k, &why) == CW_OK) {
        k->due_ns = cw_clock_ns() + RELAY_RETURN_NS_MAX;
    } else {
        start_later(k, why.text, err);
    }
}

static void on_signal(struct keeper *k, struct cw_err *err)
{
    struct signalfd_siginfo info;
    int status;

    while (!k->over && read(k->signals, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo != SIGCHLD)
            keeper_end(k, 0);
        else if (k->pid > 0 && waitpid(k->pid, &status, WNOHANG) == k->pid)
            on_end(k, status, err);
    }
}

/* --- its life --------------------------------------------------------------------------------- */

static int timeout_ms(const struct keeper *k)
{
    uint64_t now_ns = cw_clock_ns();

    if (k->due_ns == NEVER)
        return -1;
    return now_ns >= k->due_ns ? 0 : (int)((k->due_ns - now_ns) / NS_IN_MS + 1);
}

static void turn(struct keeper *k, struct cw_err *err)
{
    struct pollfd fds[2] = {{.fd = k->signals, .events = POLLIN},
                            {.fd = k->listens_fd, .events = POLLIN}};

    if (poll(fds, 2, timeout_ms(k)) < 0)
        return; /* interrupted: nothing is known of them */
    if (fds[1].revents)
        on_ready(k);
    if (fds[0].revents)
        on_signal(k, err);
    if (!k->over && k->due_ns != NEVER && cw_clock_ns() >= k->due_ns)
        on_timer(k, err);
}

static int open_signals(struct keeper *k, struct cw_err *err)
{
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
    sigset_t ours;

    sigemptyset(&ours);
    cw_signals_add(&ours, numbers, sizeof(numbers) / sizeof(*numbers));
    sigprocmask(SIG_BLOCK, &ours, &k->before);
    k->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    if (k->signals < 0)
        return cw_err_set(err, CW_ESYS, "keeping a relay: signalfd: %s", strerror(errno));
    return CW_OK;
}

static void keeper_close(struct keeper *k)
{
    if (k->pid > 0) {
        kill(k->pid, SIGTERM);
        relay_process_await_end(k->pid);
    }
    cw_close(&k->listens_fd);
    relay_kept_close(&k->kept);
    cw_close(&k->signals);
}

int keeper_run(const struct keeper_config *config, struct cw_err *err)
{
    struct keeper k = {.config = config,
                       .kept = {.state_fd = -1, .disk_fd = -1},
                       .signals = -1,
                       .listens_fd = -1,
                       .due_ns = NEVER,
                       .code = 1};

    prctl(PR_SET_NAME, "causeway-keeper");
    if (open_signals(&k, err) == CW_OK && relay_kept_make(&k.kept, config->log_dir, err) == CW_OK &&
        start(&k, err) == CW_OK)
        while (!k.over)
            turn(&k, err);
    keeper_close(&k);
    return k.code;
}
