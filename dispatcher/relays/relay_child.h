/* The embedded relay: a child process that ends with its dispatcher. */
#ifndef DISPATCHER_RELAY_CHILD_H
#define DISPATCHER_RELAY_CHILD_H

#include "relay/options.h"
#include "relay/process.h"

#include <sys/types.h>

#define RELAY_CHILD_READY_NS 60000000000ull /* --log-reserve takes its time */

struct relay_child_config {
    const char *socket_path;
    const char *listen;         /* another address; NULL: none */
    const uint8_t *key;         /* CW_KEY_SIZE bytes */
    const char *const *options; /* RELAY_OPTIONS values; NULL: the relay's default */
    uint64_t spin_ns;
    struct relay_kept *kept; /* made at the first start; NULL: nothing outlives it */
    const char *log_dir;     /* for `kept`; NULL: the logs have no disk */
    bool outlived; /* `kept` outlives this process too: the relay is killed, for it clears up when
                      it is asked to end */
};

/* Starts it, without waiting. What is made of config->kept is the caller's, also after an error.
 * Returns its pid, or a negative code: CW_ESYS. *listens_fd is the caller's; see
 * relay_process_listens. */
pid_t relay_child_start(const struct relay_child_config *config, int *listens_fd,
                        struct cw_err *err);

#endif
