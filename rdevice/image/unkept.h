/* What the kernel keeps of a process and no image can hold: an image is refused, by name, of a
 * program that has it. What the program was started with, the launcher brings again. */
#ifndef RDEVICE_IMAGE_UNKEPT_H
#define RDEVICE_IMAGE_UNKEPT_H

#include "common/err.h"

/* In the restored process: what there is now, it was started with. */
void unkept_begin(void);

/* Returns 0, or CW_EINVAL with *err set. */
int unkept_check(struct cw_err *err);

#endif
