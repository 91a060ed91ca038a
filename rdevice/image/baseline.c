#include "rdevice/image/baseline.h"

#include <asm/sigcontext.h>
#include <string.h>
#include <sys/platform/x86.h>

#define XSTATE_PKRU (1u << 9) /* rights to memory, not data */

/* Words of features_read(): floating point, time stamps, CMPXCHG8B, CMOV, MMX, FXSAVE, SSE, SSE2;
 * SYSCALL, NX, long mode. */
static const uint32_t baseline[8] = {
    [1] = 1u << 0 | 1u << 4 | 1u << 8 | 1u << 15 | 1u << 23 | 1u << 24 | 1u << 25 | 1u << 26,
    [7] = 1u << 11 | 1u << 20 | 1u << 29,
};

/* Of these it has functions of its own. */
bool baseline_is_libcs(void)
{
    return !(CPU_FEATURE_ACTIVE(SSSE3) || CPU_FEATURE_ACTIVE(SSE4_1) ||
             CPU_FEATURE_ACTIVE(SSE4_2) || CPU_FEATURE_ACTIVE(POPCNT) ||
             CPU_FEATURE_ACTIVE(LZCNT) || CPU_FEATURE_ACTIVE(MOVBE) || CPU_FEATURE_ACTIVE(BMI1) ||
             CPU_FEATURE_ACTIVE(BMI2) || CPU_FEATURE_ACTIVE(AVX) || CPU_FEATURE_ACTIVE(AVX2) ||
             CPU_FEATURE_ACTIVE(AVX512F) || CPU_FEATURE_ACTIVE(FMA) || CPU_FEATURE_ACTIVE(FMA4) ||
             CPU_FEATURE_ACTIVE(OSXSAVE) || CPU_FEATURE_ACTIVE(XSAVEC));
}

bool baseline_is_frames(const ucontext_t *frame)
{
    const struct _xstate *saved = (const struct _xstate *)(const void *)frame->uc_mcontext.fpregs;

    return !saved || saved->fpstate.sw_reserved.magic1 != FP_XSTATE_MAGIC1 ||
           (saved->xstate_hdr.xfeatures & ~(uint64_t)(FEATURES_XCR0_BASELINE | XSTATE_PKRU)) == 0;
}

void baseline_reduce(uint32_t words[8], uint64_t *xcr0)
{
    for (int i = 0; i < 8; i++)
        words[i] &= baseline[i];
    *xcr0 = FEATURES_XCR0_BASELINE;
}
