/* Whether blocks of a stream, as an image or what a tunnel carries, are to be compressed: a pure
 * policy. */
#ifndef CW_PACK_H
#define CW_PACK_H

#include <stdbool.h>
#include <stdint.h>

/* All zero at first. */
struct pack {
    uint64_t written, write_ns; /* to where the stream goes, of late */
    uint64_t tried, packed;     /* bytes of blocks before and after, of late */
    uint32_t blocks;
};

/* Whether the next block is to be tried. */
bool pack_wanted(struct pack *pack);

/* A block of `size` bytes came to `packed` bytes. */
void pack_tried(struct pack *pack, uint64_t size, uint64_t packed);

/* So many bytes were taken in so much time. */
void pack_wrote(struct pack *pack, uint64_t bytes, uint64_t ns);

#endif
