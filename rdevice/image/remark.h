/* What could not be restored as it was, for image_remark(). */
#ifndef RDEVICE_IMAGE_REMARK_H
#define RDEVICE_IMAGE_REMARK_H

#include <stdint.h>

#define REMARKS_MAX 16u
#define REMARK_TEXT_MAX 256u

void remark_forget(void);
/* The last says how many there are too many. */
void remark_add(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
