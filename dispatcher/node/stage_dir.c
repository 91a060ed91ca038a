#include "dispatcher/node/stage_dir.h"
#include "common/fd.h"
#include "common/held_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NS_IN_S 1000000000u

/* --- the directory --- */

/* Whoever may write to it could put another one in the place of one that is there. */
static bool is_safe(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, 0) == 0 &&
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
    if (!is_safe(dir, ".."))
        return cw_err_set(err, CW_EAUTH,
                          "others may put another one in its place: give a directory by "
                          "--stage-dir that is yours, or sticky as /tmp is");
    return CW_OK;
}

int stage_dir_open(const struct stage_program *p, struct cw_err *err)
{
    char above[STAGE_DIR_MAX + 1];
    const char *place;
    int dir;

    strcpy(above, p->dir);
    place = dirname(above);
    if (is_safe(AT_FDCWD, place))
        cw_held_dir_remove_all_left(place, STAGE_DIR_PREFIX, false);
    dir = cw_held_dir_open(p->dir, true);
    err->code = CW_OK;
    if (dir < 0 || check_owner(dir, err) < 0) {
        if (!err->code)
            cw_err_set(err, CW_ESYS, "%s", strerror(errno));
        cw_close(&dir);
        return cw_err_wrap(err, "the directory %.200s for a program", p->dir);
    }
    return dir;
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
