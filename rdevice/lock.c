/* MPICH's lock between threads. A thread that waits in MPI releases it only for a moment, between
 * two calls for progress, and takes it again before a thread that was woken for it has run: where
 * there are as many busy threads as cores, that thread hardly ever runs. So a waiting thread yields
 * in just that moment: this function stands in front of libc's. */
#include "rdevice/lock.h"
#include "rdevice/next.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

#define FORMERS_MAX 64 /* numbers of the thread; a mutex that was held for so many images is lost  \
                        */

static struct {
    pthread_t thread;
    int tid;
    unsigned count;
    int former[FORMERS_MAX]; /* the last ones */
} renamed;

static _Thread_local bool owed __attribute__((tls_model("initial-exec")));

void lock_owe_yield(void)
{
    owed = true;
}

void lock_rename(int former_tid)
{
    renamed.former[renamed.count++ % FORMERS_MAX] = former_tid;
    renamed.tid = gettid();
    renamed.thread = pthread_self();
}

static bool is_former(int tid)
{
    unsigned known = renamed.count < FORMERS_MAX ? renamed.count : FORMERS_MAX;

    for (unsigned i = 0; i < known; i++)
        if (renamed.former[i] == tid)
            return true;
    return false;
}

/* Once it is held under the number that the thread has now, it is an ordinary one. */
__attribute__((noinline, cold)) static void adopt(pthread_mutex_t *mutex)
{
    if (mutex->__data.__owner && is_former(mutex->__data.__owner) &&
        pthread_equal(renamed.thread, pthread_self()))
        mutex->__data.__owner = renamed.tid;
}

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);

    if (!real)
        next_resolve(&real, "pthread_mutex_lock");
    if (__builtin_expect(renamed.count, 0))
        adopt(mutex);
    return real(mutex);
}

__attribute__((visibility("default"))) int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    int error;

    if (!real)
        next_resolve(&real, "pthread_mutex_unlock");
    if (__builtin_expect(renamed.count, 0))
        adopt(mutex);
    error = real(mutex);
    if (__builtin_expect(owed, 0)) {
        owed = false;
        sched_yield();
    }
    return error;
}
