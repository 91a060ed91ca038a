/* What a relay left, with some of it changed: who takes it up may lose a job, or all, but no
 * assertion fails, and at the end nothing is held. A core makes what is left once, by a script: a
 * job of two relays, with messages that wait, are on their way, and are logged in memory and on
 * disk. The input is a list of changes, and then of what the clients do. */
#include "common/cred.h"
#include "relay/core/core.h"
#include "relay/core/job.h"
/* the Makefile compiles this file alone with the core: the client's side comes in here */
#include "tests/lib/codec.c"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANKS 4 /* 2 is at home at relay 1 */
#define CLIENTS (RANKS + 2)
#define DISPATCHER RANKS
#define LINK (RANKS + 1)
#define REGION (64ull << 20)
#define LEFT_SIZE (sizeof(struct ledger_memory) + REGION)
#define MEMORY_MAX (48u << 20)
#define LOG_MEMORY (100u << 10)
#define PLACES 64u /* on disk */
#define CHANGES_MAX 24
#define STEP_NS 400000000ull
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct client {
    struct relay_conn *conn;
    struct codec codec;
};

static struct client clients[CLIENTS];
static struct relay_core *core;
static uint64_t now_ns;
static uint8_t disk[PLACES][RELAY_BLOCK_BYTES];
static uint64_t good_reads;
static uint64_t wrong_read; /* the one after so many gives other bytes */
static bool making;         /* what is left: what is written then stays on disk */
static int left_fd;         /* what was left: each run has a copy of its own */
static const uint8_t relay_key[CW_KEY_SIZE] = {1, 2, 3};
static const uint8_t job_id[CW_ID_SIZE] = "a job";
static const uint8_t nonce[CW_NONCE_SIZE] = "nonce";

static void must_hold(bool what)
{
    if (!what)
        abort();
}

static struct ledger_memory *map_left(int how)
{
    void *at = mmap(NULL, LEFT_SIZE, PROT_READ | PROT_WRITE, how | MAP_NORESERVE, left_fd, 0);

    must_hold(at != MAP_FAILED);
    return at;
}

/* `share`: one part in so many of what it had when all was made. */
static void open_core(struct ledger_memory *left, uint32_t share)
{
    struct relay_core_config config = {.memory_max = MEMORY_MAX / share,
                                       .log_memory = making ? LOG_MEMORY : MEMORY_MAX,
                                       .log_disk = sizeof(disk),
                                       .ledger = left};

    config.key = relay_key;
    config.region = (struct relay_region){.start = (uint8_t *)(left + 1), .size = REGION};
    core = relay_core_new(&config);
    must_hold(core);
    now_ns = 1000000000;
}

/* --- the engine ---------------------------------------------------------------------------------
 */
static int carry_out(const struct relay_log_io *io)
{
    if (io->offset + io->size > sizeof(disk) || (!io->write && good_reads == 0))
        return EIO;
    good_reads -= !io->write;
    if (!io->write)
        memcpy(io->at, (uint8_t *)disk + io->offset, io->size);
    if (!io->write && wrong_read-- == 0)
        io->at[9] ^= 1;
    if (io->write && making)
        memcpy((uint8_t *)disk + io->offset, io->at, io->size);
    return 0;
}

static bool serve_disk(void)
{
    struct relay_log_io io;

    if (!relay_core_next_io(core, &io))
        return false;
    relay_core_io_done(core, &(struct relay_log_done){io.segment, carry_out(&io)});
    return true;
}

static void drop_client(struct client *c)
{
    if (c->conn)
        relay_conn_broken(c->conn, "closed", NULL, 0);
    codec_fini(&c->codec);
    *c = (struct client){0};
}

static void drain(struct client *c)
{
    struct iovec iov[3];

    while (relay_conn_has_output(c->conn)) {
        size_t size = 0;
        int n = relay_conn_output(c->conn, iov, 3);

        for (int i = 0; i < n; i++)
            size += iov[i].iov_len;
        must_hold(size > 0);
        relay_conn_written(c->conn, size);
    }
    if (relay_conn_done(c->conn))
        drop_client(c);
}

static void collect(void)
{
    struct relay_conn *conn;
    struct relay_dial dial;

    do {
        while ((conn = relay_core_next_ready(core)))
            drain(relay_conn_owner(conn));
        while (relay_core_next_dial(core, &dial))
            must_hold(dial.cancelled || dial.peer < CW_RELAYS_MAX);
    } while (serve_disk());
}

static void feed(struct client *c)
{
    struct codec_bytes *out = &c->codec.out;

    while (c->conn && codec_left(out) > 0) {
        size_t size = codec_left(out);
        size_t room;
        void *at;

        if (relay_conn_is_stuck(c->conn) || relay_conn_space(c->conn, &at, &room) < 0) {
            codec_take(out, size);
        } else {
            size = size < room ? size : room;
            memcpy(at, out->at + out->start, size);
            codec_take(out, size);
            relay_conn_input(c->conn, size);
        }
        collect();
    }
}

/* --- the clients --------------------------------------------------------------------------------
 */
static void put_hello(uint32_t who, const struct cw_hello *more)
{
    struct cw_challenge challenge = {0};
    struct cw_hello hello = *more;
    struct client *c = &clients[who];
    uint8_t key[CW_KEY_SIZE];

    memcpy(challenge.nonce, nonce, sizeof(nonce));
    memcpy(hello.job, job_id, CW_ID_SIZE);
    cw_cred_job_key(key, relay_key, job_id);
    hello.role = who == DISPATCHER ? CW_ROLE_DISPATCHER : CW_ROLE_RANK;
    hello.rank = who == DISPATCHER ? RANKS : who;
    if (who != DISPATCHER)
        cw_cred_rank_key(key, key, who, hello.incarnation);
    c->conn = relay_conn_open(core, nonce, now_ns, c);
    if (!c->conn)
        return;
    collect();
    codec_hello(&c->codec, &hello, key, &challenge);
    feed(c);
}

static void put_send(uint32_t src, uint32_t dst, uint32_t kind, uint64_t total, size_t size)
{
    struct cw_send send = {.kind = kind, .dst = dst, .req = 70, .tag = 5 + dst, .total = total};
    struct client *c = &clients[src];

    send.clock = c->codec.clock;
    memset(codec_begin(&c->codec, CW_FRAME_SEND, CW_SEND_SIZE + size), 1, CW_SEND_SIZE + size);
    cw_send_put(c->codec.out.at + c->codec.out.end - size - CW_SEND_SIZE, &send);
    feed(c);
}

static void put_recv(uint32_t who, uint32_t req, uint64_t tag, uint64_t capacity)
{
    codec_recv(&clients[who].codec, CW_FRAME_RECV, req, tag, UINT64_MAX, capacity);
    feed(&clients[who]);
}

static void put_probe(uint32_t who, uint64_t tag, bool take)
{
    codec_probe(&clients[who].codec, tag, UINT64_MAX, take);
    feed(&clients[who]);
}

static const struct relay_mailbox *mailbox_of(uint32_t who)
{
    const struct relay_conn *conn = clients[who].conn;

    return conn && conn->rank ? &conn->rank->mailbox : NULL;
}

static void put_point(uint32_t who)
{
    const struct relay_mailbox *mailbox = mailbox_of(who);
    const struct log_point *last = mailbox ? log_point_last(&mailbox->log) : NULL;

    if (!mailbox)
        return;
    clients[who].codec.clock = last ? last->at.clock + 1 : 20;
    codec_point(&clients[who].codec, mailbox->log.taken, mailbox->acts);
    feed(&clients[who]);
}

/* Trims its log to the last point, or starts it there. */
static void use_point(uint32_t who, bool trim)
{
    const struct relay_mailbox *mailbox = mailbox_of(who);
    const struct log_point *last = mailbox ? log_point_last(&mailbox->log) : NULL;
    struct cw_point at;

    if (!last)
        return;
    at = last->at;
    if (trim) {
        relay_core_trim(core, job_id, who, &at);
        collect();
        return;
    }
    drop_client(&clients[who]);
    collect();
    put_hello(who,
              &(struct cw_hello){
                  .incarnation = 3, .event = at.event, .poll_clock = at.clock, .acts = at.acts});
}

/* From rank 2, over the link. */
static void put_forward(uint32_t dst, uint64_t total, size_t size)
{
    struct cw_forward forward = {.src = 2};
    struct client *c = &clients[LINK];
    size_t whole = CW_FORWARD_SIZE + size;
    uint8_t *to = codec_begin(&c->codec, CW_FRAME_FORWARD, whole);

    forward.send = (struct cw_send){.kind = CW_SEND_SYNC, .dst = dst, .tag = 3, .total = total};
    memset(to, 2, whole);
    cw_forward_put(to, &forward);
    feed(c);
}

/* --- what is left -------------------------------------------------------------------------------
 */
static void put_route(void)
{
    struct codec *c = &clients[DISPATCHER].codec;
    uint8_t body[CW_LINK_SIZE + CW_LINK_ADDRESS_MAX];
    struct cw_link link = {.peer = 1, .address = "unix:there"};
    uint8_t key[CW_KEY_SIZE];

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        struct cw_route route = {
            .relays = 2, .home = rank == 2, .first = rank, .step = 1, .count = 1};

        cw_route_put(codec_begin(c, CW_FRAME_ROUTE, CW_ROUTE_SIZE), &route);
    }
    cw_cred_job_key(key, relay_key, job_id);
    cw_cred_seal(link.sealed, key, key);
    codec_put(c, CW_FRAME_LINK, body, cw_link_put(body, &link));
    feed(&clients[DISPATCHER]);
}

static void link_up(bool resumed, uint64_t received)
{
    struct relay_dialled dialled = {.peer = 1, .resumed = resumed, .received = received};
    struct client *c = &clients[LINK];

    memcpy(dialled.job, job_id, CW_ID_SIZE);
    c->conn = relay_conn_dialled(core, &dialled, now_ns, c);
    collect();
}

static void put_much(void)
{
    for (uint32_t i = 0; i < 4; i++)
        put_recv(0, i, 5, i < 2 ? UINT64_MAX : 300);
    put_send(1, 0, CW_SEND_TAG, 40, 40);
    put_send(1, 0, CW_SEND_TAG, 30000, 30000);
    put_send(3, 0, CW_SEND_TAG, 9000, 9000);
    clients[0].codec.clock = 9;
    codec_taken(&clients[0].codec, CW_FRAME_TAKEN, 2);
    codec_put(&clients[0].codec, CW_FRAME_READINGS, "read", 4);
    codec_recv(&clients[0].codec, CW_FRAME_CANCEL, 3, 5, UINT64_MAX, 300);
    feed(&clients[0]);
    put_send(3, 1, CW_SEND_SYNC, 20, 20);
    put_send(3, 1, CW_SEND_TAG, 20000, 20000);
    put_send(3, 1, CW_SEND_TAG, 0, 0);
    put_send(3, 1, CW_SEND_AM, 6000, 6000);
    put_probe(1, 6, true);
    put_probe(1, 6, true);
    codec_mrecv(&clients[1].codec, 8, 0, 10);
    feed(&clients[1]);
    put_send(0, 2, CW_SEND_TAG, 200, 200);
    put_forward(1, 300, 300);
    put_recv(1, 9, 3, UINT64_MAX);
    put_point(0);
    put_point(1);
    use_point(0, true);
    /* and those that are on their way */
    put_recv(0, 10, 5, UINT64_MAX);
    put_send(1, 0, CW_SEND_TAG, 50000, 10000);
    put_send(3, 1, CW_SEND_TAG, 50000, 20000);
    put_send(0, 2, CW_SEND_TAG, 10000, 3000);
    put_forward(1, 10000, 3000);
    put_point(0);
    put_point(1);
    put_point(3);
    memset(codec_begin(&clients[1].codec, CW_FRAME_SEND_DATA, 9000), 1, 9000);
    clients[1].codec.out.end -= 100;
    feed(&clients[1]);
}

/* The core that made it stays, for nothing of it may be given back. */
static void make_left(void)
{
    static struct relay_core *first;
    struct ledger_memory *left;

    left_fd = memfd_create("left", MFD_CLOEXEC);
    must_hold(left_fd >= 0 && ftruncate(left_fd, LEFT_SIZE) == 0);
    left = map_left(MAP_SHARED);
    making = true;
    good_reads = UINT64_MAX;
    open_core(left, 1);
    put_hello(DISPATCHER, &(struct cw_hello){.flags = CW_HELLO_LOG, .resume_ms = 1000});
    put_route();
    link_up(false, 0);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        if (rank != 2)
            put_hello(rank, &(struct cw_hello){.incarnation = 1});
    put_much();
    for (uint32_t who = 0; who < CLIENTS; who++) {
        must_hold((who == 2) == !clients[who].conn);
        codec_fini(&clients[who].codec);
        clients[who] = (struct client){0};
    }
    making = false;
    first = core;
    must_hold(left->header.extents_used > 0);
}

/* --- changes ------------------------------------------------------------------------------------
 */
static uint64_t some_value(struct cw_reader *r, uint64_t old)
{
    uint8_t how = cw_get_u8(r);

    switch (how & 7) {
    case 0:
        return old + 1;
    case 1:
        return old - 1;
    case 2:
        return 0;
    case 3:
        return UINT64_MAX;
    case 4:
        return old ^ 1ull << (how >> 3);
    default:
        return cw_get_u16(r);
    }
}

/* One number of it. */
static void change_at(void *at, size_t size, struct cw_reader *r)
{
    size_t wide = 1u << (cw_get_u8(r) & 3);
    size_t place = cw_get_u16(r) % (size / wide) * wide;
    uint64_t value = 0;

    memcpy(&value, (uint8_t *)at + place, wide);
    value = some_value(r, value);
    memcpy((uint8_t *)at + place, &value, wide);
}

static void change(struct ledger_memory *left, uint64_t blocks, struct cw_reader *r)
{
    uint8_t what = cw_get_u8(r);
    uint8_t which = cw_get_u8(r);
    size_t slot = (sizeof(struct relay_block) + 4095) / 4096 * 4096;
    struct relay_block *block =
        (struct relay_block *)((uint8_t *)(left + 1) + which % blocks * slot);

    switch (what % 8) {
    case 0:
        change_at(&left->header, sizeof(left->header), r);
        break;
    case 1:
        change_at(&left->extents[which % 32], sizeof(*left->extents), r);
        break;
    case 2:
        change_at(&block->mark, sizeof(block->mark), r);
        break;
    case 3:
    case 4:
        change_at(block->bytes, what & 64 ? 256 : STORE_SEGMENT_BYTES, r);
        break;
    case 5:
        wrong_read = which;
        break;
    default:
        change_at(&left->cells[which % 16].copy[what >> 7], sizeof(struct ledger_copy), r);
        break;
    }
}

/* --- and what follows ---------------------------------------------------------------------------
 */
static struct relay_conn *suspended_of(uint32_t who)
{
    struct relay_conn *probe = relay_conn_open(core, nonce, now_ns, &clients[who]);
    struct relay_conn *found = NULL;

    if (!probe)
        return NULL;
    for (struct relay_conn *conn = probe->set->first; conn && !found; conn = conn->next)
        if (conn->suspended && ((who == DISPATCHER && conn->state == CONN_DISPATCHER) ||
                                (who == LINK && conn->state == CONN_LINK) ||
                                (conn->state == CONN_RANK && conn->rank_number == who)))
            found = conn;
    relay_conn_close(probe, "it was a question");
    return found;
}

static void come_back(uint32_t who, uint8_t how)
{
    struct relay_conn *old = clients[who].conn ? NULL : suspended_of(who);
    struct cw_hello hello = {.flags = CW_HELLO_RESUME};
    uint32_t said = old ? old->session.in_seq : 0;

    if (!old)
        return;
    hello.received = old->out.front + (how & 1 ? old->out.kept : 0);
    if (old->rank) {
        hello.incarnation = old->rank->mailbox.incarnation;
        hello.event = how & 2 ? old->rank->mailbox.event : old->rank->mailbox.feed.cursor.event;
    }
    if (who == LINK)
        link_up(true, hello.received);
    else
        put_hello(who, &hello);
    clients[who].codec.session = (struct cw_session){.out_seq = said};
}

static void act(struct cw_reader *r)
{
    uint8_t how = cw_get_u8(r);
    uint32_t who = how % CLIENTS;
    struct client *c = &clients[who];

    if (!c->conn || who >= RANKS) {
        come_back(who, how >> 3);
        return;
    }
    c->codec.clock = 10;
    switch (how >> 3 & 7) {
    case 0:
        put_recv(who, 90u + how, 5, UINT64_MAX);
        break;
    case 1:
        put_send(who, how >> 6, CW_SEND_TAG, 40, 40);
        break;
    case 2:
        put_send(who, how >> 6, CW_SEND_AM, 8000, 8000);
        break;
    case 3:
        put_probe(who, 6, how >> 7);
        break;
    case 4:
        memset(codec_begin(&c->codec, CW_FRAME_SEND_DATA, 500), 1, 500);
        feed(c);
        break;
    case 6:
        if (how >> 6 & 1)
            put_point(who);
        else
            use_point(who, how >> 7);
        break;
    case 5:
        drop_client(c);
        collect();
        put_hello(who, &(struct cw_hello){.incarnation = 2});
        break;
    default:
        now_ns += STEP_NS;
        relay_core_tick(core, now_ns);
        collect();
        break;
    }
}

/* What was not changed is not lost. */
static void take_up(bool changed)
{
    struct relay_returned returned = {0};
    uint32_t vain = 0;

    /* where there is no memory to read to it finds out when it is asked again */
    while (!relay_core_return(core, &returned)) {
        vain = serve_disk() ? 0 : vain + 1;
        must_hold(vain < 2);
    }
    must_hold(changed || (returned.lost == 0 && returned.sessions == CLIENTS - 1));
    collect();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t shares[] = {1, 2, 7, 14};
    struct cw_reader r = cw_reader(data, size);
    struct ledger_memory *left;
    uint64_t blocks;
    uint32_t changes;

    if (left_fd == 0)
        make_left();
    left = map_left(MAP_PRIVATE);
    blocks = left->header.carved / ((sizeof(struct relay_block) + 4095) / 4096 * 4096);
    good_reads = size % 5 ? UINT64_MAX : size % 7;
    wrong_read = UINT64_MAX;
    changes = cw_get_u8(&r) % CHANGES_MAX;
    for (uint32_t i = 0; i < changes && r.left > 0; i++)
        change(left, blocks, &r);
    open_core(left, shares[size % 4]);
    take_up(changes > 0 || size % 5 == 0 || size % 4 > 0);
    while (r.left > 0)
        act(&r);
    for (uint32_t who = 0; who < CLIENTS; who++)
        drop_client(&clients[who]);
    relay_core_free(core); /* asserts that nothing leaked */
    munmap(left, LEFT_SIZE);
    return 0;
}
