/* The hits of drills: what is due is done to processes and connections, and told. */
#ifndef DISPATCHER_HITS_H
#define DISPATCHER_HITS_H

#include "dispatcher/run/drills.h"
#include "dispatcher/run/parts.h"

/* All that are due now. */
void hits_fire(struct drills *drills, struct parts *parts);

/* `fault` hit this rank, or what stands in the place of one. */
void hits_tell(const struct drills *drills, struct parts *parts, uint64_t at_ns, uint32_t victim,
               enum fault_kind kind, const char *fault);

#endif
