/* The supervisor of one unit, a process that is kept running: its start, that it says whether it
 * listens, its restarts, its end. In a loop, which never waits for it. */
#ifndef CW_UNIT_H
#define CW_UNIT_H

#include "common/command.h"
#include "common/loop.h"
#include "common/restarts.h"

#include <stdbool.h>

#define UNIT_READY_NS 60000000000ull /* for its first process to listen */
#define UNIT_NO_STATUS (-1)
#define UNIT_END_MS 5000 /* for it to end, that was asked to */

/* In this order; failed() once, after which nothing is told. */
struct unit_ops {
    /* What it is started with, each time. Errors: of every kind. */
    int (*command)(void *ctx, struct command *command, struct cw_err *err);
    void (*started)(void *ctx, pid_t pid);
    void (*listens)(void *ctx);
    /* It has ended, with `status` as of waitpid(2), and is started again. `why` it did not listen;
     * "": it did, or has not said. */
    void (*ended)(void *ctx, int status, const char *why);
    /* There will be none any more. `status` of one that listened; UNIT_NO_STATUS: none was started,
     * or none ever listened. */
    void (*failed)(void *ctx, int status, const struct cw_err *err);
    /* It could not be started again, and that is tried once more. NULL: nobody wants to know. */
    void (*not_started)(void *ctx, const struct cw_err *err);
};

struct unit {
    /* set by the caller */
    struct loop *loop;
    const struct unit_ops *ops;
    void *ctx;
    const char *name;     /* of its command */
    const char *not_once; /* what is told where it never listens ... */
    const char *no_more;  /* ... and where it is not started again */
    bool returns; /* it is started again where it was killed, or fails after it has listened ... */
    bool always;  /* ... or whenever it ends, without end */
    bool silent;  /* it does not say that it listens: the caller does */
    uint64_t ready_ns; /* to listen, each time; 0: as of UNIT_READY_NS and RELAY_RETURN_NS_MAX */
    /* its own */
    pid_t pid;               /* 0: it was not started, or has ended */
    struct loop_watch ready; /* until it says no more of whether it listens */
    struct loop_timer timer; /* to its next start, and from there until it listens */
    struct relay_restarts restarts;
    bool begun;
    bool heard;    /* this process has said whether it listens */
    bool listened; /* at any time */
    bool over;     /* there will be none any more */
    int status;    /* of its last process, as of waitpid(2); UNIT_NO_STATUS: none has ended */
    char why[CW_TEXT_MAX];
};

/* Starts it: what becomes of that is told. */
void unit_start(struct unit *unit);

/* It listens, of one that is silent. */
void unit_listens(struct unit *unit);

/* SIGKILL; its end follows. */
void unit_kill(const struct unit *unit);

/* It has ended, and the caller has waited for it. */
void unit_ended(struct unit *unit, int status);

/* Ends it, with this signal, without waiting. Nothing is told any more; nothing is left but `pid`,
 * to wait for. */
void unit_end(struct unit *unit, int signal);
/* ... waits for it, for a bounded time; then it is killed. */
void unit_await_end(struct unit *unit);

#endif
