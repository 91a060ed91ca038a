/* The process's memory, region by region: what of it goes into the image, and how. For the copy of
 * the process. */
#ifndef RDEVICE_IMAGE_MEMORY_H
#define RDEVICE_IMAGE_MEMORY_H

#include "common/err.h"
#include "common/image.h"
#include "rdevice/image/image.h"
#include "rdevice/image/stream.h"

#include <stdint.h>

struct memory;

/* Of the memory that this takes. */
uint64_t memory_size(void);

/* Looks at all regions, and adds the kernel's own to the header. `memory` is all zero, aligned to a
 * page. Nothing may be mapped or unmapped from here on. Returns 0, or CW_ESYS, CW_EINVAL or
 * CW_ELIMIT with *err set. */
int memory_look(struct memory *memory, struct cw_image_header *header, struct cw_err *err);

/* About how many bytes are to be written. */
uint64_t memory_bytes(const struct memory *memory);

/* What is not for the image, beside the memory that shared.h copies. The range begins and ends with
 * pages. Before memory_write(). */
void memory_leave_out(struct memory *memory, uint64_t start, uint64_t size);

/* Writes regions and blocks. */
int memory_write(struct memory *memory, struct stream *stream, struct cw_err *err);

#endif
