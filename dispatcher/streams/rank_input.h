/* Standard input for rank 0, in the job's loop. */
#ifndef DISPATCHER_RANK_INPUT_H
#define DISPATCHER_RANK_INPUT_H

#include "common/err.h"
#include "dispatcher/loop/loop.h"
#include "dispatcher/streams/input.h"

#include <stdbool.h>

struct rank_input;

struct rank_input_config {
    struct loop *loop; /* borrowed */
    bool keep;         /* rank 0 may be restarted, and is then given the same again */
    /* More has come than is kept: rank 0 cannot be restarted. Called once. */
    void (*overrun)(void *ctx);
    void *ctx;
};

/* NULL with *err set: CW_ESYS, CW_ENOMEM. */
struct rank_input *rank_input_new(const struct rank_input_config *config, struct cw_err *err);
void rank_input_free(struct rank_input *input); /* NULL is allowed */

/* A new process of rank 0 reads all from the beginning. Errors: CW_ESYS. */
int rank_input_restart(struct rank_input *input, struct cw_err *err);

/* What the process of rank 0 gets; ours until rank_input_taken, which closes it. */
int rank_input_end(const struct rank_input *input);
void rank_input_taken(struct rank_input *input);

#endif
