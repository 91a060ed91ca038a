/* The threads of the program beside the one that takes the image. They are stopped by a signal:
 * each waits in its handler, on its own stack, where the kernel has put its registers. In the
 * restored process threads are made that return from these handlers. */
#ifndef RDEVICE_IMAGE_OTHERS_H
#define RDEVICE_IMAGE_OTHERS_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

/* They stand still, wherever they are, perhaps with locks of libc, until others_release(). All
 * signals are blocked. Returns 0, or CW_ESYS, CW_EINVAL or CW_ELIMIT with *err set: there is one
 * that does not stop, or that could not be restored; nothing is stopped. `unfit`: as of
 * image_hold(). */
int others_stop(bool (*unfit)(void), struct cw_err *err);

/* They go on; in the restored process too. */
void others_release(void);

/* In the restored process: makes them anew, standing still. `pending`: signals of the process,
 * which are not theirs. Returns 0, or CW_ESYS with *err set. */
int others_revive(uint64_t pending, struct cw_err *err);

/* The number that one had when it was last stopped, and its number now. False: there is none. */
bool others_get(uint32_t index, int32_t *former, int32_t *now);

/* Its thread pointer; 0: there is none. */
uintptr_t others_fs_base(uint32_t index);

#endif
