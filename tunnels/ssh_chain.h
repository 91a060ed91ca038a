/* SSH sessions one inside the other: to a gateway, from there to the next one, and from the last a
 * channel (direct-tcpip, RFC 4254 7.2) to a TCP address. Over libssh2, without its blocking mode;
 * one thread. */
#ifndef TUNNELS_SSH_CHAIN_H
#define TUNNELS_SSH_CHAIN_H

#include "tunnels/ssh_link.h"

#define SSH_WINDOW_BYTES (64u << 20) /* of our channels: what may be on its way to us */
#define SSH_PACKET_BYTES 32768u      /* RFC 4253 6.1: more need not be taken */
#define SSH_KEEPALIVE_S 2u           /* between two questions whether the other side is there ... */
#define SSH_SILENCE_MS 5000u         /* ... and until what we sent has to be acknowledged */

/* Opens all of it, on this way, until `time_ms` have passed. `address` and `dir` are borrowed.
 * Errors: CW_ESYS, CW_ETIME, CW_ECLOSED, CW_EPROTO, CW_ENOTFOUND (a gateway whose key is not
 * known), CW_EAUTH; each names the gateway, and what to do. ssh_chain_close is to be called also
 * then. */
int ssh_chain_open(struct ssh_chain *chain, const struct ssh_address *address, uint32_t way,
                   const char *dir, uint32_t time_ms, struct cw_err *err);
void ssh_chain_close(struct ssh_chain *chain);

/* The channel to the end of the tunnel. */
LIBSSH2_CHANNEL *ssh_chain_channel(const struct ssh_chain *chain);

/* Asks whether the other sides are there, where that is due. Returns milliseconds to the next time.
 */
int ssh_chain_keep_alive(struct ssh_chain *chain);

#endif
