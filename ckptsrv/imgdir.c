#include "ckptsrv/imgdir.h"
#include "ckptsrv/index.h"
#include "common/fd.h"
#include "common/lockfile.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME "lock"
#define NAME_SIZE 64 /* of a file of a job, with its directory */
#define LEFT_SUFFIX ".new"

int (*imgdir_fault)(const char *what);

/* Whether `what` is not to be done, with errno set. */
static bool fault(const char *what)
{
    int error = imgdir_fault ? imgdir_fault(what) : 0;

    errno = error ? error : errno;
    return error != 0;
}

static int failure(const struct imgdir *files, const char *doing, const char *name,
                   struct cw_err *err)
{
    return cw_err_set(err, CW_ESYS, "--dir %s: %s %s: %s", files->path, doing, name,
                      strerror(errno));
}

/* Of an operation on a file. */
static int io_failure(const char *doing, const char *name, struct cw_err *err)
{
    if (errno == ENOSPC || errno == EDQUOT)
        return cw_err_set(err, CW_ELIMIT,
                          "%s %s: %s; make room there, or give the checkpoint server a directory "
                          "(--dir) on a larger disk",
                          doing, name, strerror(errno));
    return cw_err_set(err, CW_ESYS, "%s %s: %s", doing, name, strerror(errno));
}

/* --- the directory -------------------------------------------------------------------------------
 */

/* The holder has written its number into the lock. */
static int in_use(const struct imgdir *files, struct cw_err *err)
{
    int lock = openat(files->dir, LOCK_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char pid[16] = "";
    ssize_t n = pread(lock, pid, sizeof(pid) - 1, 0);

    cw_close(&lock);
    pid[n > 0 ? strspn(pid, "0123456789") : 0] = '\0';
    return cw_err_set(err, CW_EBUSY,
                      "--dir %s: process %s uses it; end that first, or give another directory",
                      files->path, pid[0] ? pid : "(unknown)");
}

static int take_lock(struct imgdir *files, struct cw_err *err)
{
    char pid[16];
    int n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());

    files->lock = cw_lockfile_take(files->dir, LOCK_NAME, true, 0);
    if (files->lock < 0)
        return errno == EWOULDBLOCK ? in_use(files, err)
                                    : failure(files, "locking", LOCK_NAME, err);
    if (ftruncate(files->lock, 0) < 0 || pwrite(files->lock, pid, (size_t)n, 0) != n)
        return failure(files, "writing", LOCK_NAME, err);
    return CW_OK;
}

static int check_dir(const struct imgdir *files, struct cw_err *err)
{
    struct stat st;

    if (fstat(files->dir, &st) < 0)
        return failure(files, "looking at", "it", err);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return cw_err_set(err, CW_EINVAL,
                          "--dir %s: other users may write there; give a directory of this server "
                          "alone, or take that away (chmod go-w)",
                          files->path);
    return CW_OK;
}

int imgdir_open_to_read(struct imgdir *files, const char *path, struct cw_err *err)
{
    *files = IMGDIR_CLOSED;
    files->path = path;
    files->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return files->dir < 0 ? failure(files, "opening", "it", err) : CW_OK;
}

int imgdir_open(struct imgdir *files, const char *path, struct cw_err *err)
{
    bool made = mkdir(path, 0700) == 0;

    *files = IMGDIR_CLOSED;
    files->path = path;
    if (!made && errno != EEXIST)
        return failure(files, "making", "it", err);
    if (imgdir_open_to_read(files, path, err) < 0)
        return err->code;
    if (check_dir(files, err) < 0 || take_lock(files, err) < 0)
        imgdir_close(files, false);
    files->made = made;
    return err->code;
}

void imgdir_close(struct imgdir *files, bool remove)
{
    if (remove && files->lock >= 0) {
        unlinkat(files->dir, LOCK_NAME, 0);
        if (files->made)
            rmdir(files->path);
    }
    cw_close(&files->lock);
    cw_close(&files->dir);
}

/* --- names ---------------------------------------------------------------------------------------
 */

void imgdir_job_text(char text[IMGDIR_JOB_TEXT], const uint8_t job[CW_ID_SIZE])
{
    for (int i = 0; i < CW_ID_SIZE; i++)
        snprintf(text + (size_t)2 * i, 3, "%02x", job[i]);
}

static int digit_of(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool imgdir_job_parse(const char *text, uint8_t job[CW_ID_SIZE])
{
    if (strlen(text) != IMGDIR_JOB_TEXT - 1)
        return false;
    for (int i = 0; i < CW_ID_SIZE; i++) {
        int high = digit_of(text[2 * i]);
        int low = digit_of(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        job[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static void blocks_name(char name[NAME_SIZE], const uint8_t *job, uint32_t rank)
{
    imgdir_job_text(name, job);
    snprintf(name + IMGDIR_JOB_TEXT - 1, NAME_SIZE - IMGDIR_JOB_TEXT, "/%u.blocks", rank);
}

static void index_name(char name[NAME_SIZE], const uint8_t *job, uint32_t rank, uint32_t number,
                       const char *suffix)
{
    imgdir_job_text(name, job);
    snprintf(name + IMGDIR_JOB_TEXT - 1, NAME_SIZE - IMGDIR_JOB_TEXT, "/%u.%u.index%s", rank,
             number, suffix);
}

/* --- blocks --------------------------------------------------------------------------------------
 */

int imgdir_open_blocks(const struct imgdir *files, const uint8_t *job, uint32_t rank, bool write,
                       struct cw_err *err)
{
    int flags = (write ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW;
    char name[NAME_SIZE];
    int fd;

    blocks_name(name, job, rank);
    fd = write && fault("create") ? -1 : openat(files->dir, name, flags, 0600);
    return fd >= 0 ? fd : io_failure("opening", name, err);
}

/* Leaves out the first `bytes`. */
static void advance(struct iovec **at, int *count, size_t bytes)
{
    while (*count > 0 && bytes >= (*at)->iov_len) {
        bytes -= (*at)->iov_len;
        (*at)++;
        (*count)--;
    }
    if (*count > 0) {
        (*at)->iov_base = (uint8_t *)(*at)->iov_base + bytes;
        (*at)->iov_len -= bytes;
    }
}

int imgdir_write(int fd, struct iovec *at, int count, uint64_t offset, struct cw_err *err)
{
    while (count > 0) {
        ssize_t n = fault("write") ? -1 : pwritev(fd, at, count, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return io_failure("writing", "blocks of an image", err);
        offset += (uint64_t)n;
        advance(&at, &count, (size_t)n);
    }
    return CW_OK;
}

int imgdir_read(int fd, struct iovec *at, int count, uint64_t offset, struct cw_err *err)
{
    while (count > 0) {
        ssize_t n = preadv(fd, at, count, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            return cw_err_set(err, CW_ESYS, "reading blocks of an image: the file is too short");
        if (n < 0)
            return io_failure("reading", "blocks of an image", err);
        offset += (uint64_t)n;
        advance(&at, &count, (size_t)n);
    }
    return CW_OK;
}

int imgdir_sync(int fd, struct cw_err *err)
{
    if (fault("sync") || fdatasync(fd) < 0)
        return io_failure("syncing", "blocks of an image", err);
    return CW_OK;
}

uint64_t imgdir_blocks_size(const struct imgdir *files, const uint8_t *job, uint32_t rank)
{
    char name[NAME_SIZE];
    struct stat st;

    blocks_name(name, job, rank);
    if (fstatat(files->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return 0;
    return (uint64_t)st.st_size;
}

const char *imgdir_check_blocks(const struct imgdir *files, const uint8_t *job, uint32_t rank,
                                uint64_t size)
{
    uint64_t there = size > 0 ? imgdir_blocks_size(files, job, rank) : 0;

    if (there >= size)
        return NULL;
    return there == 0 ? "its blocks are not there" : "some of its blocks are not there";
}

void imgdir_shorten(const struct imgdir *files, const uint8_t *job, uint32_t rank, uint64_t size)
{
    char name[NAME_SIZE];
    int fd;

    blocks_name(name, job, rank);
    fd = fault("shorten") ? -1 : openat(files->dir, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    if (ftruncate(fd, (off_t)size) < 0)
        size = 0; /* what is too much there is used again */
    close(fd);
}

void imgdir_remove_blocks(const struct imgdir *files, const uint8_t *job, uint32_t rank)
{
    char name[NAME_SIZE];

    blocks_name(name, job, rank);
    if (!fault("remove"))
        unlinkat(files->dir, name, 0);
}

/* --- indexes -------------------------------------------------------------------------------------
 */

int imgdir_make_job(const struct imgdir *files, const uint8_t *job, struct cw_err *err)
{
    char name[IMGDIR_JOB_TEXT];

    imgdir_job_text(name, job);
    if (fault("mkdir") || (mkdirat(files->dir, name, 0700) < 0 && errno != EEXIST) ||
        fsync(files->dir) < 0)
        return io_failure("making", name, err);
    return CW_OK;
}

void imgdir_remove_job(const struct imgdir *files, const uint8_t *job)
{
    char name[IMGDIR_JOB_TEXT];

    imgdir_job_text(name, job);
    if (!fault("rmdir"))
        unlinkat(files->dir, name, AT_REMOVEDIR);
}

static int sync_job(const struct imgdir *files, const uint8_t *job, struct cw_err *err)
{
    char name[IMGDIR_JOB_TEXT];
    int failed;
    int dir;

    imgdir_job_text(name, job);
    dir = openat(files->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    failed = dir < 0 || fault("sync") || fsync(dir) < 0 ? io_failure("syncing", name, err) : CW_OK;
    cw_close(&dir);
    return failed;
}

static int write_whole(const struct imgdir *files, const char *name, const uint8_t *bytes,
                       size_t size, struct cw_err *err)
{
    int fd = fault("create") ? -1
                             : openat(files->dir, name,
                                      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct iovec all = {(void *)bytes, size};

    if (fd < 0)
        return io_failure("making", name, err);
    if (imgdir_write(fd, &all, 1, 0, err) == CW_OK && (fault("sync") || fsync(fd) < 0))
        io_failure("syncing", name, err);
    close(fd);
    return err->code;
}

int imgdir_put_index(const struct imgdir *files, const uint8_t *job, uint32_t rank, uint32_t number,
                     const uint8_t *bytes, size_t size, bool *doubtful, struct cw_err *err)
{
    char name[NAME_SIZE];
    char left[NAME_SIZE];

    *doubtful = false;
    index_name(name, job, rank, number, "");
    index_name(left, job, rank, number, LEFT_SUFFIX);
    if (write_whole(files, left, bytes, size, err) == CW_OK &&
        (fault("rename") || renameat(files->dir, left, files->dir, name) < 0))
        io_failure("renaming", left, err);
    if (err->code) {
        if (!fault("remove"))
            unlinkat(files->dir, left, 0);
        return err->code;
    }
    *doubtful = sync_job(files, job, err) < 0;
    return err->code;
}

static int read_whole(int fd, uint8_t **bytes, size_t *size, struct cw_err *err)
{
    struct stat st;
    struct iovec all;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return cw_err_set(err, CW_ESYS, "it is no file");
    if (st.st_size > (off_t)INDEX_BYTES_MAX)
        return cw_err_set(err, CW_ESYS, "it is too large");
    *size = (size_t)st.st_size;
    *bytes = malloc(*size + 1);
    if (!*bytes)
        return cw_err_set(err, CW_ENOMEM, "no memory for %zu bytes", *size);
    all = (struct iovec){*bytes, *size};
    if (*size > 0 && imgdir_read(fd, &all, 1, 0, err) < 0) {
        free(*bytes);
        *bytes = NULL;
    }
    return err->code;
}

int imgdir_get_index(const struct imgdir *files, const uint8_t *job, uint32_t rank, uint32_t number,
                     uint8_t **bytes, size_t *size, struct cw_err *err)
{
    char name[NAME_SIZE];
    int fd;

    index_name(name, job, rank, number, "");
    fd = openat(files->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? cw_err_set(err, CW_ENOTFOUND, "%s: no such image", name)
                               : io_failure("opening", name, err);
    if (read_whole(fd, bytes, size, err) < 0)
        cw_err_wrap(err, "reading %s", name);
    close(fd);
    return err->code;
}

int imgdir_remove_index(const struct imgdir *files, const uint8_t *job, uint32_t rank,
                        uint32_t number, struct cw_err *err)
{
    char name[NAME_SIZE];

    index_name(name, job, rank, number, "");
    if (fault("remove") || (unlinkat(files->dir, name, 0) < 0 && errno != ENOENT))
        return io_failure("removing", name, err);
    return sync_job(files, job, err);
}

void imgdir_remove_left(const struct imgdir *files, const uint8_t *job, const char *name)
{
    char path[NAME_SIZE + NAME_MAX];
    char text[IMGDIR_JOB_TEXT];

    imgdir_job_text(text, job);
    snprintf(path, sizeof(path), "%s/%s", text, name);
    if (!fault("remove"))
        unlinkat(files->dir, path, 0);
}

/* --- all of them ---------------------------------------------------------------------------------
 */

/* Reads digits without a zero before them, and what follows. */
static const char *number_of(const char *text, uint32_t *number)
{
    char *end;
    unsigned long long value;

    if (!isdigit((unsigned char)*text) || (*text == '0' && isdigit((unsigned char)text[1])))
        return NULL;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno || value > UINT32_MAX)
        return NULL;
    *number = (uint32_t)value;
    return end;
}

/* False: it is none of ours. */
static bool parse_name(const char *name, enum imgdir_kind *kind, uint32_t *rank, uint32_t *number)
{
    const char *rest = number_of(name, rank);

    if (!rest || *rank >= CW_RANKS_MAX)
        return false;
    *kind = IMGDIR_BLOCKS;
    *number = 0;
    if (strcmp(rest, ".blocks") == 0)
        return true;
    rest = *rest == '.' ? number_of(rest + 1, number) : NULL;
    if (!rest || *number == 0 || strncmp(rest, ".index", 6) != 0)
        return false;
    *kind = rest[6] ? IMGDIR_LEFT : IMGDIR_INDEX;
    return rest[6] == '\0' || strcmp(rest + 6, LEFT_SUFFIX) == 0;
}

static DIR *open_dir(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !stream)
        close(fd);
    return stream;
}

/* NULL at the end. An entry that is not seen may be an index, whose blocks would be taken for
 * others. */
static const struct dirent *next_entry(const struct imgdir *files, DIR *dir, const char *name,
                                       struct cw_err *err)
{
    const struct dirent *entry;

    errno = 0;
    entry = readdir(dir);
    if (!entry && errno)
        failure(files, "reading", name, err);
    return entry;
}

static int each_of_job(const struct imgdir *files, const char *text, imgdir_visit *visit, void *ctx,
                       struct cw_err *err)
{
    uint8_t job[CW_ID_SIZE];
    const struct dirent *entry;
    enum imgdir_kind kind;
    uint32_t rank;
    uint32_t number;
    DIR *dir;

    if (!imgdir_job_parse(text, job))
        return CW_OK;
    dir = open_dir(files->dir, text);
    if (!dir && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return CW_OK; /* a server that runs has removed it, or it is no directory: not ours */
    if (!dir)
        return failure(files, "opening", text, err);
    while (!err->code && (entry = next_entry(files, dir, text, err)))
        if (parse_name(entry->d_name, &kind, &rank, &number))
            visit(ctx, job, kind, rank, number, entry->d_name, err);
    closedir(dir);
    if (!err->code)
        visit(ctx, job, IMGDIR_LEFT, 0, 0, NULL, err);
    return err->code;
}

int imgdir_each(const struct imgdir *files, imgdir_visit *visit, void *ctx, struct cw_err *err)
{
    DIR *dir = open_dir(files->dir, ".");
    const struct dirent *entry;

    if (!dir)
        return failure(files, "opening", "it", err);
    while (!err->code && (entry = next_entry(files, dir, "it", err)))
        each_of_job(files, entry->d_name, visit, ctx, err);
    closedir(dir);
    return err->code;
}
