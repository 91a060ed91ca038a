/* Threads take mutexes that compare their owner, all the time: whatever happens to the process, who
   holds one still holds it. MPI is called by main() alone. owners [ITERATIONS]   (2000) */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static atomic_int over;

/* Never a deadlock: nobody else takes it. */
static void *recursive(void *unused)
{
    pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

    while (!over) {
        CHECK("first", 0, pthread_mutex_lock(&mutex));
        CHECK("second", 0, pthread_mutex_lock(&mutex));
        CHECK("tried", 0, pthread_mutex_trylock(&mutex));
        for (int i = 0; i < 3; i++)
            CHECK("released", 0, pthread_mutex_unlock(&mutex));
        CHECK("not held", EPERM, pthread_mutex_unlock(&mutex));
    }
    return unused;
}

static void *checking(void *unused)
{
    pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    const struct timespec past = {1, 0};

    while (!over) {
        CHECK("lock", 0, pthread_mutex_lock(&mutex));
        CHECK("again", EDEADLK, pthread_mutex_lock(&mutex));
        CHECK("wait", ETIMEDOUT, pthread_cond_timedwait(&never, &mutex, &past));
        CHECK("unlock", 0, pthread_mutex_unlock(&mutex));
    }
    return unused;
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 2000, level;
    const struct timespec moment = {.tv_nsec = 500000};
    pthread_t threads[2];
    int one = 1, all;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    check_start();
    pthread_create(&threads[0], NULL, recursive, NULL);
    pthread_create(&threads[1], NULL, checking, NULL);
    for (int i = 0; i < iterations; i++) {
        MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK("sum", check_size, all);
        nanosleep(&moment, NULL);
    }
    over = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return check_finish("owners");
}
