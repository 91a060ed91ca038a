/* How a function that answers in place of libc's learns what to say. It asks libc_ask() first:
 *     CLOCK_REAL    the real one answers, and that is all
 *     CLOCK_RECORD  the real one answers; then libc_record(), or libc_record_failure()
 *     CLOCK_GIVEN   `reading` holds the answer
 *     CLOCK_FAILED  the answer is failure; errno is set
 * A full buffer is sent, and a log is read on, by the device: this stands above both. Any thread.
 */
#ifndef RDEVICE_LIBC_ASK_H
#define RDEVICE_LIBC_ASK_H

#include "rdevice/clock.h"

enum clock_answer libc_ask_closely(struct clock_reading *reading, uintptr_t caller);
void libc_record_when_full(const struct clock_reading *reading);

/* `caller`: where the function of libc returns to. */
static inline enum clock_answer libc_ask(struct clock_reading *reading, uintptr_t caller)
{
    if (__builtin_expect(clock_recorder == (uintptr_t)__builtin_thread_pointer(), 1))
        return CLOCK_RECORD;
    return libc_ask_closely(reading, caller);
}

static inline void libc_record(const struct clock_reading *reading)
{
    if (__builtin_expect(!clock_record(reading), 0))
        libc_record_when_full(reading);
}

/* By errno, which stays. */
void libc_record_failure(void);

/* What is recorded goes to the relay now: for what has an effect outside of the process. */
void libc_log(void);

#endif
