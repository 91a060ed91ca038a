/* What files hold that nobody else keeps. */
#ifndef RDEVICE_IMAGE_CONTENT_H
#define RDEVICE_IMAGE_CONTENT_H

#include "common/err.h"
#include "rdevice/image/file.h"

#define CONTENT_BYTES_MAX 1073741824u /* of all files of a process */

/* Each returns 0; or CW_ELIMIT, CW_ENOMEM or CW_ESYS with *err set. `total` counts what is held. */
int content_take_file(struct file *file, uint64_t *total, struct cw_err *err);
/* The unread bytes of a pipe, which stay in it. */
int content_take_pipe(struct file *file, uint64_t *total, struct cw_err *err);

/* Writes it. Returns 0 or a negative errno. */
long content_put(const struct file *file, int fd);

void content_release(struct file *file);

#endif
