#include "tests/sim/loop.h"
#include "tests/sim/sim.h"

#include <stdlib.h>

#define WATCHES_MAX 16

struct loop {
    struct loop_watch *watch[WATCHES_MAX];
    uint32_t events[WATCHES_MAX];
    int count;
    struct loop_timer *timers;
};

struct loop *loop_new(struct cw_err *err)
{
    struct loop *loop = calloc(1, sizeof(*loop));

    (void)err;
    if (!loop)
        abort();
    return loop;
}

void loop_free(struct loop *loop)
{
    free(loop);
}

uint64_t loop_now_ns(const struct loop *loop)
{
    (void)loop;
    return sim.now_ns;
}

int loop_watch(struct loop *loop, struct loop_watch *watch, int fd, uint32_t events,
               loop_handler *ready, void *ctx)
{
    if (loop->count == WATCHES_MAX)
        abort();
    *watch = (struct loop_watch){.fd = fd, .ready = ready, .ctx = ctx};
    loop->watch[loop->count] = watch;
    loop->events[loop->count++] = events;
    return 0;
}

void loop_change(struct loop *loop, const struct loop_watch *watch, uint32_t events)
{
    for (int i = 0; i < loop->count; i++)
        if (loop->watch[i] == watch)
            loop->events[i] = events;
}

void loop_unwatch(struct loop *loop, struct loop_watch *watch)
{
    for (int i = 0; i < loop->count; i++)
        if (loop->watch[i] == watch) {
            loop->watch[i] = loop->watch[--loop->count];
            loop->events[i] = loop->events[loop->count];
        }
    watch->fd = -1;
}

void loop_close(struct loop *loop, struct loop_watch *watch)
{
    loop_unwatch(loop, watch);
}

void loop_timer_add(struct loop *loop, struct loop_timer *timer, loop_handler *due, void *ctx)
{
    *timer = (struct loop_timer){
        .at_ns = LOOP_NEVER, .due = due, .ctx = ctx, .loop = loop, .next = loop->timers};
    loop->timers = timer;
}

void loop_timer_remove(struct loop_timer *timer)
{
    struct loop_timer **at = timer->loop ? &timer->loop->timers : &timer;

    while (*at && *at != timer)
        at = &(*at)->next;
    if (*at)
        *at = timer->next;
}

void loop_timer_set(struct loop_timer *timer, uint64_t at_ns)
{
    timer->at_ns = at_ns;
}

/* --- turns ---------------------------------------------------------------------------------------
 */

static bool is_ready(const struct loop *loop, int i)
{
    short events = (short)((loop->events[i] & EPOLLIN ? POLLIN : 0) |
                           (loop->events[i] & EPOLLOUT ? POLLOUT : 0));

    return socket_events(descriptor_of(loop->watch[i]->fd)->socket, events) != 0;
}

bool loop_can(struct loop *loop)
{
    for (int i = 0; i < loop->count; i++)
        if (is_ready(loop, i))
            return true;
    return sim.now_ns >= loop_deadline_ns(loop);
}

uint64_t loop_deadline_ns(const struct loop *loop)
{
    uint64_t first = UINT64_MAX;

    for (const struct loop_timer *t = loop->timers; t; t = t->next)
        if (t->at_ns < first)
            first = t->at_ns;
    return first;
}

void loop_step(struct loop *loop)
{
    int from = loop->count ? (int)sim_below((uint64_t)loop->count) : 0;

    for (struct loop_timer *t = loop->timers; t; t = t->next)
        if (sim.now_ns >= t->at_ns) {
            t->at_ns = LOOP_NEVER;
            t->due(t->ctx);
            return;
        }
    for (int i = 0; i < loop->count; i++) {
        int at = (from + i) % loop->count;

        if (!is_ready(loop, at))
            continue;
        loop->watch[at]->ready(loop->watch[at]->ctx);
        return;
    }
}
