/* The units of this host, as the dispatcher orders them: what becomes of them it is told in frames.
 */
#ifndef DISPATCHER_HOST_UNITS_H
#define DISPATCHER_HOST_UNITS_H

#include "dispatcher/node/units.h"

/* With a struct mux as `ctx`. */
extern const struct units_events host_units_events;

/* AGENT_UNIT_START or AGENT_UNIT_KILL. Errors: CW_EPROTO, CW_ENOMEM. */
int host_units_start(struct units *units, const uint8_t *body, size_t size, struct cw_err *err);
int host_units_kill(struct units *units, const uint8_t *body, size_t size, struct cw_err *err);

#endif
