/* A door: a listener here, from where each connection is led through a tunnel of its own to an
 * address behind gateways. */
#ifndef TUNNELS_DOOR_H
#define TUNNELS_DOOR_H

#include "common/listen.h"

#include <stdint.h>

#define DOORS_MAX LISTENERS_MAX    /* of a process */
#define DOOR_CONNECTIONS_MAX 1024u /* of a process, at a time; further ones wait */

struct door {
    struct cw_address at; /* where it listens */
    const char *to;       /* ssh:..., checked (ssh_address.h); borrowed */
};

/* Listens at all of them, says so (a line for each to `ready_fd`, which is closed then, or with -1
 * to standard error), and leads connections on until SIGTERM, SIGINT or SIGHUP; then all of them
 * end. To be called by a process of one thread. Errors: those of cw_listen; CW_ESYS, CW_ENOMEM. */
int doors_run(const struct door *doors, uint32_t count, int ready_fd, struct cw_err *err);

#endif
