#include "dispatcher/status/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#define LISTENER STATUS_CLIENTS_MAX /* its number in the epoll, behind the clients' */

static int watch(const struct status_server *s, int op, int fd, uint32_t number, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.u32 = number};

    return epoll_ctl(s->fd, op, fd, &e);
}

static int listen_in(struct status_server *s, const char *dir, const char *name, struct cw_err *err)
{
    char text[CW_ADDRESS_MAX];
    const char *path = text + strlen("unix:");

    snprintf(text, sizeof(text), "unix:%s/%s", dir, name);
    if (cw_address_parse(&s->address, text, err) < 0)
        return err->code;
    s->listener = cw_listen(&s->address, err);
    if (s->listener < 0)
        return err->code;
    if (chmod(path, 0600) < 0 || watch(s, EPOLL_CTL_ADD, s->listener, LISTENER, EPOLLIN) < 0)
        return cw_err_set(err, CW_ESYS, "%s: %s", path, strerror(errno));
    return CW_OK;
}

int status_open(struct status_server *s, const char *dir, const char *name, uint64_t fresh_ns,
                struct cw_err *err)
{
    *s = (struct status_server){.listener = -1, .fresh_ns = fresh_ns};
    for (int i = 0; i < STATUS_CLIENTS_MAX; i++)
        s->clients[i].fd = -1;
    s->fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->fd < 0)
        return cw_err_set(err, CW_ESYS, "epoll: %s", strerror(errno));
    if (listen_in(s, dir, name, err) == CW_OK)
        return CW_OK;
    status_close(s);
    return cw_err_wrap(err, "opening what causeway status asks");
}

static void accept_again(struct status_server *s)
{
    s->retry_at_ns = 0;
    watch(s, EPOLL_CTL_MOD, s->listener, LISTENER, EPOLLIN);
}

/* Until `until_ns`, or until a client is dropped. */
static void accept_no_more(struct status_server *s, uint64_t until_ns)
{
    s->retry_at_ns = until_ns;
    watch(s, EPOLL_CTL_MOD, s->listener, LISTENER, 0);
}

static void drop(struct status_server *s, struct status_client *c)
{
    close(c->fd);
    free(c->text);
    *c = (struct status_client){.fd = -1};
    accept_again(s);
}

/* Goes on with the answer; a client that has all of it, or that is gone, is dropped. */
static void write_answer(struct status_server *s, struct status_client *c)
{
    while (c->sent < c->size) {
        ssize_t n = send(c->fd, c->text + c->sent, c->size - c->sent, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0)
            break;
        c->sent += (size_t)n;
    }
    drop(s, c);
}

static struct status_client *free_place(struct status_server *s)
{
    for (int i = 0; i < STATUS_CLIENTS_MAX; i++)
        if (s->clients[i].fd < 0)
            return &s->clients[i];
    return NULL;
}

static bool accept_client(struct status_server *s, uint64_t now_ns)
{
    struct status_client *c = free_place(s);
    int fd = c ? cw_accept(s->listener, &s->address) : -EBUSY;

    /* no events: that it hangs up is told all the same */
    if (fd >= 0 && watch(s, EPOLL_CTL_ADD, fd, (uint32_t)(c - s->clients), 0) < 0) {
        close(fd);
        fd = -ENOSPC;
    }
    if (fd >= 0)
        *c = (struct status_client){.fd = fd, .since_ns = now_ns};
    else if (fd != -EAGAIN && fd != -EINTR && fd != -ECONNABORTED)
        accept_no_more(s, now_ns + STATUS_RETRY_NS);
    return fd >= 0;
}

static uint64_t client_deadline_ns(const struct status_server *s, const struct status_client *c)
{
    if (c->fd < 0)
        return UINT64_MAX;
    return c->since_ns + (c->text ? STATUS_READ_NS : s->fresh_ns);
}

bool status_step(struct status_server *s, uint64_t now_ns)
{
    struct epoll_event events[STATUS_CLIENTS_MAX + 1];
    bool somebody_new = false;
    int n = s->fd < 0 ? 0 : epoll_wait(s->fd, events, STATUS_CLIENTS_MAX + 1, 0);

    for (int i = 0; i < n; i++) {
        struct status_client *c = &s->clients[events[i].data.u32];

        if (events[i].data.u32 == LISTENER)
            somebody_new |= accept_client(s, now_ns);
        else if (events[i].events & (EPOLLHUP | EPOLLERR))
            drop(s, c);
        else
            write_answer(s, c);
    }
    if (s->retry_at_ns && s->retry_at_ns <= now_ns)
        accept_again(s);
    for (int i = 0; s->fd >= 0 && i < STATUS_CLIENTS_MAX; i++)
        if (s->clients[i].text && client_deadline_ns(s, &s->clients[i]) <= now_ns)
            drop(s, &s->clients[i]);
    return somebody_new;
}

static bool waits(const struct status_client *c)
{
    return c->fd >= 0 && !c->text;
}

bool status_waiting(const struct status_server *s)
{
    return status_due(s, UINT64_MAX);
}

bool status_due(const struct status_server *s, uint64_t now_ns)
{
    for (int i = 0; s->fd >= 0 && i < STATUS_CLIENTS_MAX; i++)
        if (waits(&s->clients[i]) && client_deadline_ns(s, &s->clients[i]) <= now_ns)
            return true;
    return false;
}

void status_renew(struct status_server *s, uint64_t now_ns)
{
    for (int i = 0; s->fd >= 0 && i < STATUS_CLIENTS_MAX; i++)
        if (waits(&s->clients[i]))
            s->clients[i].since_ns = now_ns;
}

uint64_t status_deadline_ns(const struct status_server *s)
{
    uint64_t first = s->fd >= 0 && s->retry_at_ns ? s->retry_at_ns : UINT64_MAX;

    for (int i = 0; s->fd >= 0 && i < STATUS_CLIENTS_MAX; i++)
        if (client_deadline_ns(s, &s->clients[i]) < first)
            first = client_deadline_ns(s, &s->clients[i]);
    return first;
}

void status_answer(struct status_server *s, const json_t *document, uint64_t now_ns)
{
    for (uint32_t i = 0; s->fd >= 0 && i < STATUS_CLIENTS_MAX; i++) {
        struct status_client *c = &s->clients[i];

        if (!waits(c))
            continue;
        c->text = document ? json_dumps(document, JSON_COMPACT) : NULL;
        c->size = c->text ? strlen(c->text) : 0;
        c->since_ns = now_ns;
        write_answer(s, c);
        if (c->fd >= 0)
            watch(s, EPOLL_CTL_MOD, c->fd, i, EPOLLOUT);
    }
}

void status_close(struct status_server *s)
{
    if (s->fd < 0)
        return;
    for (int i = 0; i < STATUS_CLIENTS_MAX; i++)
        if (s->clients[i].fd >= 0)
            drop(s, &s->clients[i]);
    if (s->listener >= 0)
        cw_unlisten(s->listener, &s->address);
    close(s->fd);
    s->fd = s->listener = -1;
}
