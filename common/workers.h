/* Threads that do what waits for the disk, or takes long, so that who asks for it does not. */
#ifndef CW_WORKERS_H
#define CW_WORKERS_H

#include "common/err.h"

#include <sys/queue.h>

#define WORKERS_MAX 4 /* threads of one owner */

struct workers;

/* Lies in the caller's memory, and is the workers' from workers_add until workers_next. */
struct work {
    void (*run)(struct work *work);  /* in one of the threads */
    void (*done)(struct work *work); /* then, in workers_collect */
    STAILQ_ENTRY(work) next;
};

/* `count` threads. `wakes`: an eventfd, the caller's, which becomes readable when work has ended.
 * NULL with *err: CW_ESYS, CW_ENOMEM. */
struct workers *workers_new(int count, int wakes, struct cw_err *err);
/* Once all that was added has been carried out. NULL is allowed. */
void workers_free(struct workers *workers);

void workers_add(struct workers *workers, struct work *work);
/* The next that has ended; NULL: none. */
struct work *workers_next(struct workers *workers);
int workers_fd(const struct workers *workers);
/* Calls done() for all work that has ended. */
void workers_collect(struct workers *workers);

#endif
