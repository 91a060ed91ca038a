/* The key by which a gateway shows that it is the one: it has to be in known_hosts, as ssh(1) keeps
 * it. There is no way around that. */
#ifndef TUNNELS_SSH_HOST_KEY_H
#define TUNNELS_SSH_HOST_KEY_H

#include "tunnels/ssh_link.h"

/* Before the handshake: keys of a kind that is known there come first. Errors: CW_EPROTO,
 * CW_ENOMEM.
 */
int ssh_host_key_prefer(const struct ssh_link *link, struct cw_err *err);

/* After it. Errors: CW_ENOTFOUND: no key of it is known; CW_EAUTH: it is another one; each with its
 * fingerprint and what to do. */
int ssh_host_key_check(const struct ssh_link *link, struct cw_err *err);

#endif
