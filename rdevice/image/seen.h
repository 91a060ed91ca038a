/* What blocks the newest image has, and their checksums: written by the copy, in memory that it
 * shares with the program; believed once the image is stored. It is a cache: a block that is not in
 * it is sent. */
#ifndef RDEVICE_IMAGE_SEEN_H
#define RDEVICE_IMAGE_SEEN_H

#include "common/image.h"

#include <stdbool.h>
#include <stdint.h>

/* The memory, which is not for images; size 0: there is none. Made by the first call. */
void seen_range(uint64_t *start, uint64_t *size);

/* In a restored process, where the memory is not. */
void seen_forget(void);

/* Whether the image `base` has this very block. */
bool seen_has(uint32_t base, const struct cw_image_block *block);

/* Image `number` has it. */
void seen_put(uint32_t number, const struct cw_image_block *block);

#endif
