/* Several jobs at one relay, of each --log-safety: dispatchers, ranks and other relays, all with
 * the keys of their own job, come, go and say what they like, in any order. What goes wrong in one
 * job may end that job, never the relay: no assertion fails, and at the end nothing is held. The
 * input is a list of actions: who, what, and what that needs. Most frames are well-formed, and have
 * the numbers that the relay expects, so that every state is reached; others are of any type and
 * any content, or any bytes. What the relay answers makes sense, and an event never changes. */
#include "common/cred.h"
#include "relay/core/job.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/fuzz_client.h"
#include "tests/lib/left.h"

#define WHO (1 + RANKS + RELAYS) /* of each job: its dispatcher, its ranks, the other relays */
#define CLIENTS (JOBS * WHO)
#define MEMORY_MAX (8u << 20)
#define MEMORY_SHORT (1500u << 10) /* a handful of blocks: it is spent often */
#define LOG_SHORT (64u << 10)
#define DISK_MAX (16u << 20)
#define STEP_NS 400000000ull

static struct client clients[CLIENTS];
static struct client *current; /* that acts */
static uint32_t incarnation;
static uint32_t next_req; /* also other incarnations do not use a number twice */
static bool logged;
static uint32_t resume_ms; /* connections that break leave a session behind */
static const uint8_t relay_key[CW_KEY_SIZE] = {1, 2, 3};

static void id_of(uint8_t id[CW_ID_SIZE], uint32_t job)
{
    memset(id, 0, CW_ID_SIZE);
    id[0] = (uint8_t)(1 + job);
}

/* --- what the clients do ---------------------------------------------------------------------- */
/* The suspended session of this client, if it can be found. */
static const struct relay_conn *suspended_of(const struct client *c)
{
    const struct client *of = &clients[c->job * WHO];
    const struct relay_conn *conn = NULL;
    const struct relay_job *job = NULL;

    for (uint32_t who = 0; who < WHO && !job; who++)
        job = of[who].conn ? of[who].conn->job : NULL;
    if (!job)
        return NULL;
    if (c->who == 0)
        conn = job->dispatcher;
    else if (c->who > RANKS)
        conn = job->links[c->who - RANKS - 1].conn;
    else if (job->ranked[c->who - 1])
        conn = job->ranked[c->who - 1]->mailbox.feed.conn;
    return conn && conn->suspended ? conn : NULL;
}

/* How much of its session's stream it says it has received: what may be true, or nearly. */
static uint64_t some_position(const struct client *c, uint8_t how)
{
    const struct relay_conn *conn = suspended_of(c);
    uint64_t kept = conn ? conn->out.kept : 0;

    return (conn ? conn->out.front : 0) + (how & 0x80 ? kept + (how & 1) : kept * (how & 7) / 7);
}

static void open_connection(struct client *c)
{
    static const uint8_t nonce[CW_NONCE_SIZE] = "nonce";

    c->conn = relay_conn_open(fuzzed.core, nonce, fuzzed.now_ns, c);
    collect();
}

/* What the relay keeps for a rank of the client's job; NULL: nothing, or it cannot be found. */
static const struct relay_mailbox *mailbox_of(const struct client *c, uint32_t rank)
{
    const struct relay_conn *dispatcher = clients[c->job * WHO].conn;
    const struct relay_rank *ranked =
        dispatcher && dispatcher->job && rank < RANKS ? dispatcher->job->ranked[rank] : NULL;

    return ranked && ranked->mailbox.log.kept ? &ranked->mailbox : NULL;
}

/* One of the points that are known; NULL: the rank's beginning. */
static const struct log_point *some_point(const struct relay_mailbox *mailbox, uint8_t how)
{
    const struct log_points *points = mailbox ? mailbox->log.points : NULL;

    return points && points->count && how & 1 ? &points->at[(how >> 1) % points->count] : NULL;
}

/* `resumes`: to go on with its session, and `how` says from where. `from`: an image's point. */
static void put_hello_from(struct client *c, bool resumes, uint8_t how, const struct cw_point *from)
{
    const struct relay_conn *old;
    struct cw_hello hello = {.role = CW_ROLE_DISPATCHER, .rank = RANKS};
    uint8_t key[CW_KEY_SIZE];

    if (!c->conn)
        open_connection(c);
    if (!c->conn)
        return;
    old = resumes ? suspended_of(c) : NULL;
    id_of(hello.job, c->job);
    cw_cred_job_key(key, relay_key, hello.job);
    hello.flags =
        (logged ? CW_HELLO_LOG : 0) | (fuzzed.channel && c->who <= RANKS ? CW_HELLO_CHANNEL : 0);
    hello.resume_ms = resume_ms;
    if (resumes && c->who == 0 && (how & 0x18) == 0x18) {
        hello.flags |= CW_HELLO_TAKE;
    } else if (resumes) {
        hello.flags |= CW_HELLO_RESUME;
        hello.received = some_position(c, how);
    }
    if (c->who > RANKS) {
        hello.role = CW_ROLE_RELAY;
        hello.rank = c->who - RANKS - 1;
        cw_cred_link_key(key, key, hello.rank);
    } else if (c->who > 0) {
        hello.role = CW_ROLE_RANK;
        hello.rank = c->who - 1;
        hello.incarnation = old ? old->rank->mailbox.incarnation : incarnation;
        hello.event = from ? from->event : 0;
        hello.poll_clock = from ? from->clock : 0;
        hello.acts = from ? from->acts : 0;
        if (c->conn->state == CONN_NEW) /* else it goes on, until it is refused */
            c->event = hello.event;
        cw_cred_rank_key(key, key, hello.rank, hello.incarnation);
    }
    codec_hello(&c->codec, &hello, key, &c->challenge);
    feed_all(c);
}

static void put_hello(struct client *c, bool resumes, uint8_t how)
{
    put_hello_from(c, resumes, how, NULL);
}

static void put_route(struct client *c, uint8_t how)
{
    struct cw_route route = {.self = how >> 6, .relays = RELAYS, .step = 1, .count = 1};

    route.first = how & 3;
    route.home = (how >> 2) & 3;
    cw_route_put(codec_begin(&c->codec, CW_FRAME_ROUTE, CW_ROUTE_SIZE), &route);
}

static void put_link(struct client *c, uint8_t how)
{
    struct cw_link link = {.peer = how & 3, .address = "unix:there"};
    uint8_t body[CW_LINK_SIZE + CW_LINK_ADDRESS_MAX];
    uint8_t key[CW_KEY_SIZE];
    uint8_t id[CW_ID_SIZE];

    id_of(id, c->job);
    cw_cred_job_key(key, relay_key, id);
    cw_cred_seal(link.sealed, key, key);
    codec_put(&c->codec, CW_FRAME_LINK, body, cw_link_put(body, &link));
}

/* A link that was asked for, or was not, is open, or cannot be opened. */
static void dialled(struct client *c, uint8_t how)
{
    struct relay_dialled dialled = {
        .peer = how & 3, .resumed = how & 4, .asked = 1 + (how >> 3 & 1)};

    if (c->conn)
        return;
    dialled.received = some_position(c, how);
    id_of(dialled.job, c->job);
    if (how & 0x40) {
        strcpy(dialled.failure, "nobody is there");
        relay_core_undialled(fuzzed.core, &dialled);
    } else {
        c->conn = relay_conn_dialled(fuzzed.core, &dialled, fuzzed.now_ns, c);
        if (c->conn && dialled.resumed)
            resumed(c);
    }
    collect();
}

static uint64_t some_total(struct cw_reader *r, uint8_t how)
{
    uint64_t total = cw_get_u16(r);

    return how & 0x80 ? total & 0xff : how & 0x40 ? total * 7 : total;
}

static void put_send(struct client *c, struct cw_reader *r)
{
    uint8_t how = cw_get_u8(r);
    struct cw_send send = {.dst = how & 3, .kind = 1 + (how >> 2) % 3, .req = how};
    bool link = c->who > RANKS;
    size_t fixed = link ? CW_FORWARD_SIZE : CW_SEND_SIZE;
    uint64_t size;
    uint8_t *to;

    send.tag = cw_get_u8(r) & 3;
    send.total = some_total(r, how);
    size = how & 0x20 ? send.total : send.total / 2;
    size = size < CW_FRAME_DATA_MAX ? size : CW_FRAME_DATA_MAX;
    c->missing = send.total - size;
    send.clock = c->codec.clock;
    to = codec_begin(&c->codec, link ? CW_FRAME_FORWARD : CW_FRAME_SEND, fixed + size);
    memset(to, 0, fixed + size);
    if (link)
        cw_forward_put(to, &(struct cw_forward){.src = c->who - RANKS, .send = send});
    else
        cw_send_put(to, &send);
}

static void put_data(struct client *c, struct cw_reader *r)
{
    uint64_t size = cw_get_u16(r);
    size_t fixed = c->who > RANKS ? CW_FORWARD_REF_SIZE : 0;
    uint8_t *to;

    size = size < c->missing ? size : c->missing;
    c->missing -= size;
    to = codec_begin(&c->codec, fixed ? CW_FRAME_FORWARD_DATA : CW_FRAME_SEND_DATA, fixed + size);
    memset(to, 0, fixed + size);
    if (fixed)
        cw_forward_ref_put(to, &(struct cw_forward_ref){.rank = c->who - RANKS});
}

/* What ends, or breaks, by a dispatcher's word. */
static void put_end(struct client *c, uint8_t how)
{
    static const uint32_t cuts[] = {CW_CUT_LINKS, CW_CUT_DISPATCHER};
    struct cw_rank_end end = {.rank = how >> 3 & 3, .incarnation = incarnation - (how & 1)};

    switch (how & 6) {
    case 0:
        codec_put(&c->codec, CW_FRAME_JOB_END, NULL, 0);
        break;
    case 2:
        cw_rank_end_put(codec_begin(&c->codec, CW_FRAME_RANK_END, CW_RANK_END_SIZE), &end);
        break;
    default:
        cw_word_put(codec_begin(&c->codec, CW_FRAME_CUT, CW_WORD_SIZE),
                    how & 32 ? cuts[how & 1] : end.rank);
        break;
    }
}

static void put_ref(struct client *c, uint8_t how)
{
    struct cw_forward_ref ref = {.rank = how & 3, .req = how};
    uint8_t type = how & 4 ? CW_FRAME_FORWARD_SENT : CW_FRAME_FORWARD_END;

    cw_forward_ref_put(codec_begin(&c->codec, type, CW_FORWARD_REF_SIZE), &ref);
}

/* The next incarnation comes, and has repeated what it has to. */
static void put_repetition(struct client *c, uint8_t how)
{
    const struct relay_mailbox *mailbox = mailbox_of(c, c->who - 1);
    const struct log_point *point = some_point(mailbox, how >> 3);
    const struct cw_point from = point ? point->at : (struct cw_point){.event = 0};

    put_hello_from(c, false, 0, &from); /* with which the job may end */
    mailbox = mailbox_of(c, c->who - 1);
    if (!mailbox)
        return;
    c->missing = mailbox->job->ranked[c->who - 1]->transfer.left;
    c->codec.clock = mailbox->log.clock;
    codec_taken(&c->codec, CW_FRAME_LIVE, mailbox->log.taken + (how == 0));
}

/* A rank is at a point; or what its dispatcher asks for then. */
static void put_point(struct client *c, uint8_t how)
{
    const struct relay_mailbox *mailbox = mailbox_of(c, c->who > 0 ? c->who - 1 : how & 3);
    const struct log_point *last = mailbox ? log_point_last(&mailbox->log) : NULL;
    const struct log_point *safe = some_point(mailbox, how >> 2 | 1);
    struct cw_point none = {.event = how, .clock = how};

    if (c->who == 0 && how & 0x80) {
        codec_checkpoint(&c->codec, how & 3, 1 + how, how >> 2 & 1);
    } else if (c->who == 0) {
        codec_trim(&c->codec, how & 3, safe ? &safe->at : &none);
    } else if (mailbox) {
        if (c->codec.clock < mailbox->log.clock)
            c->codec.clock = mailbox->log.clock;
        if (last && c->codec.clock < last->at.clock)
            c->codec.clock = last->at.clock;
        c->codec.clock++;
        codec_point(&c->codec, mailbox->log.taken, mailbox->acts + (how == 0));
    }
}

/* Breaks off, and comes again as the same one. */
static void resume(struct client *c, uint8_t how)
{
    drop_client(c);
    put_hello(c, true, how);
}

/* Some of the events that it was told of, or more. */
static void put_taken(struct client *c, uint8_t what)
{
    const struct relay_mailbox *mailbox = c->who > 0 ? mailbox_of(c, c->who - 1) : NULL;
    uint64_t taken = mailbox ? mailbox->log.taken : 0;

    if (c->event <= taken && what > 8)
        return;
    c->codec.clock += what & 15;
    codec_taken(&c->codec, CW_FRAME_TAKEN,
                taken + 1 + (c->event > taken ? (what >> 4) % (c->event - taken) : what));
}

/* One that came, or another one. */
static void put_matched(struct client *c, uint8_t how)
{
    struct cw_forward_ref ref = {.rank = how & 3, .req = how};

    if (how < 192 && c->unmatched_count == 0)
        return;
    if (how < 192)
        ref = c->unmatched[--c->unmatched_count];
    cw_forward_ref_put(codec_begin(&c->codec, CW_FRAME_MATCHED, CW_FORWARD_REF_SIZE), &ref);
}

/* Of one that takes most of what it gets elsewhere: its log may have any size. */
static void put_counted(struct client *c, uint8_t what)
{
    struct cw_rank_stats stats = {.sent = what, .received = what, .log_bytes = what * 100000ull};

    memcpy(codec_begin(&c->codec, CW_FRAME_COUNTED, CW_COUNTED_SIZE), &stats, CW_COUNTED_SIZE);
}

/* There is more than before, or less. */
static void put_room(struct client *c, uint8_t what)
{
    const struct relay_mailbox *mailbox = c->who > 0 ? mailbox_of(c, c->who - 1) : NULL;
    struct cw_room room = {.bytes = (mailbox ? mailbox->room : 0) + what * 300ull};

    room.bytes -= what < 4 && room.bytes > 0;
    cw_room_put(codec_begin(&c->codec, CW_FRAME_ROOM, CW_ROOM_SIZE), &room);
}

/* What a rank may say that is its own mailbox, where another one receives; false: nothing. */
static bool put_own(struct client *c, uint8_t how, uint8_t what)
{
    bool receives = how < 4 || how > 9;

    if (!fuzzed.channel || !receives || how == 2) /* which has an MRECV */
        return false;
    if (how & 1)
        put_matched(c, what);
    else if (how & 4)
        put_room(c, what);
    else
        put_counted(c, what);
    return true;
}

static void put_request(struct client *c, uint8_t how, uint8_t what)
{
    static const uint64_t masks[] = {UINT64_MAX, 0, 1, 2, 3, 4};
    static const uint64_t capacities[] = {UINT64_MAX, 0, 300, 40000};
    uint64_t mask = masks[what % 6];
    uint64_t capacity = capacities[how >> 6];
    uint32_t req = next_req++;

    if (c->who > 0 && put_own(c, how & 15, what))
        return;
    switch (how & 15) {
    case 0:
    case 1:
        codec_probe(&c->codec, what & 3, mask, how & 1);
        break;
    case 2:
        codec_mrecv(&c->codec, req, what & 3, capacity);
        break;
    case 3:
        codec_recv(&c->codec, CW_FRAME_CANCEL, req - 1 - (what >> 6), what & 3, mask, capacity);
        break;
    case 4:
        codec_bye(&c->codec);
        break;
    case 5:
        codec_put(&c->codec, CW_FRAME_STATS_ASK, NULL, 0);
        break;
    case 6:
        codec_unlogged(&c->codec, 1 + (what & 1));
        break;
    case 7:
        memset(codec_begin(&c->codec, CW_FRAME_READINGS, 1 + what * 60u), what, 1 + what * 60u);
        break;
    case 8:
    case 9:
        put_point(c, what);
        break;
    default:
        codec_recv(&c->codec, CW_FRAME_RECV, req, what & 3, mask, capacity);
        break;
    }
}

/* A frame of any type, with a header that fits, or any bytes. */
static void put_any(struct client *c, uint8_t type, struct cw_reader *r)
{
    size_t size = cw_get_u8(r);
    size_t fixed = cw_frame_fixed(type) + (size & 0x1f);
    bool raw = size > 200;
    uint8_t *to;

    size = raw ? size - 200 : fixed;
    to = raw ? codec_room(&c->codec.out, size) : codec_begin(&c->codec, type, size);
    c->odd = true;
    c->forged |= raw;
    memset(to, 0, size);
    cw_get_copy(r, to, size < r->left ? size : r->left);
}

/* The engine's side: it holds what it got from the fuzzed.core while others go on. */
static void engine(struct client *c, uint8_t how)
{
    struct iovec iov[2];

    switch (how & 7) {
    case 0:
        c->stalled = !c->stalled;
        break;
    case 1:
        c->lingers = !c->lingers;
        break;
    case 2:
        if (c->conn && !c->writing && relay_conn_has_output(c->conn)) {
            relay_conn_output(c->conn, iov, 2);
            c->writing = true;
        }
        return;
    case 3:
        if (c->conn && !c->room && relay_conn_space(c->conn, &c->room, &c->room_size) < 0)
            c->room = NULL;
        return;
    case 4:
        fuzzed.now_ns += (how >> 3) * STEP_NS;
        relay_core_tick(fuzzed.core, fuzzed.now_ns);
        break;
    case 5:
        if (c->conn && c->conn->state == CONN_NEW)
            relay_conn_set_rings(c->conn);
        return;
    default:
        if (c->writing)
            relay_conn_written(c->conn, 0);
        c->writing = false;
        break;
    }
    if (c->conn && !c->stalled)
        drain(c);
    collect();
}

static void act(struct cw_reader *r)
{
    struct client *c;
    uint8_t who = cw_get_u8(r);
    uint8_t what = cw_get_u8(r);
    uint8_t how = cw_get_u8(r);

    if (who < 96) /* two ranks at home here, or the same again: what takes several steps is found
                     sooner */
        current = &clients[1 + who % 2];
    else if (who < 192)
        current = &clients[who % CLIENTS];
    c = current;
    switch (what % 16) {
    case 0:
        incarnation += how & 1;
        put_hello(c, false, 0);
        return;
    case 1:
        drop_client(c);
        collect();
        return;
    case 2:
        engine(c, how);
        return;
    case 3:
        dialled(c, how);
        return;
    case 4:
        feed(c, how);
        return;
    case 5:
        put_route(c, how);
        break;
    case 6:
        put_link(c, how);
        break;
    case 7:
    case 8:
        put_data(c, r);
        break;
    case 9:
        if (c->who == 0)
            put_end(c, how);
        else
            put_ref(c, how);
        break;
    case 10:
        incarnation++;
        if (how & 4) { /* it breaks off in a message */
            put_send(c, r);
            feed(c, codec_left(&c->codec.out) - (how >> 3));
        }
        drop_client(c);
        put_repetition(c, how);
        break;
    case 11:
    case 12:
        put_send(c, r);
        break;
    case 13:
        resume(c, how);
        break;
    case 15:
        if ((what & 0x70) == 0)
            put_any(c, how, r);
        else
            put_taken(c, how);
        break;
    default:
        put_request(c, how, cw_get_u8(r));
        break;
    }
    if (!(what & 0x80))
        feed_all(c);
}

/* Jobs of three relays, of one, or none, as the first bytes have it. */
static void begin(struct cw_reader *r)
{
    for (uint32_t i = 0; i < CLIENTS; i++)
        clients[i] = (struct client){.job = i / WHO, .who = i % WHO};
    current = clients;
    for (uint32_t job = 0; job < JOBS; job++) {
        struct client *of = &clients[job * WHO];
        uint8_t how = cw_get_u8(r);

        if (!(how & 1))
            put_hello(&of[0], false, 0);
        for (uint8_t rank = 0; (how & 2) && rank < RANKS && of[0].conn; rank++)
            put_route(&of[0], (uint8_t)(rank | (rank < 2 ? 0 : rank - 1) << 2));
        feed_all(&of[0]);
        for (uint32_t who = 1; who < WHO; who++)
            if (!(how & 4) && who != 3 && who != 4)
                put_hello(&of[who], false, 0);
    }
}

static struct fake_disk disk;

/* What the fuzzed.core wants written and read is taken; some of it is carried out. */
static void serve_disk(bool some)
{
    struct relay_log_done done;
    struct relay_log_io io;

    while (relay_core_next_io(fuzzed.core, &io))
        fake_disk_take(&disk, &io);
    if (some && fake_disk_done(&disk, &done))
        relay_core_io_done(fuzzed.core, &done);
}

/* The log outlives the process, or the loss of power too, or neither. */
static struct ledger_memory *outlive(struct relay_core_config *config, size_t size)
{
    struct ledger_memory *left = size % 19 < 8 ? NULL : left_new();

    if (!left)
        return NULL;
    config->ledger = left;
    config->region = (struct relay_region){.start = left_region(left), .size = LEFT_REGION};
    if (size % 19 >= 14)
        config->journal = (struct relay_journal){.relay = 1, .number = 1};
    return left;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ledger_memory *left;
    struct relay_core_config config = {.memory_max = size % 2 ? MEMORY_MAX : MEMORY_SHORT,
                                       .log_memory = size % 3 ? MEMORY_MAX : LOG_SHORT,
                                       .log_disk = size % 7 < 4 ? DISK_MAX : 0};
    struct cw_reader r = cw_reader(data, size);

    config.key = relay_key;
    left = outlive(&config, size);
    fuzzed.core = relay_core_new(&config);
    must(fuzzed.core);
    fuzzed.now_ns = 1000000000;
    incarnation = next_req = 1;
    memset(fuzzed.witness, 0, sizeof(fuzzed.witness));
    logged = size % 5 != 0;
    fuzzed.channel = size % 23 < 9;
    resume_ms = size % 11 < 6 ? 1000 : 0;
    disk = (struct fake_disk){
        .seed = size, .good_reads = size % 13 == 0, .good_writes = size % 17 == 0 ? 3 : 0};
    begin(&r);
    while (r.left > 0) {
        act(&r);
        serve_disk(r.left % 4 > 0);
    }
    /* in any order: dispatchers may go first or last */
    for (uint32_t i = 0; i < CLIENTS; i++)
        drop_client(&clients[(i * 5 + size) % CLIENTS]); /* 5 and 16 have no divisor in common */
    relay_core_free(fuzzed.core);                        /* asserts that nothing leaked */
    fake_disk_fini(&disk);
    left_free(left);
    return 0;
}
