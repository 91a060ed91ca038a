/* The slots of a job: which one a rank gets in place of the one that it had. Pure. */
#ifndef DISPATCHER_SLOTS_H
#define DISPATCHER_SLOTS_H

#include "common/err.h"
#include "dispatcher/job/liveness.h"

#define JOB_NO_SITE UINT32_MAX
#define JOB_ANY_HOST UINT32_MAX

/* A place for a process. */
struct job_slot {
    uint32_t host;
    uint32_t site;      /* that the host is at */
    uint32_t ranks_max; /* that may share it; 0 is as 1 */
    uint32_t ranks;     /* that run there, or are to be started there */
    bool away;          /* its host is lost */
    bool suspect;       /* ... or may be: nothing is heard of it */
};

struct job_slots {
    struct job_slot *slot; /* borrowed */
    uint32_t count;
    bool any_site; /* a rank may go to another site than that of its first slot */
};

/* What the search for a rank's next slot goes by. */
struct slot_search {
    uint32_t site;     /* of its first slot */
    uint32_t host;     /* of the one before */
    uint32_t cut_site; /* with any_site: from where it lost its relay last; or JOB_NO_SITE */
    uint32_t bound;    /* the only host that it may be on; or JOB_ANY_HOST */
    uint32_t first;    /* of the slots to be tried ... */
    uint64_t tried;    /* ... and how many were looked at */
};

/* The rank leaves its slot. */
void job_slots_leave(struct job_slots *slots, uint32_t slot);

/* It leaves *slot, and goes to the next of those that its search has not tried. False: there is
 * none. */
bool job_slots_next(struct job_slots *slots, struct slot_search *search, uint32_t *slot);

/* Likewise, with a new search: from where it was on, or (`behind`) from the slot behind it. */
bool job_slots_move(struct job_slots *slots, struct slot_search *search, uint32_t *slot,
                    bool behind);

/* There is none: why, and what to do. */
void job_slots_why_none(const struct job_slots *slots, const struct slot_search *search,
                        char text[CW_ERR_TEXT_MAX]);

/* Of a host. BACK of one that is suspect says no more than that it is heard again: whether it can
 * be used is as before. */
void job_slots_hear(struct job_slots *slots, const struct life_event *event);

#endif
