/* The drills that the user asked for: when which rank or connection is hit. The hits are the
 * caller's. */
#ifndef DISPATCHER_DRILLS_H
#define DISPATCHER_DRILLS_H

#include "dispatcher/job/fault.h"
#include "dispatcher/job/job.h"
#include "dispatcher/relays/relays.h"

struct drills {
    struct fault_plan plan;
    const struct job *job;       /* borrowed */
    const struct relays *relays; /* of drills_next; borrowed */
    uint32_t *killed; /* of each rank, the last incarnation that a drill killed, before its end is
                       * heard of; owned */
};

/* `job` has its configuration, and is borrowed. Errors: CW_ENOMEM. */
int drills_init(struct drills *drills, const struct fault_plan *plan, const struct job *job,
                struct cw_err *err);
void drills_free(struct drills *drills);

/* The next hit that is due; call it until it says false, after every change of what runs. The hit
 * is taken as made. */
bool drills_next(struct drills *drills, const struct relays *relays, uint64_t now_ns,
                 struct fault_shot *shot);

/* The rank reports that it kills itself. Returns the text of the fault; NULL: none is known. */
const char *drills_taken(struct drills *drills, uint32_t rank, uint64_t now_ns);

/* Whether this is the number of a rank, and not a name that stands in the place of one. */
bool drills_is_rank(uint32_t victim);

#endif
