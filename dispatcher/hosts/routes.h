/* Ways over a grid: through which gateways one gets from a machine of one site to those of another.
 * [MPICH-V] 1: what cannot be reached directly is reached over a third place, which "works as a
 * post office". Here that is a gateway, and what is kept for an absent reader is kept by the two
 * ends: docs/grid.md. Pure: no I/O. */
#ifndef DISPATCHER_ROUTES_H
#define DISPATCHER_ROUTES_H

#include "common/transport.h"
#include "dispatcher/hosts/grid.h"

#define ROUTES_MAX SSH_WAYS_MAX /* that are kept from one site to another: the best ones */

/* Gateways, each reached from the one before. None: within a site. */
struct route {
    struct ssh_hop hop[SSH_HOPS_MAX];
    uint32_t site[SSH_HOPS_MAX]; /* at which one is behind each of them */
    uint32_t hops;
};

/* The ways from `from` (GRID_OUTSIDE: a machine of no site) to `to`, the best one first: with the
 * fewest gateways, then in the order of the grid file; as many as ROUTES_MAX. Returns how many; 0:
 * there is none. */
uint32_t routes_find(const struct grid *grid, uint32_t from, uint32_t to,
                     struct route route[ROUTES_MAX]);

/* Whether there is one. */
bool routes_exist(const struct grid *grid, uint32_t from, uint32_t to);

/* Where HOST:PORT behind these ways is, of which there is at least one: "tcp:HOST:PORT" without
 * gateways, else "ssh:..." with all of them. False: it does not fit, and `text` is "". */
bool routes_text(const struct route *route, uint32_t ways, const char *host, uint16_t port,
                 char text[CW_ADDRESS_MAX]);

/* Where HOST:PORT of site `to` is for a machine of `from`: "tcp:HOST:PORT" within a site, else
 * "ssh:..." with all these ways, as ssh_address.h says; what does not fit is left out, the worst
 * ways first. Returns how many there are; 0: none, and `text` is "". */
uint32_t routes_address(const struct grid *grid, uint32_t from, uint32_t to, const char *host,
                        uint16_t port, char text[CW_ADDRESS_MAX]);

#endif
