#include "common/held_dir.h"
#include "common/fd.h"
#include "common/lockfile.h"
#include "common/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define YOUNG_S 10 /* a directory without a lock may be one that is being made */
#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Returns whether it is to be tried again. */
static bool try_once(const char *path, bool make, int *dir)
{
    if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
        return false;
    *dir = open(path, OPEN_DIR);
    if (*dir < 0)
        return make && errno == ENOENT;
    if (cw_lock_named(*dir, LOCK_SH, AT_FDCWD, path))
        return false;
    cw_close(dir);
    return errno == EWOULDBLOCK;
}

int cw_held_dir_open(const char *path, bool make)
{
    const struct timespec pause = {.tv_nsec = HELD_DIR_STEP_MS * 1000000};
    int dir = -1;

    for (int i = 0; try_once(path, make, &dir) && i < HELD_DIR_TRIES; i++)
        nanosleep(&pause, NULL);
    return dir;
}

/* Whether it was left; it is locked by us alone then, and so is its file. */
static bool is_left(int dir, const char *path, bool with_lock, int *lock)
{
    struct stat st;

    if (fstat(dir, &st) < 0 || st.st_uid != geteuid() ||
        !cw_lock_named(dir, LOCK_EX, AT_FDCWD, path))
        return false;
    if (!with_lock)
        return true;
    *lock = cw_lockfile_take(dir, HELD_DIR_LOCK, false, 0);
    return *lock >= 0 || (errno == ENOENT && time(NULL) - st.st_mtime > YOUNG_S);
}

void cw_held_dir_leave(int dir, const char *path, bool with_lock)
{
    int lock = -1;

    if (is_left(dir, path, with_lock, &lock))
        cw_tree_remove(path);
    cw_close(&lock);
    close(dir);
}

void cw_held_dir_remove_left(const char *path, bool with_lock)
{
    int dir = open(path, OPEN_DIR);

    if (dir >= 0)
        cw_held_dir_leave(dir, path, with_lock);
}

void cw_held_dir_remove_all_left(const char *above, const char *prefix, bool with_lock)
{
    struct cw_names names = cw_names(above, prefix);
    char path[PATH_MAX];
    const char *name;

    while ((name = cw_names_next(&names)))
        if ((size_t)snprintf(path, sizeof(path), "%s/%s", above, name) < sizeof(path))
            cw_held_dir_remove_left(path, with_lock);
}
