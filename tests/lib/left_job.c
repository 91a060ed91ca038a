#include "tests/lib/left_job.h"
#include "common/cred.h"
#include "relay/core/job.h"
#include "tests/lib/codec.h"

#include <stdlib.h>

#define RANKS LEFT_JOB_RANKS
#define CLIENTS LEFT_JOB_CLIENTS
#define DISPATCHER RANKS
#define LINK (RANKS + 1)
#define STEP_NS 400000000ull

struct client {
    struct relay_conn *conn;
    struct codec codec;
};

static struct client clients[CLIENTS];
static struct relay_core *core;
static struct relay_dial last_dial; /* that it asked for */
static left_job_disk *carry_out;
static uint64_t now_ns;
const uint8_t left_job_key[CW_KEY_SIZE] = {1, 2, 3};
static const uint8_t job_id[CW_ID_SIZE] = "a job";
static const uint8_t nonce[CW_NONCE_SIZE] = "nonce";

static void must_hold(bool what)
{
    if (!what)
        abort();
}

void left_job_open(const struct relay_core_config *config, left_job_disk *disk)
{
    struct relay_core_config with_key = *config;

    with_key.key = left_job_key;
    carry_out = disk;
    core = relay_core_new(&with_key);
    must_hold(core);
    now_ns = 1000000000;
}

/* --- the engine ---------------------------------------------------------------------------------
 */
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
        while (relay_core_next_dial(core, &dial)) {
            must_hold(dial.cancelled || dial.peer < CW_RELAYS_MAX);
            last_dial = dial;
        }
    } while (serve_disk());
}

static void feed(struct client *c)
{
    struct codec_bytes *out = &c->codec.out;

    while (c->conn && codec_left(out) > 0) {
        size_t size = codec_left(out);
        size_t room;
        void *at;

        if (relay_conn_space(c->conn, &at, &room) < 0) {
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
    cw_cred_job_key(key, left_job_key, job_id);
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
        codec_trim(&clients[DISPATCHER].codec, who, &at);
        feed(&clients[DISPATCHER]);
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

/* --- the job ------------------------------------------------------------------------------------
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
    cw_cred_job_key(key, left_job_key, job_id);
    cw_cred_seal(link.sealed, key, key);
    codec_put(c, CW_FRAME_LINK, body, cw_link_put(body, &link));
    feed(&clients[DISPATCHER]);
}

static void link_up(bool resumed, uint64_t received)
{
    struct relay_dialled dialled = relay_dialled_of(&last_dial);
    struct client *c = &clients[LINK];

    dialled.peer = 1;
    dialled.resumed = resumed;
    dialled.received = received;
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

/* Rank 1 takes so many messages; then its log begins there. */
static void put_and_trim(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        put_send(3, 1, CW_SEND_AM, LEFT_JOB_MESSAGE, LEFT_JOB_MESSAGE);
    clients[1].codec.clock = 9;
    codec_taken(&clients[1].codec, CW_FRAME_TAKEN, count);
    feed(&clients[1]);
    put_point(1);
    use_point(1, true);
}

void left_job_begin(uint32_t more, uint32_t trimmed)
{
    put_hello(DISPATCHER, &(struct cw_hello){.flags = CW_HELLO_LOG, .resume_ms = 1000});
    put_route();
    link_up(false, 0);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        if (rank != 2)
            put_hello(rank, &(struct cw_hello){.incarnation = 1});
    for (uint32_t i = 0; i < more; i++)
        put_send(3, 0, CW_SEND_TAG, LEFT_JOB_MESSAGE, LEFT_JOB_MESSAGE);
    if (trimmed)
        put_and_trim(trimmed);
    put_much();
}

struct relay_core *left_job_leave(void)
{
    struct relay_core *left = core;

    for (uint32_t who = 0; who < CLIENTS; who++) {
        must_hold((who == 2) == !clients[who].conn);
        codec_fini(&clients[who].codec);
        clients[who] = (struct client){0};
    }
    core = NULL;
    return left;
}

void left_job_end(void)
{
    for (uint32_t who = 0; who < CLIENTS; who++)
        drop_client(&clients[who]);
    relay_core_free(core);
}

/* --- and what follows ---------------------------------------------------------------------------
 */
void left_job_return(struct relay_returned *returned)
{
    uint32_t vain = 0;

    *returned = (struct relay_returned){0};
    /* where there is no memory to read to it finds out when it is asked again */
    while (!relay_core_return(core, returned)) {
        vain = serve_disk() ? 0 : vain + 1;
        must_hold(vain < 2);
    }
    collect();
}

static struct relay_conn *suspended_of(uint32_t who)
{
    struct relay_conn *probe = relay_conn_open(core, nonce, now_ns, &clients[who]);
    struct relay_conn *conn, *found = NULL;

    if (!probe)
        return NULL;
    LIST_FOREACH (conn, &probe->set->all, of_set)
        if (!found && conn->suspended &&
            ((who == DISPATCHER && conn->state == CONN_DISPATCHER) ||
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

void left_job_act(struct cw_reader *r)
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
