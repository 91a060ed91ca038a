/* Standard input for rank 0: a pump from our stdin to a pipe, bounded by one buffer. */
#ifndef DISPATCHER_INPUT_H
#define DISPATCHER_INPUT_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>

#define INPUT_BUFFER 65536

struct input_pump {
    int from;     /* our stdin; -1 when it ended */
    int rank_end; /* what rank 0 gets; close it once it is started */
    int to;       /* our end of the pipe, non-blocking; -1 when it is closed */
    size_t start;
    size_t end;
    char buffer[INPUT_BUFFER];
};

/* Errors: CW_ESYS. */
int input_open(struct input_pump *pump, struct cw_err *err);
void input_close(struct input_pump *pump);

/* Which of the two ends should be watched now. */
bool input_wants_read(const struct input_pump *pump);
bool input_wants_write(const struct input_pump *pump);

/* Moves what can be moved without waiting. `readable` says that `from` will not block. */
void input_move(struct input_pump *pump, bool readable);

#endif
