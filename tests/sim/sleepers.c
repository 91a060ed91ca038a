/* Whether any side of rings sleeps on while it has something to do. */
#include "tests/sim/sim.h"

static bool is_flagged(const _Atomic uint32_t *sleeps)
{
    return atomic_load_explicit(sleeps, memory_order_relaxed) != 0;
}

/* Whoever sleeps has set a flag, or was woken: the flag was cleared, and then there is a bell. */
static bool sleeps_unseen(const struct sim_conn *c, const struct socket *sleeper)
{
    bool of_relay = sleeper == conn_socket(c);
    const struct cw_ring *in = of_relay ? &c->wire.in : &c->wire.out;
    const struct cw_ring *out = of_relay ? &c->wire.out : &c->wire.in;

    return sleeper->in.used == 0 && !sleeper->ended && !is_flagged(&in->shared->reader_sleeps) &&
           !is_flagged(&out->shared->writer_sleeps);
}

/* What is awaited is there, and its flag still stands. */
static bool sleeps_on(const struct cw_ring *ring, const struct socket *reader)
{
    const struct socket *writer = socket_other(reader);
    uint64_t written = atomic_load(&ring->shared->written);
    uint64_t there = written - atomic_load(&ring->shared->taken);
    uint64_t unread = ring->holds ? written - ring->at : there;
    bool for_bytes = unread > 0 && reader->in.used == 0 && !reader->ended;
    bool for_room = there < sim_ring_bytes && writer->in.used == 0 && !writer->ended;

    return (for_bytes && is_flagged(&ring->shared->reader_sleeps)) ||
           (for_room && is_flagged(&ring->shared->writer_sleeps));
}

static bool waits_for(const struct task *task, const struct socket *client)
{
    for (uint32_t i = 0; task->waiting && i < task->fds_count; i++) {
        const struct descriptor *d = descriptor_of(task->fds[i].fd);

        if (d && d->socket == client)
            return true;
    }
    return false;
}

/* Nobody who could ring a bell is held in the middle of it. */
static bool client_sleeps(const struct socket *client, bool *stopped)
{
    for (const struct sim_process *p = sim.processes; p; p = p->next) {
        if (p->ended || p->relay_socket != client)
            continue;
        *stopped = sim.now_ns < p->stopped_ns;
        return waits_for(&p->task, client);
    }
    *stopped = true;
    return false;
}

static void check_conn(const struct sim_conn *c)
{
    const struct socket *relay = conn_socket(c);
    const struct socket *client = socket_other(relay);
    bool stopped;
    bool sleeps = client_sleeps(client, &stopped);

    if (!stopped &&
        (sleeps_on(&c->wire.in, relay) || sleeps_on(&c->wire.out, client) ||
         (sleeps && sleeps_unseen(c, client)) || (c->asleep && sleeps_unseen(c, relay))))
        sim_fail("%s: one side of its rings sleeps, and was not woken", relay->of->name);
}

void cores_check_sleep(void)
{
    for (each_core(relay))
        for (const struct sim_conn *c = relay->conns; c; c = c->next)
            if (c->conn && conn_has_rings(c))
                check_conn(c);
}
