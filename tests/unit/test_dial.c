/* Links that a relay opens to others: side by side, and no longer than their job lives. */
#include "common/dial.h"
#include "relay/dial.h"
#include "relay/engine/accept.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

SUITE("links that are opened");

#define WAIT_MS 4000 /* less than a dial waits for an answer */

static struct cw_err err;
static struct dial *dial;
static struct relay_dialler dialler;
static struct cw_address silent; /* listens, and never says a word */
static int silent_fd;
static int threads_before;

static int listen_to(struct cw_address *address)
{
    int fd;

    CU_ASSERT_EQUAL_FATAL(cw_address_parse(address, "tcp:127.0.0.1:0", &err), CW_OK);
    fd = cw_listen(address, &err);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    return fd;
}

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = -2; /* "." and ".." */

    CU_ASSERT_PTR_NOT_NULL_FATAL(tasks);
    while (readdir(tasks))
        count++;
    closedir(tasks);
    return count;
}

static void *nothing(void *arg)
{
    return arg;
}

static void begin(void)
{
    pthread_t first;

    /* with the first thread of a process a sanitizer starts one of its own */
    CU_ASSERT_EQUAL_FATAL(pthread_create(&first, NULL, nothing, NULL), 0);
    pthread_join(first, NULL);
    threads_before = count_threads();
    dial = dial_open(&err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(dial);
    dialler = dial_dialler(dial);
    silent_fd = listen_to(&silent);
}

/* A thread that resolves an address has descriptors open, and dial_close does not wait for it. */
static void end(void)
{
    dial_close(dial);
    close(silent_fd);
    for (int ms = 0; count_threads() > threads_before && ms < WAIT_MS; ms++)
        poll(NULL, 0, 1);
    /* one that another test has joined may have been counted before: its task goes after that */
    CU_ASSERT_TRUE(count_threads() <= threads_before);
}

static struct relay_dial to(const struct cw_address *address, uint8_t job)
{
    struct relay_dial what = {.peer = 1};

    memset(what.job, job, sizeof(what.job));
    snprintf(what.address, sizeof(what.address), "%.*s", (int)CW_LINK_ADDRESS_MAX - 1,
             address->text);
    return what;
}

static bool add(const struct cw_address *address, uint8_t job)
{
    struct relay_dial what = to(address, job);

    return dialler.dial(dialler.ctx, &what);
}

static void cancel(uint8_t job)
{
    struct relay_dial what = to(&silent, job);

    dialler.cancel(dialler.ctx, what.job);
}

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, WAIT_MS) == 1;
}

TEST(one_that_nobody_answers_delays_no_other)
{
    struct cw_address other;
    int other_fd;

    begin();
    other_fd = listen_to(&other);
    CU_ASSERT_TRUE(add(&silent, 1));
    CU_ASSERT_TRUE(readable(silent_fd));
    CU_ASSERT_TRUE(add(&other, 2));
    CU_ASSERT_TRUE(readable(other_fd));
    end();
    close(other_fd);
}

TEST(ends_with_its_job)
{
    char byte;
    int first;
    int second;

    begin();
    CU_ASSERT_TRUE(add(&silent, 1));
    CU_ASSERT_TRUE(readable(silent_fd));
    first = cw_accept(silent_fd, &silent);
    CU_ASSERT_TRUE(add(&silent, 2));
    CU_ASSERT_TRUE(readable(silent_fd));
    second = cw_accept(silent_fd, &silent);
    cancel(1);
    CU_ASSERT_TRUE(readable(first));
    CU_ASSERT_EQUAL(read(first, &byte, 1), 0);
    CU_ASSERT_EQUAL(read(second, &byte, 1), -1);
    close(first);
    close(second);
    end();
}

TEST(no_more_than_there_is_room_for)
{
    bool added;

    begin();
    for (int i = 0; i < CW_DIALS_MAX; i++)
        CU_ASSERT_TRUE(add(&silent, 1));
    CU_ASSERT_FALSE(add(&silent, 2));
    cancel(1);
    added = add(&silent, 2);
    for (int ms = 0; !added && ms < WAIT_MS; ms++) {
        poll(NULL, 0, 1);
        added = add(&silent, 2);
    }
    CU_ASSERT_TRUE(added);
    end();
}

/* The link is lost, but not the words on it. */
TEST(no_descriptor_for_a_link)
{
    struct relay_dialled dialled = {.peer = 3};
    struct iovec iov = {&dialled, sizeof(dialled)};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof(control)};
    struct relay_listener listener = {.dialled = true};
    struct relay_accepted accepted;
    struct rlimit old;
    struct rlimit low;
    int pair[2];
    int fd;

    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    listener.fd = pair[0];
    control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &pair[1], sizeof(int));
    CU_ASSERT_EQUAL(sendmsg(pair[1], &msg, 0), (ssize_t)sizeof(dialled));
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(fd);
    CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = (struct rlimit){.rlim_cur = (rlim_t)fd, .rlim_max = old.rlim_max};
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &low), 0);
    CU_ASSERT_TRUE(relay_accept(&listener, NULL, &accepted));
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &old), 0);
    CU_ASSERT_TRUE(accepted.fd < 0);
    CU_ASSERT_EQUAL(accepted.dialled.peer, 3);
    CU_ASSERT_PTR_NOT_NULL(strstr(accepted.dialled.failure, "descriptor limit"));
    close(pair[0]);
    close(pair[1]);
}
