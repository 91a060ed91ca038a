/* MPICH's lock: the device stands in front of the function that releases it. */
#ifndef RDEVICE_LOCK_H
#define RDEVICE_LOCK_H

/* The calling thread gives its core away as soon as it releases a mutex: MPICH's. */
void lock_owe_yield(void);

#endif
