/* MPICH's lock between threads. A thread that waits in MPI releases it only for a moment, between
 * two calls for progress, and takes it again before a thread that was woken for it has run: where
 * there are as many busy threads as cores, that thread hardly ever runs. So a waiting thread yields
 * in just that moment: this function stands in front of libc's. */
#include "rdevice/lock.h"
#include "rdevice/next.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

static _Thread_local bool owed __attribute__((tls_model("initial-exec")));

void lock_owe_yield(void)
{
    owed = true;
}

__attribute__((visibility("default"))) int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    int error;

    if (!real)
        next_resolve(&real, "pthread_mutex_unlock");
    error = real(mutex);
    if (__builtin_expect(owed, 0)) {
        owed = false;
        sched_yield();
    }
    return error;
}
