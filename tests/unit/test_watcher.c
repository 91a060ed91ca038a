/* The watcher of a rank, with real processes. */
#include "dispatcher/node/watcher.h"
#include "tests/unit/refuse.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 2000000ull
#define WAIT_MS 10000 /* for anything that must come */

static int fd; /* our end */
static pid_t watcher;
static pid_t rank_pid;
static bool refuse_close_range; /* the watcher's system has no such call */

/* --- what the rank does --- */

/* As a rank begins: without the watcher's descriptors and signals. */
static void begin(void)
{
    sigset_t none;

    closefrom(0);
    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void sleep_on(void)
{
    for (;;)
        pause();
}

static void sleep_long(void *ctx)
{
    (void)ctx;
    begin();
    sleep_on();
}

static void exit_with(void *ctx)
{
    _exit(*(int *)ctx);
}

/* A child of the rank, in its group, that would outlive it. */
static void fork_and_die(void *ctx)
{
    pid_t child;

    (void)ctx;
    begin();
    child = fork();
    if (child == 0)
        sleep_on();
    kill(getpid(), SIGKILL);
}

static void no_fork(void *ctx)
{
    (void)ctx;
}

/* --- the dispatcher's side --- */

/* The next message of this kind. Signs of life may come between. */
static int32_t await(uint32_t kind)
{
    struct watcher_message m = {0};
    struct pollfd p = {.fd = fd, .events = POLLIN};

    do {
        CU_ASSERT_EQUAL_FATAL(poll(&p, 1, WAIT_MS), 1);
        CU_ASSERT_EQUAL_FATAL(watcher_receive(fd, &m), 1);
        CU_ASSERT_EQUAL(m.rank, 5);
        CU_ASSERT_EQUAL(m.incarnation, 3);
    } while (m.kind == WATCHER_ALIVE && kind != WATCHER_ALIVE);
    CU_ASSERT_EQUAL(m.kind, kind);
    return m.value;
}

static void start(void (*become)(void *ctx), void *ctx)
{
    struct watcher_config config = {.rank = 5,
                                    .incarnation = 3,
                                    .period_ns = PERIOD_NS,
                                    .become = become,
                                    .no_fork = no_fork,
                                    .ctx = ctx};
    int fds[2];

    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    fflush(stdout);
    watcher = fork();
    if (watcher == 0) {
        config.fd = fds[1];
        if (refuse_close_range)
            refuse_call(SYS_close_range);
        watcher_run(&config);
    }
    close(fds[1]);
    fd = fds[0];
    rank_pid = await(WATCHER_STARTED);
    CU_ASSERT_NOT_EQUAL(rank_pid, watcher);
}

/* The watcher has ended by itself. */
static void stop(void)
{
    int status = -1;

    close(fd);
    CU_ASSERT_EQUAL(waitpid(watcher, &status, 0), watcher);
    CU_ASSERT_EQUAL(status, 0);
}

static bool is_there(pid_t pid)
{
    return kill(pid, 0) == 0;
}

static void await_gone(pid_t pid)
{
    struct timespec t = {.tv_nsec = 1000000};

    for (int ms = 0; ms < WAIT_MS && is_there(pid); ms++) {
        waitpid(pid, NULL, WNOHANG); /* it may have become our child */
        nanosleep(&t, NULL);
    }
    CU_ASSERT_FALSE(is_there(pid));
}

/* No sign of life is there, nor does one come within some periods. */
static bool is_silent(void)
{
    struct timespec t = {.tv_nsec = 20 * PERIOD_NS};
    struct watcher_message m;

    while (watcher_receive(fd, &m) > 0)
        ;
    nanosleep(&t, NULL);
    return watcher_receive(fd, &m) == 0;
}

static int adopt(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static int no_longer(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 0);
}

SUITE("watcher", adopt, no_longer);

/* --- tests --- */

TEST(how_it_ended)
{
    int code = 7;

    start(exit_with, &code);
    CU_ASSERT_EQUAL(await(WATCHER_EXITED), 7 << 8);
    stop();
    start(sleep_long, NULL);
    kill(rank_pid, SIGKILL);
    CU_ASSERT_EQUAL(await(WATCHER_EXITED), SIGKILL);
    CU_ASSERT_FALSE(is_there(rank_pid));
    stop();
}

TEST(signs_of_life)
{
    start(sleep_long, NULL);
    for (int i = 0; i < 3; i++)
        await(WATCHER_ALIVE);
    kill(rank_pid, SIGSTOP);
    /* the stop itself may need a moment */
    for (int i = 0; i < 100 && !is_silent(); i++)
        ;
    CU_ASSERT_TRUE(is_silent());
    kill(rank_pid, SIGCONT);
    await(WATCHER_ALIVE);
    watcher_signal(fd, SIGKILL);
    await(WATCHER_EXITED);
    stop();
}

TEST(signals_are_passed_on)
{
    start(sleep_long, NULL);
    watcher_signal(fd, SIGUSR1);
    CU_ASSERT_EQUAL(await(WATCHER_EXITED), SIGUSR1);
    stop();
    start(sleep_long, NULL);
    kill(rank_pid, SIGSTOP);
    watcher_signal(fd, SIGTERM); /* it wakes to end */
    CU_ASSERT_EQUAL(await(WATCHER_EXITED), SIGTERM);
    stop();
}

static int descriptors_of(pid_t pid)
{
    char path[64];
    struct dirent *entry;
    int count = 0;
    DIR *d;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    d = opendir(path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    while ((entry = readdir(d)))
        count += entry->d_name[0] != '.';
    closedir(d);
    return count;
}

/* What it inherited would stay open when the dispatcher dies. */
TEST(keeps_no_descriptor)
{
    int high;
    int fds[2];

    CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
    high = fcntl(fds[0], F_DUPFD, 500);
    for (int i = 0; i < 2; i++) {
        refuse_close_range = i == 1;
        start(sleep_long, NULL);
        await(WATCHER_ALIVE);
        CU_ASSERT_EQUAL(descriptors_of(watcher), 5); /* three on /dev/null, socket, signals */
        watcher_signal(fd, SIGKILL);
        await(WATCHER_EXITED);
        stop();
    }
    refuse_close_range = false;
    close(high);
    close(fds[0]);
    close(fds[1]);
}

TEST(terminal_signals_are_not_for_it)
{
    start(sleep_long, NULL);
    CU_ASSERT_NOT_EQUAL(getpgid(watcher), getpgrp());
    kill(watcher, SIGINT);
    kill(watcher, SIGTERM);
    kill(watcher, SIGHUP);
    await(WATCHER_ALIVE);
    await(WATCHER_ALIVE);
    CU_ASSERT_TRUE(is_there(rank_pid));
    watcher_signal(fd, SIGKILL);
    await(WATCHER_EXITED);
    stop();
}

TEST(dispatcher_is_gone)
{
    start(sleep_long, NULL);
    stop();
    await_gone(rank_pid);
}

TEST(watcher_is_gone)
{
    struct watcher_message m;
    struct pollfd p;

    start(sleep_long, NULL);
    kill(watcher, SIGKILL);
    waitpid(watcher, NULL, 0);
    while (watcher_receive(fd, &m) > 0)
        ;
    p = (struct pollfd){.fd = fd, .events = POLLIN};
    CU_ASSERT_EQUAL(poll(&p, 1, WAIT_MS), 1);
    CU_ASSERT_EQUAL(watcher_receive(fd, &m), -1);
    await_gone(rank_pid);
    close(fd);
}

/* What a crashed rank left in its group must not go on speaking for it. */
TEST(group_of_a_crashed_rank)
{
    struct timespec t = {.tv_nsec = 1000000};

    start(fork_and_die, NULL);
    CU_ASSERT_EQUAL(await(WATCHER_EXITED), SIGKILL);
    for (int ms = 0; ms < WAIT_MS && kill(-rank_pid, 0) == 0; ms++) {
        waitpid(-rank_pid, NULL, WNOHANG);
        nanosleep(&t, NULL);
    }
    CU_ASSERT_EQUAL(kill(-rank_pid, 0), -1);
    stop();
}

/* A dispatcher that does not listen for a time hears of the end all the same. */
TEST(dispatcher_is_busy)
{
    struct timespec t = {.tv_nsec = 1000000};
    int status;

    start(sleep_long, NULL);
    for (int ms = 0; ms < 1000; ms++) /* more than the socket holds */
        nanosleep(&t, NULL);
    kill(rank_pid, SIGKILL);
    status = await(WATCHER_EXITED);
    CU_ASSERT_EQUAL(status, SIGKILL);
    stop();
}
