/* The stream of an image as it comes in: cut into records, each verified; what its index is made
 * of. No I/O: blocks go to a function of the caller's. */
#ifndef CKPTSRV_INTAKE_H
#define CKPTSRV_INTAKE_H

#include "ckptsrv/index.h"

struct intake;

struct intake_config {
    uint8_t job[CW_ID_SIZE];
    uint32_t rank;
    uint32_t incarnation;
    struct cw_put put;   /* `base` 0 where SAME is not allowed */
    const uint8_t *base; /* its index, which was checked; NULL: none. The caller's, who keeps it */
    size_t base_size;
    /* Writes the bytes of a block, which stay until intake_take has returned, and says where.
     * Returns 0 or a negative code. */
    int (*write)(void *ctx, const uint8_t *bytes, size_t size, uint64_t *place, struct cw_err *err);
    /* The bytes of a block of the base are also of this image. */
    int (*share)(void *ctx, uint64_t place, uint64_t bytes, struct cw_err *err);
    void *ctx;
};

/* NULL without memory. */
struct intake *intake_new(const struct intake_config *config);
void intake_free(struct intake *intake);

/* Takes whole records. *taken: how many bytes; what is left is given again, with more after it: a
 * record has at most INTAKE_RECORD_MAX bytes. After the end nothing is taken. Errors: CW_EPROTO:
 * what is wrong with the stream; CW_ENOMEM; CW_ELIMIT; of `write` and `share`. */
int intake_take(struct intake *intake, const uint8_t *bytes, size_t size, size_t *taken,
                struct cw_err *err);
#define INTAKE_RECORD_MAX (128u << 10)

enum intake_verdict { INTAKE_WHOLE, INTAKE_NOT_PACKED, INTAKE_DIFFERS };

/* Compares the bytes of a block, as they are stored, with its hash; `plain` is for its use. */
enum intake_verdict intake_verify(uint32_t type, const struct cw_image_block *block,
                                  const uint8_t *bytes, size_t size, uint8_t plain[CW_IMAGE_BLOCK]);

/* Whether all of it has come. */
bool intake_ended(const struct intake *intake);
/* Then: its index, and bytes of memory. `stored`: what is new on disk. */
struct index_maker *intake_index(struct intake *intake, uint64_t stored, uint64_t *bytes);

#endif
