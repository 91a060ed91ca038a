/* The process of a relay of the job's own: its start, and, where its log outlives it, that it is
 * started again. In the job's loop, which never waits for it. */
#ifndef DISPATCHER_OWN_RELAY_H
#define DISPATCHER_OWN_RELAY_H

#include "dispatcher/loop/loop.h"
#include "dispatcher/relays/relay_child.h"
#include "relay/restarts.h"

struct own_relay_events {
    void (*started)(void *ctx, pid_t pid);
    void (*listens)(void *ctx);
    /* It did not start, or cannot be started again: there will be none. */
    void (*failed)(void *ctx, const struct cw_err *err);
};

struct own_relay {
    struct loop *loop;
    struct relay_child_config child; /* `socket_path` is `path`, and `kept` is `kept` */
    const struct own_relay_events *events;
    void *ctx;
    char path[CW_ADDRESS_MAX - 8]; /* of its socket */
    struct relay_kept kept;
    pid_t pid;               /* 0: it was not started, or has ended */
    struct loop_watch ready; /* until it listens */
    struct loop_timer timer; /* to its next start, and from there until it listens */
    struct relay_restarts restarts;
    bool listens;
    bool killed; /* by us */
};

/* Nothing is started: own_relay_close has nothing to do. */
void own_relay_init(struct own_relay *own);

/* Starts it. `loop`, `child`, `path`, `events` and `ctx` were set by the caller, and what they
 * refer to stays; with child.kept it can be started again. Errors: CW_ESYS. */
int own_relay_start(struct own_relay *own, struct cw_err *err);

/* SIGKILL; its end follows. */
void own_relay_kill(struct own_relay *own);

/* It has ended, and the caller has waited for it. */
void own_relay_ended(struct own_relay *own);

/* Once it has ended: starts it again, now or after a pause. False: that was done too often. */
bool own_relay_again(struct own_relay *own);

/* Ends it, without waiting; it is not started again. Nothing is left but `pid`, to wait for. */
void own_relay_close(struct own_relay *own);

#endif
