/* The near end of a striped tunnel: a process for each connection, which carries between SSH and a
 * socket of this one, so that they share the work of the cores; this one cuts and orders. */
#ifndef TUNNELS_TUNNEL_STRIPES_H
#define TUNNELS_TUNNEL_STRIPES_H

#include "tunnels/ssh_chain.h"
#include "tunnels/stripe_frame.h"

/* The first connection has greeted the far end, and is `chain`, which a process takes over. Up to
 * `connections` - 1 further ones join when they are open; one that does not open is not missed.
 * Until both directions have ended and all is where it leads, however slowly it is read there, or
 * an end is gone. Errors: CW_ECLOSED: a connection broke; CW_ESYS, CW_EPROTO, CW_ENOMEM. */
int tunnel_stripes_run(struct ssh_chain *chain, const struct stripe_greeting *greeting,
                       uint32_t connections, uint32_t time_ms, int in, int out, struct cw_err *err);

#endif
