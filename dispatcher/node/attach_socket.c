#include "dispatcher/node/attach_socket.h"
#include "dispatcher/node/node.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct attach_socket {
    struct loop *loop;
    struct loop_watch listener;
    struct wire wire; /* of the newest that came */
    struct greeting greeting;
    attach_socket_take *attach;
    void *ctx;
};

static int refuse(struct attach_socket *d, const char *why, struct cw_err *err)
{
    uint8_t bytes[GREETING_HEADER + GREETING_FRAME_MAX];

    wire_greet(&d->wire, bytes, greeting_put_refused(bytes, why), err);
    wire_flush(&d->wire);
    return cw_err_set(err, CW_EAUTH, "%s", why);
}

static long on_greeting(void *ctx, const uint8_t *bytes, size_t size, struct cw_err *err)
{
    struct attach_socket *d = ctx;
    enum greeting_type type;
    size_t body_size;
    long used = greeting_take(&d->greeting, bytes, size, &type, &body_size, err);

    if (used < 0 || type == GREETING_NONE)
        return used;
    if (d->attach(d->ctx, type, d->greeting.bytes + GREETING_HEADER, body_size, &d->wire, err) < 0)
        refuse(d, err->text, err);
    sodium_memzero(&d->greeting, sizeof(d->greeting));
    return used;
}

static void on_broke(void *ctx, const struct cw_err *err)
{
    (void)ctx;
    (void)err;
}

static const struct wire_ops wire_ops = {on_greeting, on_broke};

static bool is_own(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

static void on_connection(void *ctx)
{
    struct attach_socket *d = ctx;
    struct cw_err err;
    int fd = accept4(d->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0)
        return;
    if (!is_own(fd)) {
        close(fd);
        return;
    }
    wire_close(&d->wire);
    greeting_init(&d->greeting, false);
    if (wire_open(&d->wire, fd, fd, &err) == CW_OK)
        wire_greet(&d->wire, GREETING_MAGIC, strlen(GREETING_MAGIC), &err);
}

struct attach_socket *attach_socket_open(struct loop *loop, const char *dir,
                                         attach_socket_take *attach, void *ctx, struct cw_err *err)
{
    struct attach_socket *d = calloc(1, sizeof(*d));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/" NODE_SOCKET, dir);
    if (!d || fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(fd, ATTACH_SOCKET_BACKLOG) < 0) {
        cw_err_set(err, CW_ESYS, "listening at %s: %s", address.sun_path, strerror(errno));
        if (fd >= 0)
            close(fd);
        free(d);
        return NULL;
    }
    d->loop = loop;
    d->attach = attach;
    d->ctx = ctx;
    wire_init(&d->wire, loop, &wire_ops, d);
    loop_watch(loop, &d->listener, fd, EPOLLIN, on_connection, d);
    return d;
}

void attach_socket_close(struct attach_socket *d)
{
    if (!d)
        return;
    wire_end(&d->wire);
    loop_close(d->loop, &d->listener);
    free(d);
}
