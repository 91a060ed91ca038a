#include "common/lockfile.h"
#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_STEP_MS 20 /* between tries */

bool cw_has_name(int fd, int dir, const char *name)
{
    struct stat ours;
    struct stat named;

    return fstat(fd, &ours) == 0 && fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

bool cw_lock_named(int fd, int how, int dir, const char *name)
{
    errno = EWOULDBLOCK;
    if (flock(fd, how | LOCK_NB) == 0 && cw_has_name(fd, dir, name))
        return true;
    if (errno == ENOENT || errno == EINTR)
        errno = EWOULDBLOCK;
    return false;
}

/* Returns whether it is to be tried again. */
static bool try_once(int dir, const char *name, bool make, int *fd)
{
    *fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0), 0600);
    if (*fd < 0)
        return false;
    if (cw_lock_named(*fd, LOCK_EX, dir, name))
        return false;
    cw_close(fd);
    return errno == EWOULDBLOCK;
}

int cw_lockfile_take(int dir, const char *name, bool make, uint32_t wait_ms)
{
    const struct timespec pause = {.tv_nsec = LOCK_STEP_MS * 1000000};
    int fd;

    for (uint32_t ms = 0; try_once(dir, name, make, &fd) && ms < wait_ms; ms += LOCK_STEP_MS)
        nanosleep(&pause, NULL);
    return fd;
}

int cw_sync_name(const char *path)
{
    char above[PATH_MAX];
    int error = 0;
    int fd;

    if (snprintf(above, sizeof(above), "%s", path) >= (int)sizeof(above))
        return ENAMETOOLONG;
    fd = open(dirname(above), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        error = errno;
    cw_close(&fd);
    return error;
}
