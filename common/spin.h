/* Giving the core away while spinning. A yield costs half a microsecond even where nobody else
 * wants the core; so it is timed, and one that keeps returning at once is made only now and then.
 */
#ifndef CW_SPIN_H
#define CW_SPIN_H

#include "common/clock.h"

#include <sched.h>
#include <stdbool.h>

#define CW_SPIN_ALONE_NS 900u /* a yield that returns sooner found nobody waiting */
#define CW_SPIN_ALONE_MIN 4u  /* so many in a row: we are alone on the core */
#define CW_SPIN_TURNS 8u      /* then only every so many turns yield */

struct cw_spin {
    uint32_t alone;
    uint32_t turns;
};

/* One turn that found nothing. Returns true when it made the system call. */
static inline bool cw_spin_turn(struct cw_spin *spin)
{
    uint64_t before;

    if (spin->alone >= CW_SPIN_ALONE_MIN && ++spin->turns % CW_SPIN_TURNS != 0)
        return false;
    before = cw_clock_ns();
    sched_yield();
    spin->alone = cw_clock_ns() - before < CW_SPIN_ALONE_NS ? spin->alone + 1 : 0;
    return true;
}

/* True when others want this core: after each piece of work it should be given away. */
static inline bool cw_spin_shared(const struct cw_spin *spin)
{
    return spin->alone < CW_SPIN_ALONE_MIN;
}

#endif
