/* Blocks of memory that were touched before they are needed. A log keeps every large message in
 * the block that it was read into, so each comes from memory never used before, and the first touch
 * of a page costs more than the copy into it. A thread touches pages ahead of the relay, in huge
 * pages where the system has them.
 *
 * warm_take and warm_give may be called by any thread. */
#ifndef RELAY_WARM_H
#define RELAY_WARM_H

#include "relay/core/block.h"

#define WARM_BEGIN (8ull << 20) /* bytes in use before anything is touched ahead */
#define WARM_AHEAD_SHARE 4      /* one part in so many of what is in use is touched ahead ... */
#define WARM_AHEAD_MAX (256ull << 20) /* ... but not more bytes than this */
#define WARM_SPARE_MIN 256            /* blocks given back whose memory stays; or the reserve */

struct warm;

/* For at most `bytes` of blocks, of which `reserve` bytes are touched before it returns. NULL when
 * the addresses or the thread cannot be had: do without.
 */
struct warm *warm_open(uint64_t bytes, uint64_t reserve);
/* All blocks have been given back. */
void warm_close(struct warm *warm);

/* To be given to a core. `warm` may be NULL: then an empty supply. */
struct relay_supply warm_supply(struct warm *warm);

#endif
