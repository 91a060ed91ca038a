/* Standard input for rank 0, in the job's loop. */
#ifndef DISPATCHER_RANK_INPUT_H
#define DISPATCHER_RANK_INPUT_H

#include "common/err.h"
#include "dispatcher/loop/loop.h"
#include "dispatcher/state/state_file.h"
#include "dispatcher/streams/input.h"

#include <stdbool.h>
#include <stdint.h>

struct rank_input;

struct rank_input_config {
    struct loop *loop; /* borrowed */
    bool keep;         /* rank 0 may be restarted, and is then given the same again */
    /* More has come than is kept: rank 0 cannot be restarted. Called once. */
    void (*overrun)(void *ctx);
    void *ctx;
    struct state_file *state; /* what comes outlives us there; NULL: it does not */
};

/* NULL with *err set: CW_ESYS, CW_ENOMEM. */
struct rank_input *rank_input_new(const struct rank_input_config *config, struct cw_err *err);
void rank_input_free(struct rank_input *input); /* NULL is allowed */

/* In between nothing is written into the pipe of rank 0: so what it has not read of it when it
 * takes an image tells how far it has read. */
void rank_input_pause(struct rank_input *input);
void rank_input_resume(struct rank_input *input);

/* Rank 0 took this image while `unread` bytes of its pipe were not read; UINT64_MAX: unknown, its
 * stdin is not the pipe. Returns whether that is a place to go on from:
 *
 * - `unread` is known, and the input is paused or all of it was given;
 * - or nothing was given until now, or nobody reads the pipe any more.
 *
 * A program that has read some of its input and then opens another file as its stdin is not gone on
 * with: it may come back to the pipe. */
bool rank_input_mark(struct rank_input *input, uint32_t number, uint64_t unread);

/* How far rank 0 had read then; JOB_STATE_NO_INPUT: that is not known. */
uint64_t rank_input_place(const struct rank_input *input, uint32_t number);

/* What came to a dispatcher before us, in its order: a record INPUT, PLACE or TRIMMED; others are
 * of no interest. */
void rank_input_replay(struct rank_input *input, const struct job_state_record *record);

/* Whether there is that place, and what follows it is kept. Of number 0, the beginning, too. */
bool rank_input_has_place(const struct rank_input *input, uint32_t number);

/* Images before this one are of no use any more, nor is what was read before it: the bound counts
 * what comes after it. From then on rank 0 cannot be started from the beginning. The place of this
 * image is kept until the next call; of the others the oldest goes beyond PLACES_MAX. */
void rank_input_forget_before(struct rank_input *input, uint32_t number);

/* A new process of rank 0 goes on from this image, of which there is a place; 0: it reads all from
 * the beginning. The input is not paused any more. Errors: CW_ESYS; CW_ELIMIT: there is none. */
int rank_input_restart(struct rank_input *input, uint32_t number, struct cw_err *err);

/* What the process of rank 0 gets; ours until rank_input_taken, which closes it. */
int rank_input_end(const struct rank_input *input);
void rank_input_taken(struct rank_input *input);

#endif
