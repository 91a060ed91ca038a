#include "dispatcher/run/protection.h"

#include <stdio.h>

static uint64_t now_of(const struct protection *p)
{
    return loop_now_ns(p->parts->loop);
}

/* Says so to the events file alone. Returns true when that is news. */
static bool mark(struct protection *p, uint32_t rank, const char *why)
{
    char who[CW_ERR_TEXT_MAX] = "the ranks";

    if (p->parts->options->no_log || !job_rank_unlogged(p->job, rank, why, now_of(p)) ||
        p->job->ending)
        return false;
    telling_warn(&p->parts->telling, now_of(p), rank, "can no longer be restarted", why);
    if (rank != JOB_NO_RANK)
        snprintf(who, sizeof(who), "rank %u (%s)", rank, p->job->rank[rank].program);
    if (p->parts->options->log_lost_ends)
        job_fail(p->job, 1, now_of(p), "%s can no longer be restarted: %s (--log-lost end)", who,
                 why);
    return true;
}

void protection_lost(struct protection *p, uint32_t rank, const char *why)
{
    if (!mark(p, rank, why))
        return;
    if (rank == JOB_NO_RANK)
        telling_tell(&p->parts->telling, "the ranks can no longer be restarted: %s", why);
    else
        telling_tell(&p->parts->telling, "rank %u can no longer be restarted: %s", rank, why);
}

void protection_unsynced(struct protection *p, const char *relay, const char *why)
{
    static const char text[] = "a relay's log no longer survives the loss of power";

    telling_warn(&p->parts->telling, now_of(p), JOB_NO_RANK, text, why);
    telling_tell(&p->parts->telling, "relay %s: its log no longer survives the loss of power: %s",
                 relay, why);
}

void protection_unsafe(struct protection *p, uint32_t rank, bool own, const char *why)
{
    struct relays *relays = p->parts->relays;

    if (p->job->rank[rank].state == JOB_RANK_ENDED)
        return;
    if (mark(p, rank, why) && !p->told_shared) {
        p->told_shared = true;
        telling_tell(&p->parts->telling,
                     "rank %u can no longer be restarted: %s; nor can other ranks that share files "
                     "so (if that is safe in this program: --trust-files)",
                     rank, why);
    }
    /* that of the rank's own report was not open before it had repeated all */
    if (own || !job_rank_repeats(p->job, rank))
        return;
    relays_hear(relays, relays_home(relays, rank));
    if (job_rank_repeats(p->job, rank))
        job_fail(p->job, 1, now_of(p),
                 "rank %u (%s) was restarted, and repeats what it must not: %s", rank,
                 p->job->rank[rank].program, why);
}
