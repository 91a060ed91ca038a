#include "common/copy.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>

#define CACHE_LINE 64u
#define SMALL 2048u /* bytes: fewer are copied by memcpy, which has no trouble with them */

/* Whole lines, to where a line begins; `also` may lie anywhere. Half a line a store: the processor
 * holds a certain number of stores back, whatever their size, and when these wait for memory, so do
 * those behind them. */
typedef void copy_of_lines(uint8_t *to, uint8_t *also, const uint8_t *from, size_t size);

__attribute__((target("avx2"))) static void copy_lines(uint8_t *to, uint8_t *also,
                                                       const uint8_t *from, size_t size)
{
    (void)also;
    for (size_t i = 0; i < size; i += CACHE_LINE) {
        __m256i first = _mm256_loadu_si256((const __m256i *)(from + i));
        __m256i second = _mm256_loadu_si256((const __m256i *)(from + i + sizeof(first)));

        _mm256_store_si256((__m256i *)(to + i), first);
        _mm256_store_si256((__m256i *)(to + i + sizeof(first)), second);
    }
}

__attribute__((target("avx2"))) static void stream_lines(uint8_t *to, uint8_t *also,
                                                         const uint8_t *from, size_t size)
{
    (void)also;
    for (size_t i = 0; i < size; i += sizeof(__m256i))
        _mm256_stream_si256((__m256i *)(to + i), _mm256_loadu_si256((const __m256i *)(from + i)));
}

__attribute__((target("avx2"))) static void stream_and_copy(uint8_t *to, uint8_t *also,
                                                            const uint8_t *from, size_t size)
{
    for (size_t i = 0; i < size; i += sizeof(__m256i)) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(from + i));

        _mm256_stream_si256((__m256i *)(to + i), bytes);
        _mm256_storeu_si256((__m256i *)(also + i), bytes);
    }
}

static void copy_part(uint8_t *to, uint8_t *also, const uint8_t *from, size_t size)
{
    memcpy(to, from, size);
    if (also)
        memcpy(also, from, size);
}

/* What begins or ends within a line of `to` goes by memcpy. `also`: NULL for nowhere. */
static void copy(uint8_t *to, uint8_t *also, const uint8_t *from, size_t size, copy_of_lines *lines)
{
    size_t head = -(uintptr_t)to % CACHE_LINE;
    size_t whole = size < head ? 0 : (size - head) / CACHE_LINE * CACHE_LINE;
    size_t done = head + whole;

    if (whole == 0 || !__builtin_cpu_supports("avx2")) {
        copy_part(to, also, from, size);
        return;
    }
    copy_part(to, also, from, head);
    lines(to + head, also ? also + head : NULL, from + head, whole);
    copy_part(to + done, also ? also + done : NULL, from + done, size - done);
}

void cw_copy(uint8_t *to, const uint8_t *from, size_t size)
{
    if (size < SMALL)
        memcpy(to, from, size);
    else
        copy(to, NULL, from, size, copy_lines);
}

void cw_copy_away(uint8_t *to, const uint8_t *from, size_t size)
{
    copy(to, NULL, from, size, stream_lines);
}

void cw_copy_both(uint8_t *to, uint8_t *away, const uint8_t *from, size_t size)
{
    copy(away, to, from, size, stream_and_copy);
}

void cw_copy_fence(void)
{
    _mm_sfence();
}

uint64_t cw_copy_ticks(void)
{
    return __rdtsc();
}
#else
void cw_copy_both(uint8_t *to, uint8_t *away, const uint8_t *from, size_t size)
{
    memcpy(to, from, size);
    memcpy(away, from, size);
}

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

uint64_t cw_copy_ticks(void)
{
    return 0;
}
#endif
