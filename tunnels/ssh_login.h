/* A gateway and we show each other who we are. The key of the gateway has to be in known_hosts, as
 * ssh(1) keeps it; there is no way around that. We log in by the files that CAUSEWAY_SSH_KEYS
 * names, else by keys of an agent (SSH_AUTH_SOCK), else by those in ~/.ssh that need no passphrase.
 * Never by a password. */
#ifndef TUNNELS_SSH_LOGIN_H
#define TUNNELS_SSH_LOGIN_H

#include "tunnels/ssh_link.h"

#define SSH_KEY_FILES_MAX 32u /* that are tried */
#define SSH_KEYS_MAX 5u       /* of an agent: a gateway takes six (MaxAuthTries) */

/* Before the handshake: keys of a kind that is known there come first. Errors: CW_EPROTO,
 * CW_ENOMEM.
 */
int ssh_host_key_prefer(const struct ssh_link *link, struct cw_err *err);

/* After it. Errors: CW_ENOTFOUND: no key of it is known; CW_EAUTH: it is another one; each with its
 * fingerprint and what to do. */
int ssh_host_key_check(const struct ssh_link *link, struct cw_err *err);

/* Errors: CW_EAUTH, with what was tried and what to do. */
int ssh_login(const struct ssh_link *link, struct cw_err *err);

#endif
