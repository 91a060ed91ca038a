/* The header of an image: what it is of, what it needs, where it goes on. */
#ifndef RDEVICE_IMAGE_HEADER_H
#define RDEVICE_IMAGE_HEADER_H

#include "common/err.h"
#include "common/image.h"
#include "rdevice/image/image.h"
#include "rdevice/image/maps.h"

/* Fills in all but what header_add_system() adds. Returns 0 or CW_ESYS with *err set. */
int header_fill(struct cw_image_header *header, const struct image_order *order,
                const struct cw_image_context *context, uint64_t handoff, struct cw_err *err);

/* A region of the kernel's own. */
int header_add_system(struct cw_image_header *header, const struct maps_region *region,
                      struct cw_err *err);

#endif
