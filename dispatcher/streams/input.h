/* Standard input for rank 0: a pump from our stdin to a pipe. What it has given is kept, so that
 * another incarnation of rank 0 can be given the same, from the beginning or from a place; bounded:
 * beyond INPUT_KEPT_MAX it is a pump with one buffer and no memory. */
#ifndef DISPATCHER_INPUT_H
#define DISPATCHER_INPUT_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INPUT_BUFFER 65536          /* bytes read at a time */
#define INPUT_KEPT_MAX (16ul << 20) /* bytes kept for another incarnation */

struct input_pump {
    int from;      /* our stdin; -1 when it ended */
    int rank_end;  /* what rank 0 gets; close it once it is started */
    int to;        /* our end of the pipe, non-blocking; -1 when it is closed */
    bool keep;     /* all that came from `base` on is in `bytes` */
    bool paused;   /* nothing is moved */
    bool unread;   /* nobody reads the pipe any more */
    uint64_t base; /* bytes that came before those in `bytes` */
    size_t given;  /* of `bytes`: what is in the pipe */
    size_t size;   /* of `bytes`: what came */
    size_t room;
    char *bytes; /* owned */
    /* What came, before any of it is given; of no size: its end. May be NULL. */
    void (*came)(void *ctx, const char *bytes, size_t size);
    void *ctx;
};

/* `keep` says whether rank 0 may be restarted. Errors: CW_ESYS, CW_ENOMEM. */
int input_open(struct input_pump *pump, bool keep, struct cw_err *err);
void input_close(struct input_pump *pump);

/* Bytes that were written into the pipe since the beginning of the input. */
uint64_t input_given(const struct input_pump *pump);

/* Whether nothing will be read from the pipe any more, whatever is written. */
bool input_is_unread(const struct input_pump *pump);

/* Whether the input from this byte on is there, to be given again. */
bool input_keeps(const struct input_pump *pump, uint64_t place);

/* A new pipe, which gets all from this byte on, which is kept. The ends of the old one are closed.
 * Errors: CW_ESYS. */
int input_restart(struct input_pump *pump, uint64_t place, struct cw_err *err);

/* What was given before this byte is kept no more. */
void input_let_go(struct input_pump *pump, uint64_t place);

/* What came to who had the pump before us, and was given; of no size: its end. */
void input_replay(struct input_pump *pump, const char *bytes, size_t size);

/* Which of the two ends should be watched now. */
bool input_wants_read(const struct input_pump *pump);
bool input_wants_write(const struct input_pump *pump);

/* In the background of a terminal nothing is read: look again later. */
bool input_waits(const struct input_pump *pump);

/* Moves what can be moved without waiting. `readable` says that `from` will not block. */
void input_move(struct input_pump *pump, bool readable);

#endif
