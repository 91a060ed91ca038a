/* Between libc.c, which answers in place of libc, and clock.c, which decides how. A function of
 * libc asks clock_ask() first:
 *     CLOCK_REAL    the real one answers, and that is all
 *     CLOCK_RECORD  the real one answers; then clock_record(), or clock_record_failure()
 *     CLOCK_GIVEN   `reading` holds the answer
 *     CLOCK_FAILED  the answer is failure; errno is set, also in `reading->number`
 */
#ifndef RDEVICE_CLOCK_STATE_H
#define RDEVICE_CLOCK_STATE_H

#include "rdevice/readings.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/types.h>
#include <time.h>

enum clock_answer { CLOCK_REAL, CLOCK_RECORD, CLOCK_GIVEN, CLOCK_FAILED };

/* A number, or, where `bytes` is set, `size` bytes (before the answer: the room there is). */
struct clock_reading {
    uint8_t kind;
    int64_t number;
    void *bytes;
    size_t size;
};

/* libc's own. Valid after the first clock_ask(). */
struct clock_real {
    int (*clock_gettime)(clockid_t id, struct timespec *t);
    int (*gettimeofday)(struct timeval *t, void *zone);
    time_t (*time)(time_t *t);
    clock_t (*clock)(void);
    clock_t (*times)(struct tms *t);
    int (*timespec_get)(struct timespec *t, int base);
    int (*getrusage)(int who, struct rusage *usage);
    ssize_t (*getrandom)(void *to, size_t size, unsigned flags);
    int (*getentropy)(void *to, size_t size);
    void (*arc4random_buf)(void *to, size_t size);
    uint32_t (*arc4random_uniform)(uint32_t bound);
};
extern struct clock_real clock_real;

/* The thread whose calls are recorded without another question; 0: nobody's. */
extern uintptr_t clock_recorder;

enum clock_answer clock_ask_closely(struct clock_reading *reading, uintptr_t caller);
void clock_record(const struct clock_reading *reading);
void clock_record_failure(void); /* by errno, which stays */

/* `caller`: where the function of libc returns to. */
static inline enum clock_answer clock_ask(struct clock_reading *reading, uintptr_t caller)
{
    if (__builtin_expect(clock_recorder == (uintptr_t)__builtin_thread_pointer(), 1))
        return CLOCK_RECORD;
    return clock_ask_closely(reading, caller);
}

#endif
