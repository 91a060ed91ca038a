/* Which hosts reach each other over TCP, as relays, ranks and checkpoint servers of a job have to.
 * Blocks, with a bound on each wait. */
#ifndef DISPATCHER_LINKS_H
#define DISPATCHER_LINKS_H

#include "dispatcher/doctor/host_check.h"

struct links {
    const struct host_checks *hosts; /* all of them have been checked */
    uint16_t port;                   /* where this machine listens; 0: it does not */
    const char *own_name;            /* of this machine */
};

/* Between this machine and the host, each way, and from it to the next one of the list. Several
 * threads may do so. */
void links_reach(const struct links *links, uint32_t host);

#endif
