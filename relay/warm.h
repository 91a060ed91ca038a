/* A region of addresses for a core's blocks, and a thread that touches its pages ahead of the
 * relay, as the core asks for it: in huge pages where the system has them. */
#ifndef RELAY_WARM_H
#define RELAY_WARM_H

#include "relay/engine/engine.h"

struct warm;

/* For at most `bytes` of blocks, of which `reserve` bytes are touched before it returns. NULL when
 * the addresses or the thread cannot be had: do without.
 */
struct warm *warm_open(uint64_t bytes, uint64_t reserve);
/* The core is freed. */
void warm_close(struct warm *warm);

/* To be given to a core. `warm` may be NULL: then an empty one. */
struct relay_region warm_region(const struct warm *warm);
/* To be given to the engine that drives it. `warm` may be NULL. */
struct relay_warmer warm_warmer(struct warm *warm);

#endif
