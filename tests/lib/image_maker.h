/* Synthetic images: the stream of a process that never was. What its memory holds follows from a
 * seed and the number of the image: each image changes some blocks of the one before. */
#ifndef TESTS_IMAGE_MAKER_H
#define TESTS_IMAGE_MAKER_H

#include "common/frame.h"
#include "common/image.h"

struct image_plan {
    uint8_t job[CW_ID_SIZE];
    uint32_t rank;
    uint32_t incarnation;
    uint32_t number;
    uint32_t base; /* 0: none of its blocks are SAME */
    uint32_t blocks;
    uint64_t seed;
    bool plain; /* no block is compressed or zero, and all but those of the base are new */
};

struct image_stream {
    uint8_t *bytes; /* the caller frees */
    size_t size, room;
    uint64_t memory; /* bytes in blocks that are not zero */
};

/* The point that images of this number have. */
struct cw_point image_point(const struct image_plan *plan);
struct cw_put image_put(const struct image_plan *plan);

void image_make(const struct image_plan *plan, struct image_stream *stream);

#endif
