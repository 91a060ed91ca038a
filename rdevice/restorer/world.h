/* The restorer's own address space, which has to make room for the image's. */
#ifndef RESTORER_WORLD_H
#define RESTORER_WORLD_H

#include "common/image.h"

/* Unmaps all but the restorer, moves the kernel's own mappings aside, and keeps their places in the
 * image free. The stack must be the restorer's own. */
void world_clear(const struct cw_image_header *header);

/* Puts the kernel's own mappings where the image has them; or, when the kernel is another one, lets
 * its vdso be called through that of the image. */
void world_settle(const struct cw_image_header *header);

#endif
