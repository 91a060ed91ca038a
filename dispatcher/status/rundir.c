#include "dispatcher/status/rundir.h"
#include "common/fd.h"
#include "common/held_dir.h"
#include "common/tree.h"
#include "dispatcher/program/device_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

const char *rundir_base(void)
{
    const char *own = getenv("TMPDIR");

    /* not XDG_RUNTIME_DIR: it goes when the last login of the user ends, and a job may go on */
    if (own && own[0] == '/' && strlen(own) < RUNDIR_MAX / 2 && device_path_is_plain(own) &&
        access(own, W_OK | X_OK) == 0)
        return own;
    return "/tmp";
}

void rundir_prefix(char prefix[RUNDIR_PREFIX_SIZE])
{
    snprintf(prefix, RUNDIR_PREFIX_SIZE, "causeway-%u.", getuid());
}

int rundir_places(char places[RUNDIR_PLACES_MAX][RUNDIR_MAX])
{
    const char *candidates[RUNDIR_PLACES_MAX] = {getenv("TMPDIR"), "/tmp"};
    struct stat seen[RUNDIR_PLACES_MAX];
    int count = 0;

    for (int i = 0; i < RUNDIR_PLACES_MAX; i++) {
        struct stat st;
        int same = 0;

        if (!candidates[i] || strlen(candidates[i]) >= RUNDIR_MAX || stat(candidates[i], &st) < 0)
            continue;
        while (same < count && (seen[same].st_dev != st.st_dev || seen[same].st_ino != st.st_ino))
            same++;
        if (same < count)
            continue;
        seen[count] = st;
        strcpy(places[count++], candidates[i]);
    }
    return count;
}

void rundir_remove_left(const char *path)
{
    const char *slash = strrchr(path, '/');
    char prefix[RUNDIR_PREFIX_SIZE];

    rundir_prefix(prefix);
    if (slash && strlen(path) < RUNDIR_MAX && strncmp(slash + 1, prefix, strlen(prefix)) == 0)
        cw_held_dir_remove_left(path, true);
}

void rundir_remove(struct rundir *dir)
{
    cw_tree_remove(dir->path);
    cw_close(&dir->lock_fd);
    cw_close(&dir->fd);
}

int rundir_make(struct rundir *dir, struct cw_err *err)
{
    char prefix[RUNDIR_PREFIX_SIZE];
    char lock[RUNDIR_MAX + 8];
    char unnamed[sizeof(lock) + 8];

    rundir_prefix(prefix);
    cw_held_dir_remove_all_left(rundir_base(), prefix, true);
    snprintf(dir->path, sizeof(dir->path), "%.40s/%.32sXXXXXX", rundir_base(), prefix);
    if (!mkdtemp(dir->path))
        return cw_err_set(err, CW_ESYS, "making a directory for the job, %s: %s", dir->path,
                          strerror(errno));
    /* what cleans up old files (systemd-tmpfiles) leaves a directory alone that is locked */
    dir->fd = cw_held_dir_open(dir->path, false);
    /* the lock gets its name once it is held: another start must not find it free */
    snprintf(lock, sizeof(lock), "%s/" HELD_DIR_LOCK, dir->path);
    snprintf(unnamed, sizeof(unnamed), "%s.new", lock);
    dir->lock_fd = open(unnamed, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (dir->lock_fd < 0 || flock(dir->lock_fd, LOCK_EX) < 0 || rename(unnamed, lock) < 0) {
        cw_err_set(err, CW_ESYS, "locking %s: %s", lock, strerror(errno));
        rundir_remove(dir);
        return err->code;
    }
    return CW_OK;
}

int rundir_link(const struct rundir *dir, const char *target, char *path, size_t size,
                struct cw_err *err)
{
    const char *slash = strrchr(target, '/');

    snprintf(path, size, "%s/%s", dir->path, slash ? slash + 1 : target);
    if (symlink(target, path) < 0)
        return cw_err_set(err, CW_ESYS, "making the link %s to %s: %s", path, target,
                          strerror(errno));
    return CW_OK;
}
