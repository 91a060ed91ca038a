/* Mutexes and reader-writer locks: the device stands in front of the functions that take and
 * release them, for MPICH's lock, and where a process goes on from an image (held.h). */
#ifndef RDEVICE_LOCK_H
#define RDEVICE_LOCK_H

#include <stdbool.h>

/* The calling thread gives its core away as soon as it releases a mutex: MPICH's. */
void lock_owe_yield(void);

/* For image_hold(): whether the calling thread, interrupted, may be about to compare its number,
 * that it has read, with a lock's owner. */
bool lock_holds_up(void);

#endif
