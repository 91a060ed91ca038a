/* The signals that the dispatcher gets, in the job's loop. */
#ifndef DISPATCHER_SIGNALS_H
#define DISPATCHER_SIGNALS_H

#include "common/err.h"
#include "dispatcher/loop/loop.h"

struct signals {
    struct loop *loop; /* borrowed */
    struct loop_watch watch;
    void (*got)(void *ctx, int signal_number);
    void *ctx;
};

/* From now on SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are told by got(),
 * except those that were ignored, as nohup and shells ask it of us. Errors: CW_ESYS. */
int signals_open(struct signals *signals, struct loop *loop, void (*got)(void *ctx, int number),
                 void *ctx, struct cw_err *err);
void signals_close(struct signals *signals);

#endif
