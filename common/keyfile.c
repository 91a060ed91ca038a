#include "common/keyfile.h"
#include "common/lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void cw_key_random(uint8_t key[CW_KEY_SIZE])
{
    randombytes_buf(key, CW_KEY_SIZE);
}

/* Reads until CW_KEY_LINE bytes or the end. Returns the number of bytes, or a negative code. */
static ssize_t read_line(int fd, char line[CW_KEY_LINE], struct cw_err *err)
{
    size_t used = 0;

    while (used < CW_KEY_LINE) {
        ssize_t n = read(fd, line + used, CW_KEY_LINE - used);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cw_err_set(err, CW_ESYS, "reading a key: %s", strerror(errno));
        if (n == 0)
            break;
        used += (size_t)n;
    }
    return (ssize_t)used;
}

static int parse_line(const char *line, size_t used, uint8_t key[CW_KEY_SIZE], struct cw_err *err)
{
    size_t size;

    if (used < 2 * CW_KEY_SIZE || (used > 2 * CW_KEY_SIZE && line[2 * CW_KEY_SIZE] != '\n') ||
        sodium_hex2bin(key, CW_KEY_SIZE, line, 2 * CW_KEY_SIZE, NULL, &size, NULL) < 0 ||
        size != CW_KEY_SIZE)
        return cw_err_set(err, CW_EINVAL, "not a key: expected a line of %d hexadecimal digits",
                          2 * CW_KEY_SIZE);
    return CW_OK;
}

int cw_key_read_fd(int fd, uint8_t key[CW_KEY_SIZE], struct cw_err *err)
{
    char line[CW_KEY_LINE];
    ssize_t used = read_line(fd, line, err);
    int failed = used < 0 ? err->code : parse_line(line, (size_t)used, key, err);

    sodium_memzero(line, sizeof(line));
    return failed;
}

int cw_key_write_fd(int fd, const uint8_t key[CW_KEY_SIZE], struct cw_err *err)
{
    char line[CW_KEY_LINE + 1];
    ssize_t written;

    sodium_bin2hex(line, sizeof(line), key, CW_KEY_SIZE);
    line[CW_KEY_LINE - 1] = '\n';
    written = write(fd, line, CW_KEY_LINE);
    sodium_memzero(line, sizeof(line));
    if (written != CW_KEY_LINE)
        return cw_err_set(err, CW_ESYS, "writing a key: %s", strerror(errno));
    return CW_OK;
}

int cw_key_load(const char *path, uint8_t key[CW_KEY_SIZE], struct cw_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return cw_err_set(err, errno == ENOENT ? CW_ENOTFOUND : CW_ESYS, "key file %s: %s", path,
                          strerror(errno));
    if (fstat(fd, &st) < 0)
        cw_err_set(err, CW_ESYS, "key file %s: %s", path, strerror(errno));
    else if (st.st_uid != geteuid() && st.st_uid != 0)
        cw_err_set(err, CW_EAUTH,
                   "key file %s: it belongs to user %u, who knows the key; chown it, or take one "
                   "of your own",
                   path, (unsigned)st.st_uid);
    else if (st.st_mode & 077)
        cw_err_set(err, CW_EAUTH, "key file %s: others may read it; chmod 600 it", path);
    else if (cw_key_read_fd(fd, key, err) < 0)
        cw_err_wrap(err, "key file %s", path);
    else
        err->code = CW_OK;
    close(fd);
    return err->code;
}

/* Gives the file its name, unless there is one of that name. Not every file system has links. */
static int give_name(const char *from, const char *path)
{
    if (link(from, path) == 0)
        return 0;
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
        return -1;
    return renameat2(AT_FDCWD, from, AT_FDCWD, path, RENAME_NOREPLACE);
}

/* The name comes last, and the key is on disk then: whoever finds the file finds all of it. */
static int make(const char *path, uint8_t key[CW_KEY_SIZE], bool *made, struct cw_err *err)
{
    char unnamed[PATH_MAX];
    int fd = -1;

    err->code = CW_OK;
    if (snprintf(unnamed, sizeof(unnamed), "%s.XXXXXX", path) >= (int)sizeof(unnamed))
        errno = ENAMETOOLONG;
    else
        fd = mkostemp(unnamed, O_CLOEXEC);
    if (fd < 0)
        return cw_err_set(err, CW_ESYS, "key file %s: %s", path, strerror(errno));
    cw_key_random(key);
    if (cw_key_write_fd(fd, key, err) < 0)
        cw_err_wrap(err, "key file %s", path);
    else if (fsync(fd) < 0 || (!(*made = give_name(unnamed, path) == 0) && errno != EEXIST))
        cw_err_set(err, CW_ESYS, "key file %s: %s", path, strerror(errno));
    unlink(unnamed);
    close(fd);
    return err->code;
}

int cw_key_load_or_make(const char *path, uint8_t key[CW_KEY_SIZE], bool *made, struct cw_err *err)
{
    struct stat st;
    int error;

    *made = false;
    if (lstat(path, &st) == 0)
        return cw_key_load(path, key, err);
    if (make(path, key, made, err) < 0)
        return err->code;
    if (!*made)
        return cw_key_load(path, key, err);
    error = cw_sync_name(path);
    if (error)
        return cw_err_set(err, CW_ESYS, "key file %s: syncing its directory: %s", path,
                          strerror(error));
    return CW_OK;
}
