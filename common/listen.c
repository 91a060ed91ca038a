#include "common/listen.h"

#include <errno.h>
#include <string.h>

static void on_resume(void *ctx)
{
    struct listeners *l = ctx;

    l->paused = false;
    for (uint32_t i = 0; i < l->count; i++)
        loop_change(l->loop, &l->at[i].watch, EPOLLIN);
}

void listeners_init(struct listeners *l, struct loop *loop,
                    void (*came)(void *ctx, uint32_t number, int fd), void *ctx)
{
    *l = (struct listeners){.loop = loop, .came = came, .ctx = ctx};
    loop_timer_add(loop, &l->resume, on_resume, l);
}

void listeners_pause(struct listeners *l, uint64_t ns)
{
    l->paused = true;
    for (uint32_t i = 0; i < l->count; i++)
        loop_change(l->loop, &l->at[i].watch, 0);
    loop_timer_set(&l->resume, ns == LOOP_NEVER ? LOOP_NEVER : loop_now_ns(l->loop) + ns);
}

static void on_ready(void *ctx)
{
    struct listener *one = ctx;
    struct listeners *l = one->of;
    int fd = 0;

    for (int i = 0; i < LISTEN_ACCEPTS_MAX && fd >= 0 && !l->paused; i++) {
        fd = cw_accept(one->watch.fd, &one->address);
        if (fd >= 0)
            l->came(l->ctx, (uint32_t)(one - l->at), fd);
    }
    if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS)
        listeners_pause(l, LISTEN_PAUSE_NS);
}

int listeners_add(struct listeners *l, const struct cw_address *address, struct cw_err *err)
{
    struct listener *one = &l->at[l->count];
    int fd;

    one->of = l;
    one->address = *address;
    fd = cw_listen(&one->address, err);
    if (fd < 0)
        return err->code;
    if (loop_watch(l->loop, &one->watch, fd, EPOLLIN, on_ready, one) < 0) {
        cw_unlisten(fd, &one->address);
        return cw_err_set(err, CW_ESYS, "listening at %s: %s", one->address.text, strerror(errno));
    }
    l->count++;
    return CW_OK;
}

void listeners_close(struct listeners *l)
{
    loop_timer_remove(&l->resume);
    for (uint32_t i = 0; i < l->count; i++) {
        int fd = l->at[i].watch.fd;

        loop_unwatch(l->loop, &l->at[i].watch);
        cw_unlisten(fd, &l->at[i].address);
    }
    l->count = 0;
}
