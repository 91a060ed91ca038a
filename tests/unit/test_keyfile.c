/* Keys in files: made once, private, and read exactly. */
#include "common/keyfile.h"
#include "tests/lib/scratch.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAKERS 4
#define ROUNDS 100

static const char digits[] = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";

static char file[128];
static struct cw_err err;

static int set_up(void)
{
    int failed = scratch_make();

    snprintf(file, sizeof(file), "%s", scratch_path("key"));
    return failed;
}

static int tear_down(void)
{
    unlink(file);
    return scratch_end();
}

SUITE("keyfile", set_up, tear_down);

static void write_file(const char *text, mode_t mode)
{
    scratch_put("key", text, strlen(text), mode);
}

static void is_key(const uint8_t key[CW_KEY_SIZE])
{
    for (int i = 0; i < CW_KEY_SIZE; i++)
        CU_ASSERT_EQUAL(key[i], i);
}

TEST(good_files)
{
    uint8_t key[CW_KEY_SIZE];
    char text[100];

    write_file(digits, 0600);
    CU_ASSERT_EQUAL(cw_key_load(file, key, &err), CW_OK);
    is_key(key);
    snprintf(text, sizeof(text), "%s\n", digits);
    write_file(text, 0400);
    memset(key, 0, sizeof(key));
    CU_ASSERT_EQUAL(cw_key_load(file, key, &err), CW_OK);
    is_key(key);
}

static void refused(const char *text)
{
    uint8_t key[CW_KEY_SIZE];

    write_file(text, 0600);
    memset(&err, 0, sizeof(err));
    CU_ASSERT_EQUAL(cw_key_load(file, key, &err), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, file));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "expected a line of 64 hexadecimal digits"));
    /* the error must not show what might be most of a key */
    CU_ASSERT_PTR_NULL(strstr(err.text, "0102"));
}

TEST(bad_files)
{
    char text[256];

    refused("");
    refused("\n");
    snprintf(text, sizeof(text), "%.63s", digits);
    refused(text);
    snprintf(text, sizeof(text), "%.63s\n", digits);
    refused(text);
    snprintf(text, sizeof(text), "%.63sg", digits);
    refused(text);
    snprintf(text, sizeof(text), " %.63s", digits);
    refused(text);
}

/* What follows the line is not read; but a line that goes on is not one of 64 digits. */
TEST(lines_longer_than_a_key)
{
    char text[256];

    snprintf(text, sizeof(text), "%sa", digits);
    refused(text);
    snprintf(text, sizeof(text), "%s%s\n", digits, digits);
    refused(text);
}

TEST(others_may_not_read_it)
{
    static const mode_t modes[] = {0644, 0640, 0604, 0601, 0660};
    uint8_t key[CW_KEY_SIZE];

    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
        write_file(digits, modes[i]);
        CU_ASSERT_EQUAL(cw_key_load(file, key, &err), CW_EAUTH);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "chmod 600"));
    }
}

/* Who owns it could read and change it. */
TEST(it_is_ours)
{
    uint8_t key[CW_KEY_SIZE];
    bool made;

    if (geteuid() != 0)
        return; /* nobody else can give a file away */
    write_file(digits, 0600);
    CU_ASSERT_EQUAL(chown(file, 12345, (gid_t)-1), 0);
    CU_ASSERT_EQUAL(cw_key_load(file, key, &err), CW_EAUTH);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "belongs to user 12345"));
    CU_ASSERT_EQUAL(cw_key_load_or_make(file, key, &made, &err), CW_EAUTH);
}

TEST(missing_file)
{
    uint8_t key[CW_KEY_SIZE];

    CU_ASSERT_EQUAL(cw_key_load("/nowhere/key", key, &err), CW_ENOTFOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/nowhere/key"));
    CU_ASSERT_EQUAL(cw_key_load(scratch_dir, key, &err), CW_ESYS);
}

TEST(made_once)
{
    uint8_t first[CW_KEY_SIZE];
    uint8_t second[CW_KEY_SIZE];
    struct stat st;
    bool made;

    unlink(file);
    CU_ASSERT_EQUAL(cw_key_load_or_make(file, first, &made, &err), CW_OK);
    CU_ASSERT_TRUE(made);
    CU_ASSERT_EQUAL(stat(file, &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 0777, 0600);
    CU_ASSERT_EQUAL(st.st_size, CW_KEY_LINE);
    CU_ASSERT_EQUAL(cw_key_load_or_make(file, second, &made, &err), CW_OK);
    CU_ASSERT_FALSE(made);
    CU_ASSERT_EQUAL(memcmp(first, second, CW_KEY_SIZE), 0);
    CU_ASSERT_EQUAL(cw_key_load_or_make("/nowhere/key", first, &made, &err), CW_ESYS);
    CU_ASSERT_FALSE(made);
    write_file("no key", 0600);
    CU_ASSERT_EQUAL(cw_key_load_or_make(file, first, &made, &err), CW_EINVAL);
    CU_ASSERT_FALSE(made);
}

static void *make_one(void *key)
{
    struct cw_err why = {0};
    bool made;

    return cw_key_load_or_make(file, key, &made, &why) == CW_OK ? key : NULL;
}

/* Services that start at once: each has the whole key, and the same one. */
TEST(made_at_once)
{
    uint8_t keys[MAKERS][CW_KEY_SIZE];
    pthread_t threads[MAKERS];
    void *good;

    for (int round = 0; round < ROUNDS; round++) {
        unlink(file);
        for (int i = 0; i < MAKERS; i++)
            CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, make_one, keys[i]), 0);
        for (int i = 0; i < MAKERS; i++) {
            pthread_join(threads[i], &good);
            CU_ASSERT_PTR_NOT_NULL(good);
            CU_ASSERT_EQUAL(memcmp(keys[i], keys[0], CW_KEY_SIZE), 0);
        }
    }
}

TEST(through_a_pipe)
{
    uint8_t key[CW_KEY_SIZE];
    uint8_t back[CW_KEY_SIZE];
    int fds[2];

    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC), 0);
    cw_key_random(key);
    CU_ASSERT_EQUAL(cw_key_write_fd(fds[1], key, &err), CW_OK);
    /* the writer stays: a whole line is enough */
    CU_ASSERT_EQUAL(cw_key_read_fd(fds[0], back, &err), CW_OK);
    CU_ASSERT_EQUAL(memcmp(key, back, sizeof(key)), 0);
    CU_ASSERT_EQUAL(write(fds[1], digits, 20), 20);
    close(fds[1]);
    CU_ASSERT_EQUAL(cw_key_read_fd(fds[0], back, &err), CW_EINVAL);
    close(fds[0]);
    CU_ASSERT_EQUAL(cw_key_read_fd(fds[0], back, &err), CW_ESYS);
    CU_ASSERT_EQUAL(cw_key_write_fd(fds[0], back, &err), CW_ESYS);
}

TEST(disk_is_full)
{
    uint8_t key[CW_KEY_SIZE] = {0};
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(cw_key_write_fd(fd, key, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "No space left"));
    close(fd);
}

TEST(random_keys_differ)
{
    uint8_t a[CW_KEY_SIZE] = {0};
    uint8_t b[CW_KEY_SIZE] = {0};

    cw_key_random(a);
    cw_key_random(b);
    CU_ASSERT_NOT_EQUAL(memcmp(a, b, sizeof(a)), 0);
}
