/* Memory that the copy of the process would share with it: shared mappings that have no file which
 * could be mapped again. Copied before the process is, into memory that is not for the image. */
#ifndef RDEVICE_IMAGE_SHARED_H
#define RDEVICE_IMAGE_SHARED_H

#include "common/err.h"
#include "rdevice/image/image.h"

#include <stdint.h>

#define SHARED_MAX 256u

struct shared_copy {
    uint64_t start, end;   /* of the mapping */
    uint64_t inode;        /* of its file, which nobody can open ... */
    uint32_t major, minor; /* ... and of its device */
    uint64_t offset;
    const char *copy;
};

/* What is left out is not looked at.
 * Returns 0; or CW_EINVAL, CW_ELIMIT or CW_ENOMEM with *err set: an image cannot hold it, and
 * nothing is copied. */
int shared_take(const struct image_range *left_out, uint32_t left_out_count, struct cw_err *err);
void shared_release(void);

/* The i-th of them, or NULL. */
const struct shared_copy *shared_get(uint32_t index);

#endif
