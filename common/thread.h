/* Threads. */
#ifndef CW_THREAD_H
#define CW_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* Starts a thread with all signals blocked, so that the main thread handles them. `stack_bytes` 0
 * is the system's default. Returns 0 or an errno. */
int cw_thread_start(pthread_t *thread, size_t stack_bytes, void *(*body)(void *), void *arg);

#endif
