#include "tests/lib/fuzz_client.h"
#include "relay/core/job.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

#define UNREAD_MAX 5000u /* bytes that a client has left in its ring */

struct fuzzed fuzzed;

/* --- what the relay says ---------------------------------------------------------------------- */
void drop_client(struct client *c)
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
void resumed(struct client *c)
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
    seen = &fuzzed.witness[c->job][c->who - 1][c->event];
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
            memset(fuzzed.witness[c->job], 0, sizeof(fuzzed.witness[c->job]));
        break;
    case CW_FRAME_MESSAGE:
        must(codec_inbox_take(&c->inbox, frame) || c->odd);
        break;
    case CW_FRAME_ARRIVAL:
        must(fuzzed.channel);
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

void drain(struct client *c)
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

void collect(void)
{
    struct relay_conn *conn;
    struct relay_dial dial;

    while ((conn = relay_core_next_ready(fuzzed.core))) {
        struct client *c = relay_conn_owner(conn);

        if (!c->stalled)
            drain(c);
    }
    relay_core_settle(fuzzed.core);
    while (relay_core_next_dial(fuzzed.core, &dial))
        must(dial.peer < RELAYS && (dial.cancelled || dial.address[0]));
}

/* --- what it is told ---------------------------------------------------------------------------
 */
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
void feed(struct client *c, size_t size)
{
    size_t left = codec_left(&c->codec.out);

    if (!c->conn)
        return;
    size = size < left ? size : left;
    relay_conn_wants_input(c->conn, fuzzed.now_ns);
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

void feed_all(struct client *c)
{
    while (c->conn && codec_left(&c->codec.out))
        feed(c, codec_left(&c->codec.out));
}
