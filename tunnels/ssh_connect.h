/* The TCP connection to a first gateway. */
#ifndef TUNNELS_SSH_CONNECT_H
#define TUNNELS_SSH_CONNECT_H

#include "common/err.h"

#include <stdint.h>

#define SSH_CONNECT_AGAIN_NS 400000000ull /* between two tries, ... */
#define SSH_CONNECTS_MAX 8u               /* ... so many of which are under way at a time */

/* Returns a connected socket, or CW_ESYS, CW_EINVAL (no such host), CW_ETIME: not by `until_ns`.
 * The kernel sends the first packet of a connection again after 1 s, then 2 s, 4 s, ...: too late
 * for a way that was cut and is there again. So further connections are tried meanwhile, and the
 * first one that is made counts. May block longer, to resolve the name. */
int ssh_connect(const char *host, uint16_t port, uint64_t until_ns, struct cw_err *err);

#endif
