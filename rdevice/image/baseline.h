/* Images that need no more of the processor than each x86-64 has: where libc keeps to that, and no
 * thread has more in its registers. */
#ifndef RDEVICE_IMAGE_BASELINE_H
#define RDEVICE_IMAGE_BASELINE_H

#include "rdevice/image/features.h"

#include <stdbool.h>
#include <ucontext.h>

/* Whether libc leaves out what goes beyond it (GLIBC_TUNABLES). */
bool baseline_is_libcs(void);

/* Whether the registers of a thread, where a signal has interrupted it, hold no more. */
bool baseline_is_frames(const ucontext_t *frame);

/* What goes beyond it does not count any more. */
void baseline_reduce(uint32_t words[8], uint64_t *xcr0);

#endif
