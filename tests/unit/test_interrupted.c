/* A sleep that a signal ends is made again, where nobody had looked at what the thread does. */
#include "rdevice/image/interrupted.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

SUITE("interrupted calls");

static volatile sig_atomic_t came;
static pthread_t sleeper;

static void on_signal(int signal, siginfo_t *info, void *frame)
{
    static const struct interrupted not_looked;

    (void)signal;
    (void)info;
    interrupted_again(&not_looked, frame);
    came = 1;
}

static void *wake(void *unused)
{
    struct timespec pause = {.tv_nsec = 1000000};

    for (int i = 0; i < 1000 && !came; i++) {
        nanosleep(&pause, NULL);
        pthread_kill(sleeper, SIGUSR2);
    }
    return unused;
}

/* Returns what `sleeps` does while signals come. */
static int disturbed(int (*sleeps)(void))
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction before;
    pthread_t waker;
    int result;

    came = 0;
    sleeper = pthread_self();
    sigaction(SIGUSR2, &action, &before);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&waker, NULL, wake, NULL), 0);
    result = sleeps();
    pthread_join(waker, NULL);
    sigaction(SIGUSR2, &before, NULL);
    CU_ASSERT_TRUE(came);
    return result;
}

#define SLEEP_NS 100000000

static int until_a_moment(void)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += SLEEP_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static int what_is_left(void)
{
    struct timespec left = {.tv_nsec = SLEEP_NS};

    return nanosleep(&left, &left);
}

static int for_a_time(void)
{
    struct timespec time = {.tv_nsec = SLEEP_NS};

    return nanosleep(&time, NULL);
}

static int until_a_signal(void)
{
    return pause();
}

TEST(sleeps)
{
    CU_ASSERT_EQUAL(disturbed(until_a_moment), 0);
    CU_ASSERT_EQUAL(disturbed(what_is_left), 0);
}

/* Nobody knows how long it is to sleep from now on; or that would be for ever. */
TEST(others_see_it)
{
    CU_ASSERT_EQUAL(disturbed(for_a_time), -1);
    CU_ASSERT_EQUAL(disturbed(until_a_signal), -1);
    CU_ASSERT_EQUAL(errno, EINTR);
}
