/* Programs that are kept on a host: what they are known by, who may be at them, and which of them
 * go when there is no room. */
#include "dispatcher/stage/stage_dir.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct cw_err err;
static char site[64];
static int dir;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void open_site(void)
{
    strcpy(site, "/tmp/test-stage-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(site));
    dir = stage_dir_open(site, &err);
    CU_ASSERT_TRUE_FATAL(dir >= 0);
}

static void close_site(void)
{
    close(dir);
    CU_ASSERT_EQUAL(nftw(site, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* One that has the letters of `text`. */
static struct stage_program program_of(const char *name, const char *text)
{
    struct stage_program p = {.size = strlen(text), .mtime_ns = 1234567890123456789, .mode = 0555};
    struct stage_sum *sum = stage_sum_new();

    strcpy(p.dir, site);
    strcpy(p.name, name);
    stage_sum_add(sum, text, p.size);
    stage_sum_end(sum, &p, p.hash);
    stage_sum_free(sum);
    return p;
}

static bool is_there(const struct stage_program *p)
{
    char path[STAGE_PATH_MAX];

    stage_program_path(p, path);
    return access(path, X_OK) == 0;
}

static void keep(const struct stage_program *p, const char *text)
{
    struct stage_place place;

    CU_ASSERT_EQUAL_FATAL(stage_dir_reserve(dir, p, &place, &err), CW_OK);
    CU_ASSERT_FALSE(is_there(p));
    CU_ASSERT_EQUAL(write(place.file, text, p->size), (ssize_t)p->size);
    CU_ASSERT_EQUAL(stage_dir_keep(dir, p, &place, &err), CW_OK);
    CU_ASSERT_TRUE(is_there(p));
}

/* --- names --- */

static void all_that_images_look_at_is_in_the_hash(void)
{
    struct stage_program p = program_of("a", "text"), other = p;
    struct stage_sum *sum = stage_sum_new();
    uint8_t hash[STAGE_HASH_BYTES];

    other.mtime_ns++;
    for (int i = 0; i < 2; i++) {
        stage_sum_add(sum, "te", 2);
        stage_sum_add(sum, "xt", 2);
        stage_sum_end(sum, i ? &other : &p, hash);
        CU_ASSERT_EQUAL(memcmp(hash, p.hash, sizeof(hash)) == 0, i == 0);
    }
    stage_sum_free(sum);
    other = program_of("b", "text");
    CU_ASSERT_NOT_EQUAL(memcmp(other.hash, p.hash, sizeof(p.hash)), 0);
}

static void programs_that_make_no_sense(void)
{
    struct stage_program good = {.dir = "/d", .name = "n", .size = 1, .mode = 0500}, p = good;

    CU_ASSERT_TRUE(stage_program_is_valid(&p));
    for (const char *const *name = (const char *const[]){"", ".", "..", "a/b", "../x", NULL}; *name;
         name++) {
        strcpy(p.name, *name);
        CU_ASSERT_FALSE(stage_program_is_valid(&p));
    }
    p = good;
    strcpy(p.dir, "d");
    CU_ASSERT_FALSE(stage_program_is_valid(&p));
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

static void file_is_read(void)
{
    struct stage_program p, expected;
    char path[96], where[96];
    int fd;

    open_site();
    snprintf(path, sizeof(path), "%s/prog", site);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0750);
    CU_ASSERT_EQUAL(write(fd, "text", 4), 4);
    CU_ASSERT_EQUAL(
        futimens(fd, (struct timespec[2]){{1234567890, 123456789}, {1234567890, 123456789}}), 0);
    close(fd);
    CU_ASSERT_EQUAL_FATAL(stage_program_read(&p, path, "/var", &fd, &err), CW_OK);
    close(fd);
    snprintf(where, sizeof(where), "/var/causeway-stage-%u", getuid());
    CU_ASSERT_STRING_EQUAL(p.dir, where);
    CU_ASSERT_EQUAL(p.mode, 0550);
    expected = program_of("prog", "text");
    CU_ASSERT_EQUAL(p.mtime_ns, expected.mtime_ns);
    CU_ASSERT_NOT_EQUAL(memcmp(p.hash, expected.hash, sizeof(p.hash)), 0); /* another mode */
    CU_ASSERT_EQUAL(truncate(path, STAGE_PROGRAM_BYTES_MAX + 1ll), 0);
    CU_ASSERT_EQUAL(stage_program_read(&p, path, "/var", &fd, &err), CW_ELIMIT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
    close_site();
}

/* --- the directory --- */

static void one_writes_and_many_use(void)
{
    struct stage_program p;
    struct stage_place one, two;

    open_site();
    p = program_of("a", "text");
    CU_ASSERT_EQUAL(stage_dir_find(dir, &p, &one, &err), CW_ENOTFOUND);
    CU_ASSERT_EQUAL_FATAL(stage_dir_reserve(dir, &p, &one, &err), CW_OK);
    CU_ASSERT_EQUAL(stage_dir_reserve(dir, &p, &two, &err), CW_EBUSY);
    stage_dir_drop(dir, &p, &one);
    CU_ASSERT_EQUAL(stage_dir_find(dir, &p, &one, &err), CW_ENOTFOUND);
    keep(&p, "text");
    CU_ASSERT_EQUAL(stage_dir_reserve(dir, &p, &two, &err), CW_EBUSY); /* it is there */
    CU_ASSERT_EQUAL(stage_dir_find(dir, &p, &one, &err), CW_OK);
    CU_ASSERT_EQUAL(stage_dir_find(dir, &p, &two, &err), CW_OK);
    CU_ASSERT_EQUAL(stage_dir_discard(dir, &p, &two, &err), CW_EBUSY);
    CU_ASSERT_EQUAL(stage_dir_discard(dir, &p, &one, &err), CW_OK);
    CU_ASSERT_FALSE(is_there(&p));
    close_site();
}

static void what_is_not_as_said_goes(void)
{
    struct stage_program p;
    struct stage_place place;
    char path[STAGE_PATH_MAX];

    open_site();
    p = program_of("a", "text");
    stage_program_path(&p, path);
    keep(&p, "text");
    CU_ASSERT_EQUAL(chmod(path, 0755), 0);
    CU_ASSERT_EQUAL(stage_dir_find(dir, &p, &place, &err), CW_ENOTFOUND);
    CU_ASSERT_FALSE(is_there(&p));
    keep(&p, "text");
    unlink(path);
    CU_ASSERT_EQUAL(symlink("/bin/true", path), 0);
    CU_ASSERT_EQUAL(stage_dir_find(dir, &p, &place, &err), CW_ENOTFOUND);
    keep(&p, "text");
    close_site();
}

static void used_programs_stay(void)
{
    struct stage_program first, second, p;
    struct stage_place in_use, place;
    char name[16];

    open_site();
    first = program_of("first", "1");
    keep(&first, "1");
    CU_ASSERT_EQUAL(stage_dir_find(dir, &first, &in_use, &err), CW_OK);
    second = program_of("second", "2");
    keep(&second, "2");
    for (uint32_t i = 2; i < STAGE_KEPT_MAX; i++) {
        snprintf(name, sizeof(name), "p%u", i);
        p = program_of(name, name);
        keep(&p, name);
    }
    CU_ASSERT_TRUE(is_there(&second));
    p = program_of("last", "last");
    keep(&p, "last");
    CU_ASSERT_TRUE(is_there(&first));
    CU_ASSERT_FALSE(is_there(&second));
    stage_place_close(&in_use);
    /* by its size, all must go; and what is too large for all of them is refused */
    p = program_of("huge", "huge");
    p.size = STAGE_KEPT_BYTES_MAX + 1;
    CU_ASSERT_EQUAL(stage_dir_reserve(dir, &p, &place, &err), CW_ELIMIT);
    CU_ASSERT_FALSE(is_there(&first));
    close_site();
}

static void what_is_left_unfinished_goes(void)
{
    struct stage_program left, next;
    struct stage_place place;
    char path[STAGE_PATH_MAX + 8], hash[STAGE_HASH_TEXT];

    open_site();
    left = program_of("left", "left");
    CU_ASSERT_EQUAL_FATAL(stage_dir_reserve(dir, &left, &place, &err), CW_OK);
    stage_hash_text(&left, hash);
    snprintf(path, sizeof(path), "%s/%s.new/left", site, hash);
    next = program_of("next", "next");
    keep(&next, "next");
    CU_ASSERT_EQUAL(access(path, F_OK), 0); /* somebody is at it */
    stage_place_close(&place);
    next = program_of("another", "next");
    keep(&next, "next");
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
    close_site();
}

static void directories_that_are_not_ours(void)
{
    char path[96];

    open_site();
    snprintf(path, sizeof(path), "%s/link", site);
    CU_ASSERT_EQUAL(symlink("/tmp", path), 0);
    CU_ASSERT_EQUAL(stage_dir_open(path, &err), CW_EAUTH);
    unlink(path);
    CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
    CU_ASSERT_EQUAL(chmod(path, 0770), 0);
    CU_ASSERT_EQUAL(stage_dir_open(path, &err), CW_EAUTH);
    CU_ASSERT_EQUAL(chmod(path, 0700), 0);
    CU_ASSERT_EQUAL(chmod(site, 0777), 0);
    CU_ASSERT_EQUAL(stage_dir_open(path, &err), CW_EAUTH);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
    CU_ASSERT_EQUAL(chmod(site, 0700), 0);
    snprintf(path, sizeof(path), "%s/none/none", site);
    CU_ASSERT_EQUAL(stage_dir_open(path, &err), CW_ESYS);
    close_site();
}

void add_stage_tests(void)
{
    CU_pSuite s = CU_add_suite("stage", NULL, NULL);

    CU_ADD_TEST(s, all_that_images_look_at_is_in_the_hash);
    CU_ADD_TEST(s, programs_that_make_no_sense);
    CU_ADD_TEST(s, file_is_read);
    CU_ADD_TEST(s, one_writes_and_many_use);
    CU_ADD_TEST(s, what_is_not_as_said_goes);
    CU_ADD_TEST(s, used_programs_stay);
    CU_ADD_TEST(s, what_is_left_unfinished_goes);
    CU_ADD_TEST(s, directories_that_are_not_ours);
}
