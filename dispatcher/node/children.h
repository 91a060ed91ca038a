/* Our child processes. What ranks started and left behind becomes ours, for we are a subreaper. */
#ifndef DISPATCHER_CHILDREN_H
#define DISPATCHER_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

/* Descendants that were there before us. With more no process is killed. */
#define CHILDREN_ELDERS_MAX 4096u

/* Processes that are left behind become our children from now on. Descendants that this process has
 * by now, which a shell started before it became us, are no concern of ours: they are never killed.
 * Before any child of our own is started. */
void children_adopt(void);

/* Waits for those that have ended, without blocking; `ended` may be NULL. */
void children_reap(void (*ended)(void *ctx, pid_t pid, int status), void *ctx);

/* Kills all but those that are to be spared, and those that they leave behind. Blocks for a bounded
 * time. */
void children_kill(bool (*spared)(void *ctx, pid_t pid), void *ctx);

#endif
