/* The copy of the process, which writes the image. */
#ifndef RDEVICE_IMAGE_COPY_H
#define RDEVICE_IMAGE_COPY_H

#include "common/err.h"
#include "common/image.h"
#include "rdevice/image/image.h"

#include <stdbool.h>
#include <stdint.h>

struct copy_work {
    const struct image_order *order;
    const struct image_setting *setting;
    const struct cw_image_context *context;
    const struct image_range *left_out; /* that is not for the image */
    uint32_t left_out_count;
    uint64_t handoff;        /* address */
    uint32_t base, base_tag; /* of image.h, and of seen.h; 0: none */
    uint32_t tag;            /* of this image, of seen.h */
};

struct copy_outcome {
    bool stored;
    uint64_t sent, bytes;
    struct cw_err err; /* unless stored */
};

/* Before each copy: *range is memory that this keeps, and that is not for the image. Returns 0 or
 * CW_ENOMEM with *err set. */
int copy_prepare(struct image_range *range, struct cw_err *err);

/* Makes the copy, which does the work. Returns 0, or CW_ESYS with *err set. */
int copy_begin(const struct copy_work *work, struct cw_err *err);

/* Whether it has ended; then *outcome is set. */
bool copy_ended(struct copy_outcome *outcome);

/* Kills it, and waits for its end. */
void copy_kill(void);

/* In a restored process: there is no copy. */
void copy_forget(void);

#endif
