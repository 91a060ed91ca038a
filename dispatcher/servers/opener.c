#include "dispatcher/servers/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a thread hands over. */
struct opened {
    struct cw_dial_request request;
    struct cw_dial_result result;
};

struct opener {
    struct loop *loop;
    opener_opened *opened;
    void *ctx;
    struct cw_dial *dial;
    int pipe[2]; /* of pointers to struct opened, owned by whoever reads them */
    struct loop_watch watch;
};

/* In a thread of the dial. */
static void hand_over(void *ctx, const struct cw_dial_result *result)
{
    const struct opener *o = ctx;
    struct opened *opened = malloc(sizeof(*opened));

    if (opened) {
        opened->request = *result->request;
        opened->result = *result;
        opened->result.request = &opened->request;
    }
    if (opened && write(o->pipe[1], &opened, sizeof(opened)) == (ssize_t)sizeof(opened))
        return;
    free(opened);
    if (result->fd >= 0)
        close(result->fd);
}

static void forget(struct opened *opened)
{
    explicit_bzero(opened, sizeof(*opened));
    free(opened);
}

static void on_opened(void *ctx)
{
    struct opener *o = ctx;
    struct opened *opened;

    if (read(o->pipe[0], &opened, sizeof(opened)) != (ssize_t)sizeof(opened))
        return;
    o->opened(o->ctx, &opened->result);
    forget(opened);
}

struct opener *opener_new(struct loop *loop, opener_opened *opened, void *ctx, struct cw_err *err)
{
    struct opener *o = calloc(1, sizeof(*o));

    if (o)
        *o = (struct opener){.loop = loop, .opened = opened, .ctx = ctx, .pipe = {-1, -1}};
    if (!o || !(o->dial = cw_dial_open(hand_over, o))) {
        free(o);
        cw_err_set(err, CW_ENOMEM, "no memory for connections to relays");
        return NULL;
    }
    if (pipe2(o->pipe, O_CLOEXEC) < 0 || fcntl(o->pipe[0], F_SETFL, O_NONBLOCK) < 0 ||
        loop_watch(loop, &o->watch, o->pipe[0], EPOLLIN, on_opened, o) < 0) {
        cw_err_set(err, CW_ESYS, "connections to relays: %s", strerror(errno));
        o->watch.fd = -1;
        opener_free(o);
        return NULL;
    }
    return o;
}

void opener_free(struct opener *o)
{
    struct opened *opened;

    if (!o)
        return;
    cw_dial_close(o->dial);
    loop_unwatch(o->loop, &o->watch);
    while (o->pipe[0] >= 0 &&
           read(o->pipe[0], &opened, sizeof(opened)) == (ssize_t)sizeof(opened)) {
        if (opened->result.fd >= 0)
            close(opened->result.fd);
        forget(opened);
    }
    for (int i = 0; i < 2; i++)
        if (o->pipe[i] >= 0)
            close(o->pipe[i]);
    free(o);
}

bool opener_add(struct opener *o, const struct cw_dial_request *request)
{
    return cw_dial_add(o->dial, request);
}
