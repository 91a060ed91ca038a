#include "dispatcher/cli/doctor_images.h"
#include "dispatcher/program/device_path.h"
#include "relay/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

static void check_restorer(struct doctor *d)
{
    char path[PATH_MAX];
    struct cw_err err;

    if (!d->device[0])
        return;
    if (device_path_find_restorer(d->device, path, &err) < 0)
        doctor_say(d, DOCTOR_WARNING, "images of ranks: %s", err.text);
    else
        doctor_say(d, DOCTOR_OK, "images of ranks: %s goes on from them", path);
}

/* Which pages of a process there are. */
static void check_pagemap(struct doctor *d)
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    uint64_t entry;
    off_t at = (off_t)((uintptr_t)&entry / (uintptr_t)getpagesize() * sizeof(entry));

    if (fd >= 0 && pread(fd, &entry, sizeof(entry), at) == (ssize_t)sizeof(entry))
        doctor_say(d, DOCTOR_OK, "images of ranks: /proc/self/pagemap can be read");
    else
        doctor_say(
            d, DOCTOR_WARNING,
            "images of ranks: /proc/self/pagemap cannot be read: %s; none can be taken. Mount "
            "/proc with it",
            strerror(errno));
    if (fd >= 0)
        close(fd);
}

/* To put the heap of a process where it was. The question for the size of its argument is refused
 * where the call itself would be. */
static void check_memory_map(struct doctor *d)
{
    unsigned size = 0;

    if (prctl(PR_SET_MM, PR_SET_MM_MAP_SIZE, &size, 0, 0) == 0)
        doctor_say(d, DOCTOR_OK, "images of ranks: prctl(PR_SET_MM_MAP) can restore a process");
    else
        doctor_say(
            d, DOCTOR_WARNING,
            "images of ranks: prctl(PR_SET_MM_MAP): %s; none can be gone on from. Use a kernel "
            "with CONFIG_CHECKPOINT_RESTORE; in a container allow the call",
            strerror(errno));
}

/* What a rank and the restorer reserve counts as what they use. */
static void check_address_space(struct doctor *d)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        doctor_say(
            d, DOCTOR_WARNING,
            "images of ranks: a process may have %llu MiB of addresses only; set ulimit -v to "
            "unlimited",
            (unsigned long long)limit.rlim_cur >> 20);
}

static const char *disk_dir(void)
{
    const char *dir = getenv("TMPDIR");

    return dir && dir[0] ? dir : "/var/tmp";
}

static void check_disk(struct doctor *d)
{
    const char *dir = disk_dir();
    struct statfs fs;

    if (statfs(dir, &fs) < 0 || access(dir, W_OK | X_OK) < 0)
        doctor_say(
            d, DOCTOR_WARNING,
            "images of ranks: %s: %s; set TMPDIR to a directory on a disk that you may write "
            "to",
            dir, strerror(errno));
    else if (disk_in_memory(dir))
        doctor_say(d, DOCTOR_WARNING,
                   "images of ranks: %s is in memory, which they would fill; set TMPDIR to a "
                   "directory on a disk",
                   dir);
    else
        doctor_say(d, DOCTOR_OK, "images of ranks: %s is on a disk, %llu MiB free", dir,
                   (unsigned long long)fs.f_bavail * (unsigned long long)fs.f_bsize >> 20);
}

void doctor_check_images(struct doctor *d)
{
    check_restorer(d);
    check_pagemap(d);
    check_memory_map(d);
    check_address_space(d);
    check_disk(d);
}
