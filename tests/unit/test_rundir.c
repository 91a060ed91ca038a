/* The directory of a job, and those that killed dispatchers left. */
#include "dispatcher/program/device_path.h"
#include "dispatcher/status/rundir.h"
#include "tests/lib/scratch.h"
#include "tests/unit/refuse.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

SUITE("rundir", scratch_make, scratch_end);

static struct cw_err err;

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static const char *inside(const char *dir, const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CU_ASSERT_TRUE(fd >= 0);
    close(fd);
}

static void make(struct rundir *dir)
{
    CU_ASSERT_EQUAL_FATAL(rundir_make(dir, &err), CW_OK);
}

TEST(private_and_removed)
{
    struct rundir dir;
    struct stat st;

    make(&dir);
    CU_ASSERT_EQUAL(strncmp(dir.path, scratch_dir, strlen(scratch_dir)), 0);
    CU_ASSERT_EQUAL(stat(dir.path, &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 0777, 0700);
    CU_ASSERT_TRUE(fcntl(dir.lock_fd, F_GETFD) & FD_CLOEXEC);
    touch(inside(dir.path, "relay.sock"));
    touch(inside(dir.path, "key"));
    rundir_remove(&dir);
    CU_ASSERT_FALSE(exists(dir.path));
    CU_ASSERT_EQUAL(fcntl(dir.lock_fd, F_GETFD), -1);
}

TEST(sockets_fit)
{
    struct rundir dir;

    make(&dir);
    CU_ASSERT_TRUE(strlen(dir.path) < RUNDIR_MAX - 1);
    rundir_remove(&dir);
}

/* Its dispatcher was killed: its locks are free. */
TEST(stale_is_removed)
{
    struct rundir stale;
    struct rundir dir;

    make(&stale);
    touch(inside(stale.path, "relay.sock"));
    close(stale.lock_fd);
    close(stale.fd);
    make(&dir);
    CU_ASSERT_FALSE(exists(stale.path));
    rundir_remove(&dir);
}

TEST(live_is_kept)
{
    struct rundir live;
    struct rundir dir;

    make(&live);
    touch(inside(live.path, "relay.sock"));
    make(&dir);
    CU_ASSERT_STRING_NOT_EQUAL(live.path, dir.path);
    CU_ASSERT_TRUE(exists(inside(live.path, "relay.sock")));
    CU_ASSERT_TRUE(exists(inside(live.path, "lock")));
    rundir_remove(&dir);
    rundir_remove(&live);
    CU_ASSERT_FALSE(exists(live.path));
}

/* Without a lock it may be one that is being made; after some seconds it is not. */
TEST(one_without_a_lock)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - 100}, {.tv_sec = time(NULL) - 100}};
    char path[128];
    struct rundir dir;

    snprintf(path, sizeof(path), "%s/causeway-%u.abcdef", scratch_dir, getuid());
    CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
    make(&dir);
    CU_ASSERT_TRUE(exists(path));
    rundir_remove(&dir);
    CU_ASSERT_EQUAL(utimensat(AT_FDCWD, path, times, 0), 0);
    make(&dir);
    CU_ASSERT_FALSE(exists(path));
    rundir_remove(&dir);
}

/* LD_PRELOAD can name the link, wherever librdevice.so is. */
TEST(link_for_the_loader)
{
    char target[128];
    char path[PATH_MAX];
    char back[128] = "";
    struct rundir dir;

    snprintf(target, sizeof(target), "%s/a b:$LIB/it.so", scratch_dir);
    CU_ASSERT_FALSE(device_path_is_plain(target));
    make(&dir);
    CU_ASSERT_EQUAL(rundir_link(&dir, target, path, sizeof(path), &err), CW_OK);
    CU_ASSERT_TRUE(device_path_is_plain(path));
    CU_ASSERT_TRUE(readlink(path, back, sizeof(back) - 1) > 0);
    CU_ASSERT_STRING_EQUAL(back, target);
    CU_ASSERT_EQUAL(rundir_link(&dir, target, path, sizeof(path), &err), CW_ESYS);
    rundir_remove(&dir);
    CU_ASSERT_FALSE(exists(dir.path));
}

/* In a child whose system has no locks: neither directory nor descriptor is left. */
TEST(cannot_be_locked)
{
    int status = -1;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        int next = dup(STDIN_FILENO);
        struct rundir dir;
        bool failed;

        close(next);
        refuse_call(SYS_flock);
        failed = rundir_make(&dir, &err) == CW_ESYS && strstr(err.text, "locking");
        _exit(failed && !exists(dir.path) && dup(STDIN_FILENO) == next ? 0 : 1);
    }
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT_EQUAL(status, 0);
}

TEST(where)
{
    char longer[64];
    struct rundir dir;

    snprintf(longer, sizeof(longer), "/%050d", 0);
    setenv("XDG_RUNTIME_DIR", scratch_dir, 1); /* it goes before the job does */
    setenv("TMPDIR", longer, 1);
    make(&dir);
    CU_ASSERT_EQUAL(strncmp(dir.path, "/tmp/causeway-", 14), 0);
    rundir_remove(&dir);
    unsetenv("XDG_RUNTIME_DIR");
    snprintf(longer, sizeof(longer), "%.50s/a b", scratch_dir);
    CU_ASSERT_EQUAL(mkdir(longer, 0700), 0);
    setenv("TMPDIR", longer, 1);
    make(&dir);
    CU_ASSERT_PTR_NULL(strchr(dir.path, ' '));
    rundir_remove(&dir);
    rmdir(longer);
    setenv("TMPDIR", "relative", 1);
    make(&dir);
    CU_ASSERT_EQUAL(strncmp(dir.path, "/tmp/causeway-", 14), 0);
    rundir_remove(&dir);
    setenv("TMPDIR", scratch_dir, 1);
}
