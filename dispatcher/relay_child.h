/* The embedded relay: a child process that ends with its dispatcher. */
#ifndef DISPATCHER_RELAY_CHILD_H
#define DISPATCHER_RELAY_CHILD_H

#include "common/frame.h"

#include <sys/types.h>

struct relay_child_config {
    const char *socket_path;
    const uint8_t *key;      /* CW_KEY_SIZE bytes */
    const char *engine;      /* NULL: its default */
    const char *memory_max;  /* NULL: its default */
    const char *log_max;     /* NULL: its default */
    const char *log_reserve; /* likewise */
    uint64_t spin_ns;
};

/* Starts it and waits until it listens. Returns its pid, or a negative code. */
pid_t relay_child_start(const struct relay_child_config *config, struct cw_err *err);

#endif
