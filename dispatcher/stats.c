#include "dispatcher/stats.h"

#include <inttypes.h>
#include <stdio.h>

static void print_rank(const struct cw_stats *s, uint32_t restarts)
{
    const struct cw_rank_stats *r = &s->of_rank;

    fprintf(
        stderr,
        "%6u %10" PRIu64 " %14" PRIu64 " %10" PRIu64 " %14" PRIu64 " %10" PRIu64 " %12" PRIu64
        " %8" PRIu64 " %12" PRIu64 " %9" PRIu64 " %10" PRIu64 " %10" PRIu64 " %12" PRIu64 " %8u\n",
        s->rank, r->sent, r->sent_bytes, r->received, r->received_bytes, r->unexpected, r->polls,
        r->sleeps, r->syscalls, r->switches, r->events, r->acts, r->log_bytes, restarts);
}

void stats_print(const struct cw_stats *stats, const struct job_rank *job_ranks, uint32_t ranks)
{
    const struct cw_relay_stats *relay = &stats[ranks - 1].of_relay;

    fprintf(stderr, "%6s %10s %14s %10s %14s %10s %12s %8s %12s %9s %10s %10s %12s %8s\n", "rank",
            "sent", "bytes", "received", "bytes", "unexpected", "polls", "sleeps", "syscalls",
            "switches", "events", "acts", "log_bytes", "restarts");
    for (uint32_t rank = 0; rank < ranks; rank++)
        print_rank(&stats[rank], job_ranks[rank].restarts);
    fprintf(stderr,
            " relay: frames in %" PRIu64 ", out %" PRIu64 "; wakeups %" PRIu64 ", sleeps %" PRIu64
            ", syscalls %" PRIu64 ", switches %" PRIu64 "; allocations %" PRIu64 "; memory %" PRIu64
            " bytes, at most %" PRIu64 "\n",
            relay->frames_in, relay->frames_out, relay->wakeups, relay->sleeps, relay->syscalls,
            relay->switches, relay->allocations, relay->memory_now, relay->memory_max);
}
