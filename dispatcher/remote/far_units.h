/* The units of a job that stand on its hosts: their agents start them, and tell what becomes of
 * them. In the job's loop. */
#ifndef DISPATCHER_FAR_UNITS_H
#define DISPATCHER_FAR_UNITS_H

#include "dispatcher/node/units.h"
#include "dispatcher/remote/agents.h"

struct far_units;

/* A user of the agents. NULL with *err set: CW_ENOMEM. */
struct far_units *far_units_new(struct agents *agents, const struct units_events *events, void *ctx,
                                struct cw_err *err);
/* After the agents. NULL is allowed. */
void far_units_free(struct far_units *units);

/* It is started on this host: once. Errors: as agents_tell. */
int far_units_start(struct far_units *units, uint32_t host, const struct agent_unit *order,
                    struct cw_err *err);
/* A drill: SIGKILL. */
void far_units_kill(struct far_units *units, uint32_t number);

/* The name of the host that it was ordered on. */
const char *far_units_host(const struct far_units *units, uint32_t number);

#endif
