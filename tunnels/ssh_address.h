/* Where a relay is that only SSH leads to:
 * ssh:[USER@]GATEWAY[:PORT][,[USER@]GATEWAY[:PORT]...][+WAY...]/HOST:PORT. The first gateway is
 * reached from here, each further one from the one before (as with ssh -J), and HOST:PORT over TCP
 * from the last. After each '+' another way follows, for when those before it fail. Pure: no I/O.
 */
#ifndef TUNNELS_SSH_ADDRESS_H
#define TUNNELS_SSH_ADDRESS_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

#define SSH_SCHEME "ssh:"
#define SSH_HOPS_MAX 4u /* gateways on the way */
#define SSH_WAYS_MAX 3u /* to one place */
#define SSH_USER_MAX 64u
#define SSH_HOST_MAX 255u
#define SSH_PORT 22
#define TUNNEL_PROGRAM_VARIABLE "CAUSEWAY_TUNNEL_PROGRAM" /* path of causeway at gateways */
#define SSH_KEYS_VARIABLE "CAUSEWAY_SSH_KEYS" /* of the environment: files of keys, ":" between */

struct ssh_hop {
    char user[SSH_USER_MAX + 1]; /* "": who runs this process */
    char host[SSH_HOST_MAX + 1]; /* an IPv6 address without brackets */
    uint16_t port;
};

struct ssh_way {
    struct ssh_hop hop[SSH_HOPS_MAX];
    uint32_t hops; /* at least 1 */
};

struct ssh_address {
    struct ssh_way way[SSH_WAYS_MAX];
    uint32_t ways; /* at least 1; the first one is the best */
    char host[SSH_HOST_MAX + 1];
    uint16_t port;
};

/* One gateway, [USER@]HOST[:PORT]; without a port it has SSH_PORT. Error: CW_EINVAL, naming the
 * text and what was expected. */
int ssh_hop_parse(struct ssh_hop *hop, const char *text, struct cw_err *err);

/* Whether a user can be called so. */
bool ssh_is_user(const char *text);

/* Errors: CW_EINVAL, naming the address and what was expected. */
int ssh_address_parse(struct ssh_address *address, const char *text, struct cw_err *err);

/* The part of the text that holds behind the gateways, where the relay is: HOST:PORT. NULL: it is
 * no address of this kind. */
const char *ssh_address_inner(const char *text);

#endif
