#include "dispatcher/job/liveness.h"

uint64_t life_end_ns(const struct life *life, uint64_t timeout_ns)
{
    uint64_t silent_ns = timeout_ns ? life->heard_ns + timeout_ns : UINT64_MAX;

    if (life->ended)
        return UINT64_MAX;
    return life->dead_ns && life->dead_ns < silent_ns ? life->dead_ns : silent_ns;
}

uint64_t life_absence_ns(uint64_t *looked_ns, uint64_t timeout_ns, uint64_t now_ns)
{
    uint64_t gap_ns = *looked_ns ? now_ns - *looked_ns : 0;

    *looked_ns = now_ns;
    return gap_ns > timeout_ns / 2 ? gap_ns : 0;
}

void life_forgive(struct life *life, uint64_t absence_ns, uint64_t now_ns)
{
    life->heard_ns += absence_ns;
    if (life->heard_ns > now_ns)
        life->heard_ns = now_ns;
}
