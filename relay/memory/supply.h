/* Where the memory of blocks comes from: carved out of a region of addresses whose pages are
 * touched ahead of use. A log keeps every large message in the block that it was read into, so each
 * comes from memory never used before, and the first touch of a page costs more than the copy into
 * it. What is to be touched, and what memory can go back to the system, is asked of the caller. */
#ifndef RELAY_SUPPLY_H
#define RELAY_SUPPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WARM_BEGIN (8ull << 20) /* bytes in use before anything is touched ahead */
#define WARM_AHEAD_SHARE 4      /* one part in so many of what is in use is touched ahead ... */
#define WARM_AHEAD_MAX (256ull << 20) /* ... but not more bytes than this */
#define WARM_STEP (2ull << 20)        /* bytes of one request: a huge page */
#define WARM_SPARE_MIN 256            /* blocks given back whose memory stays; or what was warm */

struct relay_block;

/* Addresses for blocks. All zero: there are none. */
struct relay_region {
    uint8_t *start; /* aligned to WARM_STEP; readable and writable, zero */
    uint64_t size;
    uint64_t touched; /* bytes from the start that have memory */
};

/* What is to be done with the pages of a region. */
struct relay_warm {
    void *at;
    size_t size;
    bool give_back; /* to the system, before anything else is done with the supply; else they are to
                       be touched, any time */
};

struct supply {
    struct relay_region region;
    uint64_t carved;             /* bytes that have been blocks */
    struct relay_block *spare;   /* given back, with their memory */
    struct relay_block *surplus; /* given back, with memory that can go */
    struct relay_block *bare;    /* given back, without memory but for the first page */
    uint64_t spare_count;
    uint64_t spare_max;
    uint64_t in_use; /* bytes */
};

void supply_init(struct supply *supply, const struct relay_region *region);
static inline bool supply_has_region(const struct supply *supply)
{
    return supply->region.start != NULL;
}
/* A block whose content is not defined; NULL: the region is used up. */
struct relay_block *supply_take(struct supply *supply);
void supply_give(struct supply *supply, struct relay_block *block);

/* What is to be done next; false: nothing. */
bool supply_next_warm(struct supply *supply, struct relay_warm *warm);

#endif
