/* MPICH's lock between threads. A thread that waits in MPI releases it only for a moment, between
 * two calls for progress, and takes it again before a thread that was woken for it has run: where
 * there are as many busy threads as cores, that thread hardly ever runs. So a waiting thread yields
 * in just that moment: this function stands in front of libc's.
 *
 * And all others that take and release locks which know their owner (held.h). */
#include "rdevice/lock.h"
#include "rdevice/held.h"
#include "rdevice/image/image.h"
#include "rdevice/next.h"
#include "rdevice/until.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <threads.h>
#include <time.h>

#define CONDITION_MONOTONIC 2u

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "libc's are the same");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "libc's are the same");

static _Thread_local bool owed __attribute__((tls_model("initial-exec")));
/* In libc's function, which may have read the thread's number, and not compared it yet. */
static _Thread_local volatile bool comparing __attribute__((tls_model("initial-exec")));
/* ... and it is to stand still for an image then. */
static _Thread_local volatile bool stands __attribute__((tls_model("initial-exec")));

void lock_owe_yield(void)
{
    owed = true;
}

/* --- around each call --------------------------------------------------------------------------
 */

struct call {
    bool within; /* another one, which a signal has interrupted */
    bool owned;
    bool was_held; /* and is released while the call waits */
    uint32_t times;
};

static struct call enter(bool owned)
{
    struct call call = {.within = comparing, .owned = owned};

    if (owned) {
        comparing = true;
        call.times = held_times();
    }
    return call;
}

static int leave(struct call call, int result)
{
    comparing = call.within;
    if (__builtin_expect(stands, 0) && !call.within) {
        stands = false;
        image_stand();
    }
    return result;
}

bool lock_holds_up(void)
{
    return stands = comparing;
}

static struct call enter_mutex(const pthread_mutex_t *mutex)
{
    return enter(held_knows_owner(mutex));
}

static bool is_recursive(const pthread_mutex_t *mutex)
{
    return (mutex->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE;
}

static bool is_held_once(const pthread_mutex_t *mutex)
{
    return !is_recursive(mutex) || mutex->__data.__count == 1;
}

static void note_held(struct call call, pthread_mutex_t *mutex)
{
    if (call.times != held_times())
        held_own_mutex(mutex);
    held_add_mutex(mutex);
}

/* Also when its former owner has died. The C library's success is 0 too. */
static int leave_mutex(struct call call, pthread_mutex_t *mutex, int result)
{
    if (call.owned && (result == 0 || result == EOWNERDEAD) && is_held_once(mutex))
        note_held(call, mutex);
    return leave(call, result);
}

/* A wait releases it, and takes it again. */
static struct call enter_wait(pthread_mutex_t *mutex)
{
    struct call call = enter_mutex(mutex);

    call.was_held = call.owned && is_held_once(mutex) && held_drop(mutex);
    return call;
}

static int leave_wait(struct call call, pthread_mutex_t *mutex, int result)
{
    if (call.was_held)
        note_held(call, mutex);
    return leave(call, result);
}

static struct call enter_read(const pthread_rwlock_t *lock)
{
    (void)lock;
    return enter(true);
}

static int leave_read(struct call call, const pthread_rwlock_t *lock, int result)
{
    (void)lock;
    return leave(call, result);
}

#define enter_write enter_read

static int leave_write(struct call call, pthread_rwlock_t *lock, int result)
{
    if (result == 0 && call.times != held_times())
        held_own_rwlock(lock);
    if (result == 0)
        held_add_rwlock(lock);
    return leave(call, result);
}

/* A function that takes `lock`, or releases it while it waits; between enter_HOW() and leave_HOW().
 */
#define LOCK(how, name, parameters, arguments)                                                     \
    PUBLIC int name parameters                                                                     \
    {                                                                                              \
        struct call call = enter_##how((void *)lock);                                              \
                                                                                                   \
        return leave_##how(call, (void *)lock, NEXT(name) arguments);                              \
    }

/* ... which waits until a moment of this clock at most. */
#define LOCK_UNTIL(how, name, clock, parameters, arguments)                                        \
    PUBLIC int name parameters                                                                     \
    {                                                                                              \
        struct until machines;                                                                     \
        struct call call;                                                                          \
        int result;                                                                                \
                                                                                                   \
        until = until_begin(&machines, clock, until);                                              \
        call = enter_##how(lock);                                                                  \
        result = NEXT(name) arguments;                                                             \
        until_end(&machines);                                                                      \
        return leave_##how(call, lock, result);                                                    \
    }

/* --- mutexes ------------------------------------------------------------------------------------
 */

LOCK(mutex, pthread_mutex_lock, (pthread_mutex_t * lock), (lock))
LOCK(mutex, pthread_mutex_trylock, (pthread_mutex_t * lock), (lock))
LOCK(mutex, pthread_mutex_timedlock, (pthread_mutex_t * lock, const struct timespec *until),
     (lock, until))
LOCK_UNTIL(mutex, pthread_mutex_clocklock, clock,
           (pthread_mutex_t * lock, clockid_t clock, const struct timespec *until),
           (lock, clock, until))
LOCK(mutex, mtx_lock, (mtx_t * lock), (lock))
LOCK(mutex, mtx_trylock, (mtx_t * lock), (lock))
LOCK(mutex, mtx_timedlock, (mtx_t *restrict lock, const struct timespec *restrict until),
     (lock, until))

/* Of ours, and of the C standard, which is the same. */
static int unlock(int (*real)(void *mutex), pthread_mutex_t *mutex)
{
    struct call call = enter_mutex(mutex);
    bool last = call.owned && is_held_once(mutex);
    int result = real(mutex);

    if (last && result == 0)
        held_drop(mutex);
    return leave(call, result);
}

PUBLIC int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int result = unlock((int (*)(void *))(void *)NEXT(pthread_mutex_unlock), mutex);

    if (__builtin_expect(owed, 0)) {
        owed = false;
        sched_yield();
    }
    return result;
}

PUBLIC int mtx_unlock(mtx_t *mutex)
{
    return unlock((int (*)(void *))(void *)NEXT(mtx_unlock), (pthread_mutex_t *)mutex);
}

ALIAS(__pthread_mutex_lock, pthread_mutex_lock);
ALIAS(__pthread_mutex_trylock, pthread_mutex_trylock);
ALIAS(__pthread_mutex_unlock, pthread_mutex_unlock);

/* --- waits, which release a mutex ----------------------------------------------------------------
 */

/* As glibc keeps it. */
static clockid_t clock_of(const pthread_cond_t *condition)
{
    return condition->__data.__wrefs & CONDITION_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

LOCK(wait, pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t *lock),
     (condition, lock))
LOCK_UNTIL(wait, pthread_cond_timedwait, clock_of(condition),
           (pthread_cond_t * condition, pthread_mutex_t *lock, const struct timespec *until),
           (condition, lock, until))
LOCK_UNTIL(wait, pthread_cond_clockwait, clock,
           (pthread_cond_t * condition, pthread_mutex_t *lock, clockid_t clock,
            const struct timespec *until),
           (condition, lock, clock, until))
LOCK(wait, cnd_wait, (cnd_t * condition, mtx_t *lock), (condition, lock))
LOCK(wait, cnd_timedwait,
     (cnd_t *restrict condition, mtx_t *restrict lock, const struct timespec *restrict until),
     (condition, lock, until))

/* --- reader-writer locks -------------------------------------------------------------------------
 */

LOCK(read, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
LOCK(read, pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), (lock))
LOCK(read, pthread_rwlock_timedrdlock,
     (pthread_rwlock_t *restrict lock, const struct timespec *restrict until), (lock, until))
LOCK_UNTIL(read, pthread_rwlock_clockrdlock, clock,
           (pthread_rwlock_t *restrict lock, clockid_t clock,
            const struct timespec *restrict until),
           (lock, clock, until))
LOCK(write, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
LOCK(write, pthread_rwlock_trywrlock, (pthread_rwlock_t * lock), (lock))
LOCK(write, pthread_rwlock_timedwrlock,
     (pthread_rwlock_t *restrict lock, const struct timespec *restrict until), (lock, until))
LOCK_UNTIL(write, pthread_rwlock_clockwrlock, clock,
           (pthread_rwlock_t *restrict lock, clockid_t clock,
            const struct timespec *restrict until),
           (lock, clock, until))

/* While somebody writes nobody else can hold it. */
PUBLIC int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    struct call call = enter(true);
    bool written = lock->__data.__cur_writer != 0;
    int result = NEXT(pthread_rwlock_unlock)(lock);

    if (written)
        held_drop(lock);
    return leave(call, result);
}

ALIAS(__pthread_rwlock_rdlock, pthread_rwlock_rdlock);
ALIAS(__pthread_rwlock_tryrdlock, pthread_rwlock_tryrdlock);
ALIAS(__pthread_rwlock_wrlock, pthread_rwlock_wrlock);
ALIAS(__pthread_rwlock_trywrlock, pthread_rwlock_trywrlock);
ALIAS(__pthread_rwlock_unlock, pthread_rwlock_unlock);
