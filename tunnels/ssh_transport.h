/* Addresses ssh:... (ssh_address.h) among those that can be connected to: a process `causeway
 * tunnel` has the other end of a socket. */
#ifndef TUNNELS_SSH_TRANSPORT_H
#define TUNNELS_SSH_TRANSPORT_H

#include "common/transport.h"

#include <stdbool.h>
#include <sys/types.h>

#define TUNNELS_KNOWN_MAX                                                                          \
    64u /* processes of tunnels that are told apart from others; any thread                        \
         */

/* For cw_transport_add. */
extern const struct cw_transport ssh_transport;

/* Whether this child of ours is the process of a tunnel; it has ended, and was waited for. */
bool ssh_transport_is_tunnel(pid_t pid);
void ssh_transport_ended(pid_t pid);

#endif
