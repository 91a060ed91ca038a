#include "dispatcher/run/gates.h"
#include "dispatcher/run/parts.h"

#include <stdlib.h>

struct gates {
    struct parts *parts;
    struct loop_timer timer; /* something is to be done, once all that is at hand was heard */
    bool passes;             /* ... something may pass, of which others are to be told */
    uint32_t relays;
    struct gate *gate;     /* of each relay; owned */
    struct gate **of_rank; /* owned */
};

/* A token is to be sent. */
static void on_wants(void *ctx)
{
    struct gates *g = ctx;

    loop_timer_hasten(&g->timer, loop_now_ns(g->parts->loop));
}

/* Who hears of it may hear relays, from which this may come. */
static void pass_soon(struct gates *g)
{
    g->passes = true;
    on_wants(g);
}

static void on_time(void *ctx)
{
    struct gates *g = ctx;
    uint64_t token;

    gates_pass(g);
    for (uint32_t relay = 0; relay < g->relays; relay++)
        if (gate_next(&g->gate[relay], &token))
            relays_cover(g->parts->relays, relay, token);
}

struct gates *gates_new(struct parts *parts, struct cw_err *err)
{
    uint32_t ranks = parts->options->ranks;
    struct gates *g = calloc(1, sizeof(*g));

    if (g) {
        g->parts = parts;
        g->relays = parts->layout.relays;
        g->gate = calloc(g->relays, sizeof(*g->gate));
        g->of_rank = calloc(ranks, sizeof(struct gate *));
        loop_timer_add(parts->loop, &g->timer, on_time, g);
    }
    if (!g || !g->gate || !g->of_rank) {
        cw_err_set(err, CW_ENOMEM, "no memory for a job of %u ranks", ranks);
        gates_free(g);
        return NULL;
    }
    for (uint32_t relay = 0; relay < g->relays; relay++)
        gate_init(&g->gate[relay], on_wants, g);
    for (uint32_t rank = 0; rank < ranks; rank++)
        g->of_rank[rank] = &g->gate[relays_home(parts->relays, rank)];
    return g;
}

void gates_free(struct gates *g)
{
    if (!g)
        return;
    loop_timer_remove(&g->timer);
    free(g->gate);
    free(g->of_rank);
    free(g);
}

struct gate *const *gates_of_ranks(const struct gates *g)
{
    return g->of_rank;
}

void gates_covered(struct gates *g, uint32_t relay, uint64_t token)
{
    if (g && gate_covered(&g->gate[relay], token))
        pass_soon(g);
}

void gates_again(struct gates *g, uint32_t relay)
{
    if (!g)
        return;
    gate_again(&g->gate[relay]);
    on_wants(g);
}

void gates_open(struct gates *g)
{
    if (!g || g->gate[0].open)
        return;
    for (uint32_t relay = 0; relay < g->relays; relay++)
        gate_open(&g->gate[relay]);
    pass_soon(g);
}

void gates_pass(struct gates *g)
{
    if (!g || !g->passes)
        return;
    g->passes = false;
    if (g->parts->remote)
        remote_pass(g->parts->remote);
}
