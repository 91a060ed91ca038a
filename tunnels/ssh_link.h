/* One SSH session of a chain (ssh_chain.h), over libssh2 without its blocking mode: waiting for it,
 * and what it says when it fails. */
#ifndef TUNNELS_SSH_LINK_H
#define TUNNELS_SSH_LINK_H

#include "tunnels/ssh_address.h"

#include <libssh2.h>
#include <stdbool.h>

struct ssh_link {
    LIBSSH2_SESSION *session;
    LIBSSH2_CHANNEL *channel; /* to the next gateway, or to the end of the tunnel */
    struct ssh_chain *chain;
    uint32_t number;
    uint64_t heard_ns; /* when the last byte came ... */
    uint64_t asked_ns; /* ... and when it was first asked for another; 0: it was not */
};

struct ssh_chain {
    const struct ssh_address *address;
    const struct ssh_way *way; /* one of its ways */
    const char *dir;           /* of known_hosts and keys: ~/.ssh */
    int fd;                    /* of the connection to the first gateway */
    uint64_t until_ns;
    struct ssh_link link[SSH_HOPS_MAX];
    bool dropped; /* a gateway has ended the connection before anybody could log in */
};

const struct ssh_hop *ssh_link_hop(const struct ssh_link *link);

/* The last error of that session: "gateway HOST: WHAT: WHY". Returns err->code. */
int ssh_link_fail(const struct ssh_link *link, int code, const char *what, struct cw_err *err);

/* Whether a packet is on its way out in part. Until the call that began it goes on, no other may
 * send one: libssh2 takes that for bad use, also where a read has to say that there is room. */
bool ssh_link_is_sending(const struct ssh_link *link);

/* What to wait for on the chain's `fd` (POLLIN, POLLOUT), when none of its calls went on. */
short ssh_link_events(const struct ssh_chain *chain);

/* Waits until a call that returned LIBSSH2_ERROR_EAGAIN may go on. False: the time is up. */
bool ssh_link_await(const struct ssh_link *link);

#endif
