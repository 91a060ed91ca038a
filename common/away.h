/* Copying bytes to where nobody reads them soon. Pure. */
#ifndef CW_AWAY_H
#define CW_AWAY_H

#include <stddef.h>
#include <stdint.h>

/* Past the cache, where the processor can (x86-64 with AVX2): a line that is overwritten whole need
 * not be fetched before, and what is in the cache stays there. The two do not overlap. */
void cw_copy_away(uint8_t *to, const uint8_t *from, size_t size);

/* Such stores are not in order with later ones, which may tell another thread of them: this stands
 * between. */
void cw_away_fence(void);

#endif
