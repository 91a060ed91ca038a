/* The end of a program: every rank learns what is due to it, and waits until it has come. */
#include "tests/sim/payload.h"
#include "tests/sim/program.h"
#include "tests/sim/sim.h"

/* Tells each rank what is due to it because of this one. */
static void tell_due(struct program *g)
{
    for (uint32_t dst = 0; dst < g->ranks; dst++) {
        uint64_t tag = program_tag(0, g->process->rank, ++g->seq) | PROGRAM_TAG_CLOSING;

        program_put(g, CW_SEND_TAG, dst, tag, &g->due_to[dst], sizeof(g->due_to[dst]));
    }
}

static void hear_due(struct program *g, uint32_t src)
{
    struct program_request *r =
        program_receive(g, program_tag(0, src, 0) | PROGRAM_TAG_CLOSING,
                        PROGRAM_MASK_SRC | PROGRAM_TAG_CLOSING, sizeof(struct program_due), false);
    struct program_due due;

    while (!r->done)
        program_poll(g);
    memcpy(&due, r->buffer, sizeof(due));
    g->due.tagged += due.tagged;
    g->due.active += due.active;
    program_wait(g, r);
}

static void finish_requests(struct program *g)
{
    for (int i = 0; i < PROGRAM_OPEN_MAX; i++) {
        struct program_request *r = &g->request[i];

        if (r->open && r->receiving) {
            program_cancel(g, r);
            program_wait(g, r);
        }
    }
}

static bool all_sent(const struct program *g)
{
    for (int i = 0; i < PROGRAM_OPEN_MAX; i++)
        if (g->request[i].open && !g->request[i].receiving && !g->request[i].done)
            return false;
    return true;
}

/* Asks until something is found: MPI_Mprobe. */
static void receive_found(struct program *g)
{
    struct program_request *r = NULL;

    while (!r) {
        r = program_probe(g, 0, PROGRAM_TAG_CLOSING, true);
        if (!r)
            program_poll(g);
    }
    program_wait(g, r);
}

void program_close(struct program *g)
{
    finish_requests(g);
    program_library()->device_call();
    tell_due(g);
    for (uint32_t src = 0; src < g->ranks; src++)
        hear_due(g, src);
    while (g->came.tagged < g->due.tagged || g->came.active < g->due.active || !all_sent(g)) {
        if (g->came.tagged < g->due.tagged && program_choose(g, 2))
            receive_found(g);
        else if (g->came.tagged < g->due.tagged)
            program_wait(g, program_receive(g, 0, PROGRAM_TAG_CLOSING, PAYLOAD_MAX / 2, false));
        else
            program_poll(g);
    }
}
