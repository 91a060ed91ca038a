/* Locks of directories: one holder at a time, though each removes the file when it ends. */
#include "common/lockfile.h"
#include "tests/lib/scratch.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAKERS 4
#define ROUNDS 500

static int dir;
static atomic_int holders;
static atomic_int taken;
static atomic_bool shared;

static int set_up(void)
{
    if (scratch_make())
        return 1;
    dir = open(scratch_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0;
}

static int tear_down(void)
{
    unlinkat(dir, "lock", 0);
    close(dir);
    return scratch_end();
}

SUITE("lockfile", set_up, tear_down);

TEST(one_holder)
{
    int fd = cw_lockfile_take(dir, "lock", true, 0);

    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(cw_lockfile_take(dir, "lock", true, 30), -1);
    CU_ASSERT_EQUAL(errno, EWOULDBLOCK);
    close(fd);
    fd = cw_lockfile_take(dir, "lock", true, 0);
    CU_ASSERT_TRUE(fd >= 0);
    close(fd);
    CU_ASSERT_EQUAL(cw_lockfile_take(dir, "none/lock", true, 30), -1);
    CU_ASSERT_EQUAL(errno, ENOENT);
}

static void *take_and_remove(void *unused)
{
    while (atomic_load(&taken) < ROUNDS) {
        int fd = cw_lockfile_take(dir, "lock", true, 0);

        if (fd < 0)
            continue;
        if (atomic_fetch_add(&holders, 1) > 0)
            atomic_store(&shared, true);
        atomic_fetch_add(&taken, 1);
        sched_yield();
        atomic_fetch_sub(&holders, 1);
        unlinkat(dir, "lock", 0);
        close(fd);
    }
    return unused;
}

TEST(holders_that_remove_it)
{
    pthread_t threads[TAKERS];

    for (int i = 0; i < TAKERS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, take_and_remove, NULL), 0);
    for (int i = 0; i < TAKERS; i++)
        pthread_join(threads[i], NULL);
    CU_ASSERT_FALSE(atomic_load(&shared));
}

TEST(names_are_synced)
{
    CU_ASSERT_EQUAL(cw_sync_name(scratch_dir), 0);
    CU_ASSERT_EQUAL(cw_sync_name("/nowhere/there"), ENOENT);
}
