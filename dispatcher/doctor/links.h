/* Which hosts reach each other over TCP, as relays, ranks and checkpoint servers of a job have to.
 * Blocks, with a bound on each wait. */
#ifndef DISPATCHER_LINKS_H
#define DISPATCHER_LINKS_H

#include "dispatcher/doctor/look.h"

struct links {
    struct look *host; /* all of them have been looked at */
    uint32_t count;
    uint16_t port;        /* where this machine listens; 0: it does not */
    const char *own_name; /* of this machine */
    const uint8_t *token; /* of all listeners */
};

/* Between this machine and the host, each way, and from it to the next one of the list. Hosts may
 * be looked at in several threads. */
void links_reach(const struct links *links, uint32_t host);

#endif
