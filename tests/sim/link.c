#include "tests/sim/link.h"
#include "tests/sim/sim.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RELAY_IOV 8
#define HELD_NS 5000000ull /* a sender that is held back is looked at again after this */
#define PATIENCE_MAX 30

struct sim_link *link_new(const char *name, size_t pipe_size)
{
    struct sim_link *link = calloc(1, sizeof(*link));

    if (!link)
        abort();
    snprintf(link->name, sizeof(link->name), "%s", name);
    pipe_init(&link->up, pipe_size);
    pipe_init(&link->down, pipe_size);
    link->patience = sim_one_in(4) ? 1 + (uint32_t)sim_below(PATIENCE_MAX) : 1;
    link->next = sim.links;
    sim.links = link;
    return link;
}

void links_fini(void)
{
    while (sim.links) {
        struct sim_link *link = sim.links;

        sim.links = link->next;
        pipe_fini(&link->up);
        pipe_fini(&link->down);
        free(link);
    }
}

/* --- the client's end ----------------------------------------------------------------------------
 */

static size_t some(size_t size)
{
    size_t max = sim.plan.chunk_max;

    return 1 + sim_below(size < max ? size : max);
}

ssize_t link_send(struct sim_link *link, const void *bytes, size_t size)
{
    size_t room = pipe_room(&link->up);

    if (link->relay_gone) {
        errno = sim_one_in(2) ? EPIPE : ECONNRESET;
        return -1;
    }
    if (room == 0) {
        errno = EAGAIN;
        return -1;
    }
    size = some(size < room ? size : room);
    pipe_put(&link->up, bytes, size);
    return (ssize_t)size;
}

ssize_t link_recv(struct sim_link *link, void *to, size_t size)
{
    size_t there = link->down.used;

    if (there == 0 && link->relay_gone)
        return 0;
    if (there == 0) {
        errno = EAGAIN;
        return -1;
    }
    size = some(size < there ? size : there);
    pipe_get(&link->down, to, size);
    return (ssize_t)size;
}

bool link_readable(const struct sim_link *link)
{
    return link->down.used > 0 || link->relay_gone;
}

bool link_writable(const struct sim_link *link)
{
    return pipe_room(&link->up) > 0 || link->relay_gone;
}

void link_close(struct sim_link *link)
{
    link->client_gone = true;
    link->gone_ns = sim.now_ns;
}

static size_t part_of(size_t size)
{
    return sim_one_in(2) ? size : sim_below(size + 1);
}

void link_die(struct sim_link *link, uint64_t news_delay_ns)
{
    pipe_cut(&link->up, part_of(link->up.used));
    link->client_gone = true;
    link->gone_ns = sim.now_ns + news_delay_ns;
}

void link_break(struct sim_link *link)
{
    sim_trace("%s: the connection breaks", link->name);
    link_die(link, sim_below(sim.plan.news_delay_ns));
    pipe_cut(&link->down, part_of(link->down.used));
    link->relay_gone = true;
}

/* --- the relay's end -----------------------------------------------------------------------------
 */

void links_collect(void)
{
    struct relay_conn *conn;

    while ((conn = relay_core_next_ready(sim.core)))
        ((struct sim_link *)relay_conn_owner(conn))->ready = true;
}

static void relay_accept(struct sim_link *link)
{
    static const uint8_t nonce[CW_NONCE_SIZE] = "a relay's nonce";

    link->accepted = true;
    link->conn = relay_conn_open(sim.core, nonce, sim.now_ns, link);
    assert(link->conn);
}

static void relay_close(struct sim_link *link, const char *why)
{
    sim_trace("%s: the relay closes it: %s", link->name, why);
    relay_conn_close(link->conn, why);
    link->conn = NULL;
    link->ready = false;
    link->relay_gone = true;
    pipe_cut(&link->up, 0);
}

static bool can_read(struct sim_link *link)
{
    return link->up.used > 0 && relay_conn_wants_input(link->conn, sim.now_ns);
}

static bool can_write(const struct sim_link *link)
{
    return link->ready && (link->client_gone || pipe_room(&link->down) > 0);
}

static bool can_hear_end(struct sim_link *link)
{
    return link->client_gone && link->up.used == 0 && sim.now_ns >= link->gone_ns &&
           relay_conn_wants_input(link->conn, sim.now_ns);
}

bool link_relay_can(struct sim_link *link)
{
    if (!link->accepted)
        return true;
    return link->conn && (can_read(link) || can_write(link) || can_hear_end(link));
}

uint64_t link_deadline_ns(const struct sim_link *link)
{
    if (!link->conn)
        return UINT64_MAX;
    if (link->client_gone && link->gone_ns > sim.now_ns)
        return link->gone_ns;
    return link->up.used || link->client_gone ? sim.now_ns + HELD_NS : UINT64_MAX;
}

static void peek_pipe(void *ctx, size_t skip, void *to, size_t size)
{
    const struct sim_link *link = ctx;

    pipe_peek(&link->up, skip, to, size);
}

/* As an engine that has both ends' memory at hand. Returns false when nothing was cut. */
static bool relay_cut(struct sim_link *link)
{
    static uint8_t bytes[1 << 16];
    struct relay_conn *to = relay_conn_cut_to(link->conn);
    struct sim_link *receiver = to ? relay_conn_owner(to) : NULL;
    struct relay_cut cut;
    size_t room;

    if (!receiver || receiver->client_gone)
        return false;
    room = pipe_room(&receiver->down);
    if (room <= RELAY_CUT_HEADER)
        return false;
    room -= RELAY_CUT_HEADER;
    room = room < sizeof(bytes) ? room : sizeof(bytes);
    cut = relay_conn_cut(link->conn, some(link->up.used < room ? link->up.used : room));
    if (cut.size == 0)
        return false;
    pipe_get(&link->up, bytes, cut.size);
    if (cut.log)
        memcpy(cut.log, bytes, cut.size);
    if (cut.to) {
        struct iovec iov;

        while (relay_conn_output(to, &iov, 1) > 0) {
            pipe_put(&receiver->down, iov.iov_base, iov.iov_len);
            relay_conn_written(to, iov.iov_len);
        }
        relay_conn_written(to, 0);
        pipe_put(&receiver->down, bytes, cut.size);
    }
    relay_cut_done(sim.core, &cut);
    return true;
}

static void relay_read(struct sim_link *link)
{
    size_t before = 0;
    size_t size;
    void *at;

    if (sim.plan.cuts && relay_cut(link))
        return;
    if (sim.plan.cuts)
        before = relay_conn_before_cut(link->conn, link->up.used, peek_pipe, link);

    if (relay_conn_space(link->conn, &at, &size) < 0) {
        relay_close(link, "no memory");
        return;
    }
    size = some(link->up.used < size ? link->up.used : size);
    if (before > 0 && before < size)
        size = before;
    pipe_get(&link->up, at, size);
    relay_conn_input(link->conn, size);
}

static size_t relay_move(struct sim_link *link)
{
    struct iovec iov[RELAY_IOV];
    int n = relay_conn_output(link->conn, iov, 1 + (int)sim_below(RELAY_IOV));
    size_t room = some(pipe_room(&link->down));
    size_t done = 0;

    for (int i = 0; i < n && done < room; i++) {
        size_t part = iov[i].iov_len < room - done ? iov[i].iov_len : room - done;

        pipe_put(&link->down, iov[i].iov_base, part);
        done += part;
    }
    return done;
}

/* As an engine does it: written until nothing is left, then asked whether that was the end. */
static void relay_write(struct sim_link *link)
{
    if (relay_conn_has_output(link->conn)) {
        if (link->client_gone) {
            relay_close(link, "writing: broken pipe");
            return;
        }
        relay_conn_written(link->conn, relay_move(link));
    }
    if (relay_conn_has_output(link->conn))
        return;
    link->ready = false;
    if (relay_conn_done(link->conn))
        relay_close(link, "done");
}

void link_relay_step(struct sim_link *link)
{
    bool read = link->accepted && can_read(link);
    bool write = link->accepted && can_write(link);

    if (!link->accepted)
        relay_accept(link);
    else if (read && (!write || sim_one_in(2)))
        relay_read(link);
    else if (write)
        relay_write(link);
    else
        relay_close(link, "end of file");
    links_collect();
}
