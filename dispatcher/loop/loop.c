#include "dispatcher/loop/loop.h"
#include "common/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENTS_MAX 256 /* descriptors that are handled in one turn */

struct loop {
    int epoll_fd;
    uint64_t now_ns;
    struct loop_timer *timers;
    struct loop_timer *next;               /* of those, to be looked at in this turn */
    struct epoll_event events[EVENTS_MAX]; /* of this turn; data.ptr is NULL once it is unwatched */
    int count;
};

struct loop *loop_new(struct cw_err *err)
{
    struct loop *loop = calloc(1, sizeof(*loop));

    if (!loop) {
        cw_err_set(err, CW_ENOMEM, "no memory for a job");
        return NULL;
    }
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0) {
        cw_err_set(err, CW_ESYS, "epoll: %s", strerror(errno));
        free(loop);
        return NULL;
    }
    loop->now_ns = cw_clock_ns();
    return loop;
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    assert(!loop->timers); /* of a part that has not ended */
    close(loop->epoll_fd);
    free(loop);
}

uint64_t loop_now_ns(const struct loop *loop)
{
    return loop->now_ns;
}

uint64_t loop_look(struct loop *loop)
{
    return loop->now_ns = cw_clock_ns();
}

int loop_watch(struct loop *loop, struct loop_watch *watch, int fd, uint32_t events,
               loop_handler *ready, void *ctx)
{
    struct epoll_event e = {.events = events, .data.ptr = watch};
    int failed = epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &e);

    *watch = (struct loop_watch){.fd = failed ? -1 : fd, .ready = ready, .ctx = ctx};
    return failed;
}

void loop_change(struct loop *loop, const struct loop_watch *watch, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = (void *)watch};

    if (watch->fd >= 0)
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, watch->fd, &e);
}

void loop_rearm(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
    loop_change(loop, watch, events | EPOLLONESHOT);
}

void loop_unwatch(struct loop *loop, struct loop_watch *watch)
{
    if (watch->fd < 0)
        return;
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->fd = -1;
    for (int i = 0; i < loop->count; i++)
        if (loop->events[i].data.ptr == watch)
            loop->events[i].data.ptr = NULL;
}

void loop_close(struct loop *loop, struct loop_watch *watch)
{
    int fd = watch->fd;

    loop_unwatch(loop, watch);
    if (fd >= 0)
        close(fd);
}

void loop_timer_add(struct loop *loop, struct loop_timer *timer, loop_handler *due, void *ctx)
{
    *timer = (struct loop_timer){LOOP_NEVER, due, ctx, loop->timers};
    loop->timers = timer;
}

void loop_timer_remove(struct loop *loop, struct loop_timer *timer)
{
    struct loop_timer **at = &loop->timers;

    while (*at && *at != timer)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = timer->next;
    if (loop->next == timer)
        loop->next = timer->next;
}

void loop_timer_set(struct loop_timer *timer, uint64_t at_ns)
{
    timer->at_ns = at_ns;
}

void loop_timer_hasten(struct loop_timer *timer, uint64_t at_ns)
{
    if (at_ns < timer->at_ns)
        timer->at_ns = at_ns;
}

static int timeout_ms(const struct loop *loop, uint64_t until_ns)
{
    for (const struct loop_timer *t = loop->timers; t; t = t->next)
        if (t->at_ns < until_ns)
            until_ns = t->at_ns;
    if (until_ns == LOOP_NEVER)
        return -1;
    return cw_clock_wait_ms(loop->now_ns, until_ns);
}

void loop_turn(struct loop *loop, uint64_t until_ns)
{
    int ms = timeout_ms(loop, until_ns);

    assert(loop->count == 0); /* handlers do not turn the loop */
    loop->count = epoll_wait(loop->epoll_fd, loop->events, EVENTS_MAX, ms);
    loop_look(loop);
    for (int i = 0; i < loop->count; i++) {
        struct loop_watch *watch = loop->events[i].data.ptr;

        if (watch)
            watch->ready(watch->ctx);
    }
    loop->count = 0;
    for (struct loop_timer *t = loop->timers; t; t = loop->next) {
        loop->next = t->next;
        if (t->at_ns <= loop->now_ns) {
            t->at_ns = LOOP_NEVER;
            t->due(t->ctx);
        }
    }
}
