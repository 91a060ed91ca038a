/* Where the memory of blocks comes from: carved out of a region of addresses, of which the system
 * gives memory to what is used. What was used before is used again first, for the first touch of a
 * page costs more than a copy into it. Memory that can go back to the system is told of. */
#ifndef RELAY_SUPPLY_H
#define RELAY_SUPPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUPPLY_SPARE_MIN 256 /* blocks given back whose memory stays */

struct relay_block;

/* Addresses for blocks. All zero: there are none. */
struct relay_region {
    uint8_t *start; /* aligned to pages; readable and writable, zero */
    uint64_t size;
};

/* Pages of a region whose memory can go, before anything else is done with the supply. */
struct relay_pages {
    void *at;
    size_t size;
};

struct supply {
    struct relay_region region;
    uint64_t carved;             /* bytes that have been blocks */
    uint64_t *carved_note;       /* where that is told, too; NULL: nowhere */
    struct relay_block *spare;   /* given back, with their memory */
    struct relay_block *surplus; /* given back, with memory that can go */
    struct relay_block *bare;    /* given back, without memory but for the first page */
    uint64_t spare_count;
    uint64_t spare_max;
};

void supply_init(struct supply *supply, const struct relay_region *region);
static inline bool supply_has_region(const struct supply *supply)
{
    return supply->region.start != NULL;
}
/* A block whose content is not defined; NULL: the region is used up. */
struct relay_block *supply_take(struct supply *supply);
void supply_give(struct supply *supply, struct relay_block *block);

/* Of blocks given back from now on, so many bytes stay with their memory, or those that always do.
 * For logs that are trimmed again and again: with the memory of 64 MiB alone, a job that sends as
 * fast as it can gets 0.5 of the bandwidth (2 ranks, 64 KiB, --log-memory 256M, machine A). */
void supply_keep(struct supply *supply, uint64_t bytes);
/* That is over: what stayed because of it can go. */
void supply_let_go(struct supply *supply);

/* --- a region that was used before: `carved` bytes of it have been blocks, none of which the
 * supply has. Returns how many blocks that are. */
uint64_t supply_return(struct supply *supply, uint64_t carved);
/* One of them, by number; NULL: there are not so many. */
struct relay_block *supply_at(const struct supply *supply, uint64_t number);

/* Memory that can go; false: none. */
bool supply_next_surplus(struct supply *supply, struct relay_pages *pages);

#endif
