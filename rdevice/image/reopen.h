/* Opens one file again, under its number. */
#ifndef RDEVICE_IMAGE_REOPEN_H
#define RDEVICE_IMAGE_REOPEN_H

#include "common/err.h"
#include "rdevice/image/file.h"

/* Each returns 0, or CW_ESYS or CW_EINVAL with *err set. */
int reopen_file(const struct file *file, bool cut_appended, struct cw_err *err);

/* In the copy: whether a file with a path could be opened again just now. Returns 0, or CW_EINVAL
 * with *err set. */
int reopen_try(const struct file *file, struct cw_err *err);

/* Both ends; numbers from `free` on are free. */
int reopen_pipe(const struct file *reader, const struct file *writer, int free, struct cw_err *err);

#endif
