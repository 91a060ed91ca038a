/* MPICH's lock between threads. A thread that waits in MPI releases it only for a moment, between
 * two calls for progress, and takes it again before a thread that was woken for it has run: where
 * there are as many busy threads as cores, that thread hardly ever runs. So a waiting thread yields
 * in just that moment: this function stands in front of libc's. */
#include "rdevice/lock.h"
#include "rdevice/image/image.h"
#include "rdevice/next.h"
#include "rdevice/until.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#define CONDITION_MONOTONIC 2u
#define FORMERS_MAX 1024 /* numbers of threads; a mutex that was held for so many is lost */

static struct {
    unsigned count;
    struct {
        int tid, now;      /* by which a thread is known that had the number */
    } former[FORMERS_MAX]; /* the last ones */
} renamed;

static _Thread_local bool owed __attribute__((tls_model("initial-exec")));
/* In libc's function, which may have read the thread's number, and not compared it yet. */
static _Thread_local volatile bool comparing __attribute__((tls_model("initial-exec")));
/* ... and it is to stand still for an image then. */
static _Thread_local volatile bool stands __attribute__((tls_model("initial-exec")));

void lock_owe_yield(void)
{
    owed = true;
}

/* Numbers that the thread had still earlier are known by its number now. */
void lock_rename(int former_tid, int tid)
{
    unsigned known = renamed.count < FORMERS_MAX ? renamed.count : FORMERS_MAX;

    for (unsigned i = 0; i < known; i++)
        if (renamed.former[i].now == former_tid)
            renamed.former[i].now = -tid;
    renamed.former[renamed.count % FORMERS_MAX].tid = former_tid;
    renamed.former[renamed.count++ % FORMERS_MAX].now = -tid;
}

void lock_renamed(void)
{
    for (unsigned i = 0; i < FORMERS_MAX; i++)
        if (renamed.former[i].now < 0)
            renamed.former[i].now = -renamed.former[i].now;
}

static bool is_former(int tid, int now)
{
    unsigned known = renamed.count < FORMERS_MAX ? renamed.count : FORMERS_MAX;

    for (unsigned i = 0; i < known; i++)
        if (renamed.former[i].tid == tid && renamed.former[i].now == now)
            return true;
    return false;
}

/* Of others glibc does not compare the owner. */
static bool has_owner(const pthread_mutex_t *mutex)
{
    int kind = mutex->__data.__kind & 3;

    return kind == PTHREAD_MUTEX_RECURSIVE || kind == PTHREAD_MUTEX_ERRORCHECK;
}

/* Once it is held under the number that the thread has now, it is an ordinary one. */
__attribute__((noinline, cold)) static void adopt(pthread_mutex_t *mutex)
{
    int owner = mutex->__data.__owner, own;

    if (owner == 0)
        return;
    own = gettid();
    if (owner != own && is_former(owner, own))
        mutex->__data.__owner = own;
}

/* Returns what leave() is to be given. */
static bool enter(pthread_mutex_t *mutex)
{
    bool before = comparing;

    if (has_owner(mutex)) {
        comparing = true;
        if (__builtin_expect(renamed.count, 0))
            adopt(mutex);
    }
    return before;
}

static int leave(bool before, int error)
{
    comparing = before;
    if (__builtin_expect(stands, 0) && !before) {
        stands = false;
        image_stand();
    }
    return error;
}

bool lock_holds_up(void)
{
    return stands = comparing;
}

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    bool before;

    if (!real)
        next_resolve(&real, "pthread_mutex_lock");
    before = enter(mutex);
    return leave(before, real(mutex));
}

__attribute__((visibility("default"))) int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    bool before;
    int error;

    if (!real)
        next_resolve(&real, "pthread_mutex_unlock");
    before = enter(mutex);
    error = leave(before, real(mutex));
    if (__builtin_expect(owed, 0)) {
        owed = false;
        sched_yield();
    }
    return error;
}

__attribute__((visibility("default"))) int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    bool before;

    if (!real)
        next_resolve(&real, "pthread_mutex_trylock");
    before = enter(mutex);
    return leave(before, real(mutex));
}

__attribute__((visibility("default"))) int pthread_cond_wait(pthread_cond_t *condition,
                                                             pthread_mutex_t *mutex)
{
    static int (*real)(pthread_cond_t *, pthread_mutex_t *);
    bool before;

    if (!real)
        next_resolve(&real, "pthread_cond_wait");
    before = enter(mutex);
    return leave(before, real(condition, mutex));
}

/* As glibc keeps it. */
static clockid_t clock_of(const pthread_cond_t *condition)
{
    return condition->__data.__wrefs & CONDITION_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

__attribute__((visibility("default"))) int pthread_cond_timedwait(pthread_cond_t *condition,
                                                                  pthread_mutex_t *mutex,
                                                                  const struct timespec *until)
{
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct until machines;
    bool before;
    int error;

    if (!real)
        next_resolve(&real, "pthread_cond_timedwait");
    until = until_begin(&machines, clock_of(condition), until);
    before = enter(mutex);
    error = real(condition, mutex, until);
    until_end(&machines);
    return leave(before, error);
}

__attribute__((visibility("default"))) int pthread_cond_clockwait(pthread_cond_t *condition,
                                                                  pthread_mutex_t *mutex,
                                                                  clockid_t clock,
                                                                  const struct timespec *until)
{
    struct until machines;
    bool before;
    int error;

    until = until_begin(&machines, clock, until);
    before = enter(mutex);
    error = NEXT(pthread_cond_clockwait)(condition, mutex, clock, until);
    until_end(&machines);
    return leave(before, error);
}

__attribute__((visibility("default"))) int pthread_mutex_timedlock(pthread_mutex_t *mutex,
                                                                   const struct timespec *until)
{
    bool before = enter(mutex);

    return leave(before, NEXT(pthread_mutex_timedlock)(mutex, until));
}

__attribute__((visibility("default"))) int
pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
    struct until machines;
    bool before;
    int error;

    until = until_begin(&machines, clock, until);
    before = enter(mutex);
    error = NEXT(pthread_mutex_clocklock)(mutex, clock, until);
    until_end(&machines);
    return leave(before, error);
}
