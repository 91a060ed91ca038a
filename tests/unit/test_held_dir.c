/* Directories that processes hold: which of them were left, and what goes with one. */
#include "common/held_dir.h"
#include "common/lockfile.h"
#include "common/tree.h"
#include "tests/lib/scratch.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BEGINS "held-"
#define STARTS 4
#define ROUNDS 40

static char held[128]; /* its path, in a scratch directory */

static int set_up(void)
{
    if (scratch_make())
        return 1;
    snprintf(held, sizeof(held), "%s/" BEGINS "it", scratch_dir);
    return 0;
}

SUITE("held directories", set_up, scratch_end);

static bool exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

static void put(const char *dir, const char *name)
{
    char path[512];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    close(fd);
}

/* A process that holds it, or only its file, until it is killed. */
static pid_t holder(bool file)
{
    char byte;
    int says[2];
    pid_t pid;

    CU_ASSERT_EQUAL_FATAL(pipe(says), 0);
    pid = fork();
    CU_ASSERT_TRUE_FATAL(pid >= 0);
    if (pid == 0) {
        int dir = cw_held_dir_open(held, true);

        if (dir < 0 || (file && cw_lockfile_take(dir, HELD_DIR_LOCK, true, 0) < 0))
            _exit(1);
        if (file)
            close(dir);
        if (write(says[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    close(says[1]);
    CU_ASSERT_EQUAL(read(says[0], &byte, 1), 1);
    close(says[0]);
    return pid;
}

static void kill_holder(pid_t pid)
{
    CU_ASSERT_EQUAL(kill(pid, SIGKILL), 0);
    CU_ASSERT_EQUAL(waitpid(pid, NULL, 0), pid);
}

TEST(goes_when_its_holder_is_dead)
{
    for (int file = 0; file < 2; file++) {
        pid_t pid = holder(file);

        cw_held_dir_remove_left(held, file);
        cw_held_dir_remove_all_left(scratch_dir, BEGINS, file);
        CU_ASSERT_TRUE(exists(held));
        kill_holder(pid);
        cw_held_dir_remove_all_left(scratch_dir, "other-", file);
        CU_ASSERT_TRUE(exists(held));
        cw_held_dir_remove_all_left(scratch_dir, BEGINS, file);
        CU_ASSERT_FALSE(exists(held));
    }
}

/* Whoever leaves last removes it, and nobody that which is in its place. */
TEST(leaving)
{
    char away[160];
    int first = cw_held_dir_open(held, true);
    int second = cw_held_dir_open(held, false);

    CU_ASSERT_TRUE_FATAL(first >= 0 && second >= 0);
    cw_held_dir_leave(first, held, false);
    CU_ASSERT_TRUE(exists(held));
    snprintf(away, sizeof(away), "%s/away", scratch_dir);
    CU_ASSERT_EQUAL(rename(held, away), 0);
    CU_ASSERT_EQUAL(mkdir(held, 0700), 0);
    cw_held_dir_leave(second, held, false);
    CU_ASSERT_TRUE(exists(held));
    CU_ASSERT_TRUE(exists(away));
    CU_ASSERT_EQUAL(rmdir(away), 0);
    cw_held_dir_remove_left(held, false);
    CU_ASSERT_FALSE(exists(held));
}

TEST(what_cannot_be_held)
{
    int alone;

    errno = 0;
    CU_ASSERT_EQUAL(cw_held_dir_open(held, false), -1);
    CU_ASSERT_EQUAL(errno, ENOENT);
    CU_ASSERT_EQUAL(mkdir(held, 0700), 0);
    alone = open(held, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CU_ASSERT_EQUAL(flock(alone, LOCK_EX), 0);
    CU_ASSERT_EQUAL(cw_held_dir_open(held, true), -1);
    CU_ASSERT_EQUAL(errno, EWOULDBLOCK);
    close(alone);
    CU_ASSERT_EQUAL(rmdir(held), 0);
    CU_ASSERT_EQUAL(symlink("/tmp", held), 0);
    CU_ASSERT_EQUAL(cw_held_dir_open(held, true), -1);
    CU_ASSERT_NOT_EQUAL(errno, EWOULDBLOCK); /* it is not even looked at */
    CU_ASSERT_EQUAL(unlink(held), 0);
}

/* All in it goes, whatever it is called, and nothing that it only points to. */
TEST(hostile_names_in_it)
{
    static const char *const names[] = {"-rf *", "a\nb", "...", ".hidden", "\xff\xfe", "%s%n", "~"};
    char long_name[256];
    char path[512];

    memset(long_name, 'n', 255);
    long_name[255] = '\0';
    CU_ASSERT_EQUAL_FATAL(mkdir(held, 0700), 0);
    put(scratch_dir, "outside");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        put(held, names[i]);
    put(held, long_name);
    snprintf(path, sizeof(path), "%s/pipe", held);
    CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
    snprintf(path, sizeof(path), "%s/above", held);
    CU_ASSERT_EQUAL(symlink(scratch_dir, path), 0);
    snprintf(path, sizeof(path), "%s/round", held);
    CU_ASSERT_EQUAL(symlink("round", path), 0);
    snprintf(path, sizeof(path), "%s/below", held);
    CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
    put(path, "lock");
    cw_held_dir_remove_left(held, false);
    CU_ASSERT_FALSE(exists(held));
    CU_ASSERT_TRUE(exists(scratch_path("outside")));
    unlink(scratch_path("outside"));
}

/* A symbolic link, a pipe, a file and a directory of another user. */
TEST(what_is_no_directory_of_ours)
{
    CU_ASSERT_EQUAL(mkdir(scratch_path("target"), 0700), 0);
    CU_ASSERT_EQUAL(symlink(scratch_path("target"), scratch_path(BEGINS "link")), 0);
    CU_ASSERT_EQUAL(mkfifo(scratch_path(BEGINS "pipe"), 0600), 0);
    put(scratch_dir, BEGINS "file");
    CU_ASSERT_EQUAL(mkdir(held, 0700), 0);
    if (geteuid() == 0)
        CU_ASSERT_EQUAL(chown(held, 1, 1), 0);
    cw_held_dir_remove_all_left(scratch_dir, BEGINS, false);
    CU_ASSERT_TRUE(exists(scratch_path("target")));
    CU_ASSERT_TRUE(exists(scratch_path(BEGINS "link")));
    CU_ASSERT_TRUE(exists(scratch_path(BEGINS "pipe")));
    CU_ASSERT_TRUE(exists(scratch_path(BEGINS "file")));
    CU_ASSERT_EQUAL(exists(held), geteuid() == 0);
    unlink(scratch_path(BEGINS "link"));
    unlink(scratch_path(BEGINS "pipe"));
    unlink(scratch_path(BEGINS "file"));
    rmdir(scratch_path("target"));
    rmdir(held);
}

/* One whose lock is no file that can be locked is nobody's to remove. */
TEST(locks_that_are_none)
{
    char lock[160];

    snprintf(lock, sizeof(lock), "%s/" HELD_DIR_LOCK, held);
    CU_ASSERT_EQUAL(mkdir(held, 0700), 0);
    CU_ASSERT_EQUAL(symlink("/dev/null", lock), 0);
    cw_held_dir_remove_left(held, true);
    CU_ASSERT_TRUE(exists(lock));
    CU_ASSERT_EQUAL(unlink(lock), 0);
    CU_ASSERT_EQUAL(mkdir(lock, 0700), 0);
    cw_held_dir_remove_left(held, true);
    CU_ASSERT_TRUE(exists(lock));
    cw_tree_remove(held);
}

/* Returns how often it could not be had, or was removed though it was held. */
static int hold_and_leave(void)
{
    int failed = 0;

    for (int i = 0; i < ROUNDS; i++) {
        int dir;

        cw_held_dir_remove_all_left(scratch_dir, BEGINS, false);
        dir = cw_held_dir_open(held, true);
        failed += dir < 0 || !cw_has_name(dir, AT_FDCWD, held);
        if (dir >= 0)
            cw_held_dir_leave(dir, held, false);
    }
    return failed;
}

/* Each looks for what others have left while these make theirs. */
TEST(starts_at_once)
{
    pid_t pid[STARTS];

    for (int i = 0; i < STARTS; i++) {
        pid[i] = fork();
        CU_ASSERT_TRUE_FATAL(pid[i] >= 0);
        if (pid[i] == 0)
            _exit(hold_and_leave() ? 1 : 0);
    }
    for (int i = 0; i < STARTS; i++) {
        int status;

        CU_ASSERT_EQUAL(waitpid(pid[i], &status, 0), pid[i]);
        CU_ASSERT_EQUAL(status, 0);
    }
    CU_ASSERT_FALSE(exists(held));
}
