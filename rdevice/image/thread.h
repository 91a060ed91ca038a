/* What the kernel keeps of one thread, beside registers: read by that thread, put back by the one
 * that takes its place in the restored process. */
#ifndef RDEVICE_IMAGE_THREAD_H
#define RDEVICE_IMAGE_THREAD_H

#include "rdevice/image/conditions.h"
#include "rdevice/image/identity.h"

#include <stddef.h>
#include <stdint.h>

#define THREAD_NAME_MAX 16

struct thread {
    int32_t tid;
    int32_t *tid_address; /* where libc has the number, and the kernel clears it at the end */
    void *robust;
    size_t robust_size;
    uint64_t fs_base, gs_base;
    uint64_t pending; /* signals that it blocks; with those of the process */
    char name[THREAD_NAME_MAX];
    struct conditions conditions;
    struct identity identity;
};

/* Of the calling thread. No function of libc is used. Returns 0, or -1: the kernel does not say
 * where libc keeps its number. */
int thread_read(struct thread *thread);

/* The calling thread has its place, and its base of FS: before any function of libc. Returns NULL,
 * or what failed, for a person. */
const char *thread_restore(const struct thread *thread);

#endif
