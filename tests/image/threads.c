/* threads [GENERATIONS]: images in the middle of threads that compute, hold mutexes, and wait in
 * several ways. Looks afterwards, in each process, whether all of them went on as they were. Prints
 * what is not so, and exits with 1. */
#include "tests/image/taker.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: not so: %s (errno %d)\n", __LINE__, #condition, errno);               \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)
#define COMPUTERS 4
#define SUMS 64

static _Atomic int failures;
static _Atomic int stop, generation;
static pthread_t computer[COMPUTERS], waiter, reader, sleeper, joiner, leaver, semaphore_waiter,
    robust;
static _Atomic unsigned long rounds[COMPUTERS];
static _Atomic int woken, bytes_read, slept, joined, posted;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static unsigned long guarded[2];
static int ends[2];
static _Thread_local unsigned long of_thread;

/* --- threads --------------------------------------------------------------------------------- */

/* The sums are in vector registers most of the time. */
__attribute__((optimize("O3"))) static void compute(double *sum, unsigned long round)
{
    double local[SUMS];

    memcpy(local, sum, sizeof(local));
    for (int k = 0; k < 2000; k++)
        for (int i = 0; i < SUMS; i++)
            local[i] = local[i] * 0.5 + (double)(i + k) + (double)round;
    memcpy(sum, local, sizeof(local));
}

static void *run_computer(void *argument)
{
    long own = (long)argument;
    double sum[SUMS] = {0}, again[SUMS] = {0};
    char *piece;

    of_thread = (unsigned long)own * 1000;
    while (!stop) {
        memcpy(again, sum, sizeof(sum));
        compute(sum, rounds[own]);
        compute(again, rounds[own]);
        CHECK(memcmp(sum, again, sizeof(sum)) == 0);
        pthread_mutex_lock(&contended);
        guarded[0]++;
        piece = malloc(1000 + rounds[own] % 1000);
        guarded[1]++;
        CHECK(guarded[0] == guarded[1]);
        pthread_mutex_unlock(&contended);
        memset(piece, 1, 1000);
        free(piece);
        of_thread++;
        rounds[own]++;
        CHECK(of_thread == (unsigned long)own * 1000 + rounds[own]);
    }
    return argument;
}

static void *run_waiter(void *unused)
{
    pthread_mutex_lock(&mutex);
    while (!stop) {
        pthread_cond_wait(&condition, &mutex);
        woken++;
    }
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *run_reader(void *unused)
{
    char byte;

    while (read(ends[0], &byte, 1) == 1 && byte != 'q')
        bytes_read++;
    CHECK(byte == 'q');
    return unused;
}

/* An error here is an EINTR that the program would not have seen. */
static void *run_sleeper(void *unused)
{
    struct timespec left = {.tv_nsec = 5000000}, moment;

    while (!stop) {
        CHECK(nanosleep(&left, &left) == 0);
        left = (struct timespec){.tv_nsec = 5000000};
        clock_gettime(CLOCK_MONOTONIC, &moment);
        moment.tv_nsec += 3000000;
        moment.tv_sec += moment.tv_nsec / 1000000000;
        moment.tv_nsec %= 1000000000;
        CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL) == 0);
        usleep(1000);
        slept++;
    }
    return unused;
}

static void *run_semaphore(void *unused)
{
    while (!stop) {
        CHECK(sem_wait(&semaphore) == 0);
        posted++;
    }
    return unused;
}

/* Held all the time, by the thread's number. */
static void *run_robust(void *unused)
{
    pthread_mutexattr_t attribute;
    pthread_mutex_t robust[3];

    pthread_mutexattr_init(&attribute);
    pthread_mutexattr_setrobust(&attribute, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_settype(&attribute, PTHREAD_MUTEX_ERRORCHECK);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_mutex_init(&robust[i], &attribute) == 0 &&
              pthread_mutex_lock(&robust[i]) == 0);
    while (!stop)
        usleep(500);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_mutex_unlock(&robust[i]) == 0);
    return unused;
}

static void *run_leaver(void *unused)
{
    while (generation == 0)
        usleep(1000);
    return unused;
}

static void *run_joiner(void *argument)
{
    CHECK(pthread_join(leaver, NULL) == 0);
    joined++;
    return argument;
}

static void *run_new(void *argument)
{
    free(malloc(100000));
    return argument;
}

static void *run_cancelled(void *unused)
{
    for (;;)
        pause();
    return unused;
}

/* --- main ------------------------------------------------------------------------------------ */

static void start_all(void)
{
    sem_init(&semaphore, 0, 0);
    if (pipe(ends))
        exit(2);
    for (long i = 0; i < COMPUTERS; i++)
        pthread_create(&computer[i], NULL, run_computer, (void *)i);
    pthread_create(&waiter, NULL, run_waiter, NULL);
    pthread_create(&reader, NULL, run_reader, NULL);
    pthread_create(&sleeper, NULL, run_sleeper, NULL);
    pthread_create(&semaphore_waiter, NULL, run_semaphore, NULL);
    pthread_create(&robust, NULL, run_robust, NULL);
    pthread_create(&leaver, NULL, run_leaver, NULL);
    pthread_create(&joiner, NULL, run_joiner, NULL);
}

static void await_more(_Atomic int *count, int than)
{
    while (*count <= than)
        usleep(500);
}

/* Each of them does something. */
static void check_all(void)
{
    static _Thread_local int before;

    for (int i = 0; i < COMPUTERS; i++)
        for (unsigned long than = rounds[i]; rounds[i] <= than;)
            usleep(500);
    before = woken;
    while (woken == before) {
        pthread_mutex_lock(&mutex);
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
        usleep(100);
    }
    before = bytes_read;
    CHECK(write(ends[1], "x", 1) == 1);
    await_more(&bytes_read, before);
    before = posted;
    sem_post(&semaphore);
    await_more(&posted, before);
    await_more(&slept, slept);
}

/* Threads begin, end, are found by their numbers and are cancelled as ever. */
static void check_others(void)
{
    pthread_t one;
    void *result;

    CHECK(pthread_create(&one, NULL, run_new, &ends) == 0);
    CHECK(pthread_join(one, &result) == 0 && result == &ends);
    CHECK(pthread_create(&one, NULL, run_cancelled, NULL) == 0);
    CHECK(pthread_cancel(one) == 0);
    CHECK(pthread_join(one, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(pthread_kill(waiter, 0) == 0 && pthread_kill(computer[0], 0) == 0);
    CHECK(pthread_setname_np(computer[1], "computer") == 0);
}

static void end_all(void)
{
    stop = 1;
    for (int i = 0; i < COMPUTERS; i++)
        pthread_join(computer[i], NULL);
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    pthread_join(waiter, NULL);
    CHECK(write(ends[1], "q", 1) == 1);
    pthread_join(reader, NULL);
    pthread_join(sleeper, NULL);
    CHECK(setresuid((uid_t)-1, (uid_t)-1, (uid_t)-1) == 0); /* by a signal to all threads */
    sem_post(&semaphore);
    pthread_join(semaphore_waiter, NULL);
    pthread_join(robust, NULL);
    generation++;
    pthread_join(joiner, NULL);
    CHECK(joined == 1);
}

/* One that is cancelled in the process after it was stopped. */
static void check_cancel(pthread_t one)
{
    void *result;

    CHECK(pthread_cancel(one) == 0);
    CHECK(pthread_join(one, &result) == 0 && result == PTHREAD_CANCELED);
}

int main(int argc, char **argv)
{
    int wanted = argc > 1 ? atoi(argv[1]) : 1, restored = 0;
    pthread_t cancelled;
    int32_t former, now;

    start_all();
    for (int i = 0; i < wanted; i++) {
        pthread_create(&cancelled, NULL, run_cancelled, NULL);
        check_all();
        restored = taker_take();
        CHECK(image_thread(COMPUTERS, &former, &now));
        if (restored)
            CHECK(former != now && syscall(SYS_tgkill, getpid(), now, 0) == 0);
        check_all();
        check_others();
        check_cancel(cancelled);
        if (!restored)
            break;
        generation++;
    }
    check_all();
    end_all();
    printf("%s, %d generations, %d failures\n", restored ? "restored" : "went on", generation - 1,
           failures);
    return failures != 0;
}
