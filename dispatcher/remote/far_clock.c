#include "dispatcher/remote/far_clock.h"

uint64_t far_clock_here(struct far_clock *clock, uint64_t now_ns, uint64_t then_ns)
{
    int64_t behind_ns = (int64_t)(now_ns - then_ns);

    if (!clock->known || behind_ns < clock->behind_ns)
        clock->behind_ns = behind_ns;
    clock->known = true;
    return then_ns + (uint64_t)clock->behind_ns;
}
