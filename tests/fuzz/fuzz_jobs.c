/* Several jobs at one relay, of each --log-safety: dispatchers, ranks and other relays, all with
 * the keys of their own job, come, go and say what they like, in any order. What goes wrong in one
 * job may end that job, never the relay: no assertion fails, and at the end nothing is held. The
 * input is a list of actions: who, what, and what that needs. Most frames are well-formed, and have
 * the numbers that the relay expects, so that every state is reached; others are of any type and
 * any content, or any bytes. What the relay answers makes sense, and an event never changes. */
#include "common/cred.h"
#include "relay/core/core.h"
#include "relay/core/job.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/codec.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/left.h"

#define JOBS 2
#define RANKS 4 /* of each job: 0 and 1 are at home here, 2 at relay 1, 3 at relay 2 */
#define RELAYS 3
#define WHO (1 + RANKS + RELAYS) /* of each job: its dispatcher, its ranks, the other relays */
#define CLIENTS (JOBS * WHO)
#define MEMORY_MAX (8u << 20)
#define MEMORY_SHORT (1500u << 10) /* a handful of blocks: it is spent often */
#define LOG_SHORT (64u << 10)
#define DISK_MAX (16u << 20)
#define UNREAD_MAX 5000u /* bytes that a client has left in its ring */
#define STEP_NS 400000000ull
#define EVENTS_MAX 1024u /* of a rank, whose content is remembered */
#define UNMATCHED_MAX 8u /* synchronous sends to a rank that it may say it has matched */

struct client {
    struct relay_conn *conn;
    struct codec codec;
    struct codec_inbox inbox;
    struct cw_challenge challenge;
    uint32_t job;
    uint32_t who; /* 0: the dispatcher, then ranks, then relays */
    uint64_t event;
    uint64_t missing; /* bytes of the message that it sends */
    /* of a rank that is its own mailbox: bytes that are still to come from each, and whether any
     * are; and synchronous sends that came */
    uint64_t coming[RANKS];
    bool comes[RANKS];
    struct cw_forward_ref unmatched[UNMATCHED_MAX];
    uint32_t unmatched_count;
    bool stalled; /* does not read */
    bool writing; /* the engine holds what it is to write */
    bool lingers; /* is not closed when it is done */
    bool resumed; /* what it is told now begins in the middle of a frame */
    bool forged;  /* it said something raw: its numbers are not known any more */
    bool odd;     /* it may have used a request's number twice */
    bool refused;
    void *room; /* the engine holds where to read to */
    size_t room_size;
};

static struct client clients[CLIENTS];
static struct client *current; /* that acts */
static struct relay_core *core;
static uint64_t now_ns;
static uint32_t incarnation;
static uint32_t next_req; /* also other incarnations do not use a number twice */
static uint64_t witness[JOBS][RANKS][EVENTS_MAX]; /* what each event was */
static bool logged;
static bool channel;       /* ranks are their own mailboxes */
static uint32_t resume_ms; /* connections that break leave a session behind */
static const uint8_t relay_key[CW_KEY_SIZE] = {1, 2, 3};

static void id_of(uint8_t id[CW_ID_SIZE], uint32_t job)
{
    memset(id, 0, CW_ID_SIZE);
    id[0] = (uint8_t)(1 + job);
}

/* --- what the relay says ---------------------------------------------------------------------- */
static void drop_client(struct client *c)
{
    static uint8_t bytes[UNREAD_MAX];
    const struct iovec unread = {bytes, UNREAD_MAX};

    if (c->writing)
        relay_conn_written(c->conn, 0);
    if (c->conn)
        relay_conn_broken(c->conn, "closed", &unread, c->conn->rings);
    codec_fini(&c->codec);
    codec_inbox_fini(&c->inbox);
    *c = (struct client){.job = c->job, .who = c->who};
}

/* Its numbers are those that the session had. */
static void resumed(struct client *c)
{
    c->resumed = true;
    c->codec.session =
        (struct cw_session){.out_seq = c->conn->session.in_seq, .in_seq = c->conn->session.out_seq};
}

static bool welcomes_again(const struct codec_frame *frame)
{
    struct cw_welcome welcome;

    return frame->header.type == CW_FRAME_WELCOME && cw_welcome_get(frame->body, &welcome) &&
           (welcome.flags & CW_WELCOME_RESUMED);
}

/* An event never changes, whichever incarnation is told of it. */
static void check_event(const struct client *c, const struct codec_frame *frame)
{
    struct cw_reader r = cw_reader(frame->body, 4);
    uint64_t what = 1 + ((uint64_t)frame->header.type << 32 | cw_get_u32(&r));
    uint64_t *seen;

    if (c->event >= EVENTS_MAX || c->forged || c->who == 0 || c->who > RANKS)
        return;
    seen = &witness[c->job][c->who - 1][c->event];
    must(*seen == 0 || *seen == what);
    *seen = what;
}

/* One message at a time from each, all of it. */
static void hear_arrival(struct client *c, const struct codec_frame *frame)
{
    uint64_t size = frame->header.length - CW_ARRIVAL_SIZE;
    struct cw_message m;

    must(cw_arrival_get(frame->body, &m) && m.req < RANKS);
    if (m.flags & CW_MESSAGE_OFFERED) {
        must(size == 0 && !c->comes[m.req] && m.event);
        return;
    }
    must(!(m.flags & CW_MESSAGE_FIRST) == c->comes[m.req]);
    if (m.flags & CW_MESSAGE_FIRST)
        c->coming[m.req] = m.total;
    must(size <= c->coming[m.req]);
    c->coming[m.req] -= size;
    c->comes[m.req] = c->coming[m.req] > 0;
    must(!(m.flags & CW_MESSAGE_LAST) == c->comes[m.req] && !m.event == c->comes[m.req]);
    if (m.flags & CW_MESSAGE_SYNC && m.flags & CW_MESSAGE_FIRST &&
        c->unmatched_count < UNMATCHED_MAX)
        c->unmatched[c->unmatched_count++] = (struct cw_forward_ref){m.req, m.sync};
}

static void hear_frame(struct client *c, const struct codec_frame *frame)
{
    uint64_t event = codec_event(frame);
    struct cw_notice_body notice;

    must(!c->refused);
    if (event) {
        must(event == ++c->event);
        check_event(c, frame);
    }
    switch (frame->header.type) {
    case CW_FRAME_CHALLENGE:
        must(cw_challenge_get(frame->body, &c->challenge));
        break;
    case CW_FRAME_WELCOME:
        if (c->who == 0) /* a new job */
            memset(witness[c->job], 0, sizeof(witness[c->job]));
        break;
    case CW_FRAME_MESSAGE:
        must(codec_inbox_take(&c->inbox, frame) || c->odd);
        break;
    case CW_FRAME_ARRIVAL:
        must(channel);
        hear_arrival(c, frame);
        break;
    case CW_FRAME_REFUSED:
    case CW_FRAME_NOTICE:
        must(cw_notice_get(frame->body, frame->header.length, &notice) && notice.text[0]);
        break;
    default:
        break;
    }
    c->refused = frame->header.type == CW_FRAME_REFUSED || frame->header.type == CW_FRAME_FAREWELL;
}

static void hear(struct client *c)
{
    struct codec_frame frame;
    struct cw_err err;
    int whole;

    if (c->forged) /* the relay acknowledges what we did not count */
        c->codec.session.out_seq = c->codec.session.out_acked + UINT32_MAX / 2;
    while ((whole = codec_next(&c->codec, &frame, &err)) > 0) {
        hear_frame(c, &frame);
        if (welcomes_again(&frame)) {
            codec_take(&c->codec.in, codec_left(&c->codec.in));
            resumed(c);
            return;
        }
    }
    must(whole == 0);
}

static void drain(struct client *c)
{
    struct iovec iov[3];

    while (!c->writing && relay_conn_has_output(c->conn)) {
        size_t size = 0;
        int n = relay_conn_output(c->conn, iov, 3);

        for (int i = 0; i < n; i++) {
            if (!c->resumed)
                codec_receive(&c->codec, iov[i].iov_base, iov[i].iov_len);
            size += iov[i].iov_len;
        }
        must(size > 0);
        relay_conn_written(c->conn, size);
        hear(c);
    }
    if (!c->writing && !c->lingers && relay_conn_done(c->conn))
        drop_client(c);
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
    relay_core_settle(core);
    while (relay_core_next_dial(core, &dial))
        must(dial.peer < RELAYS && (dial.cancelled || dial.address[0]));
}

/* --- what the clients do ---------------------------------------------------------------------- */
/* From sender to receiver, as between rings. */
static size_t cut(struct client *c, size_t size)
{
    const uint8_t *from = c->codec.out.at + c->codec.out.start;
    struct relay_conn *to = relay_conn_cut_to(c->conn);
    struct client *receiver = to ? relay_conn_owner(to) : NULL;
    struct relay_cut piece;

    if (!receiver || receiver->stalled || receiver->writing)
        return 0;
    piece = relay_conn_cut(c->conn, size);
    if (piece.log)
        memcpy(piece.log, from, piece.size);
    if (piece.to) {
        bool lingers = receiver->lingers;

        receiver->lingers = true;
        drain(receiver);
        receiver->lingers = lingers;
        if (!receiver->resumed)
            codec_receive(&receiver->codec, from, piece.size);
        hear(receiver);
    }
    relay_cut_done(&piece);
    codec_take(&c->codec.out, piece.size);
    return piece.size;
}

/* The engine takes the room, and fills it at once or later. */
static void feed(struct client *c, size_t size)
{
    size_t left = codec_left(&c->codec.out);

    if (!c->conn)
        return;
    size = size < left ? size : left;
    relay_conn_wants_input(c->conn, now_ns);
    if (!c->room && size > 0 && cut(c, size))
        size = 0;
    if (!c->room && relay_conn_space(c->conn, &c->room, &c->room_size) < 0) {
        c->room = NULL;
        codec_take(&c->codec.out, left);
        collect();
        return;
    }
    size = size < c->room_size ? size : c->room_size;
    if (size > 0) {
        memcpy(c->room, c->codec.out.at + c->codec.out.start, size);
        codec_take(&c->codec.out, size);
    }
    c->room = NULL;
    relay_conn_input(c->conn, size);
    collect();
}

static void feed_all(struct client *c)
{
    while (c->conn && codec_left(&c->codec.out))
        feed(c, codec_left(&c->codec.out));
}

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

    c->conn = relay_conn_open(core, nonce, now_ns, c);
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
    hello.flags = (logged ? CW_HELLO_LOG : 0) | (channel && c->who <= RANKS ? CW_HELLO_CHANNEL : 0);
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
    struct relay_dialled dialled = {.peer = how & 3, .resumed = how & 4};

    if (c->conn)
        return;
    dialled.received = some_position(c, how);
    id_of(dialled.job, c->job);
    if (how & 0x40) {
        strcpy(dialled.failure, "nobody is there");
        relay_core_undialled(core, &dialled);
    } else {
        c->conn = relay_conn_dialled(core, &dialled, now_ns, c);
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

    if (!channel || !receives || how == 2) /* which has an MRECV */
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

/* The engine's side: it holds what it got from the core while others go on. */
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
        now_ns += (how >> 3) * STEP_NS;
        relay_core_tick(core, now_ns);
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

/* What the core wants written and read is taken; some of it is carried out. */
static void serve_disk(bool some)
{
    struct relay_log_done done;
    struct relay_log_io io;

    while (relay_core_next_io(core, &io))
        fake_disk_take(&disk, &io);
    if (some && fake_disk_done(&disk, &done))
        relay_core_io_done(core, &done);
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
    core = relay_core_new(&config);
    must(core);
    now_ns = 1000000000;
    incarnation = next_req = 1;
    memset(witness, 0, sizeof(witness));
    logged = size % 5 != 0;
    channel = size % 23 < 9;
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
    relay_core_free(core);                               /* asserts that nothing leaked */
    fake_disk_fini(&disk);
    left_free(left);
    return 0;
}
