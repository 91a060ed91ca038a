#include "common/copy.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#include <sys/platform/x86.h> /* what libc may use: GLIBC_TUNABLES masks it */

#define CACHE_LINE 64u
#define SMALL 2048u /* bytes: memcpy copies fewer at the same speed wherever they lie */

/* Copies whole lines to where a line begins. Each store writes half a line: the processor can hold
 * a fixed number of stores back, whatever their size, and while these wait for memory all stores
 * behind them wait, too. */
typedef void copy_of_lines(uint8_t *to, const uint8_t *from, size_t size);

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

/* memcpy copies the parts of lines at both ends. */
static void copy(uint8_t *to, const uint8_t *from, size_t size, copy_of_lines *lines)
{
    size_t head = -(uintptr_t)to % CACHE_LINE;
    size_t whole = size < head ? 0 : (size - head) / CACHE_LINE * CACHE_LINE;
    size_t done = head + whole;

    if (whole == 0 || !CPU_FEATURE_ACTIVE(AVX2)) {
        memcpy(to, from, size);
        return;
    }
    memcpy(to, from, head);
    lines(to + head, from + head, whole);
    memcpy(to + done, from + done, size - done);
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
#endif
