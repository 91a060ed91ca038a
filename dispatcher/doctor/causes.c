#include "dispatcher/doctor/causes.h"
#include "tunnels/ssh_address.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define NO_WAY                                                                                     \
    "it is off, it has another address, or a firewall is in the way: look whether ping and ssh "   \
    "reach it"
#define NO_NAME                                                                                    \
    "its name is not known here: correct it, or add it to DNS, /etc/hosts or the configuration "   \
    "of "                                                                                          \
    "ssh"
#define NO_CAUSEWAY                                                                                \
    "Causeway is not there: install it at the same path as here, or name its path there by "       \
    "--agent, or 'causeway' in a grid file"

/* In this order: what ssh says, then what the shell of the host and the system say. */
static const struct {
    const char *said; /* a part of it */
    const char *advice;
} causes[] = {
    {"Could not resolve", NO_NAME},
    {"Permission denied (", "login is refused, or asks for a password: let `ssh HOST true` need "
                            "none (ssh-keygen, ssh-copy-id HOST)"},
    {"Too many authentication failures",
     "ssh offers it too many keys: name the right one in its configuration (IdentityFile, "
     "IdentitiesOnly)"},
    {"Host key verification failed", "its key is not known here, or has changed: log in once by "
                                     "hand, and see what ssh says of it"},
    {"Connection refused", "no sshd listens there: start it, or name its port in the configuration "
                           "of ssh"},
    {"administratively prohibited",
     "its sshd forbids to forward there: see AllowTcpForwarding and PermitOpen in its sshd_config, "
     "and the options of the key in authorized_keys"},
    {"name resolution", NO_NAME},
    {"Name or service not known", NO_NAME},
    {"no answer", NO_WAY},
    {"no tunnel in time", NO_WAY},
    {"No route to host", NO_WAY},
    {"Network is unreachable", NO_WAY},
    {"timed out", NO_WAY},
    {"Connection closed", "its sshd let nobody in: look into its log, and at its MaxStartups"},
    {"Connection reset", "its sshd let nobody in: look into its log, and at its MaxStartups"},
    {"error while loading shared libraries",
     "a library that Causeway needs is not there: install it (make deps there)"},
    {"Exec format error", "the causeway there is for another machine: build it there"},
    {"Permission denied", "it may not be executed there: correct its mode"},
    {"No such file or directory", NO_CAUSEWAY},
    {"not found", NO_CAUSEWAY},
};

const char *causes_advice(const char *said)
{
    for (size_t i = 0; i < sizeof(causes) / sizeof(*causes); i++)
        if (strstr(said, causes[i].said))
            return causes[i].advice;
    return NULL;
}

/* As ssh_chain.c and libssh2 say it. */
bool causes_nobody_listens(const char *said, const char *host, uint16_t port)
{
    char last[SSH_HOST_MAX + 64];

    snprintf(last, sizeof(last), "forwarding to %s port %u ", host, port);
    return strstr(said, last) && strstr(said, "(connect failed)");
}
