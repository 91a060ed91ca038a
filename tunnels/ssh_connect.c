#include "tunnels/ssh_connect.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/transport.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NS_IN_MS 1000000ull

struct tries {
    const struct cw_address *address;
    struct pollfd fd[SSH_CONNECTS_MAX]; /* -1: none */
    int place[SSH_CONNECTS_MAX];        /* of the address, for which each is */
    uint32_t begun;
    int next_place;
    bool refused[CW_SOCKADDRS_MAX];
};

/* The next place that has not refused; -1: all have. */
static int next_place(struct tries *t)
{
    for (int i = 0; i < t->address->count; i++) {
        int place = (t->next_place + i) % t->address->count;

        if (t->refused[place])
            continue;
        t->next_place = place + 1;
        return place;
    }
    return -1;
}

/* In place of the one that has waited longest. */
static void begin(struct tries *t, int place, struct cw_err *err)
{
    uint32_t i = t->begun++ % SSH_CONNECTS_MAX;

    cw_close(&t->fd[i].fd);
    t->fd[i] = (struct pollfd){.fd = cw_connect_begin(t->address, place, err), .events = POLLOUT};
    t->place[i] = place;
    t->refused[place] = t->fd[i].fd < 0;
}

/* Returns the socket that is connected, or -1. */
static int look(struct tries *t, struct cw_err *err)
{
    for (uint32_t i = 0; i < SSH_CONNECTS_MAX; i++) {
        int fd = t->fd[i].fd;

        if (fd < 0 || !t->fd[i].revents)
            continue;
        t->fd[i].fd = -1;
        if (cw_connect_end(fd, t->address, 0, err) == CW_OK)
            return fd;
        close(fd);
        t->refused[t->place[i]] = true;
    }
    return -1;
}

static void end(struct tries *t)
{
    for (uint32_t i = 0; i < SSH_CONNECTS_MAX; i++)
        cw_close(&t->fd[i].fd);
}

static int try_often(struct tries *t, uint64_t until_ns, struct cw_err *err)
{
    int place, fd = -1;

    while (fd < 0 && (place = next_place(t)) >= 0) {
        uint64_t again_ns = cw_clock_ns() + SSH_CONNECT_AGAIN_NS;

        begin(t, place, err);
        for (uint64_t now_ns; fd < 0 && !t->refused[place] && (now_ns = cw_clock_ns()) < again_ns;
             fd = look(t, err)) {
            if (now_ns >= until_ns)
                return cw_err_set(err, CW_ETIME, "connect to %s: no answer", t->address->text);
            poll(t->fd, SSH_CONNECTS_MAX, (int)((again_ns - now_ns) / NS_IN_MS) + 1);
        }
    }
    return fd >= 0 ? fd : err->code;
}

int ssh_connect(const char *host, uint16_t port, uint64_t until_ns, struct cw_err *err)
{
    struct tries t = {0};
    struct cw_address address;
    char text[CW_ADDRESS_MAX];
    int fd;

    snprintf(text, sizeof(text), strchr(host, ':') ? "tcp:[%s]:%u" : "tcp:%s:%u", host, port);
    if (cw_address_parse(&address, text, err) < 0)
        return err->code;
    t.address = &address;
    for (uint32_t i = 0; i < SSH_CONNECTS_MAX; i++)
        t.fd[i].fd = -1;
    fd = try_often(&t, until_ns, err);
    end(&t);
    return fd;
}
