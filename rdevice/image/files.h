/* The program's descriptors: read before the process is copied, opened again in the restored one.
 * Contents that nobody else keeps (files without a name, pipes) are held in memory that goes into
 * the image. */
#ifndef RDEVICE_IMAGE_FILES_H
#define RDEVICE_IMAGE_FILES_H

#include "common/err.h"
#include "rdevice/image/image.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns 0; or CW_EINVAL, CW_ELIMIT, CW_ENOMEM or CW_ESYS with *err set: a descriptor cannot be
 * restored; nothing is held. */
int files_read(const struct image_setting *setting, struct cw_err *err);

/* In the copy, when all else is written: whether each file could be opened again just now. Returns
 * 0, or CW_EINVAL with *err set. */
int files_try(struct cw_err *err);

/* Lets go of contents. */
void files_release(void);

/* Whether a descriptor is open to this file, which has no path. */
bool files_have(uint64_t device, uint64_t inode);

/* In the restored process: `given` are the descriptors that it has brought, -1: none, in the order
 * of setting->given; `cut`: files that are written by appending are cut to their length of then.
 * Returns 0, or CW_ESYS, CW_ELIMIT or CW_EINVAL with *err set. */
int files_restore(const struct image_setting *setting, const int *given, bool cut,
                  struct cw_err *err);

#endif
