/* A tunnel: what comes from a socket goes through SSH to an address behind gateways, and back. */
#ifndef TUNNELS_TUNNEL_H
#define TUNNELS_TUNNEL_H

#include "tunnels/ssh_address.h"

#include <stdbool.h>

#define TUNNEL_OPEN_MS 20000u     /* until it is open */
#define TUNNEL_CONNECTIONS 6u     /* of a striped one, where nobody says how many */
#define TUNNEL_NEAR_NS 5000000ull /* of round trip: one connection is as fast as several */
#define TUNNEL_CONNECTIONS_VARIABLE                                                                \
    "CAUSEWAY_TUNNEL_CONNECTIONS" /* how many, in the environment                                  \
                                   */
#define TUNNEL_OPENED '+'         /* the first byte that it says; or ... */
#define TUNNEL_FAILED '-'         /* ... before the text why not, and then it ends */

struct tunnel_ends {
    int in, out; /* may be the same; non-blocking from then on */
    bool told;   /* TUNNEL_OPENED or TUNNEL_FAILED goes to `out` first */
    bool opened; /* set when it was */
};

struct tunnel_options {
    uint32_t connections; /* to the gateway, up to STRIPES_MAX; 0: TUNNEL_CONNECTIONS over long
                             ways, else 1 */
    bool verbose;         /* standard error hears how many there are, and why not more */
};

/* Opens it, and carries bytes until both directions have ended, or one end is gone. Errors: as of
 * ssh_chain_open, CW_ECLOSED: the connection broke afterwards. */
int tunnel_run(const struct ssh_address *address, const struct tunnel_options *options,
               struct tunnel_ends *ends, struct cw_err *err);

#endif
