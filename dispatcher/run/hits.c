#include "dispatcher/run/hits.h"
#include "common/clock.h"

static void cut(struct parts *parts, uint32_t victim)
{
    struct relays *relays = parts->relays;

    if (drills_is_rank(victim)) {
        relays_cut(relays, relays_home(relays, victim), victim);
        return;
    }
    for (uint32_t i = 0; i < parts->options->relays; i++)
        relays_cut(relays, i, victim == FAULT_RELAYS ? CW_CUT_LINKS : CW_CUT_DISPATCHER);
}

void hits_tell(const struct drills *drills, struct parts *parts, uint64_t at_ns, uint32_t victim,
               enum fault_kind kind, const char *fault)
{
    bool is_rank = drills_is_rank(victim);

    telling_fault(&parts->telling, at_ns, is_rank ? victim : JOB_NO_RANK,
                  is_rank ? drills->job->rank[victim].incarnation : 0, kind, fault);
}

void hits_fire(struct drills *drills, struct parts *parts)
{
    struct fault_shot shot;

    while (drills_next(drills, parts->relays, loop_now_ns(parts->loop), &shot)) {
        uint64_t at_ns = cw_clock_ns();

        if (shot.kind == FAULT_CUT)
            cut(parts, shot.rank);
        else if (fault_is_relay(shot.rank))
            relays_kill(parts->relays, shot.rank - FAULT_RELAY_0);
        else
            parts->launcher_ops->signal(parts->launcher, shot.rank, fault_kind_signal(shot.kind));
        hits_tell(drills, parts, at_ns, shot.rank, shot.kind, shot.text);
    }
}
