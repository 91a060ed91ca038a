/* Which parts of a file of blocks are in use: how many images refer to each unit of it. Finds room
 * by next fit. No I/O. */
#ifndef CKPTSRV_UNITS_H
#define CKPTSRV_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNIT_BYTES 4096u
#define UNITS_BLOCK 16u /* units of the largest block */
#define UNITS_REFS_MAX 255u

/* Units first, first + 1, ... */
struct extent {
    uint64_t first;
    uint64_t count;
};

/* Those of an image, or of a transfer, in the order in which they were added; neighbours are
 * joined. All zero at first. */
struct extents {
    struct extent *at;
    size_t count, size;
};

/* Errors: false, without memory. */
bool extents_add(struct extents *extents, struct extent extent);
void extents_clear(struct extents *extents);
uint64_t extents_units(const struct extents *extents);

/* All zero at first: an empty file. */
struct units {
    uint8_t *refs;
    uint64_t count;  /* units of the file: the last one is in use */
    uint64_t used;   /* with references */
    uint64_t size;   /* of refs */
    uint64_t cursor; /* where the search goes on */
    uint64_t failed; /* no run of so many is free before the end of the file; 0: not known */
};

void units_clear(struct units *units);

/* Finds a run of `least` to `most` free units and refers to each. It makes the file longer by
 * `growth` units at most. False: there is none, or no memory. */
bool units_take(struct units *units, uint64_t least, uint64_t most, uint64_t growth,
                struct extent *taken);

/* One more reference to each of these units, which may be beyond the end of the file. False: no
 * memory, or too many references. */
bool units_refer(struct units *units, struct extent extent);

/* One reference less. A file whose last units are free is shorter then. */
void units_release(struct units *units, struct extent extent);

#endif
