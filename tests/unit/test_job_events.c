/* The file of the job's events. */
#include "dispatcher/run/job_events.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define START 9000000000ull
#define LINE_MAX_BYTES 1024

static char path[64];
static char saved_stderr_path[80];
static struct job_events events;
static struct cw_err err;

static int set_up(void)
{
    int fd;

    strcpy(path, "/tmp/test-job-events-XXXXXX");
    fd = mkstemp(path);
    if (fd >= 0)
        close(fd);
    snprintf(saved_stderr_path, sizeof(saved_stderr_path), "%s.err", path);
    return fd < 0;
}

static int tear_down(void)
{
    unlink(saved_stderr_path);
    return unlink(path);
}

SUITE("job_events", set_up, tear_down);

/* Line `n` of the file; the caller owns it. */
static json_t *line(int n)
{
    char text[LINE_MAX_BYTES];
    FILE *f = fopen(path, "r");
    json_t *value = NULL;

    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    for (int i = 0; fgets(text, sizeof(text), f); i++)
        if (i == n)
            value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    fclose(f);
    return value;
}

static void opens(void)
{
    CU_ASSERT_EQUAL_FATAL(job_events_open(&events, path, START, &err), CW_OK);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

TEST(each_a_line)
{
    json_t *first;
    json_t *second;

    opens();
    job_events_write(&events, START, "job_started", JOB_EVENTS_NO_RANK);
    job_events_write(&events, START + 1234567, "rank_down", 2,
                     job_text("cause", "killed by signal 9 (Killed)"), job_number("signal", 9),
                     job_seconds("after", 1500000000));
    first = line(0);
    second = line(1);
    CU_ASSERT_STRING_EQUAL(text_of(first, "event"), "job_started");
    CU_ASSERT_PTR_NULL(json_object_get(first, "rank"));
    CU_ASSERT_EQUAL(json_number_value(json_object_get(first, "t")), 0);
    CU_ASSERT_STRING_EQUAL(text_of(second, "event"), "rank_down");
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(second, "rank")), 2);
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(second, "signal")), 9);
    CU_ASSERT_STRING_EQUAL(text_of(second, "cause"), "killed by signal 9 (Killed)");
    CU_ASSERT_DOUBLE_EQUAL(json_real_value(json_object_get(second, "t")), 0.001234567, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(json_real_value(json_object_get(second, "after")), 1.5, 1e-12);
    json_decref(first);
    json_decref(second);
    job_events_close(&events);
}

/* The clock's time is that of the start and what has gone by since, also before it. */
TEST(the_time_of_day)
{
    json_t *value;

    opens();
    events.start_clock = (struct timespec){.tv_sec = 1769904000, .tv_nsec = 999999000};
    job_events_write(&events, START, "rank_up", 0);
    job_events_write(&events, START + 1000, "rank_up", 0);
    job_events_write(&events, START - 1999999000, "rank_up", 0);
    value = line(0);
    CU_ASSERT_STRING_EQUAL(text_of(value, "time"), "2026-02-01T00:00:00.999999Z");
    json_decref(value);
    value = line(1);
    CU_ASSERT_STRING_EQUAL(text_of(value, "time"), "2026-02-01T00:00:01.000000Z");
    json_decref(value);
    value = line(2);
    CU_ASSERT_STRING_EQUAL(text_of(value, "time"), "2026-01-31T23:59:59.000000Z");
    CU_ASSERT_DOUBLE_EQUAL(json_real_value(json_object_get(value, "t")), -1.999999, 1e-12);
    json_decref(value);
    job_events_close(&events);
}

/* A program's name or output need not be UTF-8, and may hold anything else. */
TEST(any_text)
{
    json_t *value;

    opens();
    job_events_write(&events, START, "warning", 1, job_text("text", "a\xff\n\"b\""),
                     job_text("good", "\xc3\xa4"), job_text("none", NULL));
    value = line(0);
    CU_ASSERT_STRING_EQUAL(text_of(value, "text"), "a?\n\"b\"");
    CU_ASSERT_STRING_EQUAL(text_of(value, "good"), "\xc3\xa4");
    CU_ASSERT_TRUE(json_is_null(json_object_get(value, "none")));
    json_decref(value);
    job_events_close(&events);
}

TEST(the_file_is_emptied)
{
    struct stat st;

    opens();
    job_events_write(&events, START, "rank_up", 0);
    job_events_close(&events);
    opens();
    CU_ASSERT_EQUAL(stat(path, &st), 0);
    CU_ASSERT_EQUAL(st.st_size, 0);
    CU_ASSERT_TRUE(fcntl(events.fd, F_GETFD) & FD_CLOEXEC);
    job_events_close(&events);
}

TEST(nobody_asked)
{
    CU_ASSERT_EQUAL(job_events_open(&events, NULL, START, &err), CW_OK);
    job_events_write(&events, START, "rank_up", 0);
    job_events_close(&events);
}

TEST(no_such_place)
{
    CU_ASSERT_EQUAL(job_events_open(&events, "/nowhere/events", START, &err), CW_ESYS);
    CU_ASSERT_STRING_EQUAL(err.text, "--events /nowhere/events: No such file or directory");
    job_events_close(&events);
}

TEST(a_pipe_that_nobody_reads)
{
    char pipe_path[80];

    snprintf(pipe_path, sizeof(pipe_path), "%s.pipe", path);
    CU_ASSERT_EQUAL_FATAL(mkfifo(pipe_path, 0600), 0);
    CU_ASSERT_EQUAL(job_events_open(&events, pipe_path, START, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "nobody reads this pipe"));
    unlink(pipe_path);
}

/* Runs `write` and returns what came out on stderr. */
static const char *stderr_of(void (*write_events)(void))
{
    static char text[LINE_MAX_BYTES];
    int saved = dup(STDERR_FILENO);
    int fd = open(saved_stderr_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    ssize_t n;

    dup2(fd, STDERR_FILENO);
    write_events();
    dup2(saved, STDERR_FILENO);
    close(saved);
    n = pread(fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    close(fd);
    return text;
}

static void write_two(void)
{
    job_events_write(&events, START, "rank_up", 0);
    job_events_write(&events, START, "rank_up", 1);
}

TEST(a_full_disk_is_told_once)
{
    CU_ASSERT_EQUAL_FATAL(job_events_open(&events, "/dev/full", START, &err), CW_OK);
    CU_ASSERT_STRING_EQUAL(
        stderr_of(write_two),
        "causeway: --events /dev/full: No space left on device; no more events are written\n");
    CU_ASSERT_EQUAL(events.fd, -1);
}

static const char *own_name; /* of what is standard error */

static void write_between(void)
{
    dprintf(STDERR_FILENO, "before\n");
    CU_ASSERT_EQUAL_FATAL(job_events_open(&events, own_name, START, &err), CW_OK);
    job_events_write(&events, START, "rank_up", 0);
    dprintf(STDERR_FILENO, "after\n");
    job_events_close(&events);
}

/* Events among our messages: neither is lost, and both are in the order of time. */
TEST(a_file_that_is_our_stderr)
{
    const char *const names[] = {"/dev/stderr", "/dev/fd/2", "/proc/self/fd/2", saved_stderr_path};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *text;

        own_name = names[i];
        text = stderr_of(write_between);
        CU_ASSERT_EQUAL(strncmp(text, "before\n{", 8), 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"rank\":0}\nafter\n"));
    }
}

/* As services have it. Such a name cannot be opened. */
TEST(a_socket_that_is_our_stderr)
{
    int saved = dup(STDERR_FILENO);
    char text[LINE_MAX_BYTES] = "";
    int fds[2];

    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    dup2(fds[0], STDERR_FILENO);
    CU_ASSERT_EQUAL(job_events_open(&events, "/dev/stderr", START, &err), CW_OK);
    job_events_write(&events, START, "rank_up", 0);
    job_events_close(&events);
    dup2(saved, STDERR_FILENO);
    CU_ASSERT_TRUE(recv(fds[1], text, sizeof(text) - 1, MSG_DONTWAIT) > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "rank_up"));
    close(saved);
    close(fds[0]);
    close(fds[1]);
}

static void write_many(void)
{
    for (int i = 0; i < 100000 && events.fd >= 0; i++)
        job_events_write(&events, START, "rank_up", 0);
}

/* The reader sleeps: the job must not wait for it for ever. */
TEST(a_pipe_that_is_full)
{
    char pipe_path[80];
    int reader;

    snprintf(pipe_path, sizeof(pipe_path), "%s.pipe", path);
    CU_ASSERT_EQUAL_FATAL(mkfifo(pipe_path, 0600), 0);
    reader = open(pipe_path, O_RDONLY | O_NONBLOCK);
    CU_ASSERT_EQUAL_FATAL(job_events_open(&events, pipe_path, START, &err), CW_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(stderr_of(write_many), "no more events are written"));
    CU_ASSERT_EQUAL(events.fd, -1);
    close(reader);
    unlink(pipe_path);
}
