/* Where librdevice.so is: beside the executable (the tree), or where `make install` puts it. Beside
 * it is the restorer, the program that goes on from images of ranks. */
#ifndef DISPATCHER_DEVICE_PATH_H
#define DISPATCHER_DEVICE_PATH_H

#include "common/err.h"

#include <limits.h>
#include <stdbool.h>

/* Errors: CW_ENOTFOUND, naming the places. */
int device_path_find(char path[PATH_MAX], struct cw_err *err);

/* The restorer that belongs to this device, at the path of device_path_find. `path` is set in any
 * case. Errors: CW_ENOTFOUND: it cannot be executed, naming it; CW_EINVAL: the path is too long. */
int device_path_find_restorer(const char *device, char path[PATH_MAX], struct cw_err *err);

/* Whether LD_PRELOAD can name it. ld.so(8): blanks and colons separate names there, and a '$' may
 * begin a token that is replaced. */
bool device_path_is_plain(const char *path);

#endif
