/* A tunnel: what comes from a socket goes through SSH to an address behind gateways, and back. */
#ifndef TUNNELS_TUNNEL_H
#define TUNNELS_TUNNEL_H

#include "tunnels/ssh_address.h"

#include <stdbool.h>

#define TUNNEL_OPEN_MS 20000u          /* until it is open */
#define TUNNEL_BUFFER_BYTES (1u << 20) /* of each direction */
#define TUNNEL_OPENED '+'              /* the first byte that it says; or ... */
#define TUNNEL_FAILED '-'              /* ... before the text why not, and then it ends */

struct tunnel_ends {
    int in, out; /* may be the same; non-blocking from then on */
    bool told;   /* TUNNEL_OPENED or TUNNEL_FAILED goes to `out` first */
    bool opened; /* set when it was */
};

/* Opens it, and carries bytes until both directions have ended, or one end is gone. Errors: as of
 * ssh_chain_open, CW_ECLOSED: the connection broke afterwards. */
int tunnel_run(const struct ssh_address *address, struct tunnel_ends *ends, struct cw_err *err);

#endif
