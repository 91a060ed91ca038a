#include "dispatcher/run/drills.h"

#include <stdlib.h>

int drills_init(struct drills *d, const struct fault_plan *plan, const struct job *job,
                struct cw_err *err)
{
    *d = (struct drills){.plan = *plan, .job = job};
    d->killed = calloc(job->config.ranks, sizeof(*d->killed));
    return d->killed ? CW_OK : cw_err_set(err, CW_ENOMEM, "no memory for drills");
}

void drills_free(struct drills *d)
{
    free(d->killed);
    d->killed = NULL;
}

bool drills_is_rank(uint32_t victim)
{
    return victim < FAULT_RELAY_0;
}

static bool can_hit(void *ctx, enum fault_kind kind, uint32_t victim)
{
    const struct drills *d = ctx;
    const struct job *job = d->job;

    if (fault_is_relay(victim))
        return relays_listens(d->relays, victim - FAULT_RELAY_0) &&
               !relays_is_suspended(d->relays, victim - FAULT_RELAY_0);
    if (!drills_is_rank(victim))
        return true;
    return job_rank_runs(job, victim) && d->killed[victim] != job->rank[victim].incarnation &&
           (kind != FAULT_CUT || job->rank[victim].up);
}

bool drills_next(struct drills *d, const struct relays *relays, uint64_t now_ns,
                 struct fault_shot *shot)
{
    d->relays = relays;
    if (d->job->ending ||
        !fault_plan_next(&d->plan, now_ns, d->job->config.ranks, can_hit, d, shot))
        return false;
    if (shot->kind == FAULT_KILL && drills_is_rank(shot->rank))
        d->killed[shot->rank] = d->job->rank[shot->rank].incarnation;
    return true;
}

const char *drills_taken(struct drills *d, uint32_t rank, uint64_t now_ns)
{
    uint32_t incarnation = d->job->rank[rank].incarnation;
    const char *fault = fault_plan_taken(&d->plan, rank, incarnation, now_ns);

    if (fault)
        d->killed[rank] = incarnation;
    return fault;
}
