/* Threads that do what waits for the disk, or takes long, so that the loop does not. */
#ifndef CKPTSRV_WORKERS_H
#define CKPTSRV_WORKERS_H

#include "common/err.h"

#define WORKERS_MAX 4 /* threads */

struct workers;

/* Lies in the caller's memory, and is the workers' from workers_add until done() is called. */
struct work {
    void (*run)(struct work *work);  /* in one of the threads */
    void (*done)(struct work *work); /* then, in workers_collect */
    struct work *next;
};

/* NULL with *err: CW_ESYS, CW_ENOMEM. */
struct workers *workers_new(struct cw_err *err);
/* All work has been collected. NULL is allowed. */
void workers_free(struct workers *workers);

void workers_add(struct workers *workers, struct work *work);
/* Becomes readable when there is something to collect. */
int workers_fd(const struct workers *workers);
/* Calls done() for all work that has ended. */
void workers_collect(struct workers *workers);

#endif
