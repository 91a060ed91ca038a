/* Ways between the sites of a grid, as they were found, and the grid as text with them. Pure: no
 * I/O but to the file that is given. */
#ifndef DISPATCHER_GRID_WAYS_H
#define DISPATCHER_GRID_WAYS_H

#include "dispatcher/hosts/routes.h"

#include <stdio.h>

enum grid_way_state {
    GRID_WAY_UNKNOWN, /* it was not looked at */
    GRID_WAY_NONE,    /* the grid file has none */
    GRID_WAY_OPEN,
    GRID_WAY_BROKEN
};

struct grid_way {
    enum grid_way_state state;
    uint32_t over;             /* the first site that is passed, or the one that it leads to */
    bool relay_alone;          /* of one that is open: it leads to no other port there */
    char why[CW_ERR_TEXT_MAX]; /* of one that is broken */
};

struct grid_ways {
    struct grid_way from_to[GRID_SITES_MAX + 1][GRID_SITES_MAX]; /* the last from outside */
};

struct grid_way *grid_way_of(struct grid_ways *ways, uint32_t from, uint32_t to);

/* Prints sites, hosts, services, and who reaches whom how. `here`: where this machine is. */
void grid_ways_draw(struct grid_ways *ways, const struct grid *grid, uint32_t here, FILE *to);

#endif
