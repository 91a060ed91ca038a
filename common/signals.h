/* What a program does about signals that it was started with: for the main thread, at its start. */
#ifndef CW_SIGNALS_H
#define CW_SIGNALS_H

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

#endif
