/* How the job stands: for those who ask while it runs, and for --stats at its end. */
#include "dispatcher/run_state.h"
#include "dispatcher/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define STATS_NS 5000000000ull /* for the relay's answer at the end */

int run_open_status(struct run *run, struct cw_err *err)
{
    gethostname(run->host, sizeof(run->host) - 1);
    clock_gettime(CLOCK_REALTIME, &run->started);
    if (status_open(&run->status, run->dir.path, err) < 0)
        return err->code;
    if (run_watch(run, run->status.fd, SOURCE_STATUS, 0, EPOLLIN) < 0)
        return cw_err_set(err, CW_ESYS, "watching %s/" STATUS_NAME, run->dir.path);
    return CW_OK;
}

static void ask_stats(struct run *run)
{
    struct cw_err err;

    run->stats_received = 0;
    for (uint32_t i = 0; i < run->options->relays; i++)
        if (run->relays[i].link.fd >= 0)
            relay_link_ask_stats(&run->relays[i].link, &err);
}

static struct status_rank status_of(const struct run *run, uint32_t rank)
{
    const struct job_rank *r = &run->job_ranks[rank];
    const struct cw_rank_stats *s = &run->stats[rank].of_rank;

    return (struct status_rank){
        .rank = rank,
        .pid = (uint64_t)run->ranks[rank].process.pid,
        .host = run->host,
        .slot = r->slot,
        .incarnation = r->incarnation,
        .state = job_rank_condition(&run->job, rank, run->options->alive_period_ns, run->now_ns),
        .events = s->events,
        .taken = s->taken,
        .replayed = s->replayed,
        .to_replay = r->to_repeat,
        .acts = s->acts,
        .log_bytes = s->log_bytes,
        .restarts = r->restarts,
        .program = r->program};
}

static void answer(struct run *run)
{
    struct status_rank *ranks = calloc(run->options->ranks, sizeof(*ranks));
    char relays[CW_RELAYS_MAX * CW_ADDRESS_MAX];
    char command[STATUS_COMMAND_MAX];
    struct status_job job = {.id = run->job_id,
                             .pid = (uint64_t)getpid(),
                             .started = run->started,
                             .command = command,
                             .relay = relays,
                             .rank = ranks,
                             .ranks = run->options->ranks};
    json_t *document = NULL;

    run_relay_addresses(run, relays, sizeof(relays));
    status_command(run->options, command);
    for (uint32_t rank = 0; ranks && rank < run->options->ranks; rank++)
        ranks[rank] = status_of(run, rank);
    if (ranks)
        document = status_document(&job);
    status_answer(&run->status, document, run->now_ns);
    if (document)
        json_decref(document);
    free(ranks);
}

void run_step_status(struct run *run)
{
    if (status_step(&run->status, run->now_ns))
        ask_stats(run);
    if (status_due(&run->status, run->now_ns))
        answer(run);
}

void run_take_stats(struct run *run, const struct cw_stats *stats)
{
    if (stats->rank >= run->options->ranks)
        return;
    run->stats[stats->rank] = *stats;
    run->stats_received++;
    if (run->stats_received == run->options->ranks && status_waiting(&run->status))
        answer(run);
}

static bool relays_are_there(const struct run *run)
{
    for (uint32_t i = 0; i < run->options->relays; i++)
        if (run->relays[i].link.fd < 0)
            return false;
    return true;
}

void run_collect_stats(struct run *run)
{
    uint64_t until = run->now_ns + STATS_NS;

    if (!run->options->stats)
        return;
    ask_stats(run);
    while (run->stats_received < run->options->ranks && relays_are_there(run) &&
           run->now_ns < until)
        run_turn(run, until);
    if (run->stats_received >= run->options->ranks)
        stats_print(run->stats, run->job_ranks, run->options);
    else
        fprintf(stderr, "causeway: no statistics of %u ranks came from the job's relays\n",
                run->options->ranks - run->stats_received);
}
