/* The log of one rank in an image: every record of it is read, and every byte is looked for. */
#ifndef RELAY_INSPECT_RANK_H
#define RELAY_INSPECT_RANK_H

#include "relay/core/saved.h"
#include "relay/inspect/chain.h"

struct inspect_rank {
    uint64_t events;
    uint64_t taken; /* of them */
    uint64_t sends;
    uint64_t record_bytes;
    uint64_t payload_bytes;
    struct inspect_sizes sizes;
    bool whole;
};

/* Reads the log of the rank whose state is in `cell`, as far as it is whole. `who`: for who reads
 * of damage. */
void inspect_rank(struct inspect_image *image, uint32_t cell, const char *who,
                  struct inspect_rank *rank, struct inspect_damage *damage);

#endif
