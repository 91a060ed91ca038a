/* One chain of an image, read from its first segment to its end. */
#ifndef RELAY_INSPECT_CHAIN_H
#define RELAY_INSPECT_CHAIN_H

#include "relay/inspect/image.h"
#include "relay/log/chain.h"

#define INSPECT_TEXT_MAX 600 /* bytes of what is said of one damage */

/* What is wrong in logs, told one by one to whoever looks. */
struct inspect_damage {
    void (*say)(void *ctx, const char *what); /* NULL: they are only counted */
    void *ctx;
    uint64_t count;
};

void inspect_damaged(struct inspect_damage *damage, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

struct inspect_chain {
    const char *what; /* for who reads of damage: whose it is, and which one */
    uint32_t cell;    /* of its owner ... */
    uint32_t which;   /* ... of whose chains it is */
    struct chain_end end;
    uint32_t solid; /* segments before this one may have been let go of */
};

/* Bytes of it. */
struct inspect_sizes {
    uint64_t journal; /* that stand in the journal */
    uint64_t disk;
    uint32_t segments; /* there */
};

/* A segment's bytes, until it returns. False: it is not to be read on. */
typedef bool inspect_segment(void *ctx, uint32_t number, const uint8_t *bytes, uint32_t used);

/* Gives its segments in order, as far as they are whole, and adds to *sizes. `take` may be NULL.
 * Returns whether all are. */
bool inspect_chain(struct inspect_image *image, const struct inspect_chain *chain,
                   inspect_segment *take, void *ctx, struct inspect_sizes *sizes,
                   struct inspect_damage *damage);
/* How many bytes a segment of it has; 0: it has no such segment. */
uint32_t inspect_chain_used(const struct inspect_image *image, const struct inspect_chain *chain,
                            uint32_t number);

#endif
