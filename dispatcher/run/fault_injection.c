#include "dispatcher/run/fault_injection.h"
#include "common/clock.h"

#include <stdlib.h>

int fault_injection_open(struct fault_injection *f, struct parts *parts, const struct job *job,
                         struct cw_err *err)
{
    *f = (struct fault_injection){.plan = parts->options->faults, .parts = parts, .job = job};
    f->killed = calloc(job->config.ranks, sizeof(*f->killed));
    return f->killed ? CW_OK : cw_err_set(err, CW_ENOMEM, "no memory for drills");
}

void fault_injection_close(struct fault_injection *f)
{
    free(f->killed);
}

/* Whether this is the number of a rank, and not a name that stands in the place of one. */
static bool is_rank(uint32_t victim)
{
    return victim < FAULT_RELAY_0;
}

static bool can_hit(void *ctx, enum fault_kind kind, uint32_t victim)
{
    const struct fault_injection *f = ctx;
    const struct job *job = f->job;

    if (fault_is_relay(victim))
        return relays_listens(f->parts->relays, victim - FAULT_RELAY_0) &&
               !relays_is_suspended(f->parts->relays, victim - FAULT_RELAY_0);
    if (!is_rank(victim))
        return true;
    return job_rank_runs(job, victim) && f->killed[victim] != job->rank[victim].incarnation &&
           (kind != FAULT_CUT || job->rank[victim].up);
}

static void cut(const struct fault_injection *f, uint32_t victim)
{
    struct relays *relays = f->parts->relays;

    if (is_rank(victim)) {
        relays_cut(relays, relays_home(relays, victim), victim);
        return;
    }
    for (uint32_t i = 0; i < f->parts->layout.relays; i++)
        relays_cut(relays, i, victim == FAULT_RELAYS ? CW_CUT_LINKS : CW_CUT_DISPATCHER);
}

static void hit(struct fault_injection *f, const struct fault_shot *shot)
{
    struct parts *parts = f->parts;

    if (shot->kind == FAULT_KILL && is_rank(shot->rank))
        f->killed[shot->rank] = f->job->rank[shot->rank].incarnation;
    if (shot->kind == FAULT_CUT)
        cut(f, shot->rank);
    else if (fault_is_relay(shot->rank))
        relays_kill(parts->relays, shot->rank - FAULT_RELAY_0);
    else
        remote_signal(parts->remote, job_process(f->job, shot->rank),
                      fault_kind_signal(shot->kind));
}

static void tell(struct fault_injection *f, uint64_t at_ns, const struct fault_shot *shot)
{
    bool of_rank = is_rank(shot->rank);

    log_fault(&f->parts->log, at_ns, of_rank ? shot->rank : JOB_NO_RANK,
              of_rank ? f->job->rank[shot->rank].incarnation : 0, shot->kind, shot->text);
}

void fault_injection_fire(struct fault_injection *f)
{
    struct fault_shot shot;

    while (!f->job->ending && fault_plan_next(&f->plan, loop_now_ns(f->parts->loop),
                                              f->job->config.ranks, can_hit, f, &shot)) {
        uint64_t at_ns = cw_clock_ns();

        hit(f, &shot);
        tell(f, at_ns, &shot);
    }
}

void fault_injection_taken(struct fault_injection *f, uint32_t rank)
{
    uint64_t now_ns = loop_now_ns(f->parts->loop);
    struct fault_shot shot = {.kind = FAULT_KILL, .rank = rank};

    shot.text = fault_plan_taken(&f->plan, rank, f->job->rank[rank].incarnation, now_ns);
    if (!shot.text)
        return;
    f->killed[rank] = f->job->rank[rank].incarnation;
    tell(f, now_ns, &shot);
}
