/* What a program does about signals: those that it was started with, and those that come, in its
 * loop. For the main thread. */
#ifndef CW_SIGNALS_H
#define CW_SIGNALS_H

#include "common/err.h"
#include "common/loop.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Children can be waited for, and no signal is blocked, whatever the parent left: SIGCHLD ignored
 * or signals blocked are state of the parent that it did not mean for us. */
void cw_signals_begin(void);

/* Whether it is ignored now: by a user, with nohup(1), who wants that to stay so. */
bool cw_signal_ignored(int signal_number);

/* Adds those of the numbers that are not ignored. */
void cw_signals_add(sigset_t *set, const int *numbers, size_t count);

/* A write says EPIPE, or EFBIG. */
void cw_signals_ignore_writes(void);

struct signals {
    struct loop *loop; /* borrowed */
    struct loop_watch watch;
    void (*got)(void *ctx, int signal_number);
    void *ctx;
};

/* From now on SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are told by got(),
 * except those that were ignored, as nohup and shells ask it of us; and writes say EPIPE or EFBIG.
 * Errors: CW_ESYS. */
int signals_open(struct signals *signals, struct loop *loop, void (*got)(void *ctx, int number),
                 void *ctx, struct cw_err *err);
void signals_close(struct signals *signals);

#endif
