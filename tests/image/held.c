/* held WHAT: a program that holds a file which becomes another one, or is hard to have again; takes
 * an image, goes on with the file, and does the same again where it goes on from the image. */
#include "tests/image/taker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LIMIT 64
#define MANY 2000

static int failures;

static void check(bool is_right, const char *what)
{
    if (!is_right) {
        printf("wrong: %s: %s\n", what, strerror(errno));
        failures++;
    }
}

static void put(int fd, const char *text)
{
    check(write(fd, text, strlen(text)) == (ssize_t)strlen(text), text);
}

static bool has(const char *path, const char *text)
{
    char bytes[100] = "";
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, bytes, sizeof(bytes) - 1);

    close(fd);
    return n >= 0 && strcmp(bytes, text) == 0;
}

static void proc(void)
{
    const char *const paths[] = {"/proc/self/stat", "/proc/thread-self/stat", "/proc/self/status",
                                 "/proc/stat"};
    int fds[4], directory = open("/proc/self", O_RDONLY | O_DIRECTORY);
    char text[4096];

    for (int i = 0; i < 4; i++)
        fds[i] = open(paths[i], O_RDONLY);
    taker_take();
    for (int i = 0; i < 4; i++)
        check(pread(fds[i], text, sizeof(text), 0) > 0, paths[i]);
    memset(text, 0, sizeof(text));
    check(pread(fds[1], text, sizeof(text) - 1, 0) > 0 && atoi(text) == gettid(), "its number");
    check(faccessat(directory, "stat", R_OK, 0) == 0, "the directory of /proc/self");
}

/* As programs save results. */
static void renamed(void)
{
    int fd = open("out.tmp", O_RDWR | O_CREAT | O_TRUNC, 0644);

    put(fd, "one\n");
    put(fd, taker_take() ? "two\n" : "xxx\n");
    close(fd);
    check(rename("out.tmp", "out") == 0, "renaming");
}

static void rotated(void)
{
    int fd = open("log", O_WRONLY | O_CREAT | O_TRUNC, 0644);

    put(fd, "one\n");
    taker_take();
    put(fd, "two\n");
    close(fd);
    check(rename("log", "log.1") == 0, "renaming");
    fd = open("log", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
    put(fd, "three\n");
    check(has("log", "three\n"), "the new file");
}

/* Who only reads it leaves the names alone. */
static void moved(void)
{
    int fd = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    char text[8] = "";

    put(fd, "one\n");
    close(fd);
    fd = open("out", O_RDONLY);
    if (!taker_take())
        check(rename("out", "moved") == 0, "renaming");
    check(read(fd, text, 4) == 4 && strcmp(text, "one\n") == 0, "reading");
}

static void gone(void)
{
    int fd = open("scratch", O_RDWR | O_CREAT | O_TRUNC, 0644);
    char byte;

    put(fd, "one\n");
    if (taker_take()) {
        check(read(fd, &byte, 1) == -1 && errno == EBADF, "reading what is gone");
        check(write(fd, "x", 1) == -1 && errno == EBADF, "writing what is gone");
    }
    check(close(fd) == 0, "closing what is gone");
    unlink("scratch");
}

static void limit_to(rlim_t number)
{
    struct rlimit limit = {number, number};

    check(setrlimit(RLIMIT_NOFILE, &limit) == 0, "the limit");
}

static void high(void)
{
    int fd = open("/etc/passwd", O_RDONLY);
    char byte;

    limit_to(LIMIT);
    for (int number = LIMIT - 12; number < LIMIT; number++)
        dup2(fd, number);
    taker_take();
    check(pread(LIMIT - 1, &byte, 1, 0) == 1, "the highest descriptor");
}

static void all(void)
{
    int fd = open("/etc/passwd", O_RDONLY);

    limit_to(LIMIT);
    while (fd >= 0)
        fd = dup(fd);
    close(LIMIT - 1);
    close(LIMIT - 2); /* what an image needs itself */
    taker_take();
}

static void many(void)
{
    struct rlimit limit;
    int fd = open("/etc/passwd", O_RDONLY), last = fd;
    char byte;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int i = 0; i < MANY; i++)
        last = dup(fd);
    taker_take();
    check(last > MANY && pread(last, &byte, 1, 0) == 1, "the last descriptor");
}

/* While the image is on its way. */
static void *renames(void *unused)
{
    char name[4096];

    snprintf(name, sizeof(name), "%s.1", getenv("IMAGE"));
    while (access(name, F_OK) < 0)
        usleep(1000);
    rename("out.tmp", "out");
    return unused;
}

static void early(void)
{
    pthread_t thread;
    int fd = open("out.tmp", O_WRONLY | O_CREAT | O_TRUNC, 0644);

    put(fd, "one\n");
    pthread_create(&thread, NULL, renames, NULL);
    taker_take();
}

static const struct {
    const char *name;
    void (*run)(void);
} whats[] = {{"proc", proc},   {"renamed", renamed}, {"rotated", rotated},
             {"moved", moved}, {"gone", gone},       {"high", high},
             {"all", all},     {"many", many},       {"early", early}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof(whats) / sizeof(*whats); i++)
        if (strcmp(argv[1], whats[i].name) == 0)
            whats[i].run();
    printf("done, %d failures\n", failures);
    return failures > 0;
}
