#include "dispatcher/status/rundir.h"
#include "dispatcher/program/device_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_NAME "lock"
#define YOUNG_S 10 /* a directory without a lock may be one that is being made */

const char *rundir_base(void)
{
    const char *own = getenv("TMPDIR");

    /* not XDG_RUNTIME_DIR: it goes when the last login of the user ends, and a job may go on */
    if (own && own[0] == '/' && strlen(own) < RUNDIR_MAX / 2 && device_path_is_plain(own) &&
        access(own, W_OK | X_OK) == 0)
        return own;
    return "/tmp";
}

static void remove_all(const char *path)
{
    char file[RUNDIR_MAX + 256];
    DIR *d = opendir(path);
    struct dirent *entry;

    while (d && (entry = readdir(d))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof(file), "%s/%.200s", path, entry->d_name);
        unlink(file);
    }
    if (d)
        closedir(d);
    rmdir(path);
}

/* Takes the directory away if nobody holds its lock. */
static void remove_stale(const char *path)
{
    char lock[RUNDIR_MAX + 8];
    struct stat st;
    int fd;

    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != getuid())
        return;
    snprintf(lock, sizeof(lock), "%s/" LOCK_NAME, path);
    fd = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        if (errno == ENOENT && time(NULL) - st.st_mtime > YOUNG_S)
            remove_all(path);
        return;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        remove_all(path);
    close(fd);
}

/* Of directories that we make. */
static void prefix_of(char prefix[40])
{
    snprintf(prefix, 40, "causeway-%u.", getuid());
}

void rundir_remove_left(const char *path)
{
    const char *slash = strrchr(path, '/');
    char prefix[40];

    prefix_of(prefix);
    if (slash && strlen(path) < RUNDIR_MAX && strncmp(slash + 1, prefix, strlen(prefix)) == 0)
        remove_stale(path);
}

static void remove_stale_all(const char *where, const char *prefix)
{
    DIR *d = opendir(where);
    struct dirent *entry;
    char path[RUNDIR_MAX];

    while (d && (entry = readdir(d)))
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
            (size_t)snprintf(path, sizeof(path), "%s/%s", where, entry->d_name) < sizeof(path))
            remove_stale(path);
    if (d)
        closedir(d);
}

void rundir_remove(struct rundir *dir)
{
    remove_all(dir->path);
    if (dir->lock_fd >= 0)
        close(dir->lock_fd);
    if (dir->fd >= 0)
        close(dir->fd);
}

int rundir_make(struct rundir *dir, struct cw_err *err)
{
    char prefix[40];
    char lock[RUNDIR_MAX + 8];
    char unnamed[sizeof(lock) + 8];

    prefix_of(prefix);
    remove_stale_all(rundir_base(), prefix);
    snprintf(dir->path, sizeof(dir->path), "%.40s/%sXXXXXX", rundir_base(), prefix);
    if (!mkdtemp(dir->path))
        return cw_err_set(err, CW_ESYS, "making a directory for the job, %s: %s", dir->path,
                          strerror(errno));
    /* what cleans up old files (systemd-tmpfiles) leaves a directory alone that is locked */
    dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->fd >= 0)
        flock(dir->fd, LOCK_SH | LOCK_NB);
    /* the lock gets its name once it is held: another start must not find it free */
    snprintf(lock, sizeof(lock), "%s/" LOCK_NAME, dir->path);
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
