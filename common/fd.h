/* Descriptors. */
#ifndef CW_FD_H
#define CW_FD_H

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

/* -1: there is none, which it is then. errno stays. */
static inline void cw_close(int *fd)
{
    int error = errno;

    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = error;
}

/* As many descriptors as this process may have. */
static inline void cw_raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

#endif
