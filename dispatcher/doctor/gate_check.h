/* The way from this machine to a site of a grid, and its relay. Blocks, with a bound on each wait.
 */
#ifndef DISPATCHER_GATE_CHECK_H
#define DISPATCHER_GATE_CHECK_H

#include "dispatcher/doctor/findings.h"
#include "dispatcher/grid/routes.h"

struct gate_check {
    const struct grid *grid;
    uint32_t here;          /* the site of this machine, or GRID_OUTSIDE */
    const char *file;       /* of the grid, for messages */
    const char *ssh_config; /* its name, likewise */
    const uint8_t *key;     /* of relays; NULL: this machine has none */
    uint32_t time_ms;       /* for a connection */
};

/* Opens the best way to the relay, and a session with it; says what works, what fails, and what to
 * do. Returns whether its gateways let us in. Several threads may do so. */
bool gate_check(const struct gate_check *check, uint32_t site, struct findings *findings);

#endif
