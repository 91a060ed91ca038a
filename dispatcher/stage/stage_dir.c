#include "dispatcher/stage/stage_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NS_IN_S 1000000000u
#define UNFINISHED ".new"
#define DIR_NAME (STAGE_HASH_TEXT + sizeof(UNFINISHED))

static void name_of(const struct stage_program *p, const char *end, char name[DIR_NAME])
{
    stage_hash_text(p, name);
    strcat(name, end);
}

void stage_place_close(struct stage_place *place)
{
    if (place->file >= 0)
        close(place->file);
    if (place->dir >= 0)
        close(place->dir);
    *place = STAGE_NO_PLACE;
}

/* --- DIR --- */

/* Whoever may write above it could put another one in its place. */
static bool is_safe_above(int fd)
{
    struct stat st;

    return fstatat(fd, "..", &st, 0) == 0 &&
           ((st.st_mode & 022) == 0 || (st.st_mode & S_ISVTX) != 0) &&
           (st.st_uid == geteuid() || st.st_uid == 0);
}

static int check_owner(int fd, struct cw_err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return cw_err_set(err, CW_ESYS, "%s", strerror(errno));
    if (st.st_uid != geteuid())
        return cw_err_set(err, CW_EAUTH,
                          "it belongs to user %u, and we are user %u: have it removed, or give "
                          "another directory by --stage-dir",
                          st.st_uid, geteuid());
    if (st.st_mode & 077)
        return cw_err_set(err, CW_EAUTH,
                          "others may use it, so they may have changed it: remove it");
    if (!is_safe_above(fd))
        return cw_err_set(err, CW_EAUTH,
                          "others may put another one in its place: give a directory by "
                          "--stage-dir that is yours, or sticky as /tmp is");
    return CW_OK;
}

int stage_dir_open(const char *dir, struct cw_err *err)
{
    int fd;

    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return cw_err_set(err, CW_ESYS, "making the directory %.200s for programs: %s", dir,
                          strerror(errno));
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    err->code = CW_OK;
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        cw_err_set(err, CW_EAUTH,
                   "it is a symbolic link, or no directory: have it removed, or give another "
                   "directory by --stage-dir");
    else if (fd < 0)
        cw_err_set(err, CW_ESYS, "%s", strerror(errno));
    else
        check_owner(fd, err);
    if (err->code == CW_OK)
        return fd;
    if (fd >= 0)
        close(fd);
    return cw_err_wrap(err, "the directory %.200s for programs", dir);
}

/* --- directories in it --- */

/* Locked. Returns -1 with errno set: EWOULDBLOCK: it is in use, or was removed just now. */
static int open_locked(int dir, const char *name, int how)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat here, there;
    int why = EWOULDBLOCK;

    if (fd < 0)
        return -1;
    if (flock(fd, how | LOCK_NB) < 0)
        why = errno;
    else if (fstat(fd, &here) == 0 && fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
             here.st_ino == there.st_ino && here.st_dev == there.st_dev)
        return fd;
    close(fd);
    errno = why;
    return -1;
}

static bool is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static DIR *list(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    if (fd >= 0 && !d)
        close(fd);
    return d;
}

/* Its files. */
static void empty(int fd)
{
    DIR *d = list(fd, ".");
    struct dirent *entry;

    while (d && (entry = readdir(d)))
        if (is_entry(entry))
            unlinkat(fd, entry->d_name, 0);
    if (d)
        closedir(d);
}

static void remove_locked(int dir, const char *name, int fd)
{
    empty(fd);
    unlinkat(dir, name, AT_REMOVEDIR);
}

/* Returns whether it was not in use. */
static bool remove_unused(int dir, const char *name)
{
    int fd = open_locked(dir, name, LOCK_EX);

    if (fd < 0)
        return false;
    remove_locked(dir, name, fd);
    close(fd);
    return true;
}

/* --- room --- */

struct kept {
    uint32_t programs;
    uint64_t bytes;
    char oldest[DIR_NAME]; /* of those that are not in use; "": all are */
    struct timespec used;  /* when it was */
};

static uint64_t bytes_in(int dir, const char *name)
{
    DIR *d = list(dir, name);
    struct dirent *entry;
    struct stat st;
    uint64_t bytes = 0;

    while (d && (entry = readdir(d)))
        if (is_entry(entry) && fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            bytes += (uint64_t)st.st_size;
    if (d)
        closedir(d);
    return bytes;
}

static bool is_unused(int dir, const char *name)
{
    int fd = open_locked(dir, name, LOCK_EX);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static void count(int dir, const char *name, struct kept *kept)
{
    bool unfinished = strlen(name) == STAGE_HASH_TEXT - 1 + strlen(UNFINISHED);
    struct stat st;

    if (strlen(name) >= DIR_NAME || (unfinished && remove_unused(dir, name)) ||
        fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    kept->programs++;
    kept->bytes += bytes_in(dir, name);
    if ((kept->oldest[0] && !is_before(&st.st_mtim, &kept->used)) || !is_unused(dir, name))
        return;
    strcpy(kept->oldest, name);
    kept->used = st.st_mtim;
}

static void look(int dir, struct kept *kept)
{
    DIR *d = list(dir, ".");
    struct dirent *entry;

    *kept = (struct kept){0};
    while (d && (entry = readdir(d)))
        if (is_entry(entry))
            count(dir, entry->d_name, kept);
    if (d)
        closedir(d);
}

static int no_space(int dir, const struct stage_program *p, int why, struct cw_err *err)
{
    struct statvfs fs = {0};

    fstatvfs(dir, &fs);
    return cw_err_set(err, CW_ELIMIT,
                      "there is no room in %.200s for %.60s: %llu bytes are needed, and %llu are "
                      "free (%s): remove files there, or give another directory by --stage-dir",
                      p->dir, p->name, (unsigned long long)p->size,
                      (unsigned long long)fs.f_bavail * fs.f_frsize, strerror(why));
}

/* For it beside what is there, by the bounds. The program's own directory is there already. */
static int make_room(int dir, const struct stage_program *p, struct cw_err *err)
{
    struct kept kept;

    for (;;) {
        look(dir, &kept);
        if (kept.programs <= STAGE_KEPT_MAX && kept.bytes + p->size <= STAGE_KEPT_BYTES_MAX)
            return CW_OK;
        if (!kept.oldest[0] || !remove_unused(dir, kept.oldest))
            return cw_err_set(err, CW_ELIMIT,
                              "there is no room in %.200s for %.60s of %llu bytes: jobs use all "
                              "that is there, and it may be %u programs of %llu bytes: wait for "
                              "their end, or give another directory by --stage-dir",
                              p->dir, p->name, (unsigned long long)p->size, STAGE_KEPT_MAX,
                              STAGE_KEPT_BYTES_MAX);
    }
}

/* On the disk. Some file systems cannot say beforehand. */
static int allocate(int dir, const struct stage_program *p, int file, struct cw_err *err)
{
    struct kept kept;

    while (fallocate(file, 0, 0, (off_t)p->size) < 0) {
        int why = errno;

        if (why == EOPNOTSUPP)
            return CW_OK;
        look(dir, &kept);
        if ((why != ENOSPC && why != EDQUOT) || !kept.oldest[0] || !remove_unused(dir, kept.oldest))
            return no_space(dir, p, why, err);
    }
    return CW_OK;
}

/* --- one program --- */

static bool is_as_said(int file, const struct stage_program *p)
{
    struct stat st;

    return fstat(file, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == p->size &&
           (st.st_mode & 07777) == p->mode &&
           (uint64_t)st.st_mtim.tv_sec * NS_IN_S + (uint64_t)st.st_mtim.tv_nsec == p->mtime_ns;
}

int stage_dir_find(int dir, const struct stage_program *p, struct stage_place *place,
                   struct cw_err *err)
{
    char name[DIR_NAME];

    *place = STAGE_NO_PLACE;
    name_of(p, "", name);
    place->dir = open_locked(dir, name, LOCK_SH);
    if (place->dir < 0 && errno == ENOENT)
        return cw_err_set(err, CW_ENOTFOUND, "it is not there");
    if (place->dir < 0)
        return cw_err_set(err, errno == EWOULDBLOCK ? CW_EBUSY : CW_ESYS, "%.200s/%s: %s", p->dir,
                          name, strerror(errno));
    place->file = openat(place->dir, p->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (place->file >= 0 && is_as_said(place->file, p))
        return CW_OK;
    err->code = CW_OK;
    return stage_dir_discard(dir, p, place, err) < 0
               ? err->code
               : cw_err_set(err, CW_ENOTFOUND, "what was there is not the program");
}

void stage_dir_use(const struct stage_place *place)
{
    futimens(place->dir, NULL);
}

int stage_dir_discard(int dir, const struct stage_program *p, struct stage_place *place,
                      struct cw_err *err)
{
    char name[DIR_NAME];
    bool alone = flock(place->dir, LOCK_EX | LOCK_NB) == 0;

    name_of(p, "", name);
    if (alone)
        remove_locked(dir, name, place->dir);
    stage_place_close(place);
    if (alone)
        return CW_OK;
    return cw_err_set(err, CW_EBUSY, "%.200s/%s is damaged, and other jobs use it", p->dir, name);
}

static int reserve(int dir, const struct stage_program *p, const char *name,
                   struct stage_place *place, struct cw_err *err)
{
    char whole[DIR_NAME];

    if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
        return errno == ENOSPC || errno == EDQUOT
                   ? no_space(dir, p, errno, err)
                   : cw_err_set(err, CW_ESYS, "making the directory %.200s/%s: %s", p->dir, name,
                                strerror(errno));
    place->dir = open_locked(dir, name, LOCK_EX);
    name_of(p, "", whole);
    if (place->dir < 0 && errno != EWOULDBLOCK && errno != ENOENT)
        return cw_err_set(err, CW_ESYS, "locking %.200s/%s: %s", p->dir, name, strerror(errno));
    if (place->dir < 0 || faccessat(dir, whole, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return cw_err_set(err, CW_EBUSY, "%.200s/%s: another job sends it", p->dir, name);
    empty(place->dir);
    if (make_room(dir, p, err) < 0)
        return err->code;
    place->file =
        openat(place->dir, p->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (place->file < 0)
        return cw_err_set(err, CW_ESYS, "making the file %.200s/%s/%.60s: %s", p->dir, name,
                          p->name, strerror(errno));
    return allocate(dir, p, place->file, err);
}

/* One at a time looks for room. */
int stage_dir_reserve(int dir, const struct stage_program *p, struct stage_place *place,
                      struct cw_err *err)
{
    char name[DIR_NAME];

    *place = STAGE_NO_PLACE;
    if (flock(dir, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? cw_err_set(err, CW_EBUSY, "%.200s: another job makes room there", p->dir)
                   : cw_err_set(err, CW_ESYS, "locking %.200s: %s", p->dir, strerror(errno));
    name_of(p, UNFINISHED, name);
    err->code = CW_OK;
    if (reserve(dir, p, name, place, err) < 0) {
        if (place->dir >= 0)
            remove_locked(dir, name, place->dir);
        stage_place_close(place);
    }
    flock(dir, LOCK_UN);
    return err->code;
}

int stage_dir_keep(int dir, const struct stage_program *p, struct stage_place *place,
                   struct cw_err *err)
{
    const struct timespec mtime = {.tv_sec = (time_t)(p->mtime_ns / NS_IN_S),
                                   .tv_nsec = (long)(p->mtime_ns % NS_IN_S)};
    const struct timespec times[2] = {mtime, mtime};
    char from[DIR_NAME], to[DIR_NAME];

    name_of(p, UNFINISHED, from);
    name_of(p, "", to);
    err->code = CW_OK;
    if (fchmod(place->file, p->mode) < 0 || futimens(place->file, times) < 0)
        cw_err_set(err, CW_ESYS, "%.200s/%s/%.60s: %s", p->dir, from, p->name, strerror(errno));
    else if (!is_as_said(place->file, p))
        cw_err_set(err, CW_ESYS,
                   "the file system of %.200s does not keep times or permissions exactly: give "
                   "another directory by --stage-dir",
                   p->dir);
    else if (renameat(dir, from, dir, to) < 0)
        cw_err_set(err, CW_ESYS, "renaming %.200s/%s: %s", p->dir, from, strerror(errno));
    if (err->code)
        stage_dir_drop(dir, p, place);
    else
        stage_place_close(place);
    return err->code;
}

void stage_dir_drop(int dir, const struct stage_program *p, struct stage_place *place)
{
    char name[DIR_NAME];

    name_of(p, UNFINISHED, name);
    if (place->dir >= 0)
        remove_locked(dir, name, place->dir);
    stage_place_close(place);
}
