#include "dispatcher/images/image_dir.h"
#include "common/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define YOUNG_S 10 /* a directory without a lock may be one that is being made */
#define PREFIX_MAX 40

/* False: there is no such place. */
static bool look_at(const char *place, struct image_dir *dir)
{
    struct statfs fs;

    if (statfs(place, &fs) < 0)
        return false;
    dir->in_memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
    dir->free_max = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize / 2;
    return true;
}

static bool is_writable(const char *place)
{
    struct stat st;

    if (stat(place, &st) == 0 && !S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return false;
    }
    return access(place, W_OK | X_OK) == 0;
}

/* Of a directory that is still to be made, its parent. */
static bool look_at_wanted(const char *wanted, struct image_dir *dir)
{
    char parent[IMAGE_DIR_MAX];
    char *slash;

    if (access(wanted, F_OK) == 0)
        return is_writable(wanted) && look_at(wanted, dir);
    snprintf(parent, sizeof(parent), "%s", wanted);
    for (slash = parent + strlen(parent); slash > parent + 1 && slash[-1] == '/';)
        *--slash = '\0';
    slash = strrchr(parent, '/');
    if (!slash)
        strcpy(parent, ".");
    else
        slash[slash == parent] = '\0';
    return is_writable(parent) && look_at(parent, dir);
}

static bool is_place(const char *place, struct image_dir *dir)
{
    return place && place[0] == '/' && strlen(place) < IMAGE_DIR_MAX - 64 &&
           access(place, W_OK | X_OK) == 0 && look_at(place, dir);
}

/* The first one on a disk; else the first one. */
static const char *choose_place(struct image_dir *dir)
{
    const char *candidates[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
    const char *first = NULL;

    for (size_t i = 0; i < sizeof(candidates) / sizeof(*candidates); i++) {
        if (!is_place(candidates[i], dir))
            continue;
        if (!dir->in_memory)
            return candidates[i];
        if (!first)
            first = candidates[i];
    }
    if (first)
        look_at(first, dir);
    return first;
}

static bool is_locked(int fd)
{
    bool locked = flock(fd, LOCK_EX | LOCK_NB) < 0;

    close(fd);
    return locked;
}

/* Neither a dispatcher holds it nor a server. */
static bool is_stale(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    bool unlocked;
    int lock;

    if (fd < 0)
        return false;
    if (fstat(fd, &st) < 0 || st.st_uid != getuid()) {
        close(fd);
        return false;
    }
    lock = openat(fd, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    unlocked = lock < 0 && errno == ENOENT;
    if (is_locked(fd)) {
        if (lock >= 0)
            close(lock);
        return false;
    }
    return lock < 0 ? unlocked && time(NULL) - st.st_mtime > YOUNG_S : !is_locked(lock);
}

static void remove_stale(const char *place)
{
    DIR *d = opendir(place);
    const struct dirent *entry;
    char prefix[PREFIX_MAX];
    char path[IMAGE_DIR_MAX];

    snprintf(prefix, sizeof(prefix), "causeway-images-%u.", getuid());
    while (d && (entry = readdir(d)))
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
            (size_t)snprintf(path, sizeof(path), "%s/%s", place, entry->d_name) < sizeof(path) &&
            is_stale(path))
            cw_tree_remove(path);
    if (d)
        closedir(d);
}

int image_dir_choose(struct image_dir *dir, const char *wanted, struct cw_err *err)
{
    const char *place;
    uint8_t random[8];
    char name[2 * sizeof(random) + 1];

    *dir = (struct image_dir){.chosen = !wanted, .held_fd = -1};
    if (wanted) {
        if (strlen(wanted) >= sizeof(dir->path))
            return cw_err_set(err, CW_EINVAL, "--ckpt-dir %s: longer than %d bytes", wanted,
                              IMAGE_DIR_MAX - 1);
        if (!look_at_wanted(wanted, dir))
            return cw_err_set(err, CW_EINVAL, "--ckpt-dir %s: %s", wanted, strerror(errno));
        strcpy(dir->path, wanted);
        dir->missing = access(wanted, F_OK) < 0;
        return CW_OK;
    }
    place = choose_place(dir);
    if (!place)
        return cw_err_set(err, CW_EINVAL,
                          "nowhere to keep images: neither $TMPDIR nor /var/tmp nor /tmp can be "
                          "written; use --ckpt-dir DIR or --no-ckpt");
    remove_stale(place);
    randombytes_buf(random, sizeof(random));
    sodium_bin2hex(name, sizeof(name), random, sizeof(random));
    snprintf(dir->path, sizeof(dir->path), "%s/causeway-images-%u.%s", place, getuid(), name);
    return CW_OK;
}

void image_dir_hold(struct image_dir *dir)
{
    if (!dir->chosen)
        return;
    if (dir->held_fd >= 0)
        close(dir->held_fd);
    dir->held_fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir->held_fd >= 0 && flock(dir->held_fd, LOCK_SH | LOCK_NB) < 0) {
        close(dir->held_fd);
        dir->held_fd = -1;
    }
}

void image_dir_remove(struct image_dir *dir)
{
    struct stat st;

    if (dir->chosen && lstat(dir->path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid())
        cw_tree_remove(dir->path);
    else if (dir->missing)
        rmdir(dir->path);
    if (dir->held_fd >= 0)
        close(dir->held_fd);
    dir->held_fd = -1;
}
