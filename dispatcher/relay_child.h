/* The embedded relay: a child process that ends with its dispatcher. */
#ifndef DISPATCHER_RELAY_CHILD_H
#define DISPATCHER_RELAY_CHILD_H

#include "common/frame.h"
#include "relay/options.h"

#include <sys/types.h>

struct relay_child_config {
    const char *socket_path;
    const uint8_t *key;         /* CW_KEY_SIZE bytes */
    const char *const *options; /* RELAY_OPTIONS values; NULL: the relay's default */
    uint64_t spin_ns;
};

/* Starts it and waits until it listens. Returns its pid, or a negative code. */
pid_t relay_child_start(const struct relay_child_config *config, struct cw_err *err);

#endif
