/* Carries bytes between descriptors and the channel of the last session of a chain. */
#ifndef TUNNELS_SSH_CARRY_H
#define TUNNELS_SSH_CARRY_H

#include "tunnels/ssh_link.h"

#define TUNNEL_BUFFER_BYTES (1u << 20) /* of each direction */

/* Until both directions have ended, or one end is gone. `in` and `out`, which may be the same,
 * become non-blocking. Errors: CW_ECLOSED: the connection broke; CW_ENOMEM. */
int ssh_carry(struct ssh_chain *chain, int in, int out, struct cw_err *err);

#endif
