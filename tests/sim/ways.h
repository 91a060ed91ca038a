/* Ways between relays, and from the dispatcher to them: over gateways that fail for a time, as the
 * tunnels of an address with several ways see it. */
#ifndef SIM_WAYS_H
#define SIM_WAYS_H

#include "tests/sim/socket.h"

#include <stdint.h>

#define SIM_WAYS_MAX 3u
#define WAYS_DISPATCHER UINT32_MAX /* in place of a relay's number */

/* The best way from there to that relay that is not down. False: all are. */
bool ways_choose(uint32_t from, uint32_t to, struct connection_way *way);

/* Gateways fail: some ways, or all between two parts of the relays. What goes over them breaks. */
void ways_fail(void);

#endif
