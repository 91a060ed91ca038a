#include "tests/sim/socket.h"
#include "tests/sim/sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct connection *connection_new(const char *name, size_t pipe_size)
{
    struct connection *c = calloc(1, sizeof(*c));

    if (!c)
        abort();
    snprintf(c->name, sizeof(c->name), "%s", name);
    for (int i = 0; i < 2; i++) {
        c->end[i].of = c;
        pipe_init(&c->end[i].in, pipe_size);
    }
    c->next = sim.connections;
    sim.connections = c;
    return c;
}

void connections_fini(void)
{
    while (sim.connections) {
        struct connection *c = sim.connections;

        sim.connections = c->next;
        pipe_fini(&c->end[0].in);
        pipe_fini(&c->end[1].in);
        free(c);
    }
}

uint64_t connections_deadline_ns(void)
{
    uint64_t first = UINT64_MAX;

    for (const struct connection *c = sim.connections; c; c = c->next)
        for (int i = 0; i < 2; i++) {
            const struct socket *s = &c->end[i];

            if (!s->closed && s->ended && s->ended_ns > sim.now_ns && s->ended_ns < first)
                first = s->ended_ns;
        }
    return first;
}

struct socket *socket_other(const struct socket *socket)
{
    struct connection *c = socket->of;

    return socket == &c->end[0] ? &c->end[1] : &c->end[0];
}

size_t socket_some(size_t size)
{
    size_t max = sim.plan.chunk_max;

    return 1 + sim_below(size < max ? size : max);
}

static bool end_is_known(const struct socket *socket)
{
    return socket->ended && sim.now_ns >= socket->ended_ns;
}

ssize_t socket_send(struct socket *socket, const void *bytes, size_t size)
{
    struct socket *other = socket_other(socket);
    size_t room = pipe_room(&other->in);

    if (end_is_known(socket)) {
        errno = socket->reset ? ECONNRESET : EPIPE;
        return -1;
    }
    if (room == 0) {
        errno = EAGAIN;
        return -1;
    }
    size = socket_some(size < room ? size : room);
    if (!other->ended) /* else they are lost */
        pipe_put(&other->in, bytes, size);
    return (ssize_t)size;
}

ssize_t socket_recv(struct socket *socket, void *to, size_t size)
{
    size_t there = socket->in.used;

    if (there == 0 && end_is_known(socket) && !socket->reset)
        return 0;
    if (there == 0) {
        errno = end_is_known(socket) ? ECONNRESET : EAGAIN;
        return -1;
    }
    size = socket_some(size < there ? size : there);
    pipe_get(&socket->in, to, size);
    return (ssize_t)size;
}

short socket_events(const struct socket *socket, short wanted)
{
    bool in = socket->in.used > 0 || end_is_known(socket);
    bool out = pipe_room(&socket_other(socket)->in) > 0 || end_is_known(socket);

    return (short)(wanted & ((in ? POLLIN : 0) | (out ? POLLOUT : 0)));
}

static size_t part_of(size_t size)
{
    return sim_one_in(2) ? size : sim_below(size + 1);
}

/* From some byte on nothing comes. */
static void end_at(struct socket *socket, size_t left, uint64_t delay_ns)
{
    if (socket->ended)
        return;
    pipe_cut(&socket->in, left);
    socket->ended = true;
    socket->ended_ns = sim.now_ns + delay_ns;
}

void socket_shut_down(struct socket *socket)
{
    struct socket *other = socket_other(socket);

    end_at(other, other->in.used, 0);
    end_at(socket, 0, 0);
}

void socket_close(struct socket *socket)
{
    struct socket *other = socket_other(socket);

    end_at(other, other->in.used, 0);
    socket->closed = true;
    pipe_cut(&socket->in, 0);
}

void socket_die(struct socket *socket, uint64_t news_delay_ns)
{
    struct socket *other = socket_other(socket);

    end_at(other, part_of(other->in.used), news_delay_ns);
    socket->closed = true;
    pipe_cut(&socket->in, 0);
}

void connection_break(struct connection *connection)
{
    sim_trace("%s: the connection breaks", connection->name);
    for (int i = 0; i < 2; i++) {
        struct socket *s = &connection->end[i];

        end_at(s, part_of(s->in.used), sim_below(sim.plan.news_delay_ns));
        s->reset = sim_one_in(2);
    }
}
