#include "relay/core/remake_point.h"

void remake_mailbox_begin(struct remake_mailbox *r, struct relay_mailbox *mailbox,
                          const struct log_points_left *points)
{
    *r = (struct remake_mailbox){.mailbox = mailbox, .points = *points};
}

static void unpost(struct relay_mailbox *mailbox, struct relay_posted *posted)
{
    match_unpost(&mailbox->index, posted);
    mailbox_posted_free(mailbox, posted);
}

static bool on_recv(struct relay_mailbox *mailbox, const struct log_record *record)
{
    struct match_waiting *waiting = match_find_waiting(&mailbox->index, record->tag, record->mask);

    if (!waiting)
        return remake_post(mailbox, record) == CW_OK;
    match_unwait(&mailbox->index, waiting);
    mailbox_bind(mailbox, (struct relay_message *)waiting, (uint32_t)record->req, record->total);
    return true;
}

static bool on_mrecv(struct relay_mailbox *mailbox, const struct log_record *record)
{
    struct relay_message *message = mailbox_taken_out(mailbox, (uint32_t)record->msg);

    if (message)
        mailbox_bind(mailbox, message, (uint32_t)record->req, record->total);
    return message != NULL;
}

static bool on_cancel(struct relay_mailbox *mailbox, const struct log_record *record)
{
    struct relay_posted *posted =
        match_find_request(&mailbox->index, (uint32_t)record->req, record->tag, record->mask);

    if (posted)
        unpost(mailbox, posted);
    return posted != NULL;
}

/* --- messages ------------------------------------------------------------------------------------
 */

static void bind_posted(struct relay_mailbox *mailbox, struct relay_message *message,
                        struct relay_posted *posted)
{
    uint32_t req = posted->req;
    uint64_t capacity = posted->capacity;

    unpost(mailbox, posted);
    mailbox_bind(mailbox, message, req, capacity);
}

static bool on_message(struct remake_mailbox *r, const struct log_record *record, uint64_t at)
{
    const struct cw_send send = {.tag = record->tag,
                                 .kind = (uint32_t)record->kind,
                                 .req = (uint32_t)record->req,
                                 .total = record->total};
    struct relay_mailbox *mailbox = r->mailbox;
    bool active = send.kind == CW_SEND_AM;
    struct relay_posted *posted = active ? NULL : match_find_posted(&mailbox->index, send.tag);
    struct relay_message *message = message_new(&mailbox->shared->messages, mailbox->pool, &send,
                                                (uint32_t)record->src, !posted);

    if (!message)
        return false;
    message->record = at;
    message->floor = r->payload;
    if (active)
        mailbox_bind(mailbox, message, mailbox->streams++, UINT64_MAX);
    else if (posted)
        bind_posted(mailbox, message, posted);
    else if (match_wait(&mailbox->index, &message->waiting) < 0) {
        mailbox_message_free(mailbox, message);
        return false;
    }
    if (message->total > 0)
        remake_arrives(r, message);
    return true;
}

static struct relay_message **arriving_of(struct remake_mailbox *r, uint32_t src)
{
    struct relay_message **at = &r->arriving;

    while (*at && (*at)->src != src)
        at = &(*at)->next_free;
    return *at ? at : NULL;
}

/* Its bytes are taken up at the end, if they are still needed then. */
static bool on_part(struct remake_mailbox *r, const struct log_record *record)
{
    struct relay_message **at = arriving_of(r, (uint32_t)record->src);
    struct relay_message *message = at ? *at : NULL;

    if (!message || record->size > message->total - message->arrived)
        return false;
    message->arrived += record->size;
    if (message->arrived == message->total)
        *at = message->next_free;
    return true;
}

static bool on_passed(struct relay_mailbox *mailbox, const struct log_record *record)
{
    struct relay_posted *posted;

    mailbox->stats.received_bytes += record->size;
    mailbox->stats.received++;
    if (record->flags & CW_MESSAGE_ACTIVE)
        return record->req == mailbox->streams++;
    posted = match_find_posted(&mailbox->index, record->tag);
    if (!posted || posted->req != record->req)
        return false;
    unpost(mailbox, posted);
    return true;
}

static bool on_matched(struct relay_mailbox *mailbox, const struct log_record *record)
{
    struct relay_message *message = LIST_FIRST(&mailbox->open);

    while (message && message->record != record->message)
        message = LIST_NEXT(message, in_open);
    if (!message || message->begun || message->req != record->req ||
        message_wanted(message) != record->size || message->arrived < record->size)
        return false;
    mailbox->stats.received_bytes += record->size;
    mailbox->stats.received++;
    message->delivered = record->size;
    message->begun = true;
    if (message->arrived == message->total)
        mailbox_close(mailbox, message);
    return true;
}

static bool on_answer(struct relay_mailbox *mailbox, const struct log_record *record)
{
    struct match_waiting *waiting;

    mailbox->found = (struct cw_probed){.clock = mailbox->log.clock + record->clock,
                                        .found = 1,
                                        .msg = (uint32_t)record->msg,
                                        .tag = record->tag,
                                        .total = record->total};
    if (!(record->flags & LOG_REMOVED))
        return true;
    waiting = match_find_waiting(&mailbox->index, record->tag, UINT64_MAX);
    return waiting && mailbox_take_out(mailbox, waiting) == (int64_t)record->msg;
}

static enum chain_found take(struct remake_mailbox *r, const struct log_record *record, uint64_t at)
{
    struct relay_mailbox *mailbox = r->mailbox;
    bool good = true;

    if (record->placed)
        r->payload = record->at + record->size;
    switch (record->type) {
    case LOG_RECV:
        good = on_recv(mailbox, record);
        break;
    case LOG_MRECV:
        good = on_mrecv(mailbox, record);
        break;
    case LOG_CANCEL:
        good = on_cancel(mailbox, record);
        break;
    case LOG_MESSAGE:
        good = on_message(r, record, at);
        break;
    case LOG_PART:
        good = on_part(r, record);
        break;
    case LOG_PASSED:
        good = on_passed(mailbox, record);
        break;
    case LOG_MATCHED:
        good = on_matched(mailbox, record);
        break;
    case LOG_ANSWER:
        good = on_answer(mailbox, record);
        break;
    case LOG_SEND:
        mailbox->stats.sent++;
        mailbox->stats.sent_bytes += record->total;
        break;
    default: /* counted */
        break;
    }
    return good;
}

/* The feed begins at the last event that the rank is known to have taken: it was handed that. */
static enum chain_found follow(struct relay_mailbox *mailbox)
{
    struct log_cursor *cursor = &mailbox->feed.origin;
    enum chain_found found = CHAIN_HERE;
    struct log_event event;

    while (found == CHAIN_HERE && cursor->event < mailbox->log.taken)
        found = log_next_event(&mailbox->log, cursor, &event);
    return found;
}

/* A message is whole and has its receive, but was no event. */
static bool is_unfinished(const struct relay_message *message)
{
    return !message->begun && message->arrived == message->total;
}

static bool lacks_event(const struct relay_mailbox *mailbox)
{
    const struct relay_message *message = LIST_FIRST(&mailbox->open);

    while (message && !is_unfinished(message))
        message = LIST_NEXT(message, in_open);
    return message != NULL;
}

/* --- bytes that are still needed -----------------------------------------------------------------
 */

static enum chain_found restore(struct remake_mailbox *r, struct relay_message *message)
{
    struct relay_mailbox *mailbox = r->mailbox;
    enum chain_found found = CHAIN_HERE;
    struct log_piece piece;

    if (message_delivered(message) || message->restored)
        return CHAIN_HERE;
    if (r->reading.left == 0)
        r->reading = (struct log_reading){.left = message->arrived, .position = message->record};
    while (found == CHAIN_HERE && r->reading.left > 0) {
        found = log_read_piece(&mailbox->log, &r->reading, &piece);
        if (found == CHAIN_HERE && message_restore(message, mailbox->pool, &piece) < 0)
            found = CHAIN_LOST;
    }
    message->restored = found == CHAIN_HERE;
    return found;
}

/* Of messages that wait, were taken out, or are coming in. */
static enum chain_found restore_all(struct remake_mailbox *r)
{
    struct relay_mailbox *mailbox = r->mailbox;
    enum chain_found found = CHAIN_HERE;

    for (struct match_waiting *w = TAILQ_FIRST(&mailbox->index.all); w && found == CHAIN_HERE;
         w = TAILQ_NEXT(w, in_order))
        found = restore(r, (struct relay_message *)w);
    for (uint32_t i = 0; i < mailbox->probed_size && found == CHAIN_HERE; i++)
        if (mailbox->probed[i])
            found = restore(r, mailbox->probed[i]);
    for (struct relay_message *m = LIST_FIRST(&mailbox->open); m && found == CHAIN_HERE;
         m = LIST_NEXT(m, in_open))
        found = restore(r, m);
    return found == CHAIN_END ? CHAIN_LOST : found;
}

/* --- all of it -----------------------------------------------------------------------------------
 */

static enum chain_found read_records(struct remake_mailbox *r)
{
    struct relay_mailbox *mailbox = r->mailbox;
    enum chain_found found = CHAIN_HERE;

    while (found == CHAIN_HERE) {
        struct log_record record;

        found = follow(mailbox);
        if (found == CHAIN_HERE)
            found = log_look(&mailbox->log, &r->position, &record);
        if (found == CHAIN_HERE && (!take(r, &record, r->position - record.whole) ||
                                    !log_count(&mailbox->log, &record, r->position)))
            found = CHAIN_LOST;
    }
    mailbox->event = mailbox->log.event_count;
    return found == CHAIN_END && lacks_event(mailbox) ? CHAIN_LOST : found;
}

enum chain_found remake_mailbox_step(struct remake_mailbox *r)
{
    enum chain_found found = remake_points(r);

    if (found == CHAIN_END)
        found = read_records(r);
    if (found == CHAIN_END)
        found = restore_all(r);
    return found == CHAIN_HERE ? CHAIN_END : found;
}

struct relay_message *remake_mailbox_claim(struct remake_mailbox *r, uint64_t record, uint64_t left)
{
    struct relay_message **at = &r->arriving;
    struct relay_message *message;

    while (*at && (*at)->record != record)
        at = &(*at)->next_free;
    message = *at;
    if (!message || left > message->total)
        return NULL;
    /* what its receive has no room for is not logged */
    if (message_delivered(message) && message->arrived < message->total - left)
        message->arrived = message->total - left;
    if (left == 0 || message->arrived != message->total - left)
        return NULL;
    *at = message->next_free;
    if (message->matched && !message_delivered(message)) {
        message->delivered = message->arrived; /* the rank begins it anew */
        message->begun = message->arrived > 0;
    }
    return message;
}

/* Those that nobody sends any more: their senders are gone, or what is missing was dropped. */
void remake_mailbox_end(struct remake_mailbox *r)
{
    while (r->arriving) {
        struct relay_message *message = r->arriving;

        r->arriving = message->next_free;
        if (message->matched)
            mailbox_close(r->mailbox, message);
        else
            message->orphan = true;
    }
    if (r->held)
        mailbox_message_free(r->mailbox, r->held);
    r->held = NULL;
    for (struct relay_message *message = LIST_FIRST(&r->mailbox->open), *next; message;
         message = next) {
        next = LIST_NEXT(message, in_open);
        if (is_unfinished(message)) /* the log makes no sense, and goes */
            mailbox_close(r->mailbox, message);
    }
}
