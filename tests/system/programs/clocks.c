/* No clock goes backwards, and each wait until a moment ends, and not early: clocks [ROUNDS
   [LINES]]. The thread of main() and a second one look at clocks and wait, each in all ways, while
   the former exchanges messages. A line after each LINES rounds (default: none). A rank that goes
   on on another machine must see to it. */
#define _GNU_SOURCE
#include "tell.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

enum { MONOTONIC_CLOCKS = 6, LOOKS = MONOTONIC_CLOCKS + 4, WAYS = 9, NS_IN_S = 1000000000 };

static const clockid_t clocks[MONOTONIC_CLOCKS] = {
    CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW,      CLOCK_MONOTONIC_COARSE,
    CLOCK_BOOTTIME,  CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
static atomic_bool ends;

/* What a thread waits with; nobody else has it. */
struct waiter {
    int64_t last[LOOKS], wait_ns;
    bool has_own_time; /* that of further threads begins anew */
    pthread_mutex_t mutex, held;
    pthread_cond_t monotonic, any;
    pthread_rwlock_t rwlock;
    sem_t semaphore;
    int timer;
};

static int64_t now(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * NS_IN_S + t.tv_nsec;
}

static struct timespec time_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / NS_IN_S, .tv_nsec = ns % NS_IN_S};
}

static void *hold(void *argument)
{
    struct waiter *w = argument;

    pthread_mutex_lock(&w->held);
    pthread_rwlock_wrlock(&w->rwlock);
    return NULL;
}

static void begin(struct waiter *w, int64_t wait_ns, bool has_own_time)
{
    pthread_condattr_t attr;
    pthread_t holder;

    *w = (struct waiter){.wait_ns = wait_ns, .has_own_time = has_own_time};
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->monotonic, &attr);
    pthread_cond_init(&w->any, NULL);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_mutex_init(&w->held, NULL);
    pthread_rwlock_init(&w->rwlock, NULL);
    sem_init(&w->semaphore, 0, 0);
    w->timer = timerfd_create(CLOCK_MONOTONIC, 0);
    pthread_create(&holder, NULL, hold, w);
    pthread_join(holder, NULL);
}

static void look(struct waiter *w)
{
    struct rusage usage;
    struct tms spent;
    int64_t seen[LOOKS];

    for (int i = 0; i < MONOTONIC_CLOCKS; i++)
        seen[i] = now(clocks[i]);
    seen[MONOTONIC_CLOCKS] = clock();
    seen[MONOTONIC_CLOCKS + 1] = times(&spent);
    seen[MONOTONIC_CLOCKS + 2] = spent.tms_utime;
    getrusage(RUSAGE_SELF, &usage);
    seen[MONOTONIC_CLOCKS + 3] = usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec;
    for (int i = 0; i < LOOKS; i++) {
        if (clocks[i % MONOTONIC_CLOCKS] == CLOCK_THREAD_CPUTIME_ID && i < MONOTONIC_CLOCKS &&
            !w->has_own_time)
            continue;
        check_item = i;
        CHECK("a clock went backwards by", 0, seen[i] < w->last[i] ? w->last[i] - seen[i] : 0);
        w->last[i] = seen[i];
    }
}

static void wait_for_timer(struct waiter *w, const struct timespec *until)
{
    struct itimerspec at = {.it_value = *until};
    uint64_t ticks;

    timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &at, NULL);
    while (read(w->timer, &ticks, sizeof ticks) < 0)
        ;
}

static void wait_for_signal(const struct timespec *until)
{
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    struct itimerspec at = {.it_value = *until}, left = {.it_value = {1, 0}};
    timer_t timer;

    if (timer_create(CLOCK_BOOTTIME, &event, &timer) < 0)
        return;
    timer_settime(timer, TIMER_ABSTIME, &at, NULL);
    while (left.it_value.tv_sec || left.it_value.tv_nsec)
        timer_gettime(timer, &left);
    timer_delete(timer);
}

static void wait_in(struct waiter *w, int way)
{
    clockid_t clock = way == 1 || way == 8 ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
    int64_t moment = now(clock) + w->wait_ns;
    struct timespec until = time_of(moment);
    int error = 0;

    pthread_mutex_lock(&w->mutex);
    while (now(clock) < moment && error != EINVAL)
        switch (way) {
        case 0:
        case 1:
            error = clock_nanosleep(clock, TIMER_ABSTIME, &until, NULL);
            break;
        case 2:
            error = pthread_cond_timedwait(&w->monotonic, &w->mutex, &until);
            break;
        case 3:
            error = pthread_cond_clockwait(&w->any, &w->mutex, clock, &until);
            break;
        case 4:
            error = pthread_mutex_clocklock(&w->held, clock, &until);
            break;
        case 5:
            error = pthread_rwlock_clockrdlock(&w->rwlock, clock, &until);
            break;
        case 6:
            error = sem_clockwait(&w->semaphore, clock, &until);
            break;
        case 7:
            wait_for_timer(w, &until);
            break;
        case 8:
            wait_for_signal(&until);
        }
    pthread_mutex_unlock(&w->mutex);
    check_item = way;
    CHECK("the moment stays", moment, (int64_t)until.tv_sec * NS_IN_S + until.tv_nsec);
    CHECK("a wait with error", false, error == EINVAL);
}

/* An image may come amid any of its waits; timers of timer_create() are in none. */
static void *run_second(void *argument)
{
    struct waiter *w = argument;

    for (int i = 0; !ends; i++) {
        look(w);
        wait_in(w, i % (WAYS - 1));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct waiter first, second;
    uint64_t out[TELL_WORDS_MAX], in[TELL_WORDS_MAX];
    int rounds = argc > 1 ? atoi(argv[1]) : 60, lines = argc > 2 ? atoi(argv[2]) : 0, count;
    pthread_t thread;
    struct teller t;
    MPI_Status status;

    begin(&first, 1000000, true);
    begin(&second, 50000000, false);
    check_init(&argc, &argv);
    pthread_create(&thread, NULL, run_second, &second);
    t = tell_start();
    for (int round = 0; round < rounds; round++) {
        look(&first);
        wait_in(&first, round % (WAYS - 1));
        count = tell_prepare(&t, out, (uint64_t)now(CLOCK_MONOTONIC));
        MPI_Sendrecv(out, count, MPI_UINT64_T, t.right, 0, in, TELL_WORDS_MAX, MPI_UINT64_T, t.left,
                     0, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_UINT64_T, &count);
        tell_hear(&t, in, count);
        tell_echo(&t);
        if (check_rank == 0 && lines > 0 && (round + 1) % lines == 0) {
            printf("round %d\n", round + 1);
            fflush(stdout);
        }
    }
    ends = true;
    pthread_join(thread, NULL);
    wait_in(&first, WAYS - 1);
    return check_finish("clocks");
}
