#include "tests/lib/scratch.h"

#include "common/tree.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char scratch_dir[64];
static char tmpdir_before[4096];

int scratch_make(void)
{
    const char *before = getenv("TMPDIR");

    snprintf(tmpdir_before, sizeof(tmpdir_before), "%s", before ? before : "");
    strcpy(scratch_dir, "/tmp/causeway-test-XXXXXX");
    return !mkdtemp(scratch_dir) || setenv("TMPDIR", scratch_dir, 1);
}

static void put_tmpdir_back(void)
{
    if (tmpdir_before[0])
        setenv("TMPDIR", tmpdir_before, 1);
    else
        unsetenv("TMPDIR");
}

int scratch_end(void)
{
    put_tmpdir_back();
    return rmdir(scratch_dir);
}

int scratch_remove(void)
{
    put_tmpdir_back();
    cw_tree_remove(scratch_dir);
    return access(scratch_dir, F_OK) == 0;
}

const char *scratch_path(const char *name)
{
    static char path[2][256];
    static int turn;

    turn = !turn;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", scratch_dir, name);
    return path[turn];
}

void scratch_put(const char *name, const void *bytes, size_t size, mode_t mode)
{
    const char *path = scratch_path(name);
    int fd;

    unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, bytes, size), (ssize_t)size);
    CU_ASSERT_EQUAL(fchmod(fd, mode), 0);
    close(fd);
}
