#include "dispatcher/streams/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

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
