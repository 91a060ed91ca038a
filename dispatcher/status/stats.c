#include "dispatcher/status/stats.h"

#include <inttypes.h>
#include <stdio.h>

static void print_rank(FILE *to, const struct cw_stats *s, uint32_t restarts)
{
    const struct cw_rank_stats *r = &s->of_rank;

    fprintf(
        to,
        "%6u %10" PRIu64 " %14" PRIu64 " %10" PRIu64 " %14" PRIu64 " %10" PRIu64 " %12" PRIu64
        " %8" PRIu64 " %12" PRIu64 " %9" PRIu64 " %10" PRIu64 " %10" PRIu64 " %12" PRIu64 " %8u\n",
        s->rank, r->sent, r->sent_bytes, r->received, r->received_bytes, r->unexpected, r->polls,
        r->sleeps, r->syscalls, r->switches, r->events, r->acts, r->log_bytes, restarts);
}

/* The relay's own counts, as they came with those of its last rank. */
static void print_relay(FILE *to, const struct cw_relay_stats *relay)
{
    fprintf(to,
            " relay: frames in %" PRIu64 ", out %" PRIu64 "; wakeups %" PRIu64 ", sleeps %" PRIu64
            ", syscalls %" PRIu64 ", switches %" PRIu64 "; allocations %" PRIu64 "; memory %" PRIu64
            " bytes, at most %" PRIu64 "; to other relays %" PRIu64 " messages, %" PRIu64
            " bytes\n",
            relay->frames_in, relay->frames_out, relay->wakeups, relay->sleeps, relay->syscalls,
            relay->switches, relay->allocations, relay->memory_now, relay->memory_max,
            relay->forwarded, relay->forwarded_bytes);
}

void stats_print(FILE *to, const struct cw_stats *stats, const struct job_rank *job_ranks,
                 uint32_t ranks, const uint8_t *homes, uint32_t relays)
{
    fprintf(to, "%6s %10s %14s %10s %14s %10s %12s %8s %12s %9s %10s %10s %12s %8s\n", "rank",
            "sent", "bytes", "received", "bytes", "unexpected", "polls", "sleeps", "syscalls",
            "switches", "events", "acts", "log_bytes", "restarts");
    for (uint32_t rank = 0; rank < ranks; rank++)
        print_rank(to, &stats[rank], job_ranks[rank].restarts);
    for (uint32_t relay = 0; relay < relays; relay++)
        for (uint32_t rank = ranks; rank-- > 0;)
            if (!homes || homes[rank] == relay) {
                print_relay(to, &stats[rank].of_relay);
                break;
            }
}
