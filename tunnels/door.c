#include "tunnels/door.h"
#include "common/fd.h"
#include "common/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define DOOR_END_MS 5000u  /* for tunnels to end, that were asked to */
#define DOOR_STEP_MS 10u   /* between two looks whether they have */
#define DOOR_PAUSE_MS 100u /* when a connection cannot be accepted, or no tunnel started */

struct house {
    struct door *door;
    uint32_t doors;
    int listener[DOORS_MAX];
    int signals; /* a signalfd */
    sigset_t before;
    pid_t tunnel[DOOR_CONNECTIONS_MAX];
    uint32_t tunnels;
    bool over;
};

/* --- tunnels --- */

/* In the child: the connection is its standard input and output, and what goes wrong is told on our
 * standard error. */
static _Noreturn void become_tunnel(const struct house *h, int fd, const char *to, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, &h->before, NULL);
    if (getppid() == parent && dup2(fd, STDIN_FILENO) >= 0 && dup2(fd, STDOUT_FILENO) >= 0)
        execl("/proc/self/exe", "causeway", "tunnel", to, (char *)NULL);
    _exit(1);
}

static bool start_tunnel(struct house *h, int fd, const char *to)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid == 0)
        become_tunnel(h, fd, to, parent);
    if (pid < 0)
        fprintf(stderr, "causeway tunnel: a connection to %s is refused: fork: %s\n", to,
                strerror(errno));
    else
        h->tunnel[h->tunnels++] = pid;
    return pid > 0;
}

static void forget(struct house *h, pid_t pid)
{
    for (uint32_t i = 0; i < h->tunnels; i++)
        if (h->tunnel[i] == pid) {
            h->tunnel[i] = h->tunnel[--h->tunnels];
            return;
        }
}

static void reap(struct house *h)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        forget(h, pid);
}

static void signal_all(const struct house *h, int signal_number)
{
    for (uint32_t i = 0; i < h->tunnels; i++)
        kill(h->tunnel[i], signal_number);
}

static void end_tunnels(struct house *h)
{
    signal_all(h, SIGTERM);
    for (uint32_t ms = 0; ms < DOOR_END_MS && h->tunnels > 0; ms += DOOR_STEP_MS) {
        reap(h);
        poll(NULL, 0, DOOR_STEP_MS);
    }
    signal_all(h, SIGKILL);
}

/* --- listeners --- */

static void close_listeners(struct house *h, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        cw_unlisten(h->listener[i], &h->door[i].at);
}

static int open_listeners(struct house *h, struct cw_err *err)
{
    for (uint32_t i = 0; i < h->doors; i++) {
        h->listener[i] = cw_listen(&h->door[i].at, err);
        if (h->listener[i] < 0) {
            close_listeners(h, i);
            return cw_err_wrap(err, "a door to %s", h->door[i].to);
        }
    }
    return CW_OK;
}

static void announce(const struct house *h, int ready_fd)
{
    for (uint32_t i = 0; i < h->doors; i++)
        if (ready_fd >= 0)
            dprintf(ready_fd, "%s\n", h->door[i].at.text);
        else
            fprintf(stderr, "causeway tunnel: listening on %s for %s\n", h->door[i].at.text,
                    h->door[i].to);
    cw_close(&ready_fd);
}

static void lead_on(struct house *h, uint32_t i)
{
    int fd = cw_accept(h->listener[i], &h->door[i].at);

    if (fd == -EAGAIN || fd == -ECONNABORTED || fd == -EINTR)
        return;
    if (fd < 0)
        fprintf(stderr, "causeway tunnel: accepting a connection at %s: %s\n", h->door[i].at.text,
                strerror(-fd));
    cw_keep_alive(fd);
    if (fd < 0 || !start_tunnel(h, fd, h->door[i].to))
        poll(NULL, 0, DOOR_PAUSE_MS);
    cw_close(&fd);
}

/* --- its life --- */

static void on_signal(struct house *h)
{
    struct signalfd_siginfo info;

    while (read(h->signals, &info, sizeof(info)) == sizeof(info))
        h->over |= info.ssi_signo != SIGCHLD;
    reap(h);
}

/* With as many connections as there may be, further ones wait in the kernel. */
static void turn(struct house *h)
{
    struct pollfd fds[DOORS_MAX + 1];
    bool full = h->tunnels == DOOR_CONNECTIONS_MAX;

    fds[h->doors] = (struct pollfd){.fd = h->signals, .events = POLLIN};
    for (uint32_t i = 0; i < h->doors; i++)
        fds[i] = (struct pollfd){.fd = full ? -1 : h->listener[i], .events = POLLIN};
    if (poll(fds, h->doors + 1, -1) < 0)
        return;
    if (fds[h->doors].revents)
        on_signal(h);
    for (uint32_t i = 0; i < h->doors && !h->over; i++)
        if (fds[i].revents && h->tunnels < DOOR_CONNECTIONS_MAX)
            lead_on(h, i);
}

static int open_signals(struct house *h, struct cw_err *err)
{
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
    sigset_t ours;

    sigemptyset(&ours);
    cw_signals_add(&ours, numbers, sizeof(numbers) / sizeof(*numbers));
    sigprocmask(SIG_BLOCK, &ours, &h->before);
    h->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return h->signals >= 0 ? CW_OK
                           : cw_err_set(err, CW_ESYS, "doors: signalfd: %s", strerror(errno));
}

int doors_run(struct door *doors, uint32_t count, int ready_fd, struct cw_err *err)
{
    struct house *h = calloc(1, sizeof(*h));

    if (!h)
        return cw_err_set(err, CW_ENOMEM, "no memory for doors");
    h->door = doors;
    h->doors = count;
    if (open_signals(h, err) == CW_OK) {
        if (open_listeners(h, err) == CW_OK) {
            announce(h, ready_fd);
            while (!h->over)
                turn(h);
            close_listeners(h, count);
            end_tunnels(h);
        }
        close(h->signals);
    }
    free(h);
    return err->code;
}
