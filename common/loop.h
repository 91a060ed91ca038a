/* The loop of a program: waits for descriptors and times, and calls the handler that a part of it
 * registered for each. Level-triggered, one thread. */
#ifndef CW_LOOP_H
#define CW_LOOP_H

#include "common/err.h"

#include <stdint.h>
#include <sys/epoll.h>

#define LOOP_NEVER UINT64_MAX

struct loop;

typedef void loop_handler(void *ctx);

/* A descriptor and its handler. Lies in the part's own memory, at one place while it is watched. */
struct loop_watch {
    int fd; /* -1: none is watched */
    loop_handler *ready;
    void *ctx;
};

/* A time and its handler. As above. */
struct loop_timer {
    uint64_t at_ns; /* of the monotonic clock; LOOP_NEVER: off */
    loop_handler *due;
    void *ctx;
    struct loop *loop;                        /* that it was added to */
    uint64_t turn;                            /* in which it was set */
    struct loop_timer *child, *next, *before; /* the loop's */
};

/* NULL with *err set: CW_ESYS, CW_ENOMEM. */
struct loop *loop_new(struct cw_err *err);

/* All watches have ended, and timers were removed; NULL is allowed. */
void loop_free(struct loop *loop);

/* The time of this turn. loop_look: reads the clock, after something that took its time. */
uint64_t loop_now_ns(const struct loop *loop);
uint64_t loop_look(struct loop *loop);

/* Calls ready(ctx) while `fd` has any of `events` (of epoll(7); with EPOLLONESHOT once after each
 * loop_rearm). The descriptor stays the caller's. Errors: -1 with errno set; nothing is watched. */
int loop_watch(struct loop *loop, struct loop_watch *watch, int fd, uint32_t events,
               loop_handler *ready, void *ctx);
void loop_rearm(struct loop *loop, struct loop_watch *watch, uint32_t events);

/* From now on it is watched for these events. */
void loop_change(struct loop *loop, const struct loop_watch *watch, uint32_t events);

/* Before the descriptor is closed; its handler is not called any more, not even for what happened
 * before. With `fd` -1 it does nothing. */
void loop_unwatch(struct loop *loop, struct loop_watch *watch);
/* ... and closes it. */
void loop_close(struct loop *loop, struct loop_watch *watch);

/* The timer is off until loop_timer_set; it is the loop's until loop_timer_remove. */
void loop_timer_add(struct loop *loop, struct loop_timer *timer, loop_handler *due, void *ctx);

/* Before its memory is freed, also from inside a handler. Of one that is all zero, or was removed,
 * it does nothing. */
void loop_timer_remove(struct loop_timer *timer);

/* due(ctx) is called once, at that time; a time before replaces it. */
void loop_timer_set(struct loop_timer *timer, uint64_t at_ns);

/* The same, unless it is due earlier. */
void loop_timer_hasten(struct loop_timer *timer, uint64_t at_ns);

/* One turn: waits until something happens, at the latest at `until_ns`, and calls what is due. */
void loop_turn(struct loop *loop, uint64_t until_ns);

#endif
