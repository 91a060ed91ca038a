#include "tests/sim/relay.h"
#include "relay/core/job.h"
#include "relay/dial_request.h"
#include "relay/log/restore.h"
#include "tests/lib/journals.h"
#include "tests/sim/sim.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ADDRESS "unix:/simulated/relay%u.%u" /* its incarnation */
#define RELAY_IOV 8
#define HELD_NS 5000000ull /* a sender that is held back is looked at again after this */
#define PATIENCE_MAX 30
#define SIM_REGION (256ull << 20) /* of blocks that outlive a relay */
#define SLEEPS_ONE_IN 3           /* looks in vain at rings */
#define READ_AMID_ONE_IN 3        /* reads of channel memory */

/* --- beginning and end ---------------------------------------------------------------------------
 */

static void on_dialled(void *ctx, const struct cw_dial_result *result);

/* Memory that outlives a relay, with a region behind it; until the end of the run, and a shorter
 * time. */
static struct ledger_memory *left_new(void)
{
    return (void *)memory_new_zero(sizeof(struct ledger_memory) + SIM_REGION)->at;
}

static struct ledger_memory *map_left(void)
{
    void *at = mmap(NULL, sizeof(struct ledger_memory) + SIM_REGION, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED)
        abort();
    return at;
}

static void unmap_left(struct ledger_memory *left)
{
    munmap(left, sizeof(*left) + SIM_REGION);
}

static struct relay_region region_of(struct ledger_memory *left)
{
    return (struct relay_region){.start = (uint8_t *)(left + 1), .size = SIM_REGION};
}

/* The channel memory of its host, and the file behind it. */
static uint64_t channel_size(void *ctx)
{
    const struct sim_channel *channel = &sim.channel[((struct sim_relay *)ctx)->number];

    return channel->fd ? descriptor_of(channel->fd)->memory->size +
                             (channel->file_fd < 0 ? 0 : sim.plan.channel_file)
                       : 0;
}

/* Meanwhile ranks go on: what is read of one is not of the moment at which another one was read. */
static bool channel_read(void *ctx, uint64_t at, void *to, size_t size)
{
    const struct sim_channel *channel = &sim.channel[((struct sim_relay *)ctx)->number];
    uint64_t all = channel_size(ctx);

    if (at > all || size > all - at)
        return false;
    if (!task_runs() && sim_one_in(READ_AMID_ONE_IN))
        processes_go_on();
    memcpy(to, descriptor_of(channel->fd)->memory->at + at, size);
    return true;
}

/* Its process begins, or the next one with the same memory. */
static void begin_core(struct sim_relay *relay)
{
    struct relay_core_config config = {.key = sim.relay_key,
                                       .memory_max = SIM_MEMORY,
                                       .log_memory = sim.plan.log_memory,
                                       .log_disk = sim.plan.disk ? SIM_MEMORY : 0,
                                       .ledger = relay->left,
                                       .journal = relay->journal,
                                       .incarnation = relay->incarnation};

    if (relay->left)
        config.region = region_of(relay->left);
    if (sim.plan.loses_hosts)
        config.channel =
            (struct relay_channel){.size = channel_size, .read = channel_read, .ctx = relay};
    for (uint32_t i = 0; i < CW_RELAYS_MAX; i++)
        if (relay->copies[i])
            config.copies[i] = (struct relay_copy_memory){.memory = relay->copies[i],
                                                          .region = region_of(relay->copies[i])};
    relay->core = relay_core_new(&config);
    relay->dial = cw_dial_open(on_dialled, relay);
    if (!relay->core || !relay->dial)
        abort();
}

static struct sim_relay *relay_new(uint32_t number, uint32_t incarnation, uint32_t host,
                                   struct ledger_memory *left)
{
    struct sim_relay *relay = calloc(1, sizeof(*relay));

    if (!relay)
        abort();
    *relay = (struct sim_relay){
        .next = sim.relays,
        .number = number,
        .incarnation = incarnation,
        .host = host,
        .left = left,
        .tick_ns = sim.now_ns,
        .disk = {.seed = sim_below(UINT64_MAX)},
        .journal = {.copies = sim.plan.copies > 0, .number = sim.plan.sync ? 1 : 0}};
    for (uint32_t i = 0; sim.plan.copies && i < sim.plan.relays; i++)
        relay->copies[i] = left_new();
    sim.relays = relay;
    sim.relay[number] = relay;
    begin_core(relay);
    return relay;
}

void cores_open(void)
{
    for (uint32_t i = 0; i < sim.plan.relays; i++)
        relay_new(i, 1, i, sim.plan.kill_one_in || sim.plan.copies ? left_new() : NULL);
}

static void end_core(struct sim_relay *relay)
{
    cw_dial_close(relay->dial);
    relay_core_free(relay->core);
    relay->core = NULL;
}

/* The core asserts that nothing of it is left. */
static void close_core(struct sim_relay *relay)
{
    for (struct sim_conn *c = relay->conns; c; c = c->next)
        if (c->conn && sim_one_in(2)) {
            relay_conn_close(c->conn, "the job has ended");
            c->conn = NULL;
        }
    end_core(relay);
}

void cores_close(void)
{
    for (each_core(relay))
        close_core(relay);
    while (sim.relays) {
        struct sim_relay *relay = sim.relays;

        fake_disk_fini(&relay->disk);
        while (relay->conns) {
            struct sim_conn *c = relay->conns;

            relay->conns = c->next;
            free(c);
        }
        sim.relays = relay->next;
        free(relay);
    }
}

struct sim_relay *relays_next(struct sim_relay *relay)
{
    while (relay && !relay->core)
        relay = relay->next;
    return relay;
}

struct sim_relay *relay_at(const char *address)
{
    struct sim_relay *relay = sim.relays;
    uint32_t number;
    uint32_t incarnation;

    if (sscanf(address, ADDRESS, &number, &incarnation) != 2)
        abort();
    while (relay && (relay->number != number || relay->incarnation != incarnation))
        relay = relay->next;
    return relay;
}

void relay_address(char *to, size_t size, uint32_t number)
{
    snprintf(to, size, ADDRESS, number, sim.relay[number]->incarnation);
}

bool core_knows_point(uint32_t rank, const struct cw_point *point)
{
    const struct sim_conn *c = sim.relay[sim.plan.homes[rank]]->conns;
    const struct relay_rank *ranked;

    while (c && !(c->conn && c->conn->job))
        c = c->next;
    ranked = c ? c->conn->job->ranked[rank] : NULL;
    return ranked && !ranked->mailbox.feed.conn && log_point_find(&ranked->mailbox.log, point);
}

/* --- connections ---------------------------------------------------------------------------------
 */

static struct sim_conn *conn_add(struct sim_relay *relay, int fd)
{
    struct sim_conn *c = calloc(1, sizeof(*c));

    if (!c)
        abort();
    c->relay = relay;
    c->wire.fd = fd;
    c->patience = sim_one_in(4) ? 1 + (uint32_t)sim_below(PATIENCE_MAX) : 1;
    c->next = relay->conns;
    relay->conns = c;
    return c;
}

int relay_connect(struct sim_relay *relay, const char *name, const struct connection_way *way,
                  bool local)
{
    struct connection *connection = connection_new(name, sim.plan.pipe_size);
    struct sim_conn *c =
        conn_add(relay, descriptor_new((struct descriptor){.socket = &connection->end[1]}));

    connection->way = *way;
    c->local = local;
    return descriptor_new((struct descriptor){.socket = &connection->end[0]});
}

static void dial_add(struct sim_relay *relay, const struct relay_dial *what);
static bool can_read(struct sim_conn *c);

/* What ranks had said when COVER came is read, each connection once until nothing is there. */
static void look_for_cover(struct sim_relay *relay)
{
    bool all = true;

    if (!relay_core_covers(relay->core)) {
        for (struct sim_conn *c = relay->conns; c; c = c->next)
            c->looked = false;
        return;
    }
    for (struct sim_conn *c = relay->conns; c; c = c->next) {
        if (!c->conn || !relay_conn_is_rank(c->conn))
            continue;
        c->looked |= relay_conn_wants_input(c->conn, sim.now_ns) && !can_read(c);
        all &= c->looked;
    }
    if (all)
        relay_core_looked(relay->core);
}

/* What the core wants after each call of it. */
static void collect(struct sim_relay *relay)
{
    struct relay_conn *conn;
    struct relay_log_io io;
    struct relay_dial dial;

    look_for_cover(relay);
    while ((conn = relay_core_next_ready(relay->core))) {
        struct sim_conn *c = relay_conn_owner(conn);

        c->ready = true;
        c->full = false;
    }
    while (relay_core_next_io(relay->core, &io))
        fake_disk_take(&relay->disk, &io);
    while (relay_core_next_dial(relay->core, &dial)) {
        if (dial.cancelled)
            cw_dial_cancel(relay->dial, dial.job);
        else
            dial_add(relay, &dial);
    }
}

static void accept_it(struct sim_conn *c)
{
    uint8_t nonce[CW_NONCE_SIZE];

    for (size_t i = 0; i < sizeof(nonce); i++)
        nonce[i] = (uint8_t)sim_below(256);
    c->accepted = true;
    c->conn = relay_conn_open(c->relay->core, nonce, sim.now_ns, c);
    assert(c->conn);
    if (c->local)
        cw_wire_offer(&c->wire); /* else it has the socket */
    if (relay_core_outlives(c->relay->core))
        cw_wire_hold(&c->wire);
}

static void close_it(struct sim_conn *c, const char *why)
{
    struct socket *s = conn_socket(c);
    struct iovec unread[2];

    sim_trace("%s: relay %u closes it: %s", s->of->name, c->relay->number, why);
    relay_conn_broken(c->conn, why, unread, cw_wire_unread(&c->wire, unread));
    c->conn = NULL;
    cw_wire_close(&c->wire);
    socket_close(s);
    descriptor_free(c->wire.fd);
}

/* --- when there is something to do ---------------------------------------------------------------
 */

static bool is_due(const struct sim_conn *c, short events)
{
    return socket_events(conn_socket(c), events) != 0;
}

static bool can_read(struct sim_conn *c)
{
    bool there =
        conn_has_rings(c) ? cw_ring_readable(&c->wire.in) || c->wire.ended : is_due(c, POLLIN);

    return there &&
           ((conn_has_rings(c) && c->wire.ended) || relay_conn_wants_input(c->conn, sim.now_ns));
}

static bool can_write(struct sim_conn *c)
{
    if (!c->ready)
        return false;
    if (!c->full || !relay_conn_has_output(c->conn))
        return true;
    return conn_has_rings(c) ? cw_ring_writable(&c->wire.out) : is_due(c, POLLOUT);
}

bool conn_can(struct sim_conn *c)
{
    if (!c->accepted)
        return true;
    if (!c->conn)
        return false;
    if (conn_has_rings(c) && is_due(c, POLLIN) && !c->wire.ended)
        return true;
    return (!c->asleep || c->ready) && (can_read(c) || can_write(c));
}

static uint64_t conn_deadline_ns(struct sim_conn *c)
{
    bool waits;

    if (!c->conn || c->asleep)
        return UINT64_MAX;
    waits = conn_has_rings(c) ? cw_ring_readable(&c->wire.in) : is_due(c, POLLIN);
    return waits ? sim.now_ns + HELD_NS : UINT64_MAX;
}

static void release_acted(struct sim_conn *c)
{
    if (c->conn && conn_has_rings(c) && c->wire.holds)
        cw_wire_release(&c->wire, relay_conn_held(c->conn));
}

void core_disk_step(struct sim_relay *relay)
{
    struct relay_log_done done;

    if (fake_disk_done(&relay->disk, &done))
        relay_core_io_done(relay->core, &done);
    for (struct sim_conn *c = relay->conns; c; c = c->next)
        release_acted(c); /* it may have waited for that */
    collect(relay);
}

/* --- reading -------------------------------------------------------------------------------------
 */

static void peek_ring(void *ctx, size_t skip, void *to, size_t size)
{
    cw_ring_peek(ctx, skip, to, size);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Writes once. Returns false when it took nothing. */
static bool write_once(struct sim_conn *c)
{
    struct iovec iov[RELAY_IOV];
    int count = relay_conn_output(c->conn, iov, 1 + (int)sim_below(RELAY_IOV));
    size_t left = socket_some(SIZE_MAX);
    ssize_t n;

    /* rings would take all of it */
    for (int i = 0; i < count; i++) {
        iov[i].iov_len = smaller(iov[i].iov_len, left);
        left -= iov[i].iov_len;
        count = left ? count : i + 1;
    }
    n = cw_wire_send(&c->wire, iov, count);
    relay_conn_written(c->conn, n > 0 ? (size_t)n : 0);
    return n > 0;
}

/* As engine poll does it, from ring to ring. Returns false when nothing was passed on. */
static bool cut_through(struct sim_conn *c)
{
    struct relay_conn *to = relay_conn_cut_to(c->conn);
    struct sim_conn *receiver = to ? relay_conn_owner(to) : NULL;
    struct relay_cut cut;
    size_t there;
    size_t room;

    if (!receiver || !conn_has_rings(receiver) || receiver->wire.ended)
        return false;
    there = cw_ring_there(&c->wire.in);
    room = cw_ring_room(&receiver->wire.out);
    if (there == 0 || room <= RELAY_CUT_HEADER)
        return false;
    cut = relay_conn_cut(c->conn, socket_some(smaller(there, room - RELAY_CUT_HEADER)));
    if (cut.size == 0)
        return false;
    while (cut.to && relay_conn_has_output(cut.to))
        if (!write_once(receiver))
            sim_fail("there is no room for what is to be written before a piece");
    cw_wire_pass(&c->wire, cut.to ? &receiver->wire : NULL, cut.size);
    if (cut.log)
        cw_ring_keep(&c->wire.in, cut.size, cut.log, cut.size);
    relay_cut_done(&cut);
    cw_wire_release(&c->wire, 0);
    return true;
}

static void read_it(struct sim_conn *c)
{
    bool cuts = sim.plan.cuts && conn_has_rings(c) && cw_ring_there(&c->wire.in) > 0;
    size_t before = 0;
    size_t size;
    ssize_t n;
    void *at;

    if (cuts && cut_through(c))
        return;
    if (cuts)
        before = relay_conn_before_cut(c->conn, cw_ring_there(&c->wire.in), peek_ring, &c->wire.in);
    if (relay_conn_space(c->conn, &at, &size) < 0) {
        close_it(c, "no memory");
        return;
    }
    size = socket_some(size);
    if (before > 0 && before < size)
        size = before;
    n = cw_wire_recv(&c->wire, &(struct iovec){at, size}, 1);
    if (n > 0 && conn_has_rings(c) && !c->told_rings) {
        c->told_rings = true;
        relay_conn_set_rings(c->conn);
    }
    if (n > 0 || (n < 0 && errno == EAGAIN)) {
        relay_conn_input(c->conn, n > 0 ? (size_t)n : 0);
        release_acted(c);
    } else
        close_it(c, n == 0 ? "end of file" : cw_wire_error(errno));
}

/* --- writing -------------------------------------------------------------------------------------
 */

/* Until nothing is left; then it is asked whether that was the end. */
static void write_it(struct sim_conn *c)
{
    if (relay_conn_has_output(c->conn) && !write_once(c)) {
        c->full = true;
        /* what the client wrote into its ring before it ended is read first */
        if (errno != EAGAIN && !(errno == EPIPE && conn_has_rings(c)))
            close_it(c, cw_wire_error(errno));
        return;
    }
    if (relay_conn_has_output(c->conn))
        return;
    c->ready = false;
    if (relay_conn_done(c->conn))
        close_it(c, "done");
}

/* --- sleeping ------------------------------------------------------------------------------------
 */

static void wake(struct sim_conn *c)
{
    cw_wire_woke(&c->wire, is_due(c, POLLIN));
    c->asleep = false;
}

static void sleep_perhaps(struct sim_conn *c)
{
    bool out = c->ready && c->full;

    if (!c->conn || !conn_has_rings(c) || can_read(c) || can_write(c) ||
        !sim_one_in(SLEEPS_ONE_IN) || !relay_conn_wants_input(c->conn, sim.now_ns))
        return;
    c->asleep = cw_wire_sleep(&c->wire, true, out) != 0;
    if (!c->asleep)
        cw_wire_woke(&c->wire, false);
}

void conn_step(struct sim_conn *c)
{
    struct sim_relay *relay = c->relay;
    bool read;
    bool write;

    if (!c->accepted) {
        accept_it(c);
        collect(relay);
        return;
    }
    if (conn_has_rings(c) && (c->asleep || is_due(c, POLLIN)))
        wake(c);
    read = can_read(c);
    write = can_write(c);
    if (read && (!write || sim_one_in(2)))
        read_it(c);
    else if (write)
        write_it(c);
    collect(relay);
    if (sim_one_in(2))
        relay_core_settle(relay->core);
    sleep_perhaps(c);
}

/* --- links ---------------------------------------------------------------------------------------
 */

static const struct sim_relay *dialler; /* whose thread is being started */

static void dial_add(struct sim_relay *relay, const struct relay_dial *what)
{
    struct cw_dial_request request;

    dial_request_of(&request, what);
    dialler = relay;
    cw_dial_add(relay->dial, &request);
    dialler = NULL;
}

const struct sim_relay *relay_dialler(void)
{
    return dialler;
}

static void on_dialled(void *ctx, const struct cw_dial_result *result)
{
    struct relay_dialled dialled = dial_outcome_of(result);
    struct sim_relay *relay = ctx;
    struct sim_conn *c;

    sim_trace("relay %u %s its link to relay %u: %s, which has received %llu", relay->number,
              dialled.resumed ? "resumes" : "opens", dialled.peer,
              result->fd < 0 ? dialled.failure : "done", (unsigned long long)dialled.received);
    if (result->fd < 0) {
        relay_core_undialled(relay->core, &dialled);
    } else {
        c = conn_add(relay, result->fd);
        c->accepted = true;
        c->conn = relay_conn_dialled(relay->core, &dialled, sim.now_ns, c);
    }
    collect(relay);
}

/* --- kills ---------------------------------------------------------------------------------------
 */

static void left_put(struct ledger_memory *to, const struct ledger_memory *left)
{
    to->header = left->header;
    memcpy(to->cells, left->cells, left->header.cells_used * sizeof(*left->cells));
    memcpy(to->extents, left->extents, left->header.extents_used * sizeof(*left->extents));
    memcpy(to + 1, left + 1, left->header.carved);
}

/* What outlives the relay, as it is now: its core changes it as it ends. */
static struct ledger_memory *left_copy(const struct ledger_memory *left)
{
    struct ledger_memory *copy = map_left();

    left_put(copy, left);
    return copy;
}

static void conn_die(struct sim_conn *c)
{
    if (c->accepted && !c->conn)
        return;
    if (c->conn)
        relay_conn_close(c->conn, "the relay is killed");
    c->conn = NULL;
    c->accepted = true;
    cw_wire_close(&c->wire);
    socket_die(conn_socket(c), sim_below(sim.plan.news_delay_ns));
    descriptor_free(c->wire.fd);
}

/* Some of what is on its way to the disk gets there. */
static void disk_die(struct fake_disk *disk)
{
    struct relay_log_done done;

    while (disk->count > 0 && sim_one_in(2))
        fake_disk_done(disk, &done);
    disk->count = 0;
}

static void take_up(struct sim_relay *relay)
{
    struct relay_returned returned = {0};
    struct relay_log_done done;
    struct relay_log_io io;

    while (!relay_core_return(relay->core, &returned)) {
        while (relay_core_next_io(relay->core, &io))
            fake_disk_take(&relay->disk, &io);
        if (!fake_disk_done(&relay->disk, &done)) {
            sim_fail("a relay that is back waits for nothing");
            return;
        }
        relay_core_io_done(relay->core, &done);
    }
    sim_trace("relay %u is back, with %u jobs and %u sessions", relay->number, returned.jobs,
              returned.sessions);
    if (returned.lost && !sim.plan.tight) /* a log may have been given up just before */
        sim_fail("relay %u has lost a job: %s", relay->number, returned.why);
    sim.given_up |= returned.lost > 0;
    collect(relay);
}

/* What its disk makes of its memory, which is gone. */
static struct ledger_memory *left_on_disk(struct sim_relay *relay)
{
    struct ledger_memory *left = map_left();
    const struct relay_region region = region_of(left);
    struct journal_summary summary;
    const struct fake_file *file;
    struct cw_err err = {0};

    fake_disk_lose_power(&relay->disk);
    file = journals_find(&relay->disk, &summary, &relay->journal);
    sim_trace("relay %u has lost power: journal %llu, %llu commits", relay->number,
              (unsigned long long)summary.journal, (unsigned long long)summary.commits);
    if (summary.commits > 0 && restore(left, &region, file->bytes, &summary, &err) < 0)
        sim_fail("relay %u cannot be restored from its journal: %s", relay->number, err.text);
    return left;
}

/* What its process leaves. */
static struct ledger_memory *left_in_memory(struct sim_relay *relay)
{
    struct journal_summary summary;

    sim_trace("relay %u is killed", relay->number);
    disk_die(&relay->disk);
    if (sim.plan.sync)
        journals_find(&relay->disk, &summary, &relay->journal);
    return left_copy(relay->left);
}

static void replace(struct sim_relay *relay, struct ledger_memory *left)
{
    for (struct sim_conn *c = relay->conns; c; c = c->next)
        conn_die(c);
    end_core(relay);
    left_put(relay->left, left);
    unmap_left(left);
    begin_core(relay);
    take_up(relay);
}

void core_lose(struct sim_relay *relay)
{
    for (struct sim_conn *c = relay->conns; c; c = c->next)
        conn_die(c);
    end_core(relay);
}

void core_succeed(uint32_t number, uint32_t at)
{
    struct sim_relay *relay = relay_new(number, sim.relay[number]->incarnation + 1,
                                        sim.relay[at]->host, sim.relay[at]->copies[number]);

    sim_trace("relay %u.%u begins on host %u, on the copy of its log at relay %u", number,
              relay->incarnation, relay->host, at);
    sim.moved++;
    take_up(relay);
}

void core_kill(struct sim_relay *relay)
{
    replace(relay, sim.plan.power && sim_one_in(2) ? left_on_disk(relay) : left_in_memory(relay));
}

void core_move(struct sim_relay *relay)
{
    const struct sim_channel *channel = &sim.channel[relay->number];
    const struct sim_memory *memory = channel->fd ? descriptor_of(channel->fd)->memory : NULL;

    sim_trace("the host of relay %u is lost", relay->number);
    if (memory && madvise(memory->at, memory->mapped, MADV_DONTNEED) < 0)
        abort();
    replace(relay, left_on_disk(relay));
}

/* --- all of them ---------------------------------------------------------------------------------
 */

static uint64_t tick_ns(const struct sim_relay *relay)
{
    return relay->tick_ns + (uint64_t)relay_core_tick_ms(relay->core) * 1000000;
}

void cores_tick(void)
{
    for (each_core(relay)) {
        if (sim.now_ns < tick_ns(relay))
            continue;
        relay->tick_ns = sim.now_ns;
        relay_core_tick(relay->core, sim.now_ns);
        collect(relay);
    }
}

uint64_t cores_deadline_ns(void)
{
    uint64_t first = UINT64_MAX;

    for (each_core(relay)) {
        if (tick_ns(relay) < first)
            first = tick_ns(relay);
        for (struct sim_conn *c = relay->conns; c; c = c->next)
            if (conn_deadline_ns(c) < first)
                first = conn_deadline_ns(c);
    }
    return first;
}

bool cores_drain(void)
{
    bool any = false;

    for (each_core(relay))
        for (struct sim_conn *c = relay->conns; c; c = c->next)
            while (c->conn && !conn_has_rings(c) && can_write(c)) {
                write_it(c);
                any = true;
            }
    return any;
}
