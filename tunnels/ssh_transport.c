#include "tunnels/ssh_transport.h"
#include "tunnels/tunnel.h"

#include <errno.h>
#include <poll.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

extern char **environ;

#define FD "3" /* of the tunnel's process */

static _Atomic pid_t known[TUNNELS_KNOWN_MAX];

static void replace(pid_t one, pid_t by)
{
    for (uint32_t i = 0; i < TUNNELS_KNOWN_MAX; i++) {
        pid_t expected = one;

        if (atomic_compare_exchange_strong(&known[i], &expected, by))
            return;
    }
}

bool ssh_transport_is_tunnel(pid_t pid)
{
    for (uint32_t i = 0; i < TUNNELS_KNOWN_MAX; i++)
        if (known[i] == pid)
            return true;
    return false;
}

void ssh_transport_ended(pid_t pid)
{
    replace(pid, 0);
}

static int parse(struct cw_address *address, const char *rest, struct cw_err *err)
{
    struct ssh_address ssh;

    (void)rest;
    address->count = 1;
    return ssh_address_parse(&ssh, address->text, err);
}

static int claim(const struct cw_address *address, struct cw_err *err)
{
    return cw_err_set(
        err, CW_EINVAL,
        "%s: nobody can listen there: it is how others reach HOST:PORT; listen at tcp:HOST:PORT",
        address->text);
}

static void tune(int fd)
{
    (void)fd;
}

static void release(const struct cw_address *address)
{
    (void)address;
}

/* Its process ends when the socket does. */
static int start(int fd, const char *text)
{
    const char *const argv[] = {"causeway", "tunnel", "--fd", FD, text, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int failed = posix_spawn_file_actions_init(&actions);

    if (!failed)
        failed = posix_spawn_file_actions_adddup2(&actions, fd, FD[0] - '0');
    if (!failed)
        failed = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (!failed)
        replace(0, pid);
    return failed;
}

static int begin(const struct cw_address *address, struct cw_err *err)
{
    int ends[2], failed;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return cw_err_set(err, CW_ESYS, "%s: socketpair: %s", address->text, strerror(errno));
    failed = start(ends[1], address->text);
    close(ends[1]);
    if (!failed)
        return ends[0];
    close(ends[0]);
    return cw_err_set(err, CW_ESYS, "%s: starting causeway tunnel: %s", address->text,
                      strerror(failed));
}

static int end(int fd, const struct cw_address *address, int timeout_ms, struct cw_err *err)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char said = '\0', why[CW_ERR_TEXT_MAX];
    ssize_t n;

    if (poll(&p, 1, timeout_ms) == 0)
        return cw_err_set(err, CW_ESYS, "connect to %s: no tunnel in time", address->text);
    if (recv(fd, &said, 1, 0) == 1 && said == TUNNEL_OPENED)
        return CW_OK;
    n = said == TUNNEL_FAILED && poll(&p, 1, timeout_ms) == 1 ? recv(fd, why, sizeof(why) - 1, 0)
                                                              : -1;
    why[n > 0 ? n : 0] = '\0';
    return cw_err_set(err, CW_ESYS, "connect to %s: %s", address->text,
                      n > 0 ? why : "the tunnel ended");
}

const struct cw_transport ssh_transport = {.scheme = "ssh",
                                           .parse = parse,
                                           .claim = claim,
                                           .tune = tune,
                                           .release = release,
                                           .begin = begin,
                                           .end = end};
