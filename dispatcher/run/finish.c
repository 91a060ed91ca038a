#include "dispatcher/run/finish.h"
#include "dispatcher/ranks/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AFTERMATH_NS 2000000000ull /* for the last output of processes that ranks left behind */
#define STATS_NS 5000000000ull     /* for the relays' counters */
#define FAREWELL_NS 1000000000ull  /* for relays to be reached */

/* Whether to wait on, until then, for what ranks printed or for our own lines: as long as it takes
 * while nobody reads them, which a signal or the end of the job's time ends. */
static bool waits(struct parts *p, bool for_sink, uint64_t *until)
{
    if (for_sink && !p->hurried)
        *until = loop_now_ns(p->loop) + AFTERMATH_NS;
    return loop_now_ns(p->loop) < *until;
}

bool finish_output(struct parts *p)
{
    uint64_t until = loop_now_ns(p->loop) + AFTERMATH_NS;

    outputs_give_up(p->outputs);
    while (outputs_are_open(p->outputs) && waits(p, outputs_wait_for_sinks(p->outputs), &until))
        loop_turn(p->loop, until);
    return !outputs_wait_for_sinks(p->outputs);
}

void finish_own_lines(struct parts *p)
{
    uint64_t until = loop_now_ns(p->loop) + AFTERMATH_NS;

    while (outputs_own_holds(p->outputs) && waits(p, true, &until))
        loop_turn(p->loop, until);
}

/* What is longer than the outputs hold. */
static void print_long(struct parts *p, const char *text, size_t size)
{
    while (size) {
        size_t part = size < OUTPUT_LINE_MAX ? size : OUTPUT_LINE_MAX;
        const char *end = memrchr(text, '\n', part);

        part = end ? (size_t)(end - text) + 1 : part;
        finish_own_lines(p);
        if (!outputs_print(p->outputs, text, part))
            return; /* nobody reads it */
        text += part;
        size -= part;
    }
}

static void print_stats(struct parts *p)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return;
    status_source_print(f, p->status);
    if (fclose(f) == 0)
        print_long(p, text, size);
    free(text);
}

/* Where one cannot be asked, the others would only answer again and again until it can. */
static bool any_suspended(const struct parts *p)
{
    for (uint32_t i = 0; i < p->layout.relays; i++)
        if (relays_is_suspended(p->relays, i))
            return true;
    return false;
}

static void collect_stats(struct parts *p)
{
    uint64_t until = loop_now_ns(p->loop) + STATS_NS;

    if (!p->options->stats)
        return;
    status_source_ask(p->status);
    while (status_source_missing(p->status) && relays_are_there(p->relays) &&
           loop_now_ns(p->loop) < until) {
        if (!any_suspended(p))
            status_source_refresh(p->status);
        loop_turn(p->loop, until);
    }
    if (!status_source_missing(p->status))
        print_stats(p);
    else
        log_notice(&p->log, "no statistics of %u ranks came from the job's relays",
                   status_source_missing(p->status));
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
    collect_stats(p);
    say_farewell(p);
}
