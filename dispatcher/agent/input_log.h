/* When bytes were written into the standard input of a rank: so how much it had been given when it
 * looked, a moment ago, how much of it was unread. Pure. */
#ifndef DISPATCHER_INPUT_LOG_H
#define DISPATCHER_INPUT_LOG_H

#include <stddef.h>
#include <stdint.h>

#define INPUT_LOG_WRITES_MAX 64u /* that are remembered, the last ones */
#define INPUT_LOG_UNKNOWN UINT64_MAX

struct input_log {
    uint64_t count; /* of writes until now */
    struct {
        uint64_t from_ns;
        uint64_t until_ns;
        uint64_t all; /* bytes after it */
    } write[INPUT_LOG_WRITES_MAX];
};

/* Zeroed: nothing was written. The next write: its bytes, and two times around it. */
void input_log_add(struct input_log *log, size_t size, uint64_t from_ns, uint64_t until_ns);

/* How many bytes were written at a time between these two; INPUT_LOG_UNKNOWN: some were just then,
 * or it is too long ago. */
uint64_t input_log_at(const struct input_log *log, uint64_t from_ns, uint64_t until_ns);

#endif
