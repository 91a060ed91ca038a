/* The registers that a function call keeps, saved as setjmp() does. */
#ifndef RDEVICE_IMAGE_CONTEXT_H
#define RDEVICE_IMAGE_CONTEXT_H

#include "common/image.h"

/* Returns 0; and 1 once more, in the restored process. */
int context_save(struct cw_image_context *context) __attribute__((returns_twice));

#endif
