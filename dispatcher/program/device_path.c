#include "dispatcher/program/device_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef PREFIX
#define PREFIX "/usr/local"
#endif

int device_path_find(char path[PATH_MAX], struct cw_err *err)
{
    char self[PATH_MAX / 2];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char places[3][PATH_MAX];

    if (n < 0)
        return cw_err_set(err, CW_ESYS, "finding librdevice.so: /proc/self/exe: %s",
                          strerror(errno));
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(places[0], PATH_MAX, "%s/librdevice.so", self);
    snprintf(places[1], PATH_MAX, "%s/../lib/causeway/librdevice.so", self);
    snprintf(places[2], PATH_MAX, PREFIX "/lib/causeway/librdevice.so");
    for (int i = 0; i < 3; i++)
        if (realpath(places[i], path))
            return CW_OK;
    return cw_err_set(
        err, CW_ENOTFOUND,
        "librdevice.so: neither beside %s/causeway nor in ../lib/causeway nor in " PREFIX
        "/lib/causeway; run make and make install",
        self);
}

int device_path_find_restorer(const char *device, char path[PATH_MAX], struct cw_err *err)
{
    const char *slash = strrchr(device, '/');
    int dir = slash ? (int)(slash - device) + 1 : 0;

    if (snprintf(path, PATH_MAX, "%.*scauseway-restore", dir, device) >= PATH_MAX)
        return cw_err_set(err, CW_EINVAL, "the path %.200s... is too long", path);
    if (access(path, X_OK) < 0)
        return cw_err_set(err, CW_ENOTFOUND,
                          "the restorer %.300s: %s; the installation is incomplete: run make and "
                          "make install",
                          path, strerror(errno));
    return CW_OK;
}

bool device_path_is_plain(const char *path)
{
    return !strpbrk(path, " :$");
}
