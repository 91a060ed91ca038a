#include "common/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
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

int cw_key_load_or_make(const char *path, uint8_t key[CW_KEY_SIZE], bool *made, struct cw_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    *made = fd >= 0;
    if (fd < 0 && errno == EEXIST)
        return cw_key_load(path, key, err);
    if (fd < 0)
        return cw_err_set(err, CW_ESYS, "key file %s: %s", path, strerror(errno));
    cw_key_random(key);
    err->code = CW_OK;
    if (cw_key_write_fd(fd, key, err) < 0) {
        cw_err_wrap(err, "key file %s", path);
        unlink(path);
    }
    close(fd);
    return err->code;
}
