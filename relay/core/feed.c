#include "relay/core/feed.h"
#include "relay/core/bounds.h"

#include <string.h>

void feed_attach(struct feed *feed, struct relay_conn *conn, bool direct)
{
    *feed = (struct feed){.conn = conn, .unmatched = feed->unmatched, .direct = direct};
}

void feed_detach(struct feed *feed)
{
    feed->conn = NULL;
    feed->direct = false;
}

void feed_begin(struct feed *feed, const struct log_cursor *from, uint64_t event)
{
    feed->cursor = *from;
    feed->skip = event;
}

void feed_return(struct feed *feed, struct relay_conn *conn, const struct log_mark *from,
                 uint64_t event)
{
    *feed = (struct feed){.conn = conn,
                          .unmatched = feed->unmatched,
                          .skip = event,
                          .hint_armed = true,
                          .cursor = {.events = from->position, .event = from->event}};
}

void feed_hint(struct feed *feed)
{
    if (!feed->hint_armed || !feed->conn || feed->conn->state != CONN_RANK)
        return;
    feed->hint_armed = false;
    conn_frame(feed->conn, CW_FRAME_HINT, NULL, 0);
}

/* The one that was queued last is still to be sent. */
static bool is_asked(const struct feed *feed)
{
    const struct out_queue *out = &feed->conn->out;

    return out->front + out->kept < feed->checkpoint;
}

bool feed_checkpoint(struct feed *feed, const struct cw_checkpoint *checkpoint)
{
    struct relay_conn *conn = feed->conn;

    if (!conn || feed->away || !(conn->state & (CONN_RANK | CONN_REPEATING)) || is_asked(feed) ||
        !conn_frame(conn, CW_FRAME_CHECKPOINT, checkpoint, sizeof(*checkpoint)))
        return false;
    feed->checkpoint = conn->out.front + conn->out.kept + conn->out.bytes;
    return true;
}

void feed_done(struct feed *feed, uint8_t type, uint32_t req, uint64_t event)
{
    struct cw_done done = {.req = req, .event = event};

    if (feed->conn->state != CONN_CLOSING)
        conn_frame(feed->conn, type, &done, sizeof(done));
}

struct relay_conn *feed_message_of(struct feed *feed, const struct cw_message *header,
                                   uint32_t size)
{
    uint8_t *to;

    if (feed->conn->state == CONN_CLOSING)
        return NULL;
    to = conn_frame_of(feed->conn, feed_type(header), feed_fixed(header), size);
    if (!to)
        return NULL;
    memcpy(to, header, feed_fixed(header));
    return feed->conn;
}

/* --- handing out the log -------------------------------------------------------------------------
 */

/* The next frame of the event that is being handed out. */
static enum chain_found emit_piece(struct feed *feed, const struct relay_log *log)
{
    struct log_piece piece = {0};
    enum chain_found found = CHAIN_HERE;

    if (feed->reading.left > 0)
        found = log_read_piece(log, &feed->reading, &piece);
    if (found != CHAIN_HERE)
        return found;
    if (feed->reading.left == 0) {
        feed->header.flags |= CW_MESSAGE_LAST;
        feed->header.event = feed->cursor.event;
    }
    feed_message(feed, &feed->header, piece.at, piece.size, piece.block);
    feed->header.flags &= ~(uint32_t)CW_MESSAGE_FIRST;
    return CHAIN_HERE;
}

static enum chain_found emit_next_event(struct feed *feed, const struct relay_log *log)
{
    struct log_event event;
    enum chain_found found = log_next_event(log, &feed->cursor, &event);

    if (found != CHAIN_HERE || feed->cursor.event <= feed->skip)
        return found;
    feed->taken_left -= feed->taken_left > 0;
    if (event.type != LOG_PASSED) {
        feed_done(feed, event.type == LOG_SENT ? CW_FRAME_SENT : CW_FRAME_CANCELED, event.req,
                  feed->cursor.event);
        return CHAIN_HERE;
    }
    feed->reading = log_read(&event);
    feed->header = (struct cw_message){.req = event.req,
                                       .tag = event.tag,
                                       .total = event.total,
                                       .sync = event.sync,
                                       .msg = event.msg,
                                       .flags = event.flags | CW_MESSAGE_FIRST};
    found = emit_piece(feed, log);
    feed->emitting = found == CHAIN_AWAY || feed->reading.left > 0;
    return found;
}

static void emit_determinant(struct feed *feed, const struct log_determinant *d)
{
    struct relay_conn *conn = feed->conn;
    struct cw_taken taken = {.event = feed->cursor.event + d->events, .clock = d->clock};

    switch (d->type) {
    case LOG_TAKEN:
        feed->taken_left = d->events;
        conn_frame(conn, CW_FRAME_TAKEN, &taken, sizeof(taken));
        break;
    case LOG_READINGS:
        conn_frame(conn, CW_FRAME_READINGS, d->bytes, d->size);
        break;
    case LOG_SEND:
        conn_frame(conn, CW_FRAME_SEND, &d->send, sizeof(d->send));
        break;
    default: /* ANSWER */
        conn_frame(conn, CW_FRAME_PROBED, &d->answer, sizeof(d->answer));
        break;
    }
}

/* What predecessors decided, as much as fits a frame; one that is empty says that this is all. */
static enum chain_found emit_decisions(struct feed *feed, const struct relay_log *log)
{
    uint8_t bytes[CW_DECIDED_MAX];
    struct log_decided_reading next = feed->decided;
    struct log_decision decision;
    size_t used = 0;

    while (log_next_decided(&log->decided, &next, &decision) &&
           used + decision.size <= sizeof(bytes)) {
        memcpy(bytes + used, decision.bytes, decision.size);
        used += decision.size;
        feed->decided = next;
    }
    feed->decides = used > 0;
    conn_frame(feed->conn, CW_FRAME_DECIDED, bytes, used);
    return CHAIN_HERE;
}

struct emission {
    struct feed *feed;
    struct cw_message header;
};

static void emit_open_piece(void *ctx, const uint8_t *at, uint32_t size, struct relay_block *block)
{
    struct emission *e = ctx;

    feed_message(e->feed, &e->header, at, size, block);
    e->header.flags &= ~(uint32_t)CW_MESSAGE_FIRST;
}

/* The messages that are still coming in begin anew for this incarnation. */
static void emit_open(struct feed *feed, const struct relay_log *log,
                      const struct relay_messages *open)
{
    struct relay_message *m;

    LIST_FOREACH (m, open, in_open) {
        struct emission e = {.feed = feed};

        if (message_delivered(m))
            continue; /* an event already; what still comes is cut off */
        if (m->away) {
            message_read(m);
            continue;
        }
        m->begun = false;
        e.header = message_header(m, false);
        message_pieces(m, log, emit_open_piece, &e);
        m->begun = m->delivered > 0;
    }
}

/* One more step of one that repeats: CHAIN_END when all is out. */
static enum chain_found repeat_step(struct feed *feed, const struct relay_log *log)
{
    struct log_determinant determinant;
    enum chain_found found;

    if (feed->repeated)
        return CHAIN_END;
    found = log_next_determinant(log, &feed->cursor, &determinant);
    if (found == CHAIN_HERE)
        emit_determinant(feed, &determinant);
    if (found == CHAIN_END) {
        feed->repeated = true;
        conn_frame(feed->conn, CW_FRAME_REPLAYED, NULL, 0);
    }
    return found;
}

/* One more step: CHAIN_END when there is nothing more to hand out now. */
static enum chain_found pump_step(struct feed *feed, const struct relay_log *log,
                                  const struct relay_messages *open)
{
    enum chain_found found;

    if (feed->decides)
        return emit_decisions(feed, log);
    if (feed->emitting) {
        found = emit_piece(feed, log);
        feed->emitting = found != CHAIN_HERE || feed->reading.left > 0;
        return found;
    }
    if (feed->cursor.event < feed->skip)
        return emit_next_event(feed, log);
    if (feed->taken_left == 0 && feed->conn->state == CONN_REPEATING && !feed->unmatched)
        return repeat_step(feed, log);
    found = emit_next_event(feed, log);
    if (found == CHAIN_END) {
        emit_open(feed, log, open);
        feed->direct = true;
    }
    return found;
}

bool feed_pump(struct feed *feed, const struct relay_log *log, const struct relay_messages *open)
{
    struct relay_conn *conn = feed->conn;
    enum chain_found found = CHAIN_HERE;

    if (!conn || feed->direct || feed->away)
        return true;
    while (found == CHAIN_HERE && conn->state != CONN_CLOSING &&
           conn->out.bytes < RELAY_REPLAY_AHEAD)
        found = pump_step(feed, log, open);
    feed->stuck = found == CHAIN_AWAY;
    return found != CHAIN_LOST;
}
