/* Faults for drills: which rank or relay is killed or stopped, which connections are
 * broken, and when. Pure: no I/O, no clock (times are
 * given), no thread; the same seed picks the same victims. */
#ifndef DISPATCHER_FAULT_H
#define DISPATCHER_FAULT_H

#include "common/frame.h"

#include <stdbool.h>
#include <stdint.h>

#define FAULTS_MAX 64
/* In place of a rank: */
#define FAULT_RANDOM UINT32_MAX                     /* any rank */
#define FAULT_RELAYS (UINT32_MAX - 1)               /* the connections between relays */
#define FAULT_DISPATCHER (UINT32_MAX - 2)           /* those of the dispatcher */
#define FAULT_RELAY (UINT32_MAX - 3)                /* the process of a relay of the job's own */
#define FAULT_RELAY_0 (FAULT_RELAY - CW_RELAYS_MAX) /* of this one; those behind it follow */
#define FAULT_EVERY_NS_MIN 1000000ull               /* of a fault that repeats */
#define FAULT_SEED 1ull                             /* unless the user gives one */
#define FAULT_FORMS                                                                                \
    "kill:RANK[,RANK...]@TIME, stop:RANK[,RANK...]@TIME, kill:RANK[,RANK...]@event:N, "            \
    "kill:random@TIME or stop:random@TIME; cut:RANK[,RANK...]@TIME, cut:random@TIME, "             \
    "cut:relays@TIME or cut:dispatcher@TIME; kill:relay@TIME or kill:relayN@TIME"

enum fault_kind {
    FAULT_KILL,
    FAULT_STOP,
    FAULT_CUT, /* the connection is broken */
};

enum fault_when {
    FAULT_AT,    /* once, this long after the ranks were started */
    FAULT_EVERY, /* again and again, after 0.5 to 1.5 times this long */
    FAULT_EVENT, /* by the rank itself, when it takes this event */
    FAULT_WITH,  /* once, as soon as the FAULT_EVENT before it in the plan has fired */
};

/* Of one rank: an option that names several ranks makes one of each. */
struct fault {
    const char *text; /* as the user gave it; borrowed */
    enum fault_kind kind;
    enum fault_when when;
    uint32_t rank; /* or what stands in place of one: FAULT_RANDOM with FAULT_EVERY alone,
                    * FAULT_RELAYS and FAULT_DISPATCHER with FAULT_CUT, relays with FAULT_KILL */
    uint64_t time_ns;
    uint64_t event;
    uint64_t next_ns; /* when it is due; UINT64_MAX: not known */
    bool fired;
    bool waits; /* it is due, but its rank does not run */
};

struct fault_plan {
    struct fault faults[FAULTS_MAX];
    uint32_t count;
    uint32_t relays; /* of the job's own */
    uint64_t seed;
    uint64_t random; /* state of the generator */
    bool started;
};

/* One fault that is due now. */
struct fault_shot {
    enum fault_kind kind;
    uint32_t rank;    /* never FAULT_RANDOM or FAULT_RELAY */
    const char *text; /* of the fault, as the user gave it */
};

/* "kill", "stop", "cut" */
const char *fault_kind_name(enum fault_kind kind);

/* SIGKILL, SIGSTOP; FAULT_CUT has none. */
int fault_kind_signal(enum fault_kind kind);

/* `text` has one of FAULT_FORMS; there is room for `room` faults. Returns how many they are, in the
 * order of the ranks. Errors: CW_EINVAL, naming the text, what is wrong, and the forms. */
int fault_parse(struct fault *faults, uint32_t room, const char *text, struct cw_err *err);

void fault_plan_init(struct fault_plan *plan);

/* Before fault_plan_start. */
void fault_plan_seed(struct fault_plan *plan, uint64_t seed);

/* Parses `text`, which must outlive the plan, and adds it. Errors: CW_EINVAL, as fault_parse; there
 * is room for FAULTS_MAX, each rank of a list counting as one. */
int fault_plan_add(struct fault_plan *plan, const char *text, struct cw_err *err);

/* Of a job of `ranks` that started `relays` itself: whether the ranks and relays named are its own.
 * Errors: CW_EINVAL. */
int fault_plan_check(struct fault_plan *plan, uint32_t ranks, uint32_t relays, struct cw_err *err);

/* The ranks have been started: times count from now. */
void fault_plan_start(struct fault_plan *plan, uint64_t now_ns);

/* When fault_plan_next may have something new by time alone; UINT64_MAX: never. */
uint64_t fault_plan_deadline_ns(const struct fault_plan *plan);

/* Whether it stands for a relay, whose number is then victim - FAULT_RELAY_0. */
static inline bool fault_is_relay(uint32_t victim)
{
    return victim >= FAULT_RELAY_0 && victim <= FAULT_RELAY;
}

/* Whether a fault of this kind can hit this victim of a fault_shot now. */
typedef bool fault_can_hit(void *ctx, enum fault_kind kind, uint32_t rank);

/* The next fault that is due; call it until it says false, after every change of what runs. One
 * whose victim cannot be hit waits until it can; a random victim that cannot is let off. */
bool fault_plan_next(struct fault_plan *plan, uint64_t now_ns, uint32_t ranks,
                     fault_can_hit *can_hit, void *ctx, struct fault_shot *shot);

/* The fault at an event that is for this incarnation (from 1), which kills itself there; NULL if
 * none. Several of one rank are for successive incarnations, in the order of the options:
 * kill:2@event:9 and then kill:2@event:5 kills the second while it repeats. Those of a list that
 * are behind its first rank do not count. */
const struct fault *fault_plan_at_event(const struct fault_plan *plan, uint32_t rank,
                                        uint32_t incarnation);

/* This incarnation kills itself now: the other ranks of its fault are due. Returns the text of the
 * fault; NULL if none. */
const char *fault_plan_taken(struct fault_plan *plan, uint32_t rank, uint32_t incarnation,
                             uint64_t now_ns);

/* Its event, for the setup; 0 if none. */
uint64_t fault_plan_event_of(const struct fault_plan *plan, uint32_t rank, uint32_t incarnation);

#endif
