/* Locks that know their owner are held while messages are exchanged, and while other threads wait
   for them: whatever happens to the process, who holds one still holds it, and who waits gets it.
   MPI is called by main() alone. owners [ITERATIONS | FILE]   (600; or until rank 0 finds FILE) */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

enum { AGAIN_NOTHING = -1 };

static const struct timespec past = {1, 0};
static atomic_int over;

/* Each has its way to take, to take again, and to release. */
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                       timed = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
                       clocked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, inheriting, robust;
static mtx_t standard;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static struct timespec far(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    t.tv_sec += 1000;
    return t;
}

static int lock_mutex(void *mutex)
{
    return pthread_mutex_lock(mutex);
}

static int unlock_mutex(void *mutex)
{
    return pthread_mutex_unlock(mutex);
}

static int lock_timed(void *mutex)
{
    struct timespec until = far(CLOCK_REALTIME);

    return pthread_mutex_timedlock(mutex, &until);
}

static int lock_clocked(void *mutex)
{
    struct timespec until = far(CLOCK_MONOTONIC);

    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
}

static int lock_standard(void *mutex)
{
    struct timespec until = far(CLOCK_REALTIME);

    return mtx_timedlock(mutex, &until);
}

static int unlock_standard(void *mutex)
{
    return mtx_unlock(mutex);
}

static int lock_rwlock(void *lock)
{
    return pthread_rwlock_wrlock(lock);
}

static int unlock_rwlock(void *lock)
{
    return pthread_rwlock_unlock(lock);
}

static struct kind {
    const char *name;
    void *lock;
    int (*take)(void *lock);
    int (*release)(void *lock);
    int again; /* what it says to who has it already; 0: it is to be released once more */
    int not_held;
} kinds[] = {
    {"recursive", &recursive, lock_mutex, unlock_mutex, 0, EPERM},
    {"timed", &timed, lock_timed, unlock_mutex, EDEADLK, EPERM},
    {"clocked", &clocked, lock_clocked, unlock_mutex, EDEADLK, EPERM},
    {"standard", &standard, lock_standard, unlock_standard, thrd_success, thrd_error},
    {"rwlock", &rwlock, lock_rwlock, unlock_rwlock, EDEADLK, AGAIN_NOTHING},
    {"inheriting", &inheriting, lock_mutex, unlock_mutex, 0, EPERM},
    {"robust", &robust, lock_mutex, unlock_mutex, 0, EPERM},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void prepare(void)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    CHECK("inheriting", 0, pthread_mutex_init(&inheriting, &attr));
    pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_NONE);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    CHECK("robust", 0, pthread_mutex_init(&robust, &attr));
    CHECK("standard", thrd_success, mtx_init(&standard, mtx_timed | mtx_recursive));
}

static void still_held(const struct kind *k)
{
    int again = k->take(k->lock);

    CHECK(k->name, k->again, again);
    if (again == 0)
        CHECK(k->name, 0, k->release(k->lock));
}

/* Waits for one of them, which main() has most of the time. */
static void *contend(void *argument)
{
    struct kind *k = argument;
    const struct timespec moment = {.tv_nsec = 1000000};

    while (!over) {
        CHECK(k->name, 0, k->take(k->lock));
        still_held(k);
        CHECK(k->name, 0, k->release(k->lock));
        if (k->not_held != AGAIN_NOTHING)
            CHECK(k->name, k->not_held, k->release(k->lock));
        nanosleep(&moment, NULL);
    }
    return NULL;
}

/* All the time; nobody else takes it. */
static void *checking(void *unused)
{
    pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;

    while (!over) {
        CHECK("lock", 0, pthread_mutex_lock(&mutex));
        CHECK("again", EDEADLK, pthread_mutex_lock(&mutex));
        CHECK("wait", ETIMEDOUT, pthread_cond_timedwait(&never, &mutex, &past));
        CHECK("wait by a clock", ETIMEDOUT,
              pthread_cond_clockwait(&never, &mutex, CLOCK_MONOTONIC, &past));
        CHECK("unlock", 0, pthread_mutex_unlock(&mutex));
    }
    return unused;
}

/* All ranks alike. */
static bool is_over(const char *until, int iteration)
{
    int found = check_rank == 0 && access(until, F_OK) == 0;

    if (until[0] != '/')
        return iteration == atoi(until);
    MPI_Bcast(&found, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return found;
}

static void hold_all(void)
{
    const struct timespec moment = {.tv_nsec = 500000};
    int one = 1, all;

    for (int i = 0; i < KINDS; i++)
        CHECK(kinds[i].name, 0, kinds[i].take(kinds[i].lock));
    for (int i = 0; i < 3; i++) {
        MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK("sum", check_size, all);
        nanosleep(&moment, NULL);
        for (int k = 0; k < KINDS; k++)
            still_held(&kinds[k]);
    }
    for (int i = 0; i < KINDS; i++)
        CHECK(kinds[i].name, 0, kinds[i].release(kinds[i].lock));
    nanosleep(&moment, NULL);
}

int main(int argc, char **argv)
{
    const char *until = argc > 1 ? argv[1] : "600";
    pthread_t threads[KINDS + 1];
    int level;

    prepare();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    check_start();
    for (int i = 0; i < KINDS; i++)
        pthread_create(&threads[i], NULL, contend, &kinds[i]);
    pthread_create(&threads[KINDS], NULL, checking, NULL);
    for (int i = 0; !is_over(until, i); i++) {
        check_item = i;
        hold_all();
    }
    over = 1;
    for (int i = 0; i <= KINDS; i++)
        pthread_join(threads[i], NULL);
    return check_finish("owners");
}
