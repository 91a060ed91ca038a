/* Looks at the ways between the sites of a grid, from the hosts of their relays, which are being
 * checked; and whether the hosts of a site reach that of its relay. Blocks, with a bound on each
 * wait. */
#ifndef DISPATCHER_GRID_PROBE_H
#define DISPATCHER_GRID_PROBE_H

#include "dispatcher/doctor/grid_ways.h"
#include "dispatcher/doctor/host_check.h"

struct grid_probe {
    const struct grid *grid;
    uint32_t here;
    struct host_check *check;    /* of all hosts, those of a site one after the other */
    const uint32_t *site;        /* of each check */
    const uint32_t *first;       /* check of each site */
    uint32_t time_ms;            /* for a connection from here */
    struct grid_ways *ways;      /* to be filled */
    struct findings *of_site;    /* what is found about each, */
    struct findings *of_machine; /* ... and about this machine, at none of them */
};

/* Whether that host reaches the host of its site's relay over TCP; not that one itself. Several
 * threads may do so for hosts, which all have been checked. */
void grid_probe_within(struct grid_probe *probe, uint32_t check);

/* Between all sites, and from here: in rounds, in each of which a site sends to one other and
 * receives from one. */
void grid_probe_between(struct grid_probe *probe);

#endif
