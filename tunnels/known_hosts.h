/* What the user's and the system's known_hosts say of a gateway's key. Which lines are about the
 * gateway - hashed names, wildcards, lists, markers, ports - ssh-keygen(1) of OpenSSH decides, as
 * ssh itself does (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"). */
#ifndef TUNNELS_KNOWN_HOSTS_H
#define TUNNELS_KNOWN_HOSTS_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

#define KNOWN_HOSTS_KINDS_MAX 8

/* A question and its answer. */
struct known_hosts {
    const char *dir; /* of the user's file, ~/.ssh */
    const char *host;
    uint16_t port;
    const char *const *kinds;             /* names of keys that matter, ended by NULL */
    const char *key;                      /* in base64; NULL: none is at hand yet */
    bool has_kind[KNOWN_HOSTS_KINDS_MAX]; /* a key of this kind is known */
    bool has_any;                         /* a key of one of these kinds is */
    bool has_key;                         /* this one is */
    bool is_revoked;                      /* this one is, by @revoked: whatever else is said */
};

/* Starts ssh-keygen for each file that is there, and waits for it. Errors: CW_ESYS: it cannot be
 * started. */
int known_hosts_ask(struct known_hosts *known, struct cw_err *err);

/* A line of what ssh-keygen finds is taken into account. Pure. */
void known_hosts_take(struct known_hosts *known, char *line);

#endif
