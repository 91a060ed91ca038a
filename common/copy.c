#include "common/copy.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>

#define CACHE_LINE 64u
#define SMALL 2048u /* bytes: fewer are copied by memcpy, which has no trouble with them */

/* Whole lines. Half a line a store: the processor holds a certain number of stores back, whatever
 * their size, and when these wait for memory, so do those behind them. */
__attribute__((target("avx2"))) static void copy_lines(uint8_t *to, const uint8_t *from,
                                                       size_t size)
{
    for (size_t i = 0; i < size; i += CACHE_LINE) {
        __m256i first = _mm256_loadu_si256((const __m256i *)(from + i));
        __m256i second = _mm256_loadu_si256((const __m256i *)(from + i + sizeof(first)));

        _mm256_store_si256((__m256i *)(to + i), first);
        _mm256_store_si256((__m256i *)(to + i + sizeof(first)), second);
    }
}

__attribute__((target("avx2"))) static void stream_lines(uint8_t *to, const uint8_t *from,
                                                         size_t size)
{
    for (size_t i = 0; i < size; i += sizeof(__m256i))
        _mm256_stream_si256((__m256i *)(to + i), _mm256_loadu_si256((const __m256i *)(from + i)));
}

typedef void copy_of_lines(uint8_t *to, const uint8_t *from, size_t size);

/* What begins or ends within a line of `to` goes by memcpy. */
static void copy(uint8_t *to, const uint8_t *from, size_t size, copy_of_lines *lines)
{
    size_t head = -(uintptr_t)to % CACHE_LINE;
    size_t whole;

    if (head > size || !__builtin_cpu_supports("avx2")) {
        memcpy(to, from, size);
        return;
    }
    whole = (size - head) / CACHE_LINE * CACHE_LINE;
    memcpy(to, from, head);
    lines(to + head, from + head, whole);
    head += whole;
    memcpy(to + head, from + head, size - head);
}

void cw_copy(uint8_t *to, const uint8_t *from, size_t size)
{
    if (size < SMALL)
        memcpy(to, from, size);
    else
        copy(to, from, size, copy_lines);
}

void cw_copy_away(uint8_t *to, const uint8_t *from, size_t size)
{
    copy(to, from, size, stream_lines);
}

void cw_copy_fence(void)
{
    _mm_sfence();
}
#else
void cw_copy(uint8_t *to, const uint8_t *from, size_t size)
{
    memcpy(to, from, size);
}

void cw_copy_away(uint8_t *to, const uint8_t *from, size_t size)
{
    memcpy(to, from, size);
}

void cw_copy_fence(void)
{
}
#endif
