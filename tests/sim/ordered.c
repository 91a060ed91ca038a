/* Programs without races: all ranks walk through one schedule, each does its part. What they
 * receive is the same in every run. Tests that count, probes and clocks happen too, to no effect.
 */
#include "common/frame.h"
#include "tests/sim/program.h"
#include "tests/sim/sim.h"

#define AHEAD_MAX 6 /* receives posted before their time */
#define CAPACITY 524288u

/* One message of the schedule. */
struct item {
    uint32_t src;
    uint32_t dst;
    uint32_t kind;
    uint32_t user;
};

static struct item item_at(const struct program *g, uint64_t i)
{
    uint64_t bits = sim_mix(sim.plan.program_seed ^ 0x0d0e, i);
    uint32_t kind = bits % 8 < 5 ? CW_SEND_TAG : bits % 8 < 7 ? CW_SEND_SYNC : CW_SEND_AM;

    return (struct item){.src = (uint32_t)((bits >> 8) % g->ranks),
                         .dst = (uint32_t)((bits >> 16) % g->ranks),
                         .kind = kind,
                         .user = (uint32_t)((bits >> 24) % PROGRAM_TAGS)};
}

static void took(struct program *g, const struct program_request *r)
{
    g->data = (g->data ^ r->got ^ r->size << 32) * 0x9e3779b97f4a7c15ull;
    g->data ^= g->data >> 31;
}

static struct program_request *post(struct program *g, const struct item *item, uint64_t order)
{
    struct program_request *r =
        program_receive(g, program_tag(item->user, item->src, 0),
                        PROGRAM_MASK_TAG | PROGRAM_MASK_SRC | PROGRAM_TAG_CLOSING, CAPACITY,
                        program_choose(g, 4) == 0);

    if (r)
        r->order = order;
    return r;
}

/* Receives for items from `*posted` up to `until`, in their order, as long as there is room. */
static void post_until(struct program *g, uint64_t *posted, uint64_t until, int room)
{
    for (; *posted < until; (*posted)++) {
        struct item item = item_at(g, *posted);
        int open = 0;

        if (item.dst != g->process->rank || item.kind == CW_SEND_AM)
            continue;
        for (int i = 0; i < PROGRAM_OPEN_MAX; i++)
            open += g->request[i].open;
        if (open >= room)
            return;
        post(g, &item, *posted);
    }
}

static void let_go_of_sent(struct program *g)
{
    for (int i = 0; i < PROGRAM_OPEN_MAX; i++)
        if (g->request[i].open && !g->request[i].receiving)
            program_wait(g, &g->request[i]);
}

static void receive_item(struct program *g, uint64_t order)
{
    for (int i = 0; i < PROGRAM_OPEN_MAX; i++) {
        struct program_request *r = &g->request[i];

        if (!r->open || !r->receiving || r->order != order)
            continue;
        program_wait(g, r);
        took(g, r);
        return;
    }
    sim_fail("rank %u: the receive of item %llu is not posted", g->process->rank,
             (unsigned long long)order);
}

static void do_without_effect(struct program *g)
{
    switch (program_choose(g, 6)) {
    case 0:
        program_test(g);
        break;
    case 1:
        program_probe(g, program_tag(1, 0, 0), PROGRAM_MASK_TAG | PROGRAM_TAG_CLOSING, false);
        break;
    case 2:
        program_read_clock(g);
        break;
    default:
        break;
    }
}

static void send_item(struct program *g, const struct item *item)
{
    size_t size = program_size(g);

    if (item->kind == CW_SEND_AM)
        program_send_active(g, item->dst, size, 0, false);
    else
        program_send(g, item->kind, item->dst, item->user, size);
}

void program_run_ordered(struct program *g)
{
    uint64_t posted = 0;

    for (uint64_t i = 0; i < sim.plan.program_steps * (uint64_t)g->ranks / 2; i++) {
        struct item item = item_at(g, i);

        do_without_effect(g);
        post_until(g, &posted, i + program_choose(g, AHEAD_MAX) + 1, PROGRAM_OPEN_MAX - 2);
        if (item.src == g->process->rank)
            send_item(g, &item);
        if (item.dst == g->process->rank && item.kind != CW_SEND_AM) {
            post_until(g, &posted, i + 1, PROGRAM_OPEN_MAX);
            receive_item(g, i);
        }
        if (item.src == g->process->rank && item.kind == CW_SEND_SYNC)
            let_go_of_sent(g);
    }
}
