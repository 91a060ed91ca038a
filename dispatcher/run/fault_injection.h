/* The faults that the user asked for, done to processes and connections, and told. When which one
 * is hit: dispatcher/job/fault.h. */
#ifndef DISPATCHER_FAULT_INJECTION_H
#define DISPATCHER_FAULT_INJECTION_H

#include "dispatcher/run/parts.h"

struct fault_injection {
    struct fault_plan plan;
    struct parts *parts;   /* borrowed, as the next one */
    const struct job *job; /* with its configuration */
    uint32_t *killed; /* of each rank, the last incarnation that was killed so, before its end is
                       * heard of; owned */
};

/* Errors: CW_ENOMEM. */
int fault_injection_open(struct fault_injection *faults, struct parts *parts, const struct job *job,
                         struct cw_err *err);
void fault_injection_close(struct fault_injection *faults);

/* All that are due now; to be called after every change of what runs. */
void fault_injection_fire(struct fault_injection *faults);

/* The rank reports that it kills itself. */
void fault_injection_taken(struct fault_injection *faults, uint32_t rank);

#endif
