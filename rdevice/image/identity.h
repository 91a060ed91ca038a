/* Who a thread is to the kernel, and what it may do: users, groups, capabilities. Read by that
 * thread, and put back by the one that takes its place: what the program had given up does not come
 * back. */
#ifndef RDEVICE_IMAGE_IDENTITY_H
#define RDEVICE_IMAGE_IDENTITY_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

struct identity {
    uint32_t users[4], groups[4]; /* real, effective, saved, of the file system */
    uint64_t effective, permitted, inheritable, ambient, bounding; /* capabilities */
    int32_t secure_bits, no_new_privileges;
};

/* Of the calling thread. No function of libc is used. */
void identity_read(struct identity *identity);
/* Further groups, which are kept once for all threads. */
void identity_read_groups(void);

/* Returns 0; or CW_EINVAL with *err set: this thread may do more than the one that it stands for,
 * or is somebody else. The user that the launcher has here, without privileges, may have another
 * number than where the image was taken. `first`: of the process's first thread, which sees to
 * further groups: threads that are made afterwards have them too. */
int identity_restore(const struct identity *identity, bool first, struct cw_err *err);

#endif
