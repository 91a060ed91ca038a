#include "common/away.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>

#define CACHE_LINE 64u

/* Whole lines. Half a line a store: the processor holds a certain number of stores back, whatever
 * their size, and when these wait for memory, so do those behind them. */
__attribute__((target("avx2"))) static void stream(uint8_t *to, const uint8_t *from, size_t size)
{
    for (size_t i = 0; i < size; i += sizeof(__m256i))
        _mm256_stream_si256((__m256i *)(to + i), _mm256_loadu_si256((const __m256i *)(from + i)));
}

void cw_copy_away(uint8_t *to, const uint8_t *from, size_t size)
{
    size_t head = -(uintptr_t)to % CACHE_LINE;
    size_t lines;

    if (head > size || !__builtin_cpu_supports("avx2"))
        head = size;
    lines = (size - head) / CACHE_LINE * CACHE_LINE;
    memcpy(to, from, head);
    stream(to + head, from + head, lines);
    head += lines;
    memcpy(to + head, from + head, size - head);
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
