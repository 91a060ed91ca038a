/* Standard input for rank 0, in the job's loop: from our stdin to a pipe. What was given is kept,
 * so that another incarnation of rank 0 can be given the same, from the beginning or from the place
 * of an image; bounded: beyond INPUT_KEPT_MAX only one buffer is kept. */
#ifndef DISPATCHER_RANK_INPUT_H
#define DISPATCHER_RANK_INPUT_H

#include "common/err.h"
#include "common/loop.h"
#include "dispatcher/ranks/places.h"
#include "dispatcher/state/state_file.h"

#define INPUT_BUFFER 65536          /* bytes read at a time */
#define INPUT_KEPT_MAX (16ul << 20) /* bytes kept for another incarnation */

struct rank_input;

struct rank_input_config {
    struct loop *loop; /* borrowed */
    bool keep;         /* rank 0 may be restarted, and is then given the same again */
    /* More has come than is kept: rank 0 cannot be restarted. Called once. */
    void (*overrun)(void *ctx);
    void *ctx;
    struct state_file *state; /* what comes outlives us there; NULL: it does not */
    struct places *places;    /* of images of rank 0: one value, bytes that it had read */
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

/* What came to a dispatcher before us, in its order: a record INPUT; others are of no interest. */
void rank_input_replay(struct rank_input *input, const struct job_state_record *record);

/* Whether there is that place, and what follows it is kept. Of number 0, the beginning, too. */
bool rank_input_has_place(const struct rank_input *input, uint32_t number);

/* What was read before this image, if it has a place, is of no use any more: the bound counts what
 * comes after it. From then on rank 0 cannot be started from the beginning. */
void rank_input_let_go(struct rank_input *input, uint32_t number);

/* A new process of rank 0 goes on from this image, of which there is a place; 0: it reads all from
 * the beginning. The input is not paused any more. Errors: CW_ESYS; CW_ELIMIT: there is none. */
int rank_input_restart(struct rank_input *input, uint32_t number, struct cw_err *err);

/* What the process of rank 0 gets; ours until rank_input_taken, which closes it. */
int rank_input_end(const struct rank_input *input);
void rank_input_taken(struct rank_input *input);

#endif
