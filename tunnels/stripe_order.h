/* Chunks that come over several connections, in the order of their numbers again. Of what comes
 * before its turn no more than STRIPE_AHEAD_MAX chunks are held: a connection whose next chunk is
 * further ahead waits. The chunk that all wait for is never behind such a one, since the numbers on
 * one connection grow. Pure; allocates. */
#ifndef TUNNELS_STRIPE_ORDER_H
#define TUNNELS_STRIPE_ORDER_H

#include "tunnels/stripe_frame.h"

#define STRIPE_AHEAD_MAX 512u /* chunks: 32 MiB */

struct stripe_chunk {
    uint32_t at, size; /* bytes that the user of the chunk took, of all */
    uint8_t bytes[];
};

struct stripe_order {
    struct stripe_chunk *held[STRIPE_AHEAD_MAX]; /* number n at n % STRIPE_AHEAD_MAX */
    uint64_t next;                               /* the first that was not let go of */
    uint64_t total; /* chunks of the direction; UINT64_MAX: not known */
};

/* What one connection has brought. All zero at first. */
struct stripe_arrived {
    uint64_t least; /* that its next chunk may have as number */
    bool ended;     /* the end came: only signs of life may follow */
};

void stripe_order_init(struct stripe_order *order);
void stripe_order_fini(struct stripe_order *order);

/* Takes the whole chunks and signs of life at the beginning of `bytes`, which came over one
 * connection, and sets *used. *ahead: it stopped before one that has to wait for others. Errors:
 * CW_EPROTO, CW_ENOMEM.
 */
int stripe_order_take(struct stripe_order *order, struct stripe_arrived *arrived,
                      const uint8_t *bytes, size_t size, size_t *used, bool *ahead,
                      struct cw_err *err);

/* The chunk whose turn it is; NULL: it is not there. It stays the order's. */
struct stripe_chunk *stripe_order_first(const struct stripe_order *order);
/* Lets go of it. */
void stripe_order_drop(struct stripe_order *order);

/* All chunks of the direction came, and were let go of. */
bool stripe_order_is_over(const struct stripe_order *order);

#endif
