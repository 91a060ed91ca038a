#include "common/restarts.h"

static uint64_t next_pause_ns(const struct relay_restarts *r, uint64_t now_ns)
{
    if (r->count == 0 || now_ns >= r->started_ns + RELAY_STEADY_NS)
        return 0;
    if (r->pause_ns == 0)
        return RELAY_PAUSE_MIN_NS;
    return 2 * r->pause_ns < RELAY_PAUSE_MAX_NS ? 2 * r->pause_ns : RELAY_PAUSE_MAX_NS;
}

bool relay_restarts_next(struct relay_restarts *r, uint64_t now_ns, uint64_t *at_ns)
{
    /* what killed it once a week does not count for ever */
    if (r->count > 0 && now_ns >= r->started_ns + RELAY_FORGET_NS)
        r->in_row = 0;
    if (r->in_row == RELAY_RESTARTS_MAX)
        return false;
    r->pause_ns = next_pause_ns(r, now_ns);
    r->started_ns = now_ns + r->pause_ns;
    r->count++;
    r->in_row++;
    *at_ns = r->started_ns;
    return true;
}
