/* The channel of an SSH session: to a TCP address (direct-tcpip, RFC 4254 7.2), or to a command
 * (session, 6.1 and 6.5). It is the link's `channel`. */
#ifndef TUNNELS_SSH_CHANNEL_H
#define TUNNELS_SSH_CHANNEL_H

#include "tunnels/ssh_link.h"

#define SSH_WINDOW_BYTES (64u << 20) /* of our channels: what may be on its way to us */
#define SSH_PACKET_BYTES 32768u      /* RFC 4253 6.1: more need not be taken */
#define SSH_ROUND_TRIPS 3u           /* of which the shortest one counts */
#define SSH_DROP_MS 1000u            /* for the other side to close a channel that is dropped */

/* Errors of all: CW_ESYS: it is refused, CW_ETIME; each names the gateway. */
int ssh_channel_forward(struct ssh_link *link, const char *host, uint16_t port, struct cw_err *err);
int ssh_channel_session(struct ssh_link *link, struct cw_err *err);
/* How long the gateway takes to answer what it knows at once, on a channel of ssh_channel_session.
 * It is asked SSH_ROUND_TRIPS times, for either end may be busy, or until it took less than
 * `enough_ns`; the shortest counts. */
uint64_t ssh_channel_round_trip_ns(const struct ssh_link *link, uint64_t enough_ns);
int ssh_channel_exec(const struct ssh_link *link, const char *command, struct cw_err *err);

/* The gateway's sshd sends what it has at once from then on, where it runs a command for us: only
 * then does it turn off what RFC 896 says. */
void ssh_channel_hurry(struct ssh_link *link);

/* All of `size` bytes, or an error; CW_ECLOSED: it ended before. */
int ssh_channel_put(const struct ssh_link *link, const void *bytes, size_t size,
                    struct cw_err *err);
int ssh_channel_get(const struct ssh_link *link, void *bytes, size_t size, struct cw_err *err);

/* Closes it, so that the session may have another one. */
void ssh_channel_drop(struct ssh_link *link);

#endif
