/* SSH sessions one inside the other: to a gateway, and from there to the next one. Over libssh2,
 * which is to be initialised, without its blocking mode; one thread. */
#ifndef TUNNELS_SSH_CHAIN_H
#define TUNNELS_SSH_CHAIN_H

#include "tunnels/ssh_link.h"

#define SSH_DROPS_MAX 5u       /* connections that a busy sshd ends, of one that is to be opened */
#define SSH_DROP_PAUSE_MS 250u /* at least, after one; doubled each time */
#define SSH_KEEPALIVE_S 2u     /* between two signs of life to a gateway ... */
#define SSH_SILENCE_MS 5000u   /* ... and until what we sent has to be acknowledged */
#define SSH_ASK_MS 10000u      /* without a byte of a gateway: then signs of life ask for one ... */
#define SSH_ANSWER_MS 20000u   /* ... which has to come in this time */

/* Logs in at all of them, on this way of the address, until `time_ms` have passed. `address` and
 * `dir` are borrowed. Errors: CW_ESYS, CW_ETIME, CW_ECLOSED, CW_EPROTO, CW_ENOTFOUND (a gateway
 * whose key is not known), CW_EAUTH; each names the gateway, and what to do. ssh_chain_close is to
 * be called also then. */
int ssh_chain_open(struct ssh_chain *chain, const struct ssh_address *address,
                   const struct ssh_way *way, const char *dir, uint32_t time_ms,
                   struct cw_err *err);
void ssh_chain_close(struct ssh_chain *chain);
/* Closes it here alone, where a child has it now. */
void ssh_chain_leave(struct ssh_chain *chain);

/* The session with the last gateway, where channels are to be opened. */
struct ssh_link *ssh_chain_last(struct ssh_chain *chain);

/* Tells the other sides that we are there, and asks whether they are, where that is due. Returns
 * milliseconds to the next time. Errors: CW_ECLOSED: one has not answered. */
int ssh_chain_keep_alive(struct ssh_chain *chain, struct cw_err *err);

#endif
