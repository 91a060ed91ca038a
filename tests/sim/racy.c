/* Programs that race: receives from anyone, probes, cancels, tests that count, clocks. */
#include "common/frame.h"
#include "tests/sim/program.h"
#include "tests/sim/sim.h"

#define POLLS_MAX 4
#define PATIENCE 12 /* polls in which a receive may come */
#define HOPS_MAX 4

/* Those of MPI, and another: with the one that the relay uses when it comes back, it takes six. */
static uint64_t some_mask(struct program *g)
{
    static const uint64_t masks[] = {PROGRAM_MASK_TAG | PROGRAM_MASK_SRC, PROGRAM_MASK_TAG,
                                     PROGRAM_MASK_SRC, 0, PROGRAM_MASK_SRC | 1};
    uint64_t usual = program_choose(g, 2);

    return masks[program_choose(g, usual ? 4 : 5)] | PROGRAM_TAG_CLOSING;
}

static uint64_t some_tag(struct program *g)
{
    return program_tag((uint32_t)program_choose(g, PROGRAM_TAGS),
                       (uint32_t)program_choose(g, g->ranks), 0);
}

static void receive_some(struct program *g)
{
    static const size_t capacities[] = {0, 100, 5000, 70000, 524288, 524288};
    uint64_t tag = some_tag(g);
    uint64_t mask = some_mask(g);
    size_t capacity = capacities[program_choose(g, 6)];

    program_receive(g, tag, mask, capacity, program_choose(g, 4) == 0);
}

static void send_some(struct program *g)
{
    uint32_t kind = program_choose(g, 4) == 0 ? CW_SEND_SYNC : CW_SEND_TAG;
    uint32_t dst = (uint32_t)program_choose(g, g->ranks);
    uint32_t user = (uint32_t)program_choose(g, PROGRAM_TAGS);

    program_send(g, kind, dst, user, program_size(g));
}

static void send_active(struct program *g)
{
    uint32_t dst = (uint32_t)program_choose(g, g->ranks);
    uint32_t hops = (uint32_t)program_choose(g, HOPS_MAX);
    bool tagged = program_choose(g, 2);

    program_send_active(g, dst, program_size(g), hops, tagged);
}

static struct program_request *some_request(struct program *g)
{
    struct program_request *r = &g->request[program_choose(g, PROGRAM_OPEN_MAX)];

    return r->open ? r : NULL;
}

/* As MPI_Test in a loop that gives up: how often it asked is part of what it knows. */
static void test_some(struct program *g)
{
    struct program_request *r = some_request(g);

    for (int i = 0; r && !r->done && i < PATIENCE; i++)
        program_test(g);
    if (r && r->done)
        program_wait(g, r);
}

static void cancel_some(struct program *g)
{
    struct program_request *r = some_request(g);

    if (r && r->receiving)
        program_cancel(g, r);
}

static void probe_some(struct program *g)
{
    uint64_t tag = some_tag(g);
    uint64_t mask = some_mask(g);

    program_probe(g, tag, mask, program_choose(g, 2));
}

static void poll_some(struct program *g)
{
    for (uint64_t i = 1 + program_choose(g, POLLS_MAX); i > 0; i--)
        program_test(g);
}

void program_run_racy(struct program *g)
{
    static void (*const steps[])(struct program * g) = {
        send_some,   send_some, send_some, receive_some,       receive_some,
        send_active, test_some, test_some, cancel_some,        probe_some,
        probe_some,  poll_some, poll_some, program_read_clock,
    };

    for (uint32_t i = 0; i < sim.plan.program_steps; i++)
        steps[program_choose(g, sizeof(steps) / sizeof(*steps))](g);
}
