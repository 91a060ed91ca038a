#include "common/away.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

#define CACHE_LINE 64u

void cw_copy_away(uint8_t *to, const uint8_t *from, size_t size)
{
    size_t head = -(uintptr_t)to % CACHE_LINE;

    if (head > size)
        head = size;
    memcpy(to, from, head);
    for (to += head, from += head, size -= head; size >= CACHE_LINE;
         to += CACHE_LINE, from += CACHE_LINE, size -= CACHE_LINE)
        for (unsigned i = 0; i < CACHE_LINE; i += sizeof(__m128i))
            _mm_stream_si128((__m128i *)(to + i), _mm_loadu_si128((const __m128i *)(from + i)));
    memcpy(to, from, size);
}

void cw_away_fence(void)
{
    _mm_sfence();
}
#else
void cw_copy_away(uint8_t *to, const uint8_t *from, size_t size)
{
    memcpy(to, from, size);
}

void cw_away_fence(void)
{
}
#endif
