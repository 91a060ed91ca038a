/* The process of a rank, with a script in place of the restorer. */
#include "common/clock.h"
#include "dispatcher/node/process.h"
#include "dispatcher/program/device_path.h"
#include "tests/lib/scratch.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("process of a rank");

#define WAIT_NS 20000000000ull /* for anything that must come */
#define PERIOD_NS 1000000000ull

static struct cw_err err;
static struct loop *loop;
static struct process process;
static char restorer[128];
static int fds[LAUNCH_STREAMS];
static struct cw_err failure;
static bool started, has_ended, has_failed;
static int status;

static void on_started(void *ctx)
{
    (void)ctx;
    memcpy(fds, process.fd, sizeof(fds));
    started = true;
}

static void on_failed(void *ctx, const struct cw_err *e)
{
    (void)ctx;
    failure = *e;
    has_failed = true;
}

static void on_alive(void *ctx)
{
    (void)ctx;
}

static void on_ended(void *ctx, int how)
{
    (void)ctx;
    status = how;
    has_ended = true;
}

static void on_lost(void *ctx)
{
    (void)ctx;
    CU_FAIL("the watcher is gone");
}

static const struct process_events events = {on_started, on_failed, on_alive, on_ended, on_lost};

static void open_site(void)
{
    CU_ASSERT_EQUAL_FATAL(scratch_make(), 0);
    snprintf(restorer, sizeof(restorer), "%s", scratch_path("causeway-restore"));
    loop = loop_new(&err);
}

static void close_site(void)
{
    loop_free(loop);
    unlink(restorer);
    CU_ASSERT_EQUAL(scratch_end(), 0);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

static void write_restorer(const char *text)
{
    scratch_put("causeway-restore", text, strlen(text), 0755);
}

/* The image is a file with this text. */
static int image_of(const char *text)
{
    int fd;

    scratch_put("image", text, strlen(text), 0600);
    fd = open(scratch_path("image"), O_RDWR | O_CLOEXEC);
    unlink(scratch_path("image"));
    return fd;
}

static void start_of(int image_fd, uint64_t alive_period_ns)
{
    static const char *const env[] = {"LD_PRELOAD="};
    static const char *const more[] = {"GREETING=hello"};
    static char *const argv[] = {"/bin/true", NULL};
    struct launch_program program = {.path = "/bin/true",
                                     .argv = argv,
                                     .wdir = scratch_dir,
                                     .env = env,
                                     .env_count = 1,
                                     .more = more,
                                     .more_count = 1,
                                     .device_path = "",
                                     .restore_path = restorer};
    struct cw_setup setup = {
        .process = {.rank = 2, .incarnation = 2}, .ranks = 3, .address = "here"};
    uint8_t zeros[CW_KEY_SIZE] = {0};
    uint64_t until_ns;

    memset(setup.key, 1, sizeof(setup.key));
    memset(setup.image_key, 1, sizeof(setup.image_key));
    started = has_ended = has_failed = false;
    process_init(&process);
    process.loop = loop;
    process.events = &events;
    process.program = &program;
    process.alive_period_ns = alive_period_ns;
    CU_ASSERT_EQUAL_FATAL(
        process_start(&process, &setup, -1, image_fd, &(struct channel_fds){-1, -1}, &err), CW_OK);
    CU_ASSERT_EQUAL(memcmp(setup.key, zeros, sizeof(zeros)), 0);
    CU_ASSERT_EQUAL(memcmp(setup.image_key, zeros, sizeof(zeros)), 0);
    until_ns = cw_clock_ns() + WAIT_NS;
    while (!has_failed && !has_ended && loop_now_ns(loop) < until_ns)
        loop_turn(loop, until_ns);
    CU_ASSERT_FALSE(process_is_watched(&process));
}

static void start(int image_fd)
{
    start_of(image_fd, PERIOD_NS);
}

static void end_process(void)
{
    CU_ASSERT_TRUE_FATAL(started);
    for (int i = 0; i < LAUNCH_STREAMS; i++)
        close(fds[i]);
}

static void printed(const char *text)
{
    char got[1024];
    ssize_t n = read(fds[LAUNCH_STDOUT], got, sizeof(got) - 1);

    got[n > 0 ? n : 0] = '\0';
    CU_ASSERT_STRING_EQUAL(got, text);
}

TEST(goes_on_from_an_image)
{
    char text[256];
    uint8_t report[64];
    int image;

    open_site();
    image = image_of("the image\n");
    /* the descriptors as they are named, no others, the environment, the working directory */
    write_restorer("#!/bin/bash\n"
                   "eval \"cat <&$1\"\n"
                   "echo $2 $3 $4 $5 $# $CAUSEWAY_FD $PMI_FD $PMI_RANK $GREETING\n"
                   "pwd\n"
                   "ls /proc/self/fd | wc -w\n"
                   "eval \"dd bs=4096 count=1 <&$2 >/dev/null 2>&1\"\n"
                   "eval \"printf pmi >&$3\"\n"
                   "eval \"printf report >&$2\"\n"
                   "exit 3\n");
    start(image);
    CU_ASSERT_TRUE(fcntl(image, F_GETFD) >= 0); /* borrowed */
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    /* of 8: 0 to 2, PMI, control, image, that of the script, which ls does not have, its own */
    snprintf(text, sizeof(text), "the image\n101 100 -1 -1 5 101 100 2 hello\n%s\n7\n",
             scratch_dir);
    printed(text);
    CU_ASSERT_EQUAL(read(fds[LAUNCH_PMI], report, sizeof(report)), 3);
    CU_ASSERT_EQUAL(recv(fds[LAUNCH_CONTROL], report, sizeof(report), 0), 6);
    end_process();
    close(image);
    close_site();
}

TEST(begins_at_the_beginning)
{
    open_site();
    write_restorer("#!/bin/sh\nexit 3\n");
    start(-1);
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    end_process();
    close_site();
}

/* With one processor, and signs of life without a pause, the watcher has given one before the
 * process of the rank comes to say its number. */
TEST(sign_of_life_comes_first)
{
    cpu_set_t before, one;

    sched_getaffinity(0, sizeof(before), &before);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
    open_site();
    write_restorer("#!/bin/sh\n");
    for (int i = 0; i < 20; i++) {
        start_of(-1, 1);
        CU_ASSERT_TRUE_FATAL(started && !has_failed);
        end_process();
    }
    close_site();
    sched_setaffinity(0, sizeof(before), &before);
}

TEST(no_restorer)
{
    int image;

    open_site();
    image = image_of("");
    start(image);
    CU_ASSERT_TRUE(has_failed && !started);
    CU_ASSERT_EQUAL(failure.code, CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(failure.text, "starting rank 2"));
    CU_ASSERT_PTR_NOT_NULL(strstr(failure.text, restorer));
    CU_ASSERT_PTR_NOT_NULL(strstr(failure.text, "No such file"));
    CU_ASSERT_PTR_NOT_NULL(strstr(failure.text, "installation is incomplete"));
    close(image);
    close_site();
}

TEST(restorer_is_beside_the_device)
{
    char device[128];
    char path[PATH_MAX];

    open_site();
    snprintf(device, sizeof(device), "%s/librdevice.so", scratch_dir);
    CU_ASSERT_EQUAL(device_path_find_restorer(device, path, &err), CW_ENOTFOUND);
    CU_ASSERT_STRING_EQUAL(path, restorer);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, restorer));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "make install"));
    write_restorer("#!/bin/sh\n");
    CU_ASSERT_EQUAL(device_path_find_restorer(device, path, &err), CW_OK);
    close_site();
}
