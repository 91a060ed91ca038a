/* The connection between the dispatcher and a node, in a loop: two descriptors, over which first
 * a greeting passes, then the segments of a session (dispatcher/wire/mux.h). Never waits. */
#ifndef DISPATCHER_WIRE_H
#define DISPATCHER_WIRE_H

#include "common/loop.h"
#include "dispatcher/wire/mux.h"

#define WIRE_BUFFER (64u << 10) /* bytes that are read at a time */
#define WIRE_READS 8            /* such reads in one turn */
#define WIRE_GREETING_MAX 4096u /* bytes of frames of a greeting that wait to be sent */

struct wire;

struct wire_ops {
    /* Bytes have come, all before the session begins. Returns how many of them were part of the
     * greeting: the others are of the session, which begins then (wire_begin was called). Negative,
     * with *err set: that ends the connection. */
    long (*greeting)(void *ctx, const uint8_t *bytes, size_t size, struct cw_err *err);
    /* It is closed. CW_ECLOSED: the other side has closed it; CW_ESYS: it broke; else as of
     * mux_input and greeting(). */
    void (*broke)(void *ctx, const struct cw_err *err);
};

struct wire {
    struct loop *loop;
    struct mux *mux;
    const struct wire_ops *ops;
    void *ctx;
    struct loop_watch in;
    struct loop_watch out; /* watched while it takes no more */
    int out_fd;
    int held_fd; /* `in`, after wire_hold */
    struct loop_timer flush;
    bool open;       /* there is a connection ... */
    bool in_session; /* ... whose greeting is over */
    bool last;       /* wire_finish was called */
    uint64_t heard_ns;
    size_t greeting_at;
    size_t greeting_end;
    uint8_t greeting[WIRE_GREETING_MAX];
};

/* Without a connection. `mux` is borrowed, and may be set later. */
void wire_init(struct wire *wire, struct loop *loop, const struct wire_ops *ops, void *ctx);

/* Takes over both descriptors, which may be the same. Errors: CW_ESYS; both are closed. */
int wire_open(struct wire *wire, int in_fd, int out_fd, struct cw_err *err);
/* Closes them, if they are open; broke() is not called. */
void wire_close(struct wire *wire);

/* Nothing is read any more, not even its end: it stays open until it is closed here. */
void wire_hold(struct wire *wire);
/* Before its memory is freed: closes it, too. */
void wire_end(struct wire *wire);

/* `to`, which is closed first, goes on with the connection of `from`, in its greeting. Errors:
 * CW_ESYS; both are closed. */
int wire_move(struct wire *to, struct wire *from, struct cw_err *err);

/* Something of the greeting, sent before all of the session. Errors: CW_ELIMIT. */
int wire_greet(struct wire *wire, const void *bytes, size_t size, struct cw_err *err);
/* The greeting is over: mux_connect was called. */
void wire_begin(struct wire *wire);

/* Nothing follows what there is to be sent now: the other side is told so after it. */
void wire_finish(struct wire *wire);

/* There is something to be sent: it is, at the end of this turn. */
void wire_flush_soon(struct wire *wire);
/* Now. */
void wire_flush(struct wire *wire);

#endif
