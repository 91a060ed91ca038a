#include "tests/sim/ways.h"
#include "tests/sim/sim.h"

#define PARTITION_ONE_IN 4 /* failures that take all ways between two parts */

static struct sim_way *way_at(uint32_t from, uint32_t to)
{
    return &sim.way[from == WAYS_DISPATCHER ? SIM_RELAYS_MAX : from][to];
}

bool ways_choose(uint32_t from, uint32_t to, struct connection_way *way)
{
    struct sim_way *w = way_at(from, to);
    uint32_t number = 0;

    while (number < sim.plan.ways && sim.now_ns < w->up_ns[number])
        number++;
    if (number == sim.plan.ways)
        return false;
    sim.rerouted += w->used && w->last != number;
    w->used = true;
    w->last = number;
    *way = (struct connection_way){.known = true, .from = from, .to = to, .number = number};
    return true;
}

static void break_those(uint32_t from, uint32_t to, uint32_t number)
{
    for (struct connection *c = sim.connections; c; c = c->next)
        if (c->way.known && c->way.from == from && c->way.to == to && c->way.number == number)
            connection_break(c);
}

static void fail_one(uint32_t from, uint32_t to, uint32_t number, uint64_t until_ns)
{
    way_at(from, to)->up_ns[number] = until_ns;
    break_those(from, to, number);
}

/* Whether the two are in different parts; the dispatcher is in the first one. */
static bool is_hit(uint32_t from, uint32_t to, uint32_t parts)
{
    uint32_t part_of_from = from == WAYS_DISPATCHER ? 0 : parts >> from & 1;

    return part_of_from != (parts >> to & 1);
}

/* Longer than sessions are kept for it, at times. */
void ways_fail(void)
{
    bool all = sim_one_in(PARTITION_ONE_IN);
    uint32_t number = (uint32_t)sim_below(sim.plan.ways);
    uint32_t parts = (uint32_t)sim_below(1u << SIM_RELAYS_MAX);
    uint64_t until_ns = sim.now_ns + sim_below(sim.plan.resume_ms * 1000000ull * 3 / 2);

    sim_trace("%s between parts %x fail until %llu ms", all ? "all ways" : "ways of a gateway",
              parts, (unsigned long long)until_ns / 1000000);
    for (uint32_t i = 0; i <= sim.plan.relays; i++)
        for (uint32_t to = 0; to < sim.plan.relays; to++) {
            uint32_t from = i == sim.plan.relays ? WAYS_DISPATCHER : i;

            if (from == to || !is_hit(from, to, parts))
                continue;
            for (uint32_t n = 0; n < sim.plan.ways; n++)
                if (all || n == number)
                    fail_one(from, to, n, until_ns);
        }
}
