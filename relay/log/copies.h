/* Copies that a core owes: bytes of large messages, from the block that they were read into to the
 * place in a log that was set aside for them. The message is passed on first, and the copy is made
 * right after that: so its receiver does not wait for the log's memory, which was not used lately,
 * and the same block, which is in the cache, is read into again. */
#ifndef RELAY_COPIES_H
#define RELAY_COPIES_H

#include "relay/memory/block.h"

#define COPIES_MAX 64u                /* owed at a time, a power of two; one more pays the first */
#define COPIES_BYTES_MAX (256u << 10) /* likewise: one read; more would not stay in the cache */
#define COPIES_OWED_MIN 1024u         /* bytes: fewer are copied at once */

struct owed_copy {
    uint8_t *to;
    const uint8_t *from;
    uint32_t size;
    struct relay_block *to_block; /* one reference each is the copy's */
    struct relay_block *from_block;
};

/* All zero: none. */
struct owed_copies {
    uint32_t first; /* in the ring */
    uint32_t count;
    uint32_t bytes;
    struct owed_copy ring[COPIES_MAX];
};

/* `size` bytes at `from`, which lies in `from_block` (NULL: elsewhere, and they are copied now),
 * are to be at `to`, in `to_block`. Nobody reads them there before they were paid. */
void copies_owe(struct owed_copies *copies, uint8_t *to, struct relay_block *to_block,
                const uint8_t *from, uint32_t size, struct relay_block *from_block);

void copies_pay_all(struct owed_copies *copies);

#endif
