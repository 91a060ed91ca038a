/* A rank's incarnations: what each is handed of the log of those before it. */
#include "relay/core/state.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

void mailbox_act(struct relay_mailbox *mailbox, uint64_t clock)
{
    mailbox->acts++;
    mailbox->act_clock = clock;
}

bool mailbox_has_past(const struct relay_mailbox *mailbox)
{
    return mailbox->log.kept && (mailbox->acts > 0 || mailbox->log.determinants.first);
}

/* --- giving up -----------------------------------------------------------------------------------
 */

void mailbox_unlog(struct relay_mailbox *mailbox, const char *fmt, ...)
{
    struct relay_conn *conn = mailbox->conn;
    char text[CW_TEXT_MAX + 1];
    va_list ap;

    if (!mailbox->log.kept)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    mailbox->job->core->log_bytes -= mailbox->log.bytes;
    log_free(&mailbox->log);
    job_notice(mailbox->job, CW_NOTICE_UNLOGGED, mailbox->rank, "%s", text);
    /* what it has not been handed yet is gone */
    if (conn && !mailbox->direct)
        conn_refuse(conn, CW_REFUSED_LIMIT, "rank %u cannot be started again: %s", mailbox->rank,
                    text);
}

static struct relay_mailbox *largest_log(struct relay_core *core)
{
    struct relay_mailbox *largest = NULL;

    for (struct relay_job *job = core->jobs; job; job = job->next)
        for (uint32_t rank = 0; rank < job->ranks; rank++) {
            struct relay_mailbox *mailbox = job->mailboxes[rank];

            if (mailbox && (!largest || mailbox->log.bytes > largest->log.bytes))
                largest = mailbox;
        }
    return largest;
}

void mailbox_logged(struct relay_mailbox *mailbox, uint64_t before, int result)
{
    struct relay_core *core = mailbox->job->core;

    core->log_bytes += mailbox->log.bytes - before;
    if (result < 0)
        mailbox_unlog(mailbox, "the relay has no memory for its log (--memory-max)");
    else if (core->log_bytes > core->config.log_max)
        mailbox_unlog(largest_log(core),
                      "the logs have reached %llu MiB (--log-max), and its log "
                      "was the largest",
                      (unsigned long long)core->config.log_max >> 20);
}

void mailbox_diverged(struct relay_mailbox *mailbox, const char *fmt, ...)
{
    char text[CW_TEXT_MAX + 1];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    job_notice(mailbox->job, CW_NOTICE_DIVERGED, mailbox->rank,
               "rank %u, incarnation %u, does not repeat what it did before: %s", mailbox->rank,
               mailbox->incarnation, text);
    mailbox->conn->fenced = true;
    conn_refuse(mailbox->conn, CW_REFUSED_PROTOCOL, "it diverged: %s", text);
}

/* --- coming and going ----------------------------------------------------------------------------
 */

static void take_early(struct relay_mailbox *mailbox)
{
    while (mailbox->early) {
        struct relay_message *message = mailbox->early;

        mailbox->early = message->next_free;
        mailbox_match(mailbox, message, mailbox->streams++, UINT64_MAX);
    }
    mailbox->early_tail = &mailbox->early;
}

void mailbox_attach(struct relay_mailbox *mailbox, struct relay_conn *conn)
{
    mailbox->conn = conn;
    mailbox->hint_armed = false;
    mailbox->repeated = false;
    mailbox->taken_left = 0;
    mailbox->cursor = (struct log_cursor){0};
    mailbox->checked = (struct log_cursor){0};
    mailbox->direct = !mailbox->log.kept;
    take_early(mailbox);
    recovery_pump(conn);
}

void mailbox_detach(struct relay_conn *conn)
{
    struct relay_mailbox *mailbox = conn->mailbox;

    if (!mailbox || mailbox->conn != conn)
        return;
    message_suspend(conn);
    mailbox->conn = NULL;
    mailbox->direct = false;
}

/* --- handing out ---------------------------------------------------------------------------------
 */

struct emission {
    struct relay_mailbox *mailbox;
    struct cw_message header;
    uint64_t left;
};

static void emit_piece(void *ctx, const uint8_t *at, uint32_t size, struct relay_block *block)
{
    struct emission *e = ctx;

    e->left -= size;
    if (e->left == 0) {
        e->header.flags |= CW_MESSAGE_LAST;
        e->header.event = e->mailbox->cursor.event;
    }
    mailbox_emit(e->mailbox, &e->header, at, size, block);
    e->header.flags &= ~(uint32_t)CW_MESSAGE_FIRST;
}

static void emit_logged_message(struct relay_mailbox *mailbox, const struct log_event_view *view)
{
    struct emission e = {.mailbox = mailbox,
                         .left = view->size,
                         .header = {.req = view->event->req,
                                    .tag = view->event->tag,
                                    .total = view->event->total,
                                    .flags = view->event->flags | CW_MESSAGE_FIRST}};

    if (view->event->slices)
        slices_pieces(mailbox->job->core, view->slices, view->event->slices, emit_piece, &e);
    else
        emit_piece(&e, view->bytes, (uint32_t)view->size, NULL);
}

static bool emit_next_event(struct relay_mailbox *mailbox)
{
    struct log_event_view view;

    if (!log_next_event(&mailbox->log, &mailbox->cursor, &view))
        return false;
    if (view.event->type == LOG_MESSAGE)
        emit_logged_message(mailbox, &view);
    else
        mailbox_emit_done(mailbox, view.event->type == LOG_SENT ? CW_FRAME_SENT : CW_FRAME_CANCELED,
                          view.event->req, mailbox->cursor.event);
    return true;
}

static void emit_determinant(struct relay_mailbox *mailbox, const struct log_determinant *d)
{
    struct relay_conn *conn = mailbox->conn;
    struct cw_taken taken = {.event = mailbox->cursor.event + d->events, .clock = d->clock};
    uint8_t *to;

    switch (d->type) {
    case LOG_TAKEN:
        mailbox->taken_left = d->events;
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
static void emit_open(struct relay_mailbox *mailbox)
{
    for (struct relay_message *m = mailbox->open; m; m = m->next_open) {
        struct emission e = {.mailbox = mailbox, .left = UINT64_MAX};

        if (message_delivered(m))
            continue; /* an event already; what still comes is cut off */
        m->begun = false;
        e.header = message_header(m, false);
        message_pieces(mailbox->job->core, m, emit_piece, &e);
        m->begun = m->delivered > 0;
    }
}

/* One more step. Returns false when there is nothing more to hand out now. */
static bool pump_step(struct relay_mailbox *mailbox, struct relay_conn *conn)
{
    struct log_determinant determinant;

    if (mailbox->taken_left > 0) {
        mailbox->taken_left--;
        return emit_next_event(mailbox);
    }
    if (conn->state == CONN_REPEATING) {
        if (mailbox->repeated)
            return false;
        if (log_next_determinant(&mailbox->log, &mailbox->cursor, &determinant)) {
            emit_determinant(mailbox, &determinant);
            return true;
        }
        mailbox->repeated = true;
        conn_frame(conn, CW_FRAME_REPLAYED, 0);
        return false;
    }
    if (emit_next_event(mailbox))
        return true;
    emit_open(mailbox);
    mailbox->direct = true;
    return false;
}

void recovery_pump(struct relay_conn *conn)
{
    struct relay_mailbox *mailbox = conn->mailbox;

    if (!mailbox || mailbox->conn != conn || mailbox->direct)
        return;
    while (conn->state != CONN_CLOSING && conn->out.bytes < RELAY_REPLAY_AHEAD &&
           pump_step(mailbox, conn))
        ;
}
