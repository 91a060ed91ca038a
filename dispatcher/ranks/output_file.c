#include "dispatcher/ranks/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCAN_BYTES 65536 /* of a file that is gone on with, at a time */

static bool writes_to(int fd, const struct stat *file)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino &&
           (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

/* A copy of a descriptor of ours, other than `but`, that writes to this; -1: none does. */
static int copy_own(const struct stat *file, int but)
{
    for (int fd = STDOUT_FILENO; fd < OUTPUT_FILE_OWN_MAX; fd++)
        if (fd != but && writes_to(fd, file))
            return fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return -1;
}

int output_file_open(const char *path, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | flags, 0666);
    struct stat st;
    int own;

    /* a socket cannot be opened by the name of its descriptor */
    if (fd < 0 && errno == ENXIO && stat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        fd = copy_own(&st, -1);
    else if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        own = copy_own(&st, fd);
        if (own < 0 && ftruncate(fd, 0) == 0)
            return fd;
        close(fd);
        fd = own;
    }
    return fd;
}

/* Where line `*lines` begins; `*lines` becomes the number of those that are not there. -1: errno.
 */
static off_t find_line(int fd, uint64_t *lines)
{
    char piece[SCAN_BYTES];
    off_t at = 0;

    while (*lines > 0) {
        ssize_t n = pread(fd, piece, sizeof(piece), at);
        const char *from = piece;

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -1 : at;
        while (*lines > 0 && (from = memchr(from, '\n', (size_t)(piece + n - from)))) {
            from++;
            --*lines;
        }
        at += from && *lines == 0 ? from - piece : n;
    }
    return at;
}

int64_t output_file_cut(int fd, uint64_t lines, uint64_t prefix, uint64_t bytes)
{
    uint64_t missing = lines;
    struct stat st;
    off_t end;

    if (fstat(fd, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode))
        return 0;
    end = find_line(fd, &missing);
    if (end < 0 || missing)
        return end < 0 ? -1 : (int64_t)missing;
    end += bytes ? (off_t)(prefix + bytes) : 0;
    if (end > st.st_size)
        return 1;
    return ftruncate(fd, end);
}

static int without_need(int failed)
{
    return failed < 0 && (errno == EINVAL || errno == EROFS || errno == ENOTSUP) ? 0 : failed;
}

int output_file_sync(int fd)
{
    return without_need(fdatasync(fd));
}

int output_dir_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fd < 0 ? -1 : without_need(fsync(fd));
    int error = errno;

    if (fd >= 0)
        close(fd);
    errno = error;
    return failed;
}
