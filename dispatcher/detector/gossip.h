/* The heartbeat protocols of a detector: tables of heartbeats that are sent on and merged, and the
 * ping procedure. [FM] sections 4 and 5. As detector.h says. */
#ifndef DISPATCHER_DETECTOR_GOSSIP_H
#define DISPATCHER_DETECTOR_GOSSIP_H

#include "dispatcher/detector/detector.h"

struct gossip;

struct gossip *gossip_new(const struct detector_config *config, const struct detector_out *out,
                          uint64_t now_ns);
void gossip_free(struct gossip *g);
uint64_t gossip_due_ns(const struct gossip *g);
void gossip_advance(struct gossip *g, uint64_t now_ns);
int gossip_receive(struct gossip *g, uint32_t from, const void *bytes, size_t size, uint64_t now_ns,
                   struct cw_err *err);
/* This process was not scheduled, or its machine stood still, until now. */
void gossip_was_away(struct gossip *g, uint64_t now_ns);

#endif
