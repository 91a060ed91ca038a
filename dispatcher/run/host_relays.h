/* Relays and other servers of a job on several hosts: where each listens, and which address a rank
 * on a host is given. */
#ifndef DISPATCHER_HOST_RELAYS_H
#define DISPATCHER_HOST_RELAYS_H

#include "dispatcher/run/parts.h"

/* The address by which other hosts reach this machine, as ssh tells the first of them; "": all
 * hosts are this machine. */
void host_relays_own_address(const struct parts *parts, char text[CW_ADDRESS_MAX]);

/* The host that a unit of the job stands on, or this machine (nodes_here). */
uint32_t host_relays_of(const struct parts *parts, uint32_t unit);

/* The relay's address for a rank on that host. */
void host_relays_address(const struct parts *parts, uint32_t relay, uint32_t host,
                         char text[CW_ADDRESS_MAX]);

/* Whether that host is, or is on, the one that a unit stands on. */
bool host_relays_is_near(const struct parts *parts, uint32_t unit, uint32_t host);

/* Where a unit on that host listens for other hosts, with port 0; "": all are this machine. */
void host_relays_listen_address(const struct parts *parts, uint32_t host,
                                char text[CW_ADDRESS_MAX]);

#endif
