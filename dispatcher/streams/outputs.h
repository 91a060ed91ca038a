/* What all ranks of a job print, in its loop: reads their pipes and passes the lines on. */
#ifndef DISPATCHER_OUTPUTS_H
#define DISPATCHER_OUTPUTS_H

#include "common/err.h"
#include "dispatcher/loop/loop.h"

#include <stdbool.h>

struct outputs;

struct outputs_config {
    struct loop *loop; /* borrowed */
    uint32_t ranks;
    const char *dir; /* for a file of each rank and stream; NULL: our own two. Borrowed */
    bool tag;        /* each line begins with its rank */
    /* An output cannot be written: what it held is dropped. CW_ECLOSED: nobody reads it. */
    void (*failed)(void *ctx, const struct cw_err *err);
    void *ctx;
};

/* NULL with *err set: CW_ENOMEM; CW_ESYS, naming the directory. */
struct outputs *outputs_new(const struct outputs_config *config, struct cw_err *err);
void outputs_free(struct outputs *outputs); /* NULL is allowed */

/* A process of the rank has started: takes over our ends of its two pipes. Errors: CW_ENOMEM,
 * CW_ESYS. */
int outputs_open(struct outputs *outputs, uint32_t rank, const int fds[2], struct cw_err *err);

/* The rank has crashed, and another process will go on; `at_once`: it may still live. */
void outputs_interrupt(struct outputs *outputs, uint32_t rank, bool at_once);

/* No rank is started again: incomplete lines may go out. */
void outputs_give_up(struct outputs *outputs);

/* True while anything of any rank may still come. */
bool outputs_are_open(const struct outputs *outputs);

/* A line of the dispatcher's own on stderr, in one write: ranks print to the same terminal or file.
 * On a line of its own, also when a rank has not ended its own. */
void outputs_say(struct outputs *outputs, const char *text);

#endif
