/* How the processor lays its registers out where the kernel saves them for a signal's handler. */
#ifndef RDEVICE_IMAGE_XSTATE_H
#define RDEVICE_IMAGE_XSTATE_H

#include "rdevice/image/features.h"
#include "rdevice/image/system.h"

#include <string.h>

#define XSTATE_COMPONENTS 32
#define XSTATE_TILES (1u << 18)     /* a program must ask for them */
#define XSTATE_GET_PERMITTED 0x1022 /* ARCH_GET_XCOMP_PERM */
#define XSTATE_REQUEST 0x1023       /* ARCH_REQ_XCOMP_PERM */

struct xstate_layout {
    uint64_t enabled, permitted;
    uint32_t size[XSTATE_COMPONENTS], offset[XSTATE_COMPONENTS]; /* of what is enabled */
};

static inline void xstate_read(struct xstate_layout *layout, uint64_t enabled)
{
    uint32_t c, d;

    memset(layout, 0, sizeof(*layout));
    layout->enabled = enabled;
    for (uint32_t i = 2; i < XSTATE_COMPONENTS; i++)
        if (enabled >> i & 1)
            __cpuid_count(0xd, i, layout->size[i], layout->offset[i], c, d);
    system_call(SYS_arch_prctl, XSTATE_GET_PERMITTED, &layout->permitted);
}

/* In the restored process. Whether registers that were saved then mean the same here. */
static inline int xstate_is(const struct xstate_layout *then)
{
    struct xstate_layout now;

    if (then->permitted & XSTATE_TILES)
        system_call(SYS_arch_prctl, XSTATE_REQUEST, 18);
    xstate_read(&now, then->enabled);
    return memcmp(now.size, then->size, sizeof(now.size)) == 0 &&
           memcmp(now.offset, then->offset, sizeof(now.offset)) == 0 &&
           (then->permitted & ~now.permitted & XSTATE_TILES) == 0;
}

#endif
