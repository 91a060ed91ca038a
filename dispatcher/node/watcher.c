#include "dispatcher/node/watcher.h"
#include "common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where the watcher has its descriptors, so that all others can be closed. */
#define SOCKET_FD 3
#define SIGNAL_FD 4
#define KEEP_FD 5

struct watcher {
    const struct watcher_config *config;
    int fd;    /* to the dispatcher */
    pid_t pid; /* of the rank */
    bool stopped;
    uint64_t alive_at_ns; /* the next sign of life */
};

static void tell(const struct watcher *w, uint32_t kind, int32_t value, int flags)
{
    struct watcher_message m = {kind, w->config->rank, w->config->incarnation, value};

    if (send(w->fd, &m, sizeof(m), MSG_NOSIGNAL | flags) < 0)
        return; /* the dispatcher is gone, which the next look at the socket shows, or behind */
}

/* Whatever the dispatcher has open ends when it closes it, not when we end. */
static void close_others(struct watcher *w)
{
    bool keeps = w->config->keep_fd > STDERR_FILENO;
    int keep = keeps ? fcntl(w->config->keep_fd, F_DUPFD, KEEP_FD + 1) : -1;
    int fd = fcntl(w->fd, F_DUPFD, KEEP_FD + 1);
    int null = open("/dev/null", O_RDWR);

    for (int i = 0; i < SOCKET_FD; i++)
        dup2(null, i);
    dup2(fd, SOCKET_FD);
    w->fd = SOCKET_FD;
    close(SIGNAL_FD);
    if (keeps)
        dup2(keep, KEEP_FD);
    closefrom(keeps ? KEEP_FD + 1 : KEEP_FD); /* also where there is no close_range(2) */
}

static void open_signals(void)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    fd = signalfd(-1, &set, SFD_NONBLOCK);
    if (fd != SIGNAL_FD) {
        dup2(fd, SIGNAL_FD);
        close(fd);
    }
}

/* The leader's own process stays until it is waited for, so the group is still its own. */
static void kill_group(const struct watcher *w, int signal_number)
{
    if (kill(-w->pid, signal_number) < 0)
        kill(w->pid, signal_number);
    if (signal_number == SIGTERM)
        kill(-w->pid, SIGCONT);
}

/* Says how the rank ended. What it started and left in its group after a crash would still speak
 * for it: that is killed before anybody hears of the end. */
static _Noreturn void rank_ended(const struct watcher *w)
{
    siginfo_t info;
    int status = 0;

    if (waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOWAIT) == 0 && info.si_code != CLD_EXITED)
        kill(-w->pid, SIGKILL);
    waitpid(w->pid, &status, 0);
    tell(w, WATCHER_EXITED, status, 0);
    _exit(0);
}

static void take_changes(struct watcher *w)
{
    struct signalfd_siginfo ignored;
    siginfo_t info;

    while (read(SIGNAL_FD, &ignored, sizeof(ignored)) > 0)
        ;
    for (;;) {
        info.si_pid = 0;
        if (waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid)
            rank_ended(w);
        info.si_pid = 0;
        if (waitid(P_PID, (id_t)w->pid, &info, WSTOPPED | WCONTINUED | WNOHANG) < 0 || !info.si_pid)
            return;
        w->stopped = info.si_code == CLD_STOPPED;
    }
}

/* Without a dispatcher nobody would ever end the rank. */
static void take_request(const struct watcher *w)
{
    struct watcher_message m;
    int got = watcher_receive(w->fd, &m);

    if (got > 0 && m.kind == WATCHER_SIGNAL)
        kill_group(w, m.value);
    if (got >= 0)
        return;
    kill_group(w, SIGKILL);
    if (w->config->keep_fd > STDERR_FILENO)
        waitpid(w->pid, NULL, 0);
    _exit(0);
}

static int wait_ms(const struct watcher *w, uint64_t now_ns)
{
    if (w->stopped)
        return -1;
    return cw_clock_wait_ms(now_ns, w->alive_at_ns);
}

static _Noreturn void watch(struct watcher *w)
{
    struct pollfd fds[2] = {{.fd = SOCKET_FD, .events = POLLIN},
                            {.fd = SIGNAL_FD, .events = POLLIN}};

    for (;;) {
        uint64_t now_ns = cw_clock_ns();

        if (!w->stopped && now_ns >= w->alive_at_ns) {
            /* a dispatcher that is behind will do with those that it has */
            tell(w, WATCHER_ALIVE, 0, MSG_DONTWAIT);
            w->alive_at_ns = now_ns + w->config->period_ns;
        }
        poll(fds, 2, wait_ms(w, now_ns));
        take_changes(w);
        take_request(w);
    }
}

static void prepare(void)
{
    sigset_t all;

    /* a group of its own, and no signal but SIGCHLD: what a terminal sends is for the dispatcher */
    setpgid(0, 0);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_NAME, WATCHER_NAME);
}

void watcher_run(const struct watcher_config *config)
{
    struct watcher w = {.config = config, .fd = config->fd};
    pid_t self = getpid();

    prepare();
    w.pid = _Fork();
    if (w.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setpgid(0, 0);
        /* said by itself: nothing that the program does comes before */
        tell(&w, WATCHER_STARTED, getpid(), 0);
        if (getppid() == self)
            config->become(config->ctx);
        _exit(1);
    }
    if (w.pid < 0) {
        config->no_fork(config->ctx);
        _exit(1);
    }
    /* the rank does so too: whoever comes first, the group is there when a signal has to be sent */
    setpgid(w.pid, w.pid);
    w.alive_at_ns = cw_clock_ns() + config->period_ns;
    close_others(&w);
    open_signals();
    watch(&w);
}

int watcher_receive(int fd, struct watcher_message *message)
{
    ssize_t n = recv(fd, message, sizeof(*message), MSG_DONTWAIT);

    if (n == (ssize_t)sizeof(*message))
        return 1;
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

void watcher_signal(int fd, int signal_number)
{
    struct watcher_message m = {.kind = WATCHER_SIGNAL, .value = signal_number};

    if (send(fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return;
}
