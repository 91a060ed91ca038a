#include "dispatcher/node/copy_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool all_are_free(int first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (fcntl(first + (int)i, F_GETFD) >= 0)
            return false;
    return true;
}

static int make_at(int at)
{
    int fd = memfd_create("causeway-copy", MFD_CLOEXEC);
    int made = fd < 0 ? -1 : dup3(fd, at, O_CLOEXEC);
    int cause = errno;

    if (fd >= 0)
        close(fd);
    errno = cause;
    return made;
}

static int failed(struct cw_err *err)
{
    return cw_err_set(err, CW_ESYS, "memory for copies of relays' logs: %s (raise 'ulimit -n'?)",
                      strerror(errno));
}

int copy_fds_make(struct copy_fds *fds, uint32_t count, struct cw_err *err)
{
    fds->first = COPY_FDS_FIRST;
    while (!all_are_free(fds->first, count))
        fds->first += (int)count;
    for (fds->count = 0; fds->count < count; fds->count++)
        if (make_at(fds->first + (int)fds->count) < 0) {
            failed(err);
            copy_fds_close(fds);
            return err->code;
        }
    return CW_OK;
}

void copy_fds_close(struct copy_fds *fds)
{
    while (fds->count > 0)
        close(fds->first + (int)--fds->count);
}

int copy_fds_take(struct copy_fds *fds, uint32_t relay, struct cw_err *err)
{
    int at = fds->first + (int)relay;
    int fd;

    if (relay >= fds->count)
        return cw_err_set(err, CW_EINVAL, "there is no copy of the log of relay %u", relay);
    fd = fcntl(at, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return failed(err);
    if (make_at(at) >= 0)
        return fd;
    failed(err);
    close(fd);
    return err->code;
}
