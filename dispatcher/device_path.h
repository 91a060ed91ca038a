/* Where librdevice.so is: beside the executable (the tree), or where `make install` puts it. */
#ifndef DISPATCHER_DEVICE_PATH_H
#define DISPATCHER_DEVICE_PATH_H

#include "common/err.h"

#include <limits.h>

/* Errors: CW_ENOTFOUND, naming the places. */
int device_path_find(char path[PATH_MAX], struct cw_err *err);

#endif
