/* The way from this machine to a site of a grid, and its relay. Blocks, with a bound on each wait.
 */
#ifndef DISPATCHER_GATE_CHECK_H
#define DISPATCHER_GATE_CHECK_H

#include "dispatcher/doctor/findings.h"
#include "dispatcher/hosts/grid_state.h"

struct gate_check {
    const struct grid_place *place;
    const char *file;   /* of the grid, for messages */
    const uint8_t *key; /* of relays; NULL: this machine has none */
    uint32_t time_ms;   /* for a connection */
};

/* Opens the best way to the relay, and a session with it; says what works, what fails, and what to
 * do. Returns whether its gateways let us in. Several threads may do so. */
bool gate_check(const struct gate_check *check, uint32_t site, struct findings *findings);

enum relay_found {
    RELAY_NO_WAY,  /* the way there fails: a gateway, a login, forwarding, ... */
    RELAY_OFF,     /* nobody listens there, as the last gateway says */
    RELAY_OTHER,   /* somebody does, who is no relay of ours, or has another key */
    RELAY_LISTENS, /* somebody does; without a key nothing more is known */
    RELAY_TAKES    /* the relay took the key, and has shown that it has it, too */
};

/* Connects within `time_ms`, and opens a job of one rank, which ends at once. `key`: of the relay;
 * NULL: it is not known. Except with the last two, *err says why. */
enum relay_found relay_check(const char *address, uint32_t time_ms, const uint8_t *key,
                             struct cw_err *err);

#endif
