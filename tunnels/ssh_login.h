/* Logging in at a gateway: by the files that CAUSEWAY_SSH_KEYS names, else by keys of an agent
 * (SSH_AUTH_SOCK), else by those in ~/.ssh that need no passphrase. Never by a password. */
#ifndef TUNNELS_SSH_LOGIN_H
#define TUNNELS_SSH_LOGIN_H

#include "tunnels/ssh_link.h"

#define SSH_KEY_FILES_MAX 32u /* that are tried */
#define SSH_KEYS_MAX 5u       /* of an agent: a gateway takes six (MaxAuthTries) */

/* Errors: CW_EAUTH, with what was tried and what to do. */
int ssh_login(const struct ssh_link *link, struct cw_err *err);

#endif
