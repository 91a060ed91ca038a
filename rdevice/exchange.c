#include "rdevice/exchange.h"
#include "common/clock.h"
#include "rdevice/fatal.h"
#include "rdevice/inputs.h"
#include "rdevice/real.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define RELAY_EVERY 64u              /* reads of the channel, of which one is of the relay, too */
#define FAR_EVERY 4u                 /* the same where messages of ranks elsewhere come that way */
#define TELL_COUNTS_NS 1000000000ull /* after which the relay hears again what was counted */

_Static_assert(EXCHANGE_PIECES_MAX + 1 <= SESSION_VECTORS_MAX, "what is queued, and the pieces");

/* From now on the rank cannot be started again. */
static void lose_log(struct exchange *x)
{
    channel_give_up(&x->channel);
    if (!x->cursor.logged)
        return;
    x->cursor.logged = false;
    cw_word_put(exchange_frame(x, CW_FRAME_UNLOGGED, CW_WORD_SIZE), CW_UNLOGGED_MEMORY);
}

/* Its log is there, and not the relay's. */
static void begin_channel(struct exchange *x, const struct cw_welcome *welcome)
{
    struct cursor *c = &x->cursor;

    x->waiter.channel = &x->channel;
    c->acts_made = 0; /* of its acts alone that the relay was told the relay knows */
    channel_welcome(&x->channel, welcome);
    x->decided = !(welcome->flags & CW_WELCOME_DECIDED);
    while (!x->decided)
        exchange_take_frame(x);
    if (c->logged && !x->channel.keeps && c->incarnation > 1)
        fatal_exit(CW_REPORT_FATAL, "this rank cannot be started again: there was no room for its "
                                    "log in channel memory (--log-memory, --log-disk)");
    if (c->logged && !x->channel.keeps)
        lose_log(x);
    c->active = c->logged && channel_next(&x->channel, &c->next.noted);
    if (!c->active)
        channel_live(&x->channel);
}

void exchange_begin(struct exchange *x, const struct cw_setup *setup,
                    const struct cw_welcome *welcome, bool restored)
{
    wait_begin(&x->waiter, &x->session.wire, setup->ranks, setup->spin_ns);
    cursor_begin(&x->cursor, setup->process.incarnation, welcome);
    if (x->channel.on)
        begin_channel(x, welcome);
    contents_begin(&x->contents, setup->flags);
    if (!restored)
        inbox_begin(&x->inbox);
    else if (!x->channel.on) /* whose messages nobody hands over again */
        inbox_on_restore(&x->inbox, &x->requests);
    x->probes = (struct probes){.answered = false};
    x->asked.number = 0;
}

void exchange_diverged(const struct exchange *x, const char *fmt, ...)
{
    const struct cursor *c = &x->cursor;
    char text[CW_TEXT_MAX + 1];
    char all[32] = ""; /* of the acts, where the relay has said it */
    size_t used;
    va_list ap;

    if (c->acts_made > 0)
        snprintf(all, sizeof(all), " of %" PRIu64, c->acts_made);
    used = (size_t)snprintf(text, sizeof(text),
                            "incarnation %u does not repeat what it did before: at poll %" PRIu64
                            ", act %" PRIu64 "%s, ",
                            c->incarnation, c->polls, c->acts, all);
    va_start(ap, fmt);
    vsnprintf(text + used, sizeof(text) - used, fmt, ap);
    va_end(ap);
    tally_append(&c->tally, text, sizeof(text));
    fatal_exit(CW_REPORT_FATAL, "%s", text);
}

__attribute__((noreturn, cold)) static void broken(const struct exchange *x, const char *what)
{
    /* an event that does not fit is the log's, and the program has not asked for it */
    if (x->cursor.active)
        exchange_diverged(x, "the log holds %s", what);
    fatal_exit(CW_REPORT_FATAL, "relay %s broke the protocol: %s", x->session.place.text, what);
}

/* --- frames that come ---------------------------------------------------------------------------
 */

/* The number of the last event that has come whole. */
static void note_event(struct exchange *x)
{
    x->session.hello.event = x->channel.on ? x->channel.arrivals.event : x->inbox.event;
}

static void payload_came(struct exchange *x)
{
    if (x->channel.on)
        arrivals_payload_came(&x->channel.arrivals);
    else
        inbox_payload_came(&x->inbox);
    note_event(x);
}

static void on_message(struct exchange *x, const struct session_frame *frame)
{
    uint8_t *to;
    const char *wrong;

    if (frame->type == CW_FRAME_ARRIVAL && !x->channel.on)
        wrong = "a message for a mailbox of another kind";
    else if (x->channel.on && frame->type == CW_FRAME_MESSAGE)
        wrong = arrivals_on_asked(&x->channel.arrivals, frame->body, frame->more, &to);
    else if (x->channel.on)
        wrong = arrivals_on_message(&x->channel.arrivals, frame->body, frame->more, &to);
    else
        wrong = inbox_on_message(&x->inbox, &x->requests, frame->body, frame->more, &to);
    if (wrong)
        broken(x, wrong);
    x->session.sink = to;
    x->session.sink_left = frame->more;
    if (frame->more == 0)
        payload_came(x);
}

static void on_done(struct exchange *x, const struct session_frame *frame)
{
    const char *wrong = x->channel.on
                            ? arrivals_on_sent(&x->channel.arrivals, frame->body)
                            : inbox_on_done(&x->inbox, &x->requests, frame->type, frame->body);

    if (wrong)
        broken(x, wrong);
    note_event(x);
}

static void on_probed(struct exchange *x, const struct session_frame *frame)
{
    struct cw_probed probed;

    if (!cw_probed_get(frame->body, &probed))
        broken(x, "PROBED that cannot be read");
    if (x->cursor.active) {
        x->cursor.next =
            (struct cursor_item){.kind = CURSOR_ANSWER, .clock = probed.clock, .answer = probed};
    } else {
        probes_on_answer(&x->probes, &probed);
    }
}

static void on_taken(struct exchange *x, const struct session_frame *frame)
{
    struct cw_taken taken;

    if (!cw_taken_get(frame->body, &taken) || taken.event <= x->inbox.event || !x->cursor.active)
        broken(x, "TAKEN that does not add up");
    x->cursor.next =
        (struct cursor_item){.kind = CURSOR_TAKEN, .clock = taken.clock, .event = taken.event};
}

static void on_send(struct exchange *x, const struct session_frame *frame)
{
    struct cursor *c = &x->cursor;

    c->next = (struct cursor_item){.kind = CURSOR_SEND, .clock = c->acts_clock};
    if (!cw_send_get(frame->body, &c->next.send) || frame->more > 0 || !c->active)
        broken(x, "SEND that cannot be read");
}

static void on_readings(struct exchange *x, const struct session_frame *frame)
{
    if (frame->length <= READINGS_HEAD)
        broken(x, "READINGS without readings");
    cursor_repeat_inputs(&x->cursor, frame->body + READINGS_HEAD, frame->length - READINGS_HEAD);
}

/* The last one is empty. */
static void on_decided(struct exchange *x, const struct session_frame *frame)
{
    const char *wrong;

    if (x->decided)
        broken(x, "DECIDED that nobody waits for");
    wrong = channel_decided(&x->channel, frame->body, frame->length);
    if (wrong)
        fatal_exit(CW_REPORT_FATAL, "what this rank decided before its host was lost: %s", wrong);
    x->decided = frame->length == 0;
}

static void on_trimmed(struct exchange *x, const struct session_frame *frame)
{
    struct cw_trim trimmed;

    if (!cw_trim_get(frame->body, &trimmed) || !x->channel.on)
        broken(x, "TRIMMED that cannot be read");
    channel_trim(&x->channel, trimmed.point.clock);
}

static void on_refused(struct exchange *x, const struct session_frame *frame)
{
    struct cw_notice_body refused;

    if (!cw_notice_get(frame->body, frame->length, &refused))
        broken(x, "REFUSED that cannot be read");
    fatal_exit(CW_REPORT_FATAL, "relay %s refuses to go on: %s", x->session.place.text,
               refused.text);
}

static void dispatch(struct exchange *x, const struct session_frame *frame)
{
    switch (frame->type) {
    case CW_FRAME_MESSAGE:
    case CW_FRAME_ARRIVAL:
        on_message(x, frame);
        break;
    case CW_FRAME_SENT:
    case CW_FRAME_CANCELED:
        on_done(x, frame);
        break;
    case CW_FRAME_PROBED:
        on_probed(x, frame);
        break;
    case CW_FRAME_TAKEN:
        on_taken(x, frame);
        break;
    case CW_FRAME_SEND:
        on_send(x, frame);
        break;
    case CW_FRAME_READINGS:
        on_readings(x, frame);
        break;
    case CW_FRAME_REPLAYED:
        x->cursor.next.kind = CURSOR_END;
        break;
    case CW_FRAME_CHECKPOINT:
        if (!cw_checkpoint_get(frame->body, &x->asked))
            broken(x, "CHECKPOINT that cannot be read");
        break;
    case CW_FRAME_DECIDED:
        on_decided(x, frame);
        break;
    case CW_FRAME_TRIMMED:
        on_trimmed(x, frame);
        break;
    case CW_FRAME_HINT:
        probes_on_hint(&x->probes);
        break;
    case CW_FRAME_FAREWELL:
        x->farewell = true;
        break;
    case CW_FRAME_REFUSED:
        on_refused(x, frame);
        break;
    case CW_FRAME_ACK:
        if (!session_on_ack(&x->session, frame->body))
            broken(x, "an ACK for what was not sent, or was acknowledged before");
        break;
    default:
        broken(x, "a frame that a rank does not expect");
    }
}

/* Acts on the frame at the start of the buffer; false when it is not complete. */
static bool take_frame(struct exchange *x)
{
    struct session_frame frame;
    struct cw_err err;
    int there = session_take_frame(&x->session, &frame, &err);

    if (there < 0)
        broken(x, err.text);
    if (there > 0)
        dispatch(x, &frame);
    return there > 0;
}

static bool take_payload(struct exchange *x)
{
    if (!session_take_payload(&x->session))
        return false;
    if (x->session.sink_left == 0)
        payload_came(x);
    return true;
}

/* Before anything that a relay which is back has said is looked at. */
static void look_for_return(struct exchange *x)
{
    if (!x->session.returned)
        return;
    x->session.returned = false;
    if (x->channel.on)
        arrivals_on_return(&x->channel.arrivals);
    else
        inbox_on_return(&x->inbox, &x->requests);
    probes_on_return(&x->probes, x->session.received);
}

static bool fill(struct exchange *x)
{
    bool expected = x->session.sink_left > 0;
    bool filled = session_fill(&x->session);

    look_for_return(x);
    if (filled && expected && x->session.sink_left == 0)
        payload_came(x);
    return filled;
}

/* What is in the buffer; not all of it where much is here already that was not taken. Returns
 * whether anything was. */
static bool take_frames(struct exchange *x, bool all)
{
    bool any = false;

    while ((all || !arrivals_are_many(&x->channel.arrivals)) &&
           (x->session.sink_left ? take_payload(x) : take_frame(x)))
        any = true;
    return any;
}

static bool read_relay(struct exchange *x, bool all)
{
    bool any = x->channel.far && take_frames(x, all); /* what was left there */

    if ((!all && arrivals_are_many(&x->channel.arrivals)) || !fill(x))
        return any;
    take_frames(x, all);
    return true;
}

static void tell(struct exchange *x, const struct mailbox_news *news)
{
    const struct cw_forward_ref matched = {.rank = news->rank, .req = news->req};
    const struct cw_mrecv asked = {
        .req = news->req, .msg = news->msg, .capacity = news->bytes, .clock = x->cursor.polls};
    const struct cw_room room = {.bytes = news->bytes};

    if (news->kind == NEWS_MATCHED)
        cw_forward_ref_put(exchange_frame(x, CW_FRAME_MATCHED, CW_FORWARD_REF_SIZE), &matched);
    else if (news->kind == NEWS_ASKED)
        cw_mrecv_put(exchange_frame(x, CW_FRAME_MRECV, CW_MRECV_SIZE), &asked);
    else
        cw_room_put(exchange_lazy_frame(x, CW_FRAME_ROOM, CW_ROOM_SIZE), &room);
}

void exchange_tell_news(struct exchange *x)
{
    struct mailbox_news news;
    uint64_t has;

    while (x->channel.on && channel_next_news(&x->channel, &news))
        if (!cursor_was_told(&x->cursor, ++x->channel.told, 0, &has))
            tell(x, &news);
}

struct cw_rank_stats exchange_count(struct exchange *x)
{
    struct cw_rank_stats stats = {.log_bytes = 0};

    if (x->channel.on)
        stats = channel_count(&x->channel);
    stats.polls = x->cursor.polls;
    stats.sleeps = x->waiter.sleeps;
    stats.syscalls = x->waiter.syscalls + x->session.calls;
    stats.switches = real_switches();
    stats.events = x->inbox.event;
    stats.taken = inbox_last_taken(&x->inbox);
    stats.acts = x->cursor.acts;
    return stats;
}

void exchange_tell_counts(struct exchange *x)
{
    const struct cw_rank_stats stats = exchange_count(x);

    x->next_count_ns = cw_clock_ns() + TELL_COUNTS_NS;
    memcpy(exchange_frame(x, CW_FRAME_COUNTED, CW_COUNTED_SIZE), &stats, CW_COUNTED_SIZE);
}

/* The relay is heard, too, while others say much; and it hears what this rank counts, by which the
 * dispatcher has images taken in time. */
static bool read_channel(struct exchange *x)
{
    bool looks = ++x->reads % RELAY_EVERY == 0;
    bool heard = x->channel.far && (!x->came || x->reads % FAR_EVERY == 0) && read_relay(x, false);
    bool came = channel_read(&x->channel, x->cursor.polls);

    x->came = came;
    exchange_tell_news(x);
    if ((came && channel_grew(&x->channel)) || (looks && cw_clock_ns() >= x->next_count_ns))
        exchange_tell_counts(x);
    return heard || (came && !looks) || (!x->channel.far && read_relay(x, true)) || came;
}

bool exchange_poll(struct exchange *x)
{
    if (x->channel.others_keep && cw_channel_is_spent(&x->channel.memory))
        lose_log(x);
    return x->channel.on ? read_channel(x) : read_relay(x, true);
}

bool exchange_read(struct exchange *x)
{
    return x->channel.on && !x->channel.keeps ? read_channel(x) : read_relay(x, true);
}

void exchange_wait(struct exchange *x, uint64_t since_ns)
{
    wait_wire(&x->waiter, true, false, since_ns);
}

static void fill_waiting(struct exchange *x)
{
    uint64_t since = cw_clock_ns();

    while (!fill(x))
        exchange_wait(x, since);
}

/* The first `size` bytes of the next frame. */
static const uint8_t *next_bytes(struct exchange *x, size_t size)
{
    const uint8_t *at;

    while (!(at = session_peek(&x->session, size)))
        fill_waiting(x);
    return at;
}

bool exchange_next_readings(struct exchange *x, uint64_t *clock)
{
    const uint8_t *at = next_bytes(x, CW_FRAME_HEADER);
    struct cw_reader r;

    if (at[4] != CW_FRAME_READINGS)
        return false;
    if (cw_frame_length(at) <= READINGS_HEAD)
        broken(x, "READINGS without readings");
    r = cw_reader(next_bytes(x, CW_FRAME_HEADER + READINGS_HEAD) + CW_FRAME_HEADER, READINGS_HEAD);
    *clock = cw_get_u64(&r);
    return true;
}

void exchange_take_frame(struct exchange *x)
{
    while (!take_frame(x))
        fill_waiting(x);
    while (x->session.sink_left > 0)
        if (!take_payload(x))
            fill_waiting(x);
}

/* --- frames that go -----------------------------------------------------------------------------
 */

/* What the relay says while the rank repeats stays where it is until its time has come. */
static void wait_for_room(struct exchange *x, uint64_t *since)
{
    bool reads = !x->cursor.active;
    bool full = session_wants_ack(&x->session);

    if (!*since)
        *since = cw_clock_ns();
    if (full && !reads)
        session_forget(&x->session);
    else if (!reads || !read_relay(x, true)) /* nothing more is said amid what is being written */
        wait_wire(&x->waiter, reads, !full, *since);
}

/* The relay may have said why before it closed. Reading may have found the break, and the session
 * be resumed. */
static void lost(struct exchange *x, int error)
{
    uint32_t connection = x->session.connections;

    while (!x->cursor.active && exchange_read(x))
        ;
    if (x->session.connections == connection)
        session_lost(&x->session, error);
}

static void write_all(struct exchange *x, struct iovec *vectors, int count)
{
    uint64_t since = 0;
    int error;

    while (count > 0) {
        if (session_write(&x->session, &vectors, &count, &error))
            since = 0;
        else if (error)
            lost(x, error);
        else
            wait_for_room(x, &since);
    }
}

void exchange_flush_with(struct exchange *x, const struct iovec *pieces, int count)
{
    struct iovec vectors[SESSION_VECTORS_MAX] = {{x->session.out, x->session.out_used}};

    if (count)
        memcpy(vectors + 1, pieces, (size_t)count * sizeof(*pieces));
    write_all(x, vectors, count + 1);
    session_written(&x->session);
}

void exchange_flush(struct exchange *x)
{
    if (x->session.out_used > 0)
        exchange_flush_with(x, NULL, 0);
}

void exchange_make_room(struct exchange *x, size_t size)
{
    if (!session_has_room(&x->session, size))
        exchange_flush(x);
}

uint8_t *exchange_lazy_frame(struct exchange *x, uint8_t type, size_t size)
{
    exchange_make_room(x, size);
    return session_queue(&x->session, type, size, size);
}

void exchange_acknowledge(struct exchange *x)
{
    if (session_owes_ack(&x->session))
        cw_ack_put(exchange_frame(x, CW_FRAME_ACK, CW_ACK_SIZE), &x->session.numbers);
}

uint8_t *exchange_frame(struct exchange *x, uint8_t type, size_t size)
{
    uint8_t *to = exchange_lazy_frame(x, type, size);

    x->session.out_urgent = true;
    return to;
}

void exchange_beside(struct exchange *x, int fd, bool reads)
{
    bool ended = false;

    do {
        if (ended)
            session_lost(&x->session, 0);
        while (reads && exchange_read(x))
            exchange_acknowledge(x);
        if (reads)
            exchange_flush(x);
    } while (
        !wait_beside(&x->waiter, fd, reads, reads && cw_kept_left(&x->session.kept) > 0, &ended));
}
