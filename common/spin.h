/* Giving the core away while spinning. A yield costs half a microsecond even where nobody else
 * wants the core; so it is timed, and while it keeps returning at once it is made only now and
 * then.
 */
#ifndef CW_SPIN_H
#define CW_SPIN_H

#include "common/clock.h"

#include <sched.h>
#include <stdbool.h>

#define CW_SPIN_ALONE_NS 900u  /* a yield that returns sooner found nobody waiting */
#define CW_SPIN_ALONE_MIN 4u   /* so many in a row: we are alone on the core */
#define CW_SPIN_EVERY_NS 3000u /* then this long passes before the next */

struct cw_spin {
    uint32_t alone;
    uint64_t yielded_ns; /* when the last yield returned */
};

/* One turn that found nothing. Returns true when it made the system call. */
static inline bool cw_spin_turn(struct cw_spin *spin)
{
    uint64_t before = cw_clock_ns();

    if (spin->alone >= CW_SPIN_ALONE_MIN && before - spin->yielded_ns < CW_SPIN_EVERY_NS)
        return false;
    sched_yield();
    spin->yielded_ns = cw_clock_ns();
    spin->alone = spin->yielded_ns - before < CW_SPIN_ALONE_NS ? spin->alone + 1 : 0;
    return true;
}

/* True when others want this core: after each piece of work it should be given away. */
static inline bool cw_spin_shared(const struct cw_spin *spin)
{
    return spin->alone < CW_SPIN_ALONE_MIN;
}

#endif
