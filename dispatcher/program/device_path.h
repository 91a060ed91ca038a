/* Where librdevice.so is: beside the executable (the tree), or where `make install` puts it. */
#ifndef DISPATCHER_DEVICE_PATH_H
#define DISPATCHER_DEVICE_PATH_H

#include "common/err.h"

#include <limits.h>
#include <stdbool.h>

/* Errors: CW_ENOTFOUND, naming the places. */
int device_path_find(char path[PATH_MAX], struct cw_err *err);

/* Whether LD_PRELOAD can name it. ld.so(8): blanks and colons separate names there, and a '$' may
 * begin a token that is replaced. */
bool device_path_is_plain(const char *path);

#endif
