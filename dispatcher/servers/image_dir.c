#include "dispatcher/servers/image_dir.h"
#include "common/fd.h"
#include "common/held_dir.h"
#include "common/lockfile.h"
#include "common/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PREFIX_MAX 40
#define PATH_SIZE (IMAGE_DIR_MAX + 64) /* of a file in it */

/* False: there is no such place. */
static bool look_at(const char *place, struct image_dir *dir)
{
    struct statfs fs;

    if (statfs(place, &fs) < 0)
        return false;
    dir->in_memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
    dir->bytes_max = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize / 2;
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

/* --- a directory of the user's -------------------------------------------------------------------
 */

/* A file beside the images of a job, which its dispatcher holds locked. */
#define HELD_SUFFIX ".job"
#define JOB_TEXT (2 * CW_ID_SIZE)

static void path_in(char path[PATH_SIZE], const struct image_dir *dir, const char *job,
                    const char *suffix)
{
    snprintf(path, PATH_SIZE, "%s/%s%s", dir->path, job, suffix);
}

/* Its images, and the file that said that it lives. */
static void remove_job(const struct image_dir *dir, const char *job)
{
    char path[PATH_SIZE];

    path_in(path, dir, job, "");
    cw_tree_remove(path);
    path_in(path, dir, job, HELD_SUFFIX);
    unlink(path);
}

static bool is_held_name(const char *name)
{
    return strspn(name, "0123456789abcdef") == JOB_TEXT &&
           strcmp(name + JOB_TEXT, HELD_SUFFIX) == 0;
}

static void remove_if_dead(struct image_dir *dir, const char *name)
{
    char job[JOB_TEXT + 1];
    char path[PATH_SIZE];
    struct stat st;
    int fd;

    snprintf(job, sizeof(job), "%.*s", JOB_TEXT, name);
    path_in(path, dir, job, HELD_SUFFIX);
    fd = cw_lockfile_take(AT_FDCWD, path, false, 0);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_size > 0)
        dir->missing = true; /* but for that job it would not be there */
    remove_job(dir, job);
    close(fd);
}

/* Not while a server uses the directory. Images beside which there is no such file are not of a
 * job's own server, and stay. */
static void remove_dead_jobs(struct image_dir *dir)
{
    char path[PATH_SIZE];
    struct cw_names names;
    const char *name;
    int lock;

    path_in(path, dir, HELD_DIR_LOCK, "");
    lock = cw_lockfile_take(AT_FDCWD, path, false, 0);
    if (lock < 0 && access(path, F_OK) == 0)
        return;
    names = cw_names(dir->path, "");
    while ((name = cw_names_next(&names)))
        if (is_held_name(name))
            remove_if_dead(dir, name);
    cw_close(&lock);
}

static int check_length(const char *wanted, struct cw_err *err)
{
    if (strlen(wanted) < IMAGE_DIR_MAX)
        return CW_OK;
    return cw_err_set(err, CW_EINVAL, "--ckpt-dir %s: longer than %d bytes", wanted,
                      IMAGE_DIR_MAX - 1);
}

static int check_wanted(struct image_dir *dir, const char *wanted, struct cw_err *err)
{
    if (look_at_wanted(wanted, dir))
        return CW_OK;
    return cw_err_set(err, CW_EINVAL, "--ckpt-dir %s: %s", wanted, strerror(errno));
}

static int take_wanted(struct image_dir *dir, const char *wanted, struct cw_err *err)
{
    char path[PATH_SIZE];

    if (check_length(wanted, err) < 0)
        return err->code;
    strcpy(dir->path, wanted);
    dir->missing = access(wanted, F_OK) < 0;
    if (!dir->missing && !dir->keeps)
        remove_dead_jobs(dir);
    if (check_wanted(dir, wanted, err) < 0)
        return err->code;
    path_in(path, dir, dir->job, "");
    dir->bytes_max += cw_tree_bytes(wanted) - cw_tree_bytes(path) / 2;
    return CW_OK;
}

static int no_place(struct cw_err *err)
{
    return cw_err_set(err, CW_EINVAL,
                      "nowhere to keep images: neither $TMPDIR nor /var/tmp nor /tmp can be "
                      "written; use --ckpt-dir DIR or --no-ckpt");
}

int image_dir_check(const char *wanted, struct cw_err *err)
{
    struct image_dir dir;

    if (!wanted)
        return choose_place(&dir) ? CW_OK : no_place(err);
    return check_length(wanted, err) < 0 ? err->code : check_wanted(&dir, wanted, err);
}

int image_dir_choose(struct image_dir *dir, const char *wanted, const uint8_t *job, bool keeps,
                     struct cw_err *err)
{
    const char *place;
    char prefix[PREFIX_MAX];
    uint8_t random[8];
    char name[2 * sizeof(random) + 1];

    *dir = (struct image_dir){.chosen = !wanted, .keeps = keeps, .held_fd = -1};
    sodium_bin2hex(dir->job, sizeof(dir->job), job, CW_ID_SIZE);
    if (wanted)
        return take_wanted(dir, wanted, err);
    place = choose_place(dir);
    if (!place)
        return no_place(err);
    snprintf(prefix, sizeof(prefix), "causeway-images-%u.", getuid());
    cw_held_dir_remove_all_left(place, prefix, true);
    randombytes_buf(random, sizeof(random));
    sodium_bin2hex(name, sizeof(name), random, sizeof(random));
    snprintf(dir->path, sizeof(dir->path), "%s/%s%s", place, prefix, name);
    return CW_OK;
}

void image_dir_hold(struct image_dir *dir)
{
    char path[PATH_SIZE];

    if (!dir->chosen) {
        path_in(path, dir, dir->job, HELD_SUFFIX);
        if (dir->held_fd < 0 && !dir->keeps)
            dir->held_fd = cw_lockfile_take(AT_FDCWD, path, true, 0);
        if (dir->held_fd >= 0 && dir->missing)
            (void)!ftruncate(dir->held_fd, 1); /* for who comes after us, if we are killed */
        return;
    }
    cw_close(&dir->held_fd);
    dir->held_fd = cw_held_dir_open(dir->path, false);
}

/* What a killed server has left where it had made the directory. */
static void remove_made(const struct image_dir *dir)
{
    char path[PATH_SIZE];
    int lock;

    path_in(path, dir, HELD_DIR_LOCK, "");
    lock = cw_lockfile_take(AT_FDCWD, path, false, 0);
    if (lock >= 0)
        unlink(path);
    cw_close(&lock);
    rmdir(dir->path);
}

void image_dir_remove(struct image_dir *dir)
{
    struct stat st;

    if (dir->chosen && lstat(dir->path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid())
        cw_tree_remove(dir->path);
    else if (!dir->chosen && dir->held_fd >= 0)
        remove_job(dir, dir->job);
    if (dir->missing && !dir->keeps)
        remove_made(dir);
    cw_close(&dir->held_fd);
}
