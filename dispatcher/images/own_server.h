/* The process of the job's own checkpoint server: its start, and that it is started again where it
 * dies: what it has stored is on disk. In the job's loop, which never waits for it. */
#ifndef DISPATCHER_OWN_SERVER_H
#define DISPATCHER_OWN_SERVER_H

#include "ckptsrv/server.h"
#include "dispatcher/loop/loop.h"
#include "relay/restarts.h"

struct own_server_events {
    void (*started)(void *ctx, pid_t pid);
    void (*listens)(void *ctx);
    /* It did not start, or cannot be started again: there will be none. */
    void (*failed)(void *ctx, const struct cw_err *err);
};

struct own_server {
    struct loop *loop;
    struct ckptsrv_config config; /* what it refers to stays */
    const struct own_server_events *events;
    void *ctx;
    struct ckptsrv_child child;
    pid_t pid;               /* 0: it was not started, or has ended */
    struct loop_watch ready; /* until it listens */
    struct loop_timer timer; /* to its next start, and from there until it listens */
    struct relay_restarts restarts;
    bool begun; /* own_server_start was called */
    bool listens;
    bool listened;         /* at any time */
    char why[CW_TEXT_MAX]; /* it does not listen; "": it does, or has not said */
};

/* Nothing is started: own_server_close has nothing to do. The caller sets `loop`, `config`,
 * `events` and `ctx`. */
void own_server_init(struct own_server *own);

/* Starts it. Errors: CW_ESYS. */
int own_server_start(struct own_server *own, struct cw_err *err);

/* It has ended, and the caller has waited for it: it is started again, now or after a pause. False
 * with *err set: that was done too often, or it has ended by itself (`exited`) before it ever
 * listened, as it will again. */
bool own_server_ended(struct own_server *own, bool exited, struct cw_err *err);

/* Ends it, without waiting; it is not started again. Nothing is left but `pid`, to wait for. */
void own_server_close(struct own_server *own);

#endif
