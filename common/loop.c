#include "common/loop.h"
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
    uint64_t turns;
    struct loop_timer *first; /* of the timers that are set, a pairing heap: the earliest */
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
    assert(!loop->first); /* of a part that has not ended */
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

/* --- timers --- */

/* Of two heaps one: the later is the first child of the earlier. */
static struct loop_timer *meld(struct loop_timer *a, struct loop_timer *b)
{
    if (!a || !b)
        return a ? a : b;
    if (b->at_ns < a->at_ns)
        return meld(b, a);
    b->before = a;
    b->next = a->child;
    if (b->next)
        b->next->before = b;
    a->child = b;
    return a;
}

/* Of siblings: first pairs from left to right, then these from right to left. */
static struct loop_timer *meld_all(struct loop_timer *t)
{
    struct loop_timer *pairs = NULL;
    struct loop_timer *heap = NULL;

    while (t) {
        struct loop_timer *second = t->next;
        struct loop_timer *rest = second ? second->next : NULL;
        struct loop_timer *pair = meld(t, second);

        pair->next = pairs;
        pairs = pair;
        t = rest;
    }
    while (pairs) {
        struct loop_timer *rest = pairs->next;

        heap = meld(heap, pairs);
        pairs = rest;
    }
    return heap;
}

static void take_out(struct loop_timer *t)
{
    struct loop *loop = t->loop;

    if (!loop || t->at_ns == LOOP_NEVER)
        return;
    t->at_ns = LOOP_NEVER;
    if (t == loop->first) {
        loop->first = meld_all(t->child);
    } else {
        *(t->before->child == t ? &t->before->child : &t->before->next) = t->next;
        if (t->next)
            t->next->before = t->before;
        loop->first = meld(loop->first, meld_all(t->child));
    }
    t->child = t->next = t->before = NULL;
}

void loop_timer_add(struct loop *loop, struct loop_timer *timer, loop_handler *due, void *ctx)
{
    *timer = (struct loop_timer){.at_ns = LOOP_NEVER, .due = due, .ctx = ctx, .loop = loop};
}

void loop_timer_remove(struct loop_timer *timer)
{
    take_out(timer);
    timer->loop = NULL;
}

/* One that is set to a time before comes behind those that wait since then: a handler that sets
 * its own again and again lets others come in between. */
void loop_timer_set(struct loop_timer *timer, uint64_t at_ns)
{
    struct loop *loop = timer->loop;

    take_out(timer);
    if (!loop || at_ns == LOOP_NEVER)
        return;
    timer->at_ns = at_ns > loop->now_ns ? at_ns : loop->now_ns;
    timer->turn = loop->turns;
    loop->first = meld(loop->first, timer);
}

void loop_timer_hasten(struct loop_timer *timer, uint64_t at_ns)
{
    if (at_ns < timer->at_ns)
        loop_timer_set(timer, at_ns);
}

static int timeout_ms(const struct loop *loop, uint64_t until_ns)
{
    if (loop->first && loop->first->at_ns < until_ns)
        until_ns = loop->first->at_ns;
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
    loop->turns++; /* what is set from here on is for the next one */
    for (struct loop_timer *t = loop->first; t && t->at_ns <= loop->now_ns && t->turn < loop->turns;
         t = loop->first) {
        take_out(t);
        t->due(t->ctx);
    }
}
