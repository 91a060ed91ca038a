/* Ranks whose further threads compute: a pool of OpenMP, and a thread that waits for work, changes
   numbers and answers. MPI is called by main() alone.
     pool [ITERATIONS]   (2000) */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <omp.h>
#include <pthread.h>

enum { COUNT = 20000, WORKERS = 3, DEPTH = 3 };

static pthread_mutex_t mutex; /* recursive */
static pthread_mutex_t own = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static long question, answer;
static int wanted, ready;
static atomic_int over;
static uint32_t number[COUNT];

static void *work(void *unused)
{
    pthread_mutex_lock(&mutex);
    while (!over) {
        while (!wanted && !over)
            pthread_cond_wait(&asked, &mutex);
        wanted = 0;
        for (int i = 0; i < DEPTH; i++)
            pthread_mutex_lock(&mutex);
        answer = question * 3 + 1;
        for (int i = 0; i < DEPTH; i++)
            pthread_mutex_unlock(&mutex);
        ready = 1;
        pthread_cond_signal(&answered);
    }
    pthread_mutex_unlock(&mutex);
    return unused;
}

/* Holds a mutex most of the time, which it alone may release. */
static void *hold(void *unused)
{
    const struct timespec moment = {.tv_nsec = 200000};

    while (!over) {
        CHECK("lock", 0, pthread_mutex_lock(&own));
        thrd_sleep(&moment, NULL);
        CHECK("again", EDEADLK, pthread_mutex_lock(&own));
        CHECK("unlock", 0, pthread_mutex_unlock(&own));
    }
    return unused;
}

static long ask(long value)
{
    long result;

    pthread_mutex_lock(&mutex);
    question = value;
    wanted = 1;
    ready = 0;
    pthread_cond_signal(&asked);
    while (!ready)
        pthread_cond_wait(&answered, &mutex);
    result = answer;
    pthread_mutex_unlock(&mutex);
    return result;
}

/* Of all numbers, changed once more: the same for any number of threads. */
static uint32_t change(uint32_t with)
{
    uint32_t sum = 0;

#pragma omp parallel for reduction(+ : sum)
    for (uint32_t i = 0; i < COUNT; i++) {
        number[i] = number[i] * 1664525u + 1013904223u + i + with;
        sum += number[i] >> 3;
    }
    return sum;
}

static uint32_t change_alone(uint32_t *numbers, uint32_t with)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < COUNT; i++) {
        numbers[i] = numbers[i] * 1664525u + 1013904223u + i + with;
        sum += numbers[i] >> 3;
    }
    return sum;
}

/* What all ranks have computed, again. */
static uint32_t serial(int iterations)
{
    static uint32_t numbers[COUNT];
    uint32_t with = 0;

    for (int i = 0; i < iterations; i++)
        with = (uint32_t)check_size * change_alone(numbers, with) * 3u + (uint32_t)check_size;
    return with;
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 2000, level;
    pthread_mutexattr_t recursive;
    pthread_t worker, holder;
    uint32_t with = 0, all;

    omp_set_num_threads(WORKERS);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    check_start();
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &recursive);
    pthread_create(&worker, NULL, work, NULL);
    pthread_create(&holder, NULL, hold, NULL);
    for (int i = 0; i < iterations; i++) {
        uint32_t own = (uint32_t)ask(change(with));

        pthread_mutex_lock(&mutex); /* held in MPI */
        MPI_Allreduce(&own, &all, 1, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
        pthread_mutex_unlock(&mutex);
        with = all;
    }
    CHECK("result", serial(iterations), with);
    pthread_mutex_lock(&mutex);
    over = 1;
    pthread_cond_signal(&asked);
    pthread_mutex_unlock(&mutex);
    pthread_join(worker, NULL);
    pthread_join(holder, NULL);
    return check_finish("pool");
}
