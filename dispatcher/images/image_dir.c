#include "dispatcher/images/image_dir.h"

#include <errno.h>
#include <ftw.h>
#include <linux/magic.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define REMOVE_DEPTH 8 /* descriptors that are open while a tree is removed */

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

/* Of a directory that is still to be made, its parent. */
static bool look_at_wanted(const char *wanted, struct image_dir *dir)
{
    char parent[IMAGE_DIR_MAX];
    char *slash;

    if (look_at(wanted, dir))
        return true;
    snprintf(parent, sizeof(parent), "%s", wanted);
    slash = strrchr(parent, '/');
    if (!slash)
        return look_at(".", dir);
    slash[slash == parent] = '\0';
    return look_at(parent, dir);
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

int image_dir_choose(struct image_dir *dir, const char *wanted, struct cw_err *err)
{
    const char *place;
    uint8_t random[8];
    char name[2 * sizeof(random) + 1];

    *dir = (struct image_dir){.chosen = !wanted};
    if (wanted) {
        if (strlen(wanted) >= sizeof(dir->path))
            return cw_err_set(err, CW_EINVAL, "--ckpt-dir %s: longer than %d bytes", wanted,
                              IMAGE_DIR_MAX - 1);
        if (!look_at_wanted(wanted, dir))
            return cw_err_set(err, CW_EINVAL, "--ckpt-dir %s: %s", wanted, strerror(errno));
        strcpy(dir->path, wanted);
        return CW_OK;
    }
    place = choose_place(dir);
    if (!place)
        return cw_err_set(err, CW_EINVAL,
                          "nowhere to keep images: neither $TMPDIR nor /var/tmp nor /tmp can be "
                          "written; use --ckpt-dir DIR or --no-ckpt");
    randombytes_buf(random, sizeof(random));
    sodium_bin2hex(name, sizeof(name), random, sizeof(random));
    snprintf(dir->path, sizeof(dir->path), "%s/causeway-images-%u.%s", place, getuid(), name);
    return CW_OK;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    remove(path);
    return 0;
}

void image_dir_remove(const struct image_dir *dir)
{
    struct stat st;

    if (dir->chosen && lstat(dir->path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid())
        nftw(dir->path, remove_one, REMOVE_DEPTH, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
