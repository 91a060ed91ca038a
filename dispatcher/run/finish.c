#include "dispatcher/run/finish.h"

#include <stdio.h>

#define AFTERMATH_NS 2000000000ull /* for the last output of processes that ranks left behind */
#define STATS_NS 5000000000ull     /* for the relays' counters */
#define FAREWELL_NS 1000000000ull  /* for relays to be reached */

static void finish_output(struct parts *p)
{
    uint64_t until = loop_now_ns(p->loop) + AFTERMATH_NS;

    outputs_give_up(p->outputs);
    while (outputs_are_open(p->outputs) && loop_now_ns(p->loop) < until)
        loop_turn(p->loop, until);
}

static void collect_stats(struct parts *p)
{
    uint64_t until = loop_now_ns(p->loop) + STATS_NS;

    if (!p->options->stats)
        return;
    standing_ask(p->standing);
    while (standing_missing(p->standing) && relays_are_there(p->relays) &&
           loop_now_ns(p->loop) < until)
        loop_turn(p->loop, until);
    if (!standing_missing(p->standing))
        standing_print(p->standing);
    else
        fprintf(stderr, "causeway: no statistics of %u ranks came from the job's relays\n",
                standing_missing(p->standing));
}

/* Relays that cannot be reached now drop the job when its sessions may no longer be resumed. */
static void say_farewell(struct parts *p)
{
    uint64_t until = loop_now_ns(p->loop) + FAREWELL_NS;

    if (p->over) {
        outputs_sync_all(p->outputs);
        state_file_over(p->state);
    }
    relays_end(p->relays);
    while (!relays_are_told(p->relays) && loop_now_ns(p->loop) < until)
        loop_turn(p->loop, until);
}

void finish_parts(struct parts *p)
{
    parts_end_processes(p);
    finish_output(p);
    collect_stats(p);
    say_farewell(p);
}
