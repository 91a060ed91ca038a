/* Threads of a relay. */
#ifndef CW_THREAD_H
#define CW_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* Starts a thread that takes no signals: they are for the one that was there first. `stack_bytes`
 * may be 0: the system's default. Returns 0 or an errno. */
int cw_thread_start(pthread_t *thread, size_t stack_bytes, void *(*body)(void *), void *arg);

#endif
