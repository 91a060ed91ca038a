/* What OpenSSH's client is to know of a grid, as a configuration for ssh -F: how each machine is
 * reached from here. Pure: no I/O. */
#ifndef DISPATCHER_SSH_CONFIG_H
#define DISPATCHER_SSH_CONFIG_H

#include "dispatcher/hosts/routes.h"

/* What a gateway or host is called there. */
#define SSH_CONFIG_GATEWAY "gateway.%s" /* of this site */
#define SSH_CONFIG_HOST "%s.%s"         /* host, site */
#define SSH_CONFIG_NAME_MAX (HOST_NAME_MAX_BYTES + 1 + GRID_NAME_MAX)

/* For a machine of site `here`, or of none. Those that no way leads to are not there. What it does
 * not say is as in the user's own configuration. The text is to be freed; NULL: no memory. */
char *ssh_config_make(const struct grid *grid, uint32_t here);

#endif
