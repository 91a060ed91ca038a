#include "dispatcher/state/kept_log.h"
#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 20

static int open_one(int dir, const char *name, bool make)
{
    return openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT | O_EXCL : 0), 0600);
}

/* A relay that was killed may still be about to write its segments, where it used io_uring: their
 * lock is gone when it no longer is. */
static int lock(int fd)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
    int failed;

    for (int ms = 0; (failed = flock(fd, LOCK_EX | LOCK_NB)) < 0 && ms < KEPT_LOG_WAIT_MS;
         ms += LOOK_MS)
        nanosleep(&pause, NULL);
    return failed;
}

int kept_log_open(int dir, bool make, int *memory_fd, int *disk_fd)
{
    *memory_fd = open_one(dir, KEPT_LOG_DIR "/memory", make);
    *disk_fd = *memory_fd < 0 ? -1 : open_one(dir, KEPT_LOG_DIR "/segments", make);
    if (*disk_fd >= 0 && lock(*disk_fd) == 0)
        return 0;
    cw_close(memory_fd);
    cw_close(disk_fd);
    return -1;
}
