/* Where io_uring cannot be used: the engine says what is missing, and a relay acts on it. Each test
 * runs in a process of its own whose system calls are filtered, as containers do. */
#include "relay/engine/engine.h"
#include "relay/main.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("uring");

#define SAID_MAX 4096
#define WAIT_MS 60000

static char said[SAID_MAX]; /* to stderr, by the process */
static int code;            /* its exit code, or -1 */

/* From now on this system call answers with this error. */
static bool refuse(int system_call, int error)
{
    struct sock_filter code_of_filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)system_call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = 4, .filter = code_of_filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* A process that runs act() under the filter and exits with what it returns. Returns the end of a
 * pipe with what it says. */
static int start(pid_t *pid, int system_call, int error, int (*act)(void))
{
    int ends[2];

    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    *pid = fork();
    CU_ASSERT_TRUE_FATAL(*pid >= 0);
    if (*pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        if (!refuse(system_call, error))
            _exit(125);
        _exit(act());
    }
    close(ends[1]);
    return ends[0];
}

/* Takes in what it says until `word`, or its end. */
static void listen_for(int fd, const char *word)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t size = strlen(said);
    ssize_t n = 1;

    while (n > 0 && size < SAID_MAX - 1 && !(word && strstr(said, word))) {
        CU_ASSERT_EQUAL_FATAL(poll(&p, 1, WAIT_MS), 1);
        n = read(fd, said + size, SAID_MAX - 1 - size);
        size += n > 0 ? (size_t)n : 0;
        said[size] = '\0';
    }
}

static void finish(pid_t pid, int fd)
{
    int status;

    listen_for(fd, NULL);
    close(fd);
    CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
    code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void run(int system_call, int error, int (*act)(void))
{
    pid_t pid;
    int fd;

    said[0] = '\0';
    fd = start(&pid, system_call, error, act);
    finish(pid, fd);
}

static int check(void)
{
    struct cw_err err = {0};
    int failed = relay_engine_uring.check(&err);

    if (failed)
        fprintf(stderr, "%s", err.text);
    return failed == CW_ENOTFOUND ? 3 : failed ? 4 : 0;
}

static bool said_that(const char *text)
{
    return strstr(said, text) != NULL;
}

TEST(no_rings)
{
    static const int errors[] = {ENOSYS, EPERM, EACCES};

    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
        run(SYS_io_uring_setup, errors[i], check);
        CU_ASSERT_EQUAL(code, 3);
        CU_ASSERT_TRUE(said_that("io_uring"));
        CU_ASSERT_TRUE(said_that("--engine poll"));
    }
    run(SYS_io_uring_setup, ENOSYS, check);
    CU_ASSERT_TRUE(said_that("io_uring_setup: Function not implemented"));
    CU_ASSERT_TRUE(said_that("seccomp"));
    run(SYS_io_uring_setup, EINVAL, check);
    CU_ASSERT_EQUAL(code, 3);
    CU_ASSERT_TRUE(said_that("Linux 6.1"));
    run(SYS_io_uring_setup, ENOMEM, check);
    CU_ASSERT_EQUAL(code, 3);
    CU_ASSERT_TRUE(said_that("ulimit -l"));
}

/* Rings can be made, but not used. */
TEST(rings_of_no_use)
{
    struct cw_err err;

    if (relay_engine_uring.check(&err) < 0)
        return;
    run(SYS_io_uring_enter, EPERM, check);
    CU_ASSERT_EQUAL(code, 3);
    CU_ASSERT_TRUE(said_that("io_uring_enter"));
    run(SYS_io_uring_register, EPERM, check);
    CU_ASSERT_EQUAL(code, 3);
    CU_ASSERT_TRUE(said_that("io_uring_register"));
    /* and what is not needed does not matter */
    run(SYS_io_uring_setup + 1000, EPERM, check);
    CU_ASSERT_EQUAL(code, 0);
}

static char place[64];

static int relay_of(char *engine)
{
    char *argv[] = {"relay", "--engine", engine, "--listen", place, NULL};

    return cmd_relay(5, argv);
}

static int relay_of_uring(void)
{
    return relay_of("uring");
}

static int relay_of_auto(void)
{
    return relay_of("auto");
}

TEST(relay_that_must_have_it)
{
    snprintf(place, sizeof(place), "unix:/tmp/test-uring-%d", (int)getpid());
    run(SYS_io_uring_setup, ENOSYS, relay_of_uring);
    CU_ASSERT_EQUAL(code, 1);
    CU_ASSERT_TRUE(said_that("causeway relay: io_uring_setup: Function not implemented"));
    CU_ASSERT_EQUAL(strchr(said, '\n'), said + strlen(said) - 1);
    CU_ASSERT_EQUAL(access(place + 5, F_OK), -1);
}

TEST(relay_that_takes_another)
{
    pid_t pid;
    int fd;

    snprintf(place, sizeof(place), "unix:/tmp/test-uring-%d", (int)getpid());
    said[0] = '\0';
    fd = start(&pid, SYS_io_uring_setup, ENOSYS, relay_of_auto);
    listen_for(fd, "listening on");
    CU_ASSERT_EQUAL(kill(pid, SIGTERM), 0);
    finish(pid, fd);
    CU_ASSERT_EQUAL(code, 0);
    CU_ASSERT_TRUE(said_that("causeway relay: --engine auto takes "));
    CU_ASSERT_TRUE(said_that("io_uring_setup: Function not implemented"));
    CU_ASSERT_FALSE(said_that("(engine uring)"));
}
