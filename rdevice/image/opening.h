/* What the kernel keeps with an opening of a file, beside flags and offset: locks, and to whom it
 * signals input. Kept in static memory, so that it is in the image. */
#ifndef RDEVICE_IMAGE_OPENING_H
#define RDEVICE_IMAGE_OPENING_H

#include "common/err.h"
#include "rdevice/image/file.h"

void opening_forget(void);

/* Returns 0; or CW_EINVAL or CW_ELIMIT with *err set: it cannot be restored. */
int opening_read(struct file *file, struct cw_err *err);

/* Once it has its number. A lock that somebody else has by now is a remark. */
void opening_restore(const struct file *file);

#endif
