/* Writes the records of an image to a descriptor. For the copy of the process; its memory is the
 * caller's, and not for the image. */
#ifndef RDEVICE_IMAGE_STREAM_H
#define RDEVICE_IMAGE_STREAM_H

#include "common/err.h"
#include "common/image.h"

#include <stdint.h>

#define STREAM_BUFFER_BYTES 1048576u

struct stream;

/* Of the memory that a stream takes. */
uint64_t stream_size(void);

/* In `memory`, aligned to a page, all zero. `base` and `number` are those of seen.h, not of the
 * images. */
struct stream *stream_begin(void *memory, int fd, uint32_t base, uint32_t number);

/* All is written to this one too. Before anything is. */
void stream_also(struct stream *s, int fd);

/* Each returns 0, or CW_ESYS with *err set: nothing can be written any more. */
int stream_header(struct stream *s, const struct cw_image_header *header, struct cw_err *err);
int stream_region(struct stream *s, const struct cw_image_region *region, struct cw_err *err);
/* `from`: where the bytes are, in memory that may change afterwards; NULL: zeros. */
int stream_block(struct stream *s, uint64_t address, uint64_t size, const void *from,
                 struct cw_err *err);
/* Writes all that is left. */
int stream_end(struct stream *s, struct cw_err *err);

uint64_t stream_sent(const struct stream *s);  /* bytes written */
uint64_t stream_bytes(const struct stream *s); /* of memory that is not zeros */

#endif
