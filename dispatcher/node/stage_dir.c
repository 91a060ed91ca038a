#include "dispatcher/node/stage_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NS_IN_S 1000000000u
#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* --- removing --- */

static bool is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* Its files. */
static void empty(int dir)
{
    int fd = openat(dir, ".", OPEN_DIR);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    while (d && (entry = readdir(d)))
        if (is_entry(entry))
            unlinkat(dir, entry->d_name, 0);
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
}

/* Closes it, and removes it if nobody else has it locked. */
static void remove_unused(int above, const char *name, int dir)
{
    if (flock(dir, LOCK_EX | LOCK_NB) == 0) {
        empty(dir);
        unlinkat(above, name, AT_REMOVEDIR);
    }
    close(dir);
}

/* What nodes that were killed have left. */
static void remove_left(int above)
{
    int fd = openat(above, ".", OPEN_DIR);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    struct stat st;

    while (d && (entry = readdir(d))) {
        int dir = strncmp(entry->d_name, STAGE_DIR_PREFIX, strlen(STAGE_DIR_PREFIX)) == 0
                      ? openat(above, entry->d_name, OPEN_DIR)
                      : -1;

        if (dir >= 0 && fstat(dir, &st) == 0 && st.st_uid == geteuid())
            remove_unused(above, entry->d_name, dir);
        else if (dir >= 0)
            close(dir);
    }
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
}

/* --- the directory --- */

/* Whoever may write above it could put another one in its place. */
static bool is_safe_above(int dir)
{
    struct stat st;

    return fstatat(dir, "..", &st, 0) == 0 &&
           ((st.st_mode & 022) == 0 || (st.st_mode & S_ISVTX) != 0) &&
           (st.st_uid == geteuid() || st.st_uid == 0);
}

static int check_owner(int dir, struct cw_err *err)
{
    struct stat st;

    if (fstat(dir, &st) < 0)
        return cw_err_set(err, CW_ESYS, "%s", strerror(errno));
    if (st.st_uid != geteuid() || (st.st_mode & 077))
        return cw_err_set(err, CW_EAUTH,
                          "it is of user %u with mode %o, so others may have changed it: give "
                          "another directory by --stage-dir",
                          st.st_uid, st.st_mode & 07777);
    if (!is_safe_above(dir))
        return cw_err_set(err, CW_EAUTH,
                          "others may put another one in its place: give a directory by "
                          "--stage-dir that is yours, or sticky as /tmp is");
    return CW_OK;
}

static bool is_still_there(const char *path, int dir)
{
    struct stat here, there;

    return fstat(dir, &here) == 0 && lstat(path, &there) == 0 && here.st_ino == there.st_ino &&
           here.st_dev == there.st_dev;
}

/* Until it is locked another node may take it for one that was left, and removes it, which takes no
 * time. Returns -1 with errno set. */
static int make(const char *path)
{
    for (int i = 0; i < STAGE_OPEN_TRIES; i++) {
        int dir;

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return -1;
        dir = open(path, OPEN_DIR);
        if (dir < 0 && errno != ENOENT)
            return -1;
        if (dir >= 0 && flock(dir, LOCK_SH) == 0 && is_still_there(path, dir))
            return dir;
        if (dir >= 0)
            close(dir);
    }
    errno = EBUSY;
    return -1;
}

int stage_dir_open(const struct stage_program *p, struct cw_err *err)
{
    char above_path[STAGE_DIR_MAX + 1];
    int above, dir;

    strcpy(above_path, p->dir);
    *(strrchr(above_path, '/') + 1) = '\0';
    above = open(above_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above >= 0) {
        remove_left(above);
        close(above);
    }
    dir = make(p->dir);
    err->code = CW_OK;
    if (dir < 0)
        cw_err_set(err, CW_ESYS, "%s", strerror(errno));
    else if (check_owner(dir, err) == CW_OK)
        return dir;
    if (dir >= 0)
        close(dir);
    return cw_err_wrap(err, "the directory %.200s for a program", p->dir);
}

void stage_dir_leave(int dir, const struct stage_program *p)
{
    remove_unused(AT_FDCWD, p->dir, dir);
}

/* --- the program --- */

static bool is_as_said(int file, const struct stage_program *p)
{
    struct stat st;

    return fstat(file, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == p->size &&
           (st.st_mode & 07777) == p->mode &&
           (uint64_t)st.st_mtim.tv_sec * NS_IN_S + (uint64_t)st.st_mtim.tv_nsec == p->mtime_ns;
}

int stage_dir_find(int dir, const struct stage_program *p, struct cw_err *err)
{
    int file = openat(dir, p->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (file < 0 && errno == ENOENT)
        return cw_err_set(err, CW_ENOTFOUND, "it is not there");
    if (file >= 0 && is_as_said(file, p))
        return file;
    cw_err_set(err, CW_ESYS, "%.200s/%.60s: %s", p->dir, p->name,
               file < 0 ? strerror(errno) : "it has another size, time or mode than was announced");
    if (file >= 0)
        close(file);
    return err->code;
}

int stage_dir_begin(int dir, const struct stage_program *p, char part[STAGE_PART_NAME],
                    struct cw_err *err)
{
    uint64_t number;
    int file;

    randombytes_buf(&number, sizeof(number));
    snprintf(part, STAGE_PART_NAME, ".%016" PRIx64, number);
    file = openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        cw_err_set(err, CW_ESYS, "making a file in %.200s: %s", p->dir, strerror(errno));
    return file < 0 ? err->code : file;
}

int stage_dir_keep(int dir, const struct stage_program *p, int file, const char *part,
                   struct cw_err *err)
{
    const struct timespec mtime = {.tv_sec = (time_t)(p->mtime_ns / NS_IN_S),
                                   .tv_nsec = (long)(p->mtime_ns % NS_IN_S)};
    const struct timespec times[2] = {mtime, mtime};

    if (fchmod(file, p->mode) < 0 || futimens(file, times) < 0)
        return cw_err_set(err, CW_ESYS, "%.200s/%s: %s", p->dir, part, strerror(errno));
    if (!is_as_said(file, p))
        return cw_err_set(err, CW_ESYS,
                          "the file system of %.200s does not keep times or permissions exactly: "
                          "give another directory by --stage-dir",
                          p->dir);
    if (linkat(dir, part, dir, p->name, 0) < 0 && errno != EEXIST)
        return cw_err_set(err, CW_ESYS, "linking %.200s/%.60s: %s", p->dir, p->name,
                          strerror(errno));
    return CW_OK;
}
