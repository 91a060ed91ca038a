/* The dispatcher's loop, common/loop.h, over the simulated system. */
#ifndef SIM_LOOP_H
#define SIM_LOOP_H

#include "common/loop.h"

#include <stdbool.h>

bool loop_can(struct loop *loop);
/* Calls one of the handlers that are to be called. */
void loop_step(struct loop *loop);
/* UINT64_MAX: no time is waited for. */
uint64_t loop_deadline_ns(const struct loop *loop);

#endif
