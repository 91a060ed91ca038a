/* System calls of other threads, which end early because the threads are stopped for an image. Most
 * are made again by the kernel; some it ends with EINTR for any handler of a signal. */
#ifndef RDEVICE_IMAGE_INTERRUPTED_H
#define RDEVICE_IMAGE_INTERRUPTED_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

struct interrupted {
    bool known;
    long number;
    uint64_t argument[6], sp, pc;
};

/* What the thread does, before it is stopped. */
void interrupted_look(int32_t tid, struct interrupted *call);

/* Where it is stopped: if just that call has ended with EINTR, or a sleep that began since, and can
 * be made again so that the program does not see it, it will be. */
void interrupted_again(const struct interrupted *call, ucontext_t *frame);

/* Whether the signal has found it in futex(2). */
bool interrupted_sleeps(const ucontext_t *frame);

#endif
