/* What the kernel keeps of the process, beside memory and descriptors: read before the copy, put
 * back in the restored process. Kept in static memory, so that it is in the image. */
#ifndef RDEVICE_IMAGE_GATHER_H
#define RDEVICE_IMAGE_GATHER_H

#include "common/err.h"

#include <stdint.h>

/* All signals, until gather_unblock(). */
void gather_block(void);
/* As before gather_block(); of the restored process: as before it in the image. */
void gather_unblock(void);

/* Reads all of it. Returns 0, or CW_ESYS or CW_EINVAL with *err set: it cannot be restored. */
int gather_read(struct cw_err *err);

/* In the restored process, before any function of libc: the thread's number, robust futexes,
 * restartable sequences. Returns NULL, or what failed. */
const char *gather_restore_thread(void);

/* ... and the rest, but for limits and timers. Returns 0, or CW_ESYS with *err set. */
int gather_restore(struct cw_err *err);

/* ... and what this thread may do and how it is run: once files are open, which the program may not
 * be allowed to open any more. Returns 0, or CW_EINVAL with *err set: it would be allowed more. */
int gather_restore_rights(struct cw_err *err);

/* ... and limits, once files are open: numbers and sizes of files may be above them. */
void gather_restore_limits(void);

/* ... and timers, and signals that were pending: the last. */
void gather_restore_timers(void);

/* Of the thread, when it was last read: its number, and what signals were pending. */
int32_t gather_tid(void);
uint64_t gather_pending(void);

#endif
