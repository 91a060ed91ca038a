/* SWIM with Lifeguard, as a detector: each process probes one other a period, those that it cannot
 * reach are suspected, and can refute that. As detector.h says.
 *
 * [SWIM] Das, Gupta, Motivala, "SWIM: Scalable Weakly-consistent Infection-style Process Group
 * Membership Protocol" (2002). [Lifeguard] Dadgar, Phillips, Currey, "Lifeguard: Local Health
 * Awareness for More Accurate Failure Detection" (2018). Where they leave a value open it is that
 * of hashicorp/memberlist. */
#ifndef DISPATCHER_DETECTOR_SWIM_H
#define DISPATCHER_DETECTOR_SWIM_H

#include "dispatcher/detector/detector.h"

struct swim;

struct swim *swim_new(const struct detector_config *config, const struct detector_out *out,
                      uint64_t now_ns);
void swim_free(struct swim *s);
uint64_t swim_due_ns(const struct swim *s);
void swim_advance(struct swim *s, uint64_t now_ns);
int swim_receive(struct swim *s, uint32_t from, const void *bytes, size_t size, uint64_t now_ns,
                 struct cw_err *err);
/* This process was not scheduled, or its machine stood still, until now. */
void swim_was_away(struct swim *s, uint64_t now_ns);

#endif
