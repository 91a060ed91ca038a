/* Which handlers of signals run in the recorded thread. A handler may be left without a return: by
 * a jump, an exception, or a change of context. So each is known by its place on the stack, and
 * whoever asks is compared with it. Pure: addresses go in, no system call is made.
 *
 * For one thread, and the signals that interrupt it. */
#ifndef RDEVICE_FRAMES_H
#define RDEVICE_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

/* A word in the frame of a handler's caller: another value says that the frame is no more. */
struct frames_mark {
    uintptr_t value;
};

/* A handler begins: its frame and all below is on the stack between `low` (0: unknown) and `top`.
 * `interrupted`: the stack pointer of what it interrupts. */
void frames_push(struct frames_mark *mark, uintptr_t top, uintptr_t low, uintptr_t interrupted);

/* The handler of this mark is over, and those that began after it. */
void frames_drop(struct frames_mark *mark);

/* Whether handlers are known that may run. */
bool frames_any(void);

/* Whether what has this stack pointer runs in one of them. Those that it has left are dropped. */
bool frames_inside(uintptr_t sp);

/* The thread goes on at `sp`. A handler that it leaves so is over (`from` NULL), or goes on when
 * somebody goes to the context `from`, where its registers are kept. */
void frames_go(const void *from, const void *to, uintptr_t sp);

#endif
