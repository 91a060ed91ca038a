/* Programs that are sent to a host: what they are known by, who may be at them, and when they go.
 */
#include "common/held_dir.h"
#include "dispatcher/node/stage_dir.h"
#include "tests/lib/scratch.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("stage");

static struct cw_err err;

/* One that has the letters "text". */
static struct stage_program program_of(const char *name)
{
    struct stage_program p = {.size = 4, .mtime_ns = 1234567890123456789, .mode = 0555};
    struct stage_sum *sum = stage_sum_new();

    snprintf(p.dir, sizeof(p.dir), "%s/" STAGE_DIR_PREFIX "%s", scratch_dir, name);
    strcpy(p.name, name);
    stage_sum_add(sum, "te", 2);
    stage_sum_add(sum, "xt", 2);
    stage_sum_end(sum, p.hash);
    stage_sum_free(sum);
    return p;
}

static bool is_there(const struct stage_program *p)
{
    char path[STAGE_PATH_MAX];

    stage_program_path(p, path);
    return access(path, X_OK) == 0;
}

static void write_it(int dir, const struct stage_program *p, char part[STAGE_PART_NAME])
{
    int file = stage_dir_begin(dir, p, part, &err);

    CU_ASSERT_TRUE_FATAL(file >= 0);
    CU_ASSERT_EQUAL(write(file, "text", p->size), (ssize_t)p->size);
    CU_ASSERT_EQUAL(stage_dir_keep(dir, p, file, part, &err), CW_OK);
    close(file);
}

/* --- names --- */

TEST(programs_that_make_no_sense)
{
    struct stage_program good = {
        .dir = "/" STAGE_DIR_PREFIX "d", .name = "n", .size = 1, .mode = 0500};
    struct stage_program p = good;

    CU_ASSERT_TRUE(stage_program_is_valid(&p));
    for (const char *const *name = (const char *const[]){"", ".", "..", "a/b", "../x", NULL}; *name;
         name++) {
        strcpy(p.name, *name);
        CU_ASSERT_FALSE(stage_program_is_valid(&p));
    }
    for (const char *const *d = (const char *const[]){"d", "/", "/etc", STAGE_DIR_PREFIX, NULL}; *d;
         d++) {
        p = good;
        strcpy(p.dir, *d);
        CU_ASSERT_FALSE(stage_program_is_valid(&p));
    }
    for (int mode = 0; mode < 010000; mode++) {
        p = good;
        p.mode = (uint32_t)mode;
        CU_ASSERT_EQUAL(stage_program_is_valid(&p), (mode & 07222) == 0 && (mode & 0500) == 0500);
    }
    p = good;
    p.size = 0;
    CU_ASSERT_FALSE(stage_program_is_valid(&p));
    p.size = STAGE_PROGRAM_BYTES_MAX + 1ull;
    CU_ASSERT_FALSE(stage_program_is_valid(&p));
}

TEST(file_is_read)
{
    struct stage_program p, expected;
    char path[96];
    int fd;

    CU_ASSERT_EQUAL_FATAL(scratch_make(), 0);
    snprintf(path, sizeof(path), "%s/prog", scratch_dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0750);
    CU_ASSERT_EQUAL(write(fd, "text", 4), 4);
    CU_ASSERT_EQUAL(
        futimens(fd, (struct timespec[2]){{1234567890, 123456789}, {1234567890, 123456789}}), 0);
    close(fd);
    CU_ASSERT_EQUAL_FATAL(stage_program_read(&p, path, "/var", &fd, &err), CW_OK);
    close(fd);
    CU_ASSERT_STRING_EQUAL(p.dir, "/var");
    CU_ASSERT_EQUAL(p.mode, 0550);
    expected = program_of("prog");
    CU_ASSERT_EQUAL(p.mtime_ns, expected.mtime_ns);
    CU_ASSERT_EQUAL(memcmp(p.hash, expected.hash, sizeof(p.hash)), 0);
    CU_ASSERT_EQUAL(truncate(path, STAGE_PROGRAM_BYTES_MAX + 1ll), 0);
    CU_ASSERT_EQUAL(stage_program_read(&p, path, "/var", &fd, &err), CW_ELIMIT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
    CU_ASSERT_EQUAL(scratch_remove(), 0);
}

/* --- the directory --- */

/* Two nodes share a directory: both write, the first one counts, and the last one removes it. */
TEST(nodes_that_share)
{
    struct stage_program p;
    char part[2][STAGE_PART_NAME];
    struct stat before, after;
    int dir[2], file;

    CU_ASSERT_EQUAL_FATAL(scratch_make(), 0);
    p = program_of("a");
    for (int i = 0; i < 2; i++) {
        dir[i] = stage_dir_open(&p, &err);
        CU_ASSERT_TRUE_FATAL(dir[i] >= 0);
    }
    CU_ASSERT_EQUAL(stage_dir_find(dir[0], &p, &err), CW_ENOTFOUND);
    write_it(dir[0], &p, part[0]);
    CU_ASSERT_EQUAL(fstatat(dir[0], p.name, &before, 0), 0);
    write_it(dir[1], &p, part[1]);
    CU_ASSERT_EQUAL(fstatat(dir[0], p.name, &after, 0), 0);
    CU_ASSERT_EQUAL(before.st_ino, after.st_ino);
    cw_held_dir_leave(dir[0], p.dir, false);
    CU_ASSERT_TRUE(is_there(&p));
    file = stage_dir_find(dir[1], &p, &err);
    CU_ASSERT_TRUE(file >= 0);
    close(file);
    cw_held_dir_leave(dir[1], p.dir, false);
    CU_ASSERT_NOT_EQUAL(access(p.dir, F_OK), 0);
    CU_ASSERT_EQUAL(scratch_remove(), 0);
}

TEST(what_is_not_as_said_is_refused)
{
    struct stage_program p;
    char part[STAGE_PART_NAME], path[STAGE_PATH_MAX];
    int dir;

    CU_ASSERT_EQUAL_FATAL(scratch_make(), 0);
    p = program_of("a");
    stage_program_path(&p, path);
    dir = stage_dir_open(&p, &err);
    write_it(dir, &p, part);
    CU_ASSERT_EQUAL(chmod(path, 0755), 0);
    CU_ASSERT_EQUAL(stage_dir_find(dir, &p, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
    unlink(path);
    CU_ASSERT_EQUAL(symlink("/bin/true", path), 0);
    CU_ASSERT_EQUAL(stage_dir_find(dir, &p, &err), CW_ESYS);
    cw_held_dir_leave(dir, p.dir, false);
    CU_ASSERT_EQUAL(scratch_remove(), 0);
}

/* By nodes that were killed. */
TEST(what_was_left_goes)
{
    struct stage_program left, used, next;
    char part[STAGE_PART_NAME];
    int dir, in_use;

    CU_ASSERT_EQUAL_FATAL(scratch_make(), 0);
    left = program_of("left");
    used = program_of("used");
    next = program_of("next");
    dir = stage_dir_open(&left, &err);
    write_it(dir, &left, part);
    in_use = stage_dir_open(&used, &err);
    write_it(in_use, &used, part);
    CU_ASSERT_TRUE(is_there(&left));
    close(dir);
    dir = stage_dir_open(&next, &err);
    CU_ASSERT_NOT_EQUAL(access(left.dir, F_OK), 0);
    CU_ASSERT_TRUE(is_there(&used));
    cw_held_dir_leave(dir, next.dir, false);
    cw_held_dir_leave(in_use, used.dir, false);
    CU_ASSERT_EQUAL(scratch_remove(), 0);
}

TEST(directories_that_are_not_ours)
{
    struct stage_program p;
    int lock;

    CU_ASSERT_EQUAL_FATAL(scratch_make(), 0);
    p = program_of("a");
    CU_ASSERT_EQUAL(symlink("/tmp", p.dir), 0);
    CU_ASSERT_EQUAL(stage_dir_open(&p, &err), CW_ESYS);
    unlink(p.dir);
    CU_ASSERT_EQUAL(mkdir(p.dir, 0700), 0);
    CU_ASSERT_EQUAL(chmod(p.dir, 0770), 0);
    lock = open(p.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CU_ASSERT_EQUAL(flock(lock, LOCK_SH), 0);
    CU_ASSERT_EQUAL(stage_dir_open(&p, &err), CW_EAUTH);
    CU_ASSERT_EQUAL(chmod(p.dir, 0700), 0);
    CU_ASSERT_EQUAL(chmod(scratch_dir, 0777), 0);
    CU_ASSERT_EQUAL(stage_dir_open(&p, &err), CW_EAUTH);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, p.dir));
    CU_ASSERT_EQUAL(chmod(scratch_dir, 0700), 0);
    close(lock);
    snprintf(p.dir, sizeof(p.dir), "%s/none/none", scratch_dir);
    CU_ASSERT_EQUAL(stage_dir_open(&p, &err), CW_ESYS);
    CU_ASSERT_EQUAL(scratch_remove(), 0);
}
