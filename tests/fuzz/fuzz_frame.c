/* Any bytes, on connections in any state, must be answered or refused, never more. The input is a
 * list of actions: one byte for the client and what it does, then what the action needs. Frames
 * are sent with the numbers that the relay expects, so that the states behind the handshake are
 * reached; raw bytes are sent as they are. Ranks crash and come again; what one of them has to
 * repeat is looked up in the relay's own log, so that it gets past it. */
#include "common/cred.h"
#include "relay/core/core.h"
#include "relay/core/job.h"
/* the Makefile compiles this file alone with the core: the client's side comes in here */
#include "tests/lib/codec.c"

#define RANKS 3
#define CLIENTS 6 /* the dispatcher, the ranks, two strangers, one of which may be a relay */
#define RELAY (RANKS + 1)
#define AWAY (RANKS - 1) /* the rank that is at home there */
#define MEMORY_MAX (8u << 20)
#define MEMORY_SHORT (1300u << 10) /* a handful of blocks: it is spent often */
#define STEP_NS 400000000ull
#define LOG_SHORT (64u << 10) /* logs are given up often */
#define EVENTS_MAX 4096u      /* of a rank, whose content is remembered */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct client {
    struct relay_conn *conn;
    struct codec codec;
    struct codec_inbox inbox;
    struct cw_challenge challenge;
    struct cw_hello hello;
    uint8_t key[CW_KEY_SIZE];
    uint64_t event;
    uint64_t taken;
    uint64_t clock;
    uint64_t missing; /* bytes of the message that it sends */
    bool forged;      /* it said something raw: its numbers are not known any more */
    bool odd;         /* it may have used a request's number twice */
    bool welcome;
    bool refused;
    bool stalled; /* does not read */
    bool lingers; /* is not closed when it is done */
};

static struct client clients[CLIENTS];
static struct relay_core *core;
static uint64_t now_ns;
static uint32_t incarnation;
static uint32_t next_req; /* also other incarnations do not use a number twice */
static bool logged;
static uint32_t resume_ms;                  /* connections that break leave a session behind */
static bool linked;                         /* the job has another relay */
static uint64_t witness[RANKS][EVENTS_MAX]; /* what each event was */
static const uint8_t job[CW_ID_SIZE] = "a job to fuzz in";
static const uint8_t relay_key[CW_KEY_SIZE] = {1, 2, 3};

static void must_hold(bool what)
{
    if (!what)
        abort();
}

/* --- what the relay says ---------------------------------------------------------------------- */
static void take_welcome(struct client *c, const struct codec_frame *frame)
{
    struct cw_welcome welcome;
    uint8_t mac[CW_MAC_SIZE];

    must_hold(!c->welcome && cw_welcome_get(frame->body, &welcome));
    cw_cred_mac_welcome(mac, c->key, &welcome, &c->hello, c->challenge.nonce);
    must_hold(c->forged || cw_cred_equal(mac, welcome.mac));
    c->welcome = true;
    c->event = 0;
    c->clock = welcome.clock;
    c->missing = welcome.missing;
    if (c->hello.role == CW_ROLE_DISPATCHER)
        memset(witness, 0, sizeof(witness)); /* a new job */
}

/* An event never changes, whichever incarnation is told of it. */
static void check_event(const struct client *c, const struct codec_frame *frame)
{
    struct cw_reader r = cw_reader(frame->body, 4);
    uint64_t what = 1 + ((uint64_t)frame->header.type << 32 | cw_get_u32(&r));
    uint64_t *seen = &witness[c->hello.rank % RANKS][c->event % EVENTS_MAX];

    if (c->event >= EVENTS_MAX || c->forged)
        return;
    must_hold(*seen == 0 || *seen == what);
    *seen = what;
}

static void hear(struct client *c, const struct codec_frame *frame)
{
    uint64_t event = codec_event(frame);
    struct cw_notice_body notice;

    must_hold(!c->refused);
    if (event) {
        must_hold(event == ++c->event);
        check_event(c, frame);
    }
    switch (frame->header.type) {
    case CW_FRAME_CHALLENGE:
        must_hold(cw_challenge_get(frame->body, &c->challenge));
        break;
    case CW_FRAME_WELCOME:
        take_welcome(c, frame);
        break;
    case CW_FRAME_MESSAGE:
        must_hold(codec_inbox_take(&c->inbox, frame) || c->odd);
        break;
    case CW_FRAME_REFUSED:
    case CW_FRAME_NOTICE:
        must_hold(cw_notice_get(frame->body, frame->header.length, &notice) && notice.text[0]);
        break;
    }
    c->refused = frame->header.type == CW_FRAME_REFUSED || frame->header.type == CW_FRAME_FAREWELL;
}

static void close_client(struct client *c)
{
    if (c->conn)
        relay_conn_broken(c->conn, "closed", NULL, 0);
    codec_fini(&c->codec);
    codec_inbox_fini(&c->inbox);
    *c = (struct client){0};
}

static void drain(struct client *c)
{
    struct codec_frame frame;
    struct cw_err err;
    struct iovec iov[3];
    int whole;

    while (relay_conn_has_output(c->conn)) {
        size_t size = 0;
        int n = relay_conn_output(c->conn, iov, 3);

        for (int i = 0; i < n; i++) {
            codec_receive(&c->codec, iov[i].iov_base, iov[i].iov_len);
            size += iov[i].iov_len;
        }
        must_hold(size > 0);
        relay_conn_written(c->conn, size);
    }
    if (c->forged) {
        /* the relay acknowledges what we did not count */
        c->codec.session.out_seq = c->codec.session.out_acked + UINT32_MAX / 2;
    }
    while ((whole = codec_next(&c->codec, &frame, &err)) > 0)
        hear(c, &frame);
    must_hold(whole == 0);
    if (relay_conn_done(c->conn) && !c->lingers)
        close_client(c);
}

static void collect(void)
{
    struct relay_conn *conn;
    struct relay_dial dial;

    while ((conn = relay_core_next_ready(core))) {
        struct client *c = relay_conn_owner(conn);

        if (!c->stalled)
            drain(c);
    }
    while (relay_core_next_dial(core, &dial))
        must_hold(dial.cancelled || dial.address[0]);
}

/* --- what the clients do ---------------------------------------------------------------------- */
static void feed(struct client *c)
{
    while (c->conn && codec_left(&c->codec.out)) {
        size_t size = codec_left(&c->codec.out);
        size_t room;
        void *at;

        relay_conn_wants_input(c->conn, now_ns);
        if (relay_conn_space(c->conn, &at, &room) < 0) {
            codec_take(&c->codec.out, size);
            break;
        }
        must_hold(room > 0);
        size = size < room ? size : room;
        memcpy(at, c->codec.out.at + c->codec.out.start, size);
        codec_take(&c->codec.out, size);
        relay_conn_input(c->conn, size);
    }
    collect();
}

static bool open_client(struct client *c)
{
    static const uint8_t nonce[CW_NONCE_SIZE] = "nonce";

    if (c->conn)
        return true;
    c->conn = relay_conn_open(core, nonce, now_ns, c);
    if (!c->conn)
        return false;
    collect();
    return c->conn != NULL;
}

/* The first HELLO of a connection is the one that WELCOME answers. */
static void say_hello_as(struct client *c, uint32_t who)
{
    struct cw_hello hello = {.role = CW_ROLE_DISPATCHER, .rank = RANKS};
    uint8_t key[CW_KEY_SIZE];

    if (!open_client(c))
        return;
    cw_cred_job_key(key, relay_key, job);
    hello.flags = logged ? CW_HELLO_LOG : 0;
    hello.resume_ms = resume_ms;
    if (who == RELAY) {
        hello = (struct cw_hello){.role = CW_ROLE_RELAY, .rank = 1, .incarnation = incarnation};
        cw_cred_link_key(key, key, 1);
    } else if (who > 0) {
        hello =
            (struct cw_hello){.role = CW_ROLE_RANK, .rank = who - 1, .incarnation = incarnation};
        cw_cred_rank_key(key, key, who - 1, incarnation);
    }
    memcpy(hello.job, job, CW_ID_SIZE);
    codec_hello(&c->codec, &hello, key, &c->challenge);
    if (c->hello.role == 0) {
        c->hello = hello;
        memcpy(c->key, key, CW_KEY_SIZE);
    }
    feed(c);
}

static void say_route(struct client *c)
{
    struct cw_route route = {.relays = 2, .home = 1, .first = AWAY, .step = 1, .count = 1};

    if (!c->conn)
        return;
    cw_route_put(codec_begin(&c->codec, CW_FRAME_ROUTE, CW_ROUTE_SIZE), &route);
    feed(c);
}

/* What another relay may say, and a little more. */
static void say_forward_of(struct client *c, struct cw_reader *r)
{
    uint8_t how = cw_get_u8(r);
    struct cw_forward forward = {.src = how & 0x80 ? how & 3 : AWAY,
                                 .send = {.dst = how & 1,
                                          .kind = (how >> 1) & 3,
                                          .req = how,
                                          .tag = cw_get_u8(r) & 7,
                                          .total = cw_get_u16(r)}};
    struct cw_forward_ref ref = {.rank = forward.src, .req = how};
    uint64_t size = forward.send.total < c->missing ? forward.send.total : c->missing;

    switch ((how >> 3) & 7) {
    case 0:
        cw_forward_ref_put(codec_begin(&c->codec, CW_FRAME_FORWARD_END, CW_FORWARD_REF_SIZE), &ref);
        c->missing = 0;
        break;
    case 1:
        ref.rank = how & 1;
        cw_forward_ref_put(codec_begin(&c->codec, CW_FRAME_FORWARD_SENT, CW_FORWARD_REF_SIZE),
                           &ref);
        break;
    case 2:
    case 3:
    case 4:
        cw_forward_ref_put(
            codec_begin(&c->codec, CW_FRAME_FORWARD_DATA, CW_FORWARD_REF_SIZE + size), &ref);
        c->missing -= size;
        break;
    default:
        size = how & 0x40 ? forward.send.total : forward.send.total / 3;
        cw_forward_put(codec_begin(&c->codec, CW_FRAME_FORWARD, CW_FORWARD_SIZE + size), &forward);
        c->missing = forward.send.total - size;
        break;
    }
}

static uint64_t some_mask(uint8_t byte)
{
    static const uint64_t masks[] = {UINT64_MAX, 0, 1, 2, 4, 6, UINT64_MAX, UINT64_MAX};

    return masks[byte & 7];
}

static void say_send_of(struct client *c, struct cw_reader *r)
{
    uint8_t how = cw_get_u8(r);
    struct cw_send send = {.dst = how & 3,
                           .kind = (how >> 2) & 3,
                           .req = how,
                           .tag = cw_get_u8(r) & 7,
                           .total = cw_get_u16(r) * (how & 0x40 ? 6u : 1u),
                           .contents = how & 0x18};
    uint64_t size = how & 0x80 ? send.total : send.total / 3;

    size = size < CW_FRAME_DATA_MAX ? size : CW_FRAME_DATA_MAX;
    codec_pattern(codec_begin(&c->codec, CW_FRAME_SEND, CW_SEND_SIZE + size) + CW_SEND_SIZE,
                  send.tag, 0, size);
    cw_send_put(c->codec.out.at + c->codec.out.end - size - CW_SEND_SIZE, &send);
    c->missing = send.total - size;
}

static void say_data_of(struct client *c, struct cw_reader *r)
{
    uint64_t size = cw_get_u16(r);

    if (size == 0 || size > c->missing)
        size = c->missing;
    size = size < CW_FRAME_DATA_MAX ? size : CW_FRAME_DATA_MAX;
    memset(codec_begin(&c->codec, CW_FRAME_SEND_DATA, size), 0, size);
    c->missing -= size;
}

static void say_request_of(struct client *c, struct cw_reader *r)
{
    static const uint64_t capacities[] = {UINT64_MAX, 0, 1, 300, 5000, 70000, UINT64_MAX, 3};
    uint8_t how = cw_get_u8(r);
    uint8_t what = cw_get_u8(r);
    uint64_t capacity = capacities[what >> 5];
    uint32_t req = next_req++;

    switch (how & 7) {
    case 0:
        codec_probe(&c->codec, what & 7, some_mask(how >> 3), what & 8);
        break;
    case 1:
        codec_mrecv(&c->codec, req, what & 3, capacity);
        break;
    case 2:
        codec_recv(&c->codec, CW_FRAME_CANCEL, req - 1 - (how >> 6), what & 7, some_mask(how >> 3),
                   capacity);
        break;
    case 3:
        codec_bye(&c->codec);
        break;
    case 4:
        codec_put(&c->codec, CW_FRAME_STATS_ASK, NULL, 0);
        break;
    default:
        codec_recv(&c->codec, CW_FRAME_RECV, req, what & 7, some_mask(how >> 3), capacity);
        break;
    }
}

/* --- recovery --------------------------------------------------------------------------------- */
/* NULL: there is none now. */
static const struct relay_job *job_now(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        const struct relay_conn *conn = clients[i].conn;

        if (conn && conn->job && conn->job->dispatcher == conn)
            return conn->job;
    }
    return NULL;
}

static const struct relay_mailbox *mailbox_of(const struct client *c)
{
    const struct relay_job *found = job_now();
    const struct relay_rank *rank;

    if (!found || c->hello.role != CW_ROLE_RANK || c->hello.rank >= found->ranks)
        return NULL;
    rank = found->ranked[c->hello.rank];
    return rank ? &rank->mailbox : NULL;
}

/* What it repeats: all, or with 1, 2, 3 something else, less than all, all without an end; with 4
 * and 5 other contents, which are borne. */
static void say_repetition_of(struct client *c, uint8_t how)
{
    const struct relay_mailbox *mailbox = mailbox_of(c);
    struct log_cursor cursor = {0};
    struct log_inputs inputs = {0};
    struct cw_send send;

    if (!mailbox || !mailbox->log.kept)
        return;
    c->taken = mailbox->log.taken;
    c->clock = mailbox->log.clock;
    c->codec.clock = c->clock;
    while (log_next_send(&mailbox->log, &cursor, &inputs, &send) == CHAIN_HERE) {
        if (how == 1)
            send.tag++;
        if (how == 2)
            break;
        send.contents += how == 4 || how == 5;
        send.flags = how == 5 ? CW_CHECK_BEARS : 0;
        codec_check(&c->codec, &send);
    }
    if (how != 3)
        codec_taken(&c->codec, CW_FRAME_LIVE, c->taken);
}

static void say_determinant_of(struct client *c, struct cw_reader *r)
{
    uint8_t how = cw_get_u8(r);
    uint8_t what = cw_get_u8(r);

    switch (how & 15) {
    case 0:
        say_repetition_of(c, how >> 4);
        break;
    case 1:
        codec_unlogged(&c->codec, what & 3);
        break;
    case 2:
    case 3:
    case 4:
        memset(codec_begin(&c->codec, CW_FRAME_READINGS, what * 60u), what, what * 60u);
        break;
    case 5:
        c->codec.clock = c->clock - what;
        codec_taken(&c->codec, CW_FRAME_TAKEN, c->taken + (how >> 4));
        break;
    default:
        if (c->taken >= c->event)
            return;
        c->clock += what;
        c->codec.clock = c->clock;
        c->taken += 1 + (how >> 4) % (c->event - c->taken);
        codec_taken(&c->codec, CW_FRAME_TAKEN, c->taken);
        break;
    }
}

/* A rank crashes, and the next incarnation repeats what it did. */
static void come_again(struct client *c, uint32_t who, uint8_t how)
{
    bool stalls = c->stalled;

    if (who == 0 || who > RANKS)
        return;
    close_client(c);
    collect();
    incarnation++;
    say_hello_as(c, who);
    if (c->conn && c->welcome && mailbox_of(c) && mailbox_of(c)->feed.conn == c->conn)
        say_repetition_of(c, how & 7);
    c->stalled = stalls;
}

/* A frame of any type, with a header that fits. */
static void say_any_of(struct client *c, struct cw_reader *r)
{
    uint8_t type = cw_get_u8(r);
    size_t size = cw_frame_fixed(type) + (cw_get_u8(r) & 0x1f);
    uint8_t *to = codec_begin(&c->codec, type, size);
    size_t there = size < r->left ? size : r->left;

    c->odd = true;
    memset(to, 0, size);
    cw_get_copy(r, to, there);
}

static void say_raw_of(struct client *c, struct cw_reader *r)
{
    size_t size = cw_get_u8(r);

    size = size < r->left ? size : r->left;
    c->forged = c->odd = true;
    if (size)
        cw_get_copy(r, codec_room(&c->codec.out, size), size);
}

static void pass_time(uint8_t byte)
{
    now_ns += byte * STEP_NS;
    relay_core_tick(core, now_ns);
    collect();
}

static void act(struct cw_reader *r)
{
    uint8_t what = cw_get_u8(r);
    uint32_t who = what % CLIENTS;
    struct client *c = &clients[who];

    if (!open_client(c))
        return;
    switch (what / CLIENTS % 16) {
    case 0:
        say_raw_of(c, r);
        break;
    case 1:
    case 2:
        say_any_of(c, r);
        break;
    case 3:
    case 4:
    case 5:
        say_send_of(c, r);
        break;
    case 6:
    case 7:
        say_data_of(c, r);
        break;
    case 8:
        close_client(c);
        return;
    case 9:
        incarnation++;
        say_hello_as(c, who < 4 ? who : cw_get_u8(r) % (RELAY + 1));
        return;
    case 10:
        c->stalled = !c->stalled;
        if (!c->stalled)
            drain(c);
        return;
    case 11:
        c->lingers = !c->lingers;
        return;
    case 13:
        say_determinant_of(c, r);
        break;
    case 14:
        come_again(c, who, cw_get_u8(r));
        break;
    case 12:
        pass_time(cw_get_u8(r));
        return;
    default:
        if (who == RELAY)
            say_forward_of(c, r);
        else
            say_request_of(c, r);
        break;
    }
    /* some of it may wait: bytes come in any pieces */
    if (what < 240)
        feed(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct relay_core_config config = {.memory_max = size % 2 ? MEMORY_MAX : MEMORY_SHORT,
                                       .log_memory = size % 3 ? MEMORY_MAX : LOG_SHORT};
    struct cw_reader r = cw_reader(data, size);

    config.key = relay_key;
    core = relay_core_new(&config);
    if (!core)
        return 0;
    now_ns = 1000000000;
    incarnation = next_req = 1;
    logged = size % 5 != 0;
    resume_ms = size % 11 < 3 ? 1000 : 0;
    linked = size % 7 < 3;
    for (uint32_t who = 0; who <= RANKS + linked && (cw_get_u8(&r) & 7); who++) {
        say_hello_as(&clients[who], who);
        if (linked && who == 0)
            say_route(&clients[0]);
    }
    while (r.left > 0)
        act(&r);
    /* in any order: the dispatcher may go first or last */
    for (int i = 0; i < CLIENTS; i++)
        close_client(&clients[(i + (int)size) % CLIENTS]);
    relay_core_free(core); /* asserts that nothing leaked */
    return 0;
}
