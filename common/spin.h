/* Yielding while spinning. A yield costs 0.5 us even where nobody else wants the core. So each one
 * is timed, and while yields return at once only few are made. Pure but for cw_spin_turn().
 *
 * Thread rule: a struct belongs to one thread. */
#ifndef CW_SPIN_H
#define CW_SPIN_H

#include "common/clock.h"

#include <sched.h>
#include <stdbool.h>

/* A yield that returns sooner found nobody waiting for the core; or sooner than twice the fastest
 * one, but at most the second figure. On a virtual machine a yield that finds nobody took 0.6 to
 * 1.1 us, one that gives the core to another process and gets it back 3.2 us or more. */
#define CW_SPIN_ALONE_NS 900u
#define CW_SPIN_ALONE_MAX_NS 1800u
/* Without this rule 1 MiB between two ranks takes 1.13 times as long (NPmpich2, 2 cores, 12 runs of
 * each by turns), and 1 B 1.08 times. */
#define CW_SPIN_ALONE_MIN 4u   /* after so many of these in a row the core is ours alone, ... */
#define CW_SPIN_EVERY_NS 3000u /* ... and this long passes before the next yield */

struct cw_spin {
    uint32_t alone;      /* yields in a row that found nobody */
    uint64_t yielded_ns; /* when the last yield returned, or what is waited for began */
    uint64_t taken_ns;   /* how long it took */
    uint64_t fastest_ns; /* of all so far; 0: there was none */
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

/* Whether a yield that took so long found nobody. */
static inline bool cw_spin_found_nobody(const struct cw_spin *spin, uint64_t taken_ns)
{
    uint64_t below_ns = 2 * spin->fastest_ns;

    if (below_ns > CW_SPIN_ALONE_MAX_NS)
        below_ns = CW_SPIN_ALONE_MAX_NS;
    return taken_ns < CW_SPIN_ALONE_NS || taken_ns < below_ns;
}

/* A yield has taken from `before_ns` to `after_ns`. */
static inline void cw_spin_yielded(struct cw_spin *spin, uint64_t before_ns, uint64_t after_ns)
{
    spin->yielded_ns = after_ns;
    spin->taken_ns = after_ns - before_ns;
    if (spin->fastest_ns == 0 || spin->taken_ns < spin->fastest_ns)
        spin->fastest_ns = spin->taken_ns;
    spin->alone = cw_spin_found_nobody(spin, spin->taken_ns) ? spin->alone + 1 : 0;
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
