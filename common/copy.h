/* Copying large pieces of memory. Source and target never overlap. Pure; any thread.
 *
 * Which copy is used where: rings are written and read through the cache (cw_copy), for the other
 * side reads what was written at once. The log's copy goes past the cache (cw_copy_away), for
 * nobody reads it soon. docs/tuning.md has the measurements. */
#ifndef CW_COPY_H
#define CW_COPY_H

#include <stddef.h>
#include <stdint.h>

/* Like memcpy, but equally fast at all addresses. memcpy of glibc before 2.39 copies large pieces
 * by `rep movsb`. On AMD Zen 3 and 4 that takes 15 times as long when `to` lies 1 to 15 bytes
 * behind `from`, counted within a page (glibc bug 30994). */
void cw_copy(uint8_t *to, const uint8_t *from, size_t size);

/* Copies past the cache, where the processor can (x86-64 with AVX2), to memory that nobody reads
 * soon. A line that is overwritten whole is not fetched before, and the cache keeps what is in it.
 * Stores that follow the call become visible to other threads after the copy. */
void cw_copy_away(uint8_t *to, const uint8_t *from, size_t size);

#endif
