#include "relay/dial.h"
#include "relay/dial_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dial {
    struct cw_dial *threads;
    int engine_end; /* of a socket pair for messages, each with a connection or a failure */
    int thread_end;
};

/* A failure has no connection: fd is negative. */
static void hand_over(const struct dial *d, const struct relay_dialled *dialled, int fd)
{
    struct iovec iov = {(void *)dialled, sizeof(*dialled)};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd >= 0) {
        control.header =
            (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
        msg.msg_control = &control;
        msg.msg_controllen = sizeof(control);
    }
    if (sendmsg(d->thread_end, &msg, MSG_NOSIGNAL) < 0)
        dprintf(STDERR_FILENO, "causeway relay: handing over a link: %s\n", strerror(errno));
}

/* In a thread of the dial. */
static void on_done(void *ctx, const struct cw_dial_result *result)
{
    struct relay_dialled dialled = dial_outcome_of(result);

    hand_over(ctx, &dialled, result->fd);
    if (result->fd >= 0)
        close(result->fd);
}

static bool dial_add(void *ctx, const struct relay_dial *what)
{
    struct cw_dial_request request;
    struct dial *d = ctx;
    bool added;

    dial_request_of(&request, what);
    added = cw_dial_add(d->threads, &request);
    explicit_bzero(&request, sizeof(request));
    return added;
}

static void dial_cancel(void *ctx, const uint8_t job[CW_ID_SIZE])
{
    struct dial *d = ctx;

    cw_dial_cancel(d->threads, job);
}

struct dial *dial_open(struct cw_err *err)
{
    struct dial *d = calloc(1, sizeof(*d));
    int pair[2];

    if (d)
        d->threads = cw_dial_open(on_done, d);
    if (!d || !d->threads) {
        free(d);
        cw_err_set(err, CW_ENOMEM, "no memory for links to other relays");
        return NULL;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        cw_err_set(err, CW_ESYS, "links to other relays: socketpair: %s", strerror(errno));
        cw_dial_close(d->threads);
        free(d);
        return NULL;
    }
    d->engine_end = pair[0];
    d->thread_end = pair[1];
    return d;
}

void dial_close(struct dial *d)
{
    shutdown(d->engine_end, SHUT_RDWR); /* no thread waits for room to hand over */
    cw_dial_close(d->threads);
    close(d->engine_end);
    close(d->thread_end);
    free(d);
}

struct relay_listener dial_listener(const struct dial *d)
{
    return (struct relay_listener){.fd = d->engine_end, .dialled = true};
}

struct relay_dialler dial_dialler(struct dial *d)
{
    return (struct relay_dialler){.ctx = d, .dial = dial_add, .cancel = dial_cancel};
}
