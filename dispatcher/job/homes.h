/* Which relay of a job is the home of which rank. [Relay] 3.1: "Each node has a preferred relay,
 * which handles the messages sent to the node." */
#ifndef DISPATCHER_HOMES_H
#define DISPATCHER_HOMES_H

#include "common/frame.h"

/* Fills homes[rank], `ranks` of them, with numbers below `relays`: in turn when `map` is NULL, or
 * by a map: RELAY[*COUNT], and so on with commas between, for all ranks in order. Errors:
 * CW_EINVAL. */
int homes_fill(uint8_t *homes, uint32_t ranks, uint32_t relays, const char *map,
               struct cw_err *err);

/* The next ROUTE that tells of ranks not told of yet: fills home, first, step and count, and notes
 * in told[rank] what is told. Returns false when all are. */
bool homes_next_route(const uint8_t *homes, uint32_t ranks, bool *told, struct cw_route *route);

/* The setting NAME=VALUE that tells ranks of their homes (common/setup.h). The caller frees it;
 * NULL: no memory. */
char *homes_setting(const uint8_t *homes, uint32_t ranks);

#endif
