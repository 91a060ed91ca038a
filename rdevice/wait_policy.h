/* How a rank waits for its relay: the decisions alone. wait.c gathers the facts and carries the
 * decisions out. Pure: no clock, no system call, nothing remembered. Times are nanoseconds.
 * docs/tuning.md has each rule in words.
 *
 * Thread rule: none; everything is passed in. */
#ifndef RDEVICE_WAIT_POLICY_H
#define RDEVICE_WAIT_POLICY_H

#include <stdbool.h>
#include <stdint.h>

enum wait_step {
    WAIT_LOOK,      /* return at once: the caller looks again */
    WAIT_YIELD,     /* give the core away once, if a yield is due (common/spin.h) */
    WAIT_HAND_OVER, /* give the core away as soon as MPICH's lock is released */
    WAIT_SLEEP,     /* in poll(), for wait_sleep_ns() */
};

/* A call for progress that found nothing. */
struct wait_facts {
    uint64_t spin_ns;   /* a rank that waits yields that long, then sleeps; 0: ranks share cores */
    bool waits;         /* this call of MPI has asked in vain before: it cannot return yet */
    bool polls;         /* else: the call before it asked once and returned, too */
    uint64_t waited_ns; /* of a call that waits: since it asked the second time */
    bool others_call;   /* several threads call MPI, and this call has asked before ... */
    uint64_t others_ns; /* ... and another thread called that long ago */
};

enum wait_step wait_choose(const struct wait_facts *facts);

/* How long a rank that has waited for `waited_ns` sleeps at most. `threads`: several call MPI. */
uint64_t wait_sleep_ns(uint64_t waited_ns, bool threads);

/* Where a rank runs. */
struct wait_place {
    bool talks;           /* wait_talks() */
    bool beside_relay;    /* the relay was last seen on this core */
    uint32_t slow_yields; /* in a row: wait_slow_yields() */
    uint64_t moved_ns;    /* since this rank last moved to another core */
};

/* Whether it should run on another core, if it has a core for itself: wait_has_core(). */
bool wait_is_misplaced(const struct wait_place *place);

/* Whether there is a core for each rank. `cores`: those that this process may run on; 0: not known.
 */
bool wait_has_core(uint32_t ranks, uint32_t cores);

/* Whether a rank that sleeps should be bound to its core until it wakes; `spin_ns` and `threads` as
 * above. */
bool wait_keeps_core(uint64_t spin_ns, bool threads, uint32_t ranks, uint32_t cores);

/* How long the program lately was outside of MPI: the longest time, which fades. Returns what
 * `gap_ns` becomes when the program comes back after `outside_ns`. */
uint64_t wait_gap(uint64_t gap_ns, uint64_t outside_ns);
/* Whether the program only exchanges messages, by this gap: it does not compute between them. */
bool wait_talks(uint64_t gap_ns);

/* How many yields in a row were slow, after one that took `taken_ns`. */
uint32_t wait_slow_yields(uint32_t slow_yields, uint64_t taken_ns);

/* Whether a rank yields once before its program goes on. `rang`: it has woken the relay since its
 * last yield. */
bool wait_lets_relay_on(bool rang, uint64_t spin_ns);

#endif
