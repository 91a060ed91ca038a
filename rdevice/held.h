/* Locks of libc that know their owner by the number of its thread: recursive and error-checking
 * mutexes, those of PTHREAD_PRIO_INHERIT, and reader-writer locks that are held for writing. A
 * thread that goes on from an image has another number: each keeps what it holds, so that all get
 * it at once, before a new thread can have the number of another one. For the calling thread. */
#ifndef RDEVICE_HELD_H
#define RDEVICE_HELD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

bool held_knows_owner(const pthread_mutex_t *mutex);

/* The thread holds it, or holds it no more. held_drop() returns whether it did. */
void held_add_mutex(pthread_mutex_t *mutex);
void held_add_rwlock(pthread_rwlock_t *lock);
bool held_drop(const void *lock);

/* How often the process has gone on from an image. Where that changed while the thread waited for
 * the lock that it has now, libc may have written the number that the thread had before. */
uint32_t held_times(void);
void held_own_mutex(pthread_mutex_t *mutex);
void held_own_rwlock(pthread_rwlock_t *lock);

/* Why there can be no image: a thread holds more than is kept. NULL: there can. */
const char *held_refusal(void);

/* In the process that goes on from an image, where all other threads stand still. */
void held_go_on(void);

#endif
