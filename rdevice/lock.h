/* Mutexes: the device stands in front of the functions that take and release them, for MPICH's
 * lock, and where a process goes on from an image. */
#ifndef RDEVICE_LOCK_H
#define RDEVICE_LOCK_H

/* The calling thread gives its core away as soon as it releases a mutex: MPICH's. */
void lock_owe_yield(void);

/* The process goes on from an image, in whose process the calling thread had this number. glibc
 * keeps the owner of a mutex by that: what the thread held then it holds now. */
void lock_rename(int former_tid);

#endif
