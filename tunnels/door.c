#include "tunnels/door.h"
#include "common/fd.h"
#include "common/listen.h"
#include "common/signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define DOOR_END_MS 5000u /* for tunnels to end, that were asked to */
#define DOOR_STEP_MS 10u  /* between two looks whether they have */

struct house {
    const struct door *door;
    uint32_t doors;
    struct loop *loop;
    struct listeners listeners;
    struct signals signals;
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
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
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

static int open_listeners(struct house *h, struct cw_err *err)
{
    for (uint32_t i = 0; i < h->doors; i++)
        if (listeners_add(&h->listeners, &h->door[i].at, err) < 0)
            return cw_err_wrap(err, "a door to %s", h->door[i].to);
    return CW_OK;
}

static void announce(const struct house *h, int ready_fd)
{
    for (uint32_t i = 0; i < h->doors; i++) {
        const char *at = h->listeners.at[i].address.text;

        if (ready_fd >= 0)
            dprintf(ready_fd, "%s\n", at);
        else
            fprintf(stderr, "causeway tunnel: listening on %s for %s\n", at, h->door[i].to);
    }
    cw_close(&ready_fd);
}

/* With as many connections as there may be, further ones wait in the kernel. */
static void lead_on(void *ctx, uint32_t number, int fd)
{
    struct house *h = ctx;

    cw_keep_alive(fd);
    if (!start_tunnel(h, fd, h->door[number].to))
        listeners_pause(&h->listeners, LISTEN_PAUSE_NS);
    else if (h->tunnels == DOOR_CONNECTIONS_MAX)
        listeners_pause(&h->listeners, LOOP_NEVER);
    close(fd);
}

/* --- its life --- */

static void on_signal(void *ctx, int number)
{
    struct house *h = ctx;
    bool full = h->tunnels == DOOR_CONNECTIONS_MAX;

    h->over |= number != SIGCHLD;
    reap(h);
    if (full && h->tunnels < DOOR_CONNECTIONS_MAX)
        listeners_pause(&h->listeners, 0);
}

static int open_all(struct house *h, struct cw_err *err)
{
    sigprocmask(SIG_SETMASK, NULL, &h->before);
    h->loop = loop_new(err);
    if (!h->loop || signals_open(&h->signals, h->loop, on_signal, h, err) < 0)
        return err->code;
    listeners_init(&h->listeners, h->loop, lead_on, h);
    return open_listeners(h, err);
}

int doors_run(const struct door *doors, uint32_t count, int ready_fd, struct cw_err *err)
{
    struct house *h = calloc(1, sizeof(*h));

    if (!h)
        return cw_err_set(err, CW_ENOMEM, "no memory for doors");
    h->door = doors;
    h->doors = count;
    if (open_all(h, err) == CW_OK) {
        announce(h, ready_fd);
        while (!h->over)
            loop_turn(h->loop, LOOP_NEVER);
    }
    listeners_close(&h->listeners);
    end_tunnels(h);
    signals_close(&h->signals);
    loop_free(h->loop);
    free(h);
    return err->code;
}
