/* Copying large pieces of memory. The two never overlap. Pure. */
#ifndef CW_COPY_H
#define CW_COPY_H

#include <stddef.h>
#include <stdint.h>

/* Like memcpy, but as fast whatever the two addresses. That of glibc before 2.39 copies large
 * pieces by `rep movsb`, which on AMD Zen 3 and 4 takes 15 times as long when `to` lies 1 to 15
 * bytes behind `from`, counted within a page (glibc's bug 30994). */
void cw_copy(uint8_t *to, const uint8_t *from, size_t size);

/* To where nobody reads them soon: past the cache, where the processor can (x86-64 with AVX2). A
 * line that is overwritten whole need not be fetched before, and what is in the cache stays there.
 */
void cw_copy_away(uint8_t *to, const uint8_t *from, size_t size);

/* Both at once: `from` is read once. Faster than one after the other, but whoever waits for `to`
 * waits for both. */
void cw_copy_both(uint8_t *to, uint8_t *away, const uint8_t *from, size_t size);

/* Such stores are not in order with later ones, which may tell another thread of them: this stands
 * between. */
void cw_copy_fence(void);

/* The processor's time, in steps of about one cycle. 0 at any time where it has no such counter. */
uint64_t cw_copy_ticks(void);

#endif
