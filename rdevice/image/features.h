/* Features of the processor that a program may have found, and use. */
#ifndef RDEVICE_IMAGE_FEATURES_H
#define RDEVICE_IMAGE_FEATURES_H

#include <cpuid.h>
#include <stdint.h>

#define FEATURES_OSXSAVE (1u << 27)
#define FEATURES_XCR0_BASELINE 3u /* x87 and SSE, which are kept everywhere */

static inline uint64_t features_read(uint32_t words[8])
{
    uint32_t a, b, c, d, low = 0, high = 0;

    __cpuid(1, a, b, c, d);
    words[0] = c;
    words[1] = d;
    __cpuid_count(7, 0, a, b, c, d);
    words[2] = b;
    words[3] = c;
    words[4] = d;
    __cpuid_count(7, 1, a, b, c, d);
    words[5] = a;
    __cpuid(0x80000001, a, b, c, d);
    words[6] = c;
    words[7] = d;
    if (words[0] & FEATURES_OSXSAVE)
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

#endif
