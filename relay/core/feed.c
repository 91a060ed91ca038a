#include "relay/core/feed.h"
#include "relay/core/bounds.h"

#include <string.h>

void feed_attach(struct feed *feed, struct relay_conn *conn, bool direct)
{
    *feed = (struct feed){.conn = conn, .direct = direct};
}

void feed_detach(struct feed *feed)
{
    feed->conn = NULL;
    feed->direct = false;
}

void feed_hint(struct feed *feed)
{
    if (!feed->hint_armed || !feed->conn || feed->conn->state != CONN_RANK)
        return;
    feed->hint_armed = false;
    conn_frame(feed->conn, CW_FRAME_HINT, 0);
}

void feed_done(struct feed *feed, uint8_t type, uint32_t req, uint64_t event)
{
    struct cw_done done = {.req = req, .event = event};
    uint8_t *to;

    if (feed->conn->state == CONN_CLOSING)
        return;
    to = conn_frame(feed->conn, type, CW_DONE_SIZE);
    if (to)
        cw_done_put(to, &done);
}

struct relay_conn *feed_message_of(struct feed *feed, const struct cw_message *header,
                                   uint32_t size)
{
    uint8_t *to;

    if (feed->conn->state == CONN_CLOSING)
        return NULL;
    to = conn_frame_of(feed->conn, CW_FRAME_MESSAGE, CW_MESSAGE_SIZE, size);
    if (!to)
        return NULL;
    cw_message_put(to, header);
    return feed->conn;
}

/* --- handing out the log -------------------------------------------------------------------------
 */

struct emission {
    struct feed *feed;
    struct cw_message header;
    uint64_t left;
};

static void emit_piece(void *ctx, const uint8_t *at, uint32_t size, struct relay_block *block)
{
    struct emission *e = ctx;

    e->left -= size;
    if (e->left == 0) {
        e->header.flags |= CW_MESSAGE_LAST;
        e->header.event = e->feed->cursor.event;
    }
    feed_message(e->feed, &e->header, at, size, block);
    e->header.flags &= ~(uint32_t)CW_MESSAGE_FIRST;
}

static void emit_logged_message(struct feed *feed, const struct relay_log *log,
                                const struct log_event_view *view)
{
    struct emission e = {.feed = feed,
                         .left = view->size,
                         .header = {.req = view->event->req,
                                    .tag = view->event->tag,
                                    .total = view->event->total,
                                    .flags = view->event->flags | CW_MESSAGE_FIRST}};

    if (view->event->slices)
        log_pieces(log, view->slices, view->event->slices, emit_piece, &e);
    else
        emit_piece(&e, view->bytes, (uint32_t)view->size, NULL);
}

static bool emit_next_event(struct feed *feed, const struct relay_log *log)
{
    struct log_event_view view;

    if (!log_next_event(log, &feed->cursor, &view))
        return false;
    if (view.event->type == LOG_MESSAGE)
        emit_logged_message(feed, log, &view);
    else
        feed_done(feed, view.event->type == LOG_SENT ? CW_FRAME_SENT : CW_FRAME_CANCELED,
                  view.event->req, feed->cursor.event);
    return true;
}

static void emit_determinant(struct feed *feed, const struct log_determinant *d)
{
    struct relay_conn *conn = feed->conn;
    struct cw_taken taken = {.event = feed->cursor.event + d->events, .clock = d->clock};
    uint8_t *to;

    switch (d->type) {
    case LOG_TAKEN:
        feed->taken_left = d->events;
        to = conn_frame(conn, CW_FRAME_TAKEN, CW_TAKEN_SIZE);
        if (to)
            cw_taken_put(to, &taken);
        break;
    case LOG_READINGS:
        to = conn_frame(conn, CW_FRAME_READINGS, d->size);
        if (to)
            memcpy(to, d->bytes, d->size);
        break;
    case LOG_ANSWER:
        to = conn_frame(conn, CW_FRAME_PROBED, CW_PROBED_SIZE);
        if (to)
            cw_probed_put(to, &d->answer);
        break;
    }
}

/* The messages that are still coming in begin anew for this incarnation. */
static void emit_open(struct feed *feed, const struct relay_log *log, struct relay_message *open)
{
    for (struct relay_message *m = open; m; m = m->next_open) {
        struct emission e = {.feed = feed, .left = UINT64_MAX};

        if (message_delivered(m))
            continue; /* an event already; what still comes is cut off */
        m->begun = false;
        e.header = message_header(m, false);
        message_pieces(m, log, emit_piece, &e);
        m->begun = m->delivered > 0;
    }
}

/* One more step. Returns false when there is nothing more to hand out now. */
static bool pump_step(struct feed *feed, const struct relay_log *log, struct relay_message *open)
{
    struct log_determinant determinant;

    if (feed->taken_left > 0) {
        feed->taken_left--;
        return emit_next_event(feed, log);
    }
    if (feed->conn->state == CONN_REPEATING) {
        if (feed->repeated)
            return false;
        if (log_next_determinant(log, &feed->cursor, &determinant)) {
            emit_determinant(feed, &determinant);
            return true;
        }
        feed->repeated = true;
        conn_frame(feed->conn, CW_FRAME_REPLAYED, 0);
        return false;
    }
    if (emit_next_event(feed, log))
        return true;
    emit_open(feed, log, open);
    feed->direct = true;
    return false;
}

void feed_pump(struct feed *feed, const struct relay_log *log, struct relay_message *open)
{
    struct relay_conn *conn = feed->conn;

    if (!conn || feed->direct)
        return;
    while (conn->state != CONN_CLOSING && conn->out.bytes < RELAY_REPLAY_AHEAD &&
           pump_step(feed, log, open))
        ;
}
