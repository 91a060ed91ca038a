/* What OpenSSH's client says with -v, of which little is for people. Pure. */
#ifndef DISPATCHER_SSH_SAYS_H
#define DISPATCHER_SSH_SAYS_H

#include <stdbool.h>

enum ssh_said {
    SSH_SAID_NOISE,
    SSH_SAID_LOGIN,   /* it is logged in: at a gateway, or at its end */
    SSH_SAID_FORWARD, /* a port of the other side is forwarded */
    SSH_SAID_OTHER    /* for people */
};

enum ssh_said ssh_says(const char *line);

#endif
