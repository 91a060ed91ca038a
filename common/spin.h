/* Yielding while spinning. A yield costs 0.5 us even where nobody else wants the core. So each one
 * is timed, and while yields return at once only few are made. Pure but for cw_spin_turn().
 *
 * Thread rule: a struct belongs to one thread. */
#ifndef CW_SPIN_H
#define CW_SPIN_H

#include "common/clock.h"

#include <sched.h>
#include <stdbool.h>

/* Without this rule 1 MiB between two ranks takes 1.13 times as long (NPmpich2, 2 cores, 12 runs of
 * each by turns), and 1 B 1.08 times. */
#define CW_SPIN_ALONE_NS 900u  /* a yield that returns sooner found nobody waiting for the core */
#define CW_SPIN_ALONE_MIN 4u   /* after so many of these in a row the core is ours alone, ... */
#define CW_SPIN_EVERY_NS 3000u /* ... and this long passes before the next yield */

struct cw_spin {
    uint32_t alone;      /* yields in a row that found nobody */
    uint64_t yielded_ns; /* when the last yield returned, or what is waited for began */
    uint64_t taken_ns;   /* how long it took */
};

/* Whether others want this core: then it is given away after each piece of work. */
static inline bool cw_spin_shared(const struct cw_spin *spin)
{
    return spin->alone < CW_SPIN_ALONE_MIN;
}

/* A wait begins that is often short: the first yield in it is due later, if the core is ours alone.
 */
static inline void cw_spin_begin(struct cw_spin *spin, uint64_t now_ns)
{
    spin->yielded_ns = now_ns;
}

/* Whether a yield is due. */
static inline bool cw_spin_is_due(const struct cw_spin *spin, uint64_t now_ns)
{
    return cw_spin_shared(spin) || now_ns - spin->yielded_ns >= CW_SPIN_EVERY_NS;
}

/* A yield has taken from `before_ns` to `after_ns`. */
static inline void cw_spin_yielded(struct cw_spin *spin, uint64_t before_ns, uint64_t after_ns)
{
    spin->yielded_ns = after_ns;
    spin->taken_ns = after_ns - before_ns;
    spin->alone = spin->taken_ns < CW_SPIN_ALONE_NS ? spin->alone + 1 : 0;
}

/* One turn that found nothing: yields, if that is due. Returns whether it made the system call. */
static inline bool cw_spin_turn(struct cw_spin *spin, uint64_t now_ns)
{
    if (!cw_spin_is_due(spin, now_ns))
        return false;
    sched_yield();
    cw_spin_yielded(spin, now_ns, cw_clock_ns());
    return true;
}

#endif
