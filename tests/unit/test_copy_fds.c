/* The files in which a relay keeps copies of others' logs. */
#include "dispatcher/node/copy_fds.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("files of copies");

static struct cw_err err;

static off_t size_of(int fd)
{
    struct stat st;

    return fstat(fd, &st) < 0 ? -1 : st.st_size;
}

TEST(one_behind_the_other)
{
    struct copy_fds fds = {0}, others = {0};

    CU_ASSERT_EQUAL_FATAL(copy_fds_make(&fds, 4, &err), CW_OK);
    CU_ASSERT_EQUAL_FATAL(copy_fds_make(&others, 3, &err), CW_OK);
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(size_of(fds.first + i), 0);
        CU_ASSERT_EQUAL(fcntl(fds.first + i, F_GETFD), FD_CLOEXEC);
    }
    CU_ASSERT_TRUE(others.first >= fds.first + 4 || others.first + 3 <= fds.first);
    copy_fds_close(&fds);
    CU_ASSERT_EQUAL(size_of(fds.first), -1);
    CU_ASSERT_EQUAL(size_of(others.first + 2), 0);
    copy_fds_close(&others);
    copy_fds_close(&others);
}

TEST(one_is_taken)
{
    struct copy_fds fds = {0};
    int fd;

    CU_ASSERT_EQUAL_FATAL(copy_fds_make(&fds, 2, &err), CW_OK);
    CU_ASSERT_EQUAL(write(fds.first + 1, "log", 3), 3);
    CU_ASSERT_EQUAL(write(fds.first, "else", 4), 4);
    fd = copy_fds_take(&fds, 1, &err);
    CU_ASSERT_EQUAL(size_of(fd), 3);
    CU_ASSERT_EQUAL(size_of(fds.first + 1), 0);
    CU_ASSERT_EQUAL(size_of(fds.first), 4);
    CU_ASSERT_EQUAL(copy_fds_take(&fds, 2, &err), CW_EINVAL);
    close(fd);
    copy_fds_close(&fds);
}

TEST(no_descriptor_is_left)
{
    struct rlimit before, less;
    struct copy_fds fds = {0};

    getrlimit(RLIMIT_NOFILE, &before);
    less = before;
    less.rlim_cur = COPY_FDS_FIRST + 2;
    setrlimit(RLIMIT_NOFILE, &less);
    CU_ASSERT_EQUAL(copy_fds_make(&fds, 16, &err), CW_ESYS);
    setrlimit(RLIMIT_NOFILE, &before);
    CU_ASSERT_EQUAL(fds.count, 0);
    CU_ASSERT_EQUAL(fcntl(COPY_FDS_FIRST, F_GETFD), -1);
}
