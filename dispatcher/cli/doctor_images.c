#include "dispatcher/cli/doctor.h"
#include "dispatcher/program/device_path.h"
#include "rdevice/image/probe.h"
#include "relay/disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
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
        findings_add(&d->findings, DOCTOR_WARNING, "images of ranks: %s", err.text);
    else
        findings_add(&d->findings, DOCTOR_OK, "images of ranks: %s goes on from them", path);
}

/* The library asks the same before the first image. */
static void check_system(struct doctor *d)
{
    struct cw_err err = {0};

    if (image_probe(&err))
        findings_add(&d->findings, DOCTOR_WARNING, "images of ranks: none can be taken: %s",
                     err.text);
    else
        findings_add(&d->findings, DOCTOR_OK,
                     "images of ranks: /proc, prctl(PR_SET_MM_MAP) and copies of processes");
}

/* What a rank and the restorer reserve counts as what they use. */
static void check_address_space(struct doctor *d)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        findings_add(
            &d->findings, DOCTOR_WARNING,
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
        findings_add(
            &d->findings, DOCTOR_WARNING,
            "images of ranks: %s: %s; set TMPDIR to a directory on a disk that you may write "
            "to",
            dir, strerror(errno));
    else if (disk_in_memory(dir))
        findings_add(&d->findings, DOCTOR_WARNING,
                     "images of ranks: %s is in memory, which they would fill; set TMPDIR to a "
                     "directory on a disk",
                     dir);
    else
        findings_add(&d->findings, DOCTOR_OK, "images of ranks: %s is on a disk, %llu MiB free",
                     dir, (unsigned long long)fs.f_bavail * (unsigned long long)fs.f_bsize >> 20);
}

void doctor_check_images(struct doctor *d)
{
    check_restorer(d);
    check_system(d);
    check_address_space(d);
    check_disk(d);
}
