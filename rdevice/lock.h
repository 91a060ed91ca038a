/* Mutexes: the device stands in front of the functions that take and release them, for MPICH's
 * lock, and where a process goes on from an image. */
#ifndef RDEVICE_LOCK_H
#define RDEVICE_LOCK_H

#include <stdbool.h>

/* The calling thread gives its core away as soon as it releases a mutex: MPICH's. */
void lock_owe_yield(void);

/* The process goes on from an image, in whose process the thread of this number had that one. glibc
 * keeps the owner of a mutex by it: what the thread held then it holds now. Threads that held
 * mutexes stand still meanwhile; after the last of them, lock_renamed(). */
void lock_rename(int former_tid, int tid);
void lock_renamed(void);

/* For image_hold(): whether the calling thread, interrupted, may be about to compare its number,
 * that it has read, with a mutex's owner. */
bool lock_holds_up(void);

#endif
