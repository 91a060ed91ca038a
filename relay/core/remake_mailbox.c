#include "relay/core/apply.h"
#include "relay/core/remake_point.h"

void remake_mailbox_begin(struct remake_mailbox *r, struct relay_mailbox *mailbox,
                          const struct log_points_left *points)
{
    *r = (struct remake_mailbox){.mailbox = mailbox, .points = *points};
    mailbox->log.due = &r->due;
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
    if (record->size == message->total - message->arrived)
        *at = message->next_free;
    mailbox_arrives(r->mailbox, message, NULL, (uint32_t)record->size, NULL);
    mailbox_came(r->mailbox, message);
    return true;
}

/* The last answer is said once more. */
static void note_answer(struct relay_mailbox *mailbox, const struct log_record *record)
{
    mailbox->found = (struct cw_probed){.clock = mailbox->log.clock + record->clock,
                                        .found = 1,
                                        .msg = (uint32_t)record->msg,
                                        .tag = record->tag,
                                        .total = record->total};
}

static bool apply(struct remake_mailbox *r, const struct log_record *record)
{
    struct relay_message *arriving;

    if (record->type == LOG_PART)
        return on_part(r, record);
    if (record->type == LOG_ANSWER)
        note_answer(r->mailbox, record);
    if (apply_record(r->mailbox, record, &arriving) < 0)
        return false;
    if (arriving)
        remake_arrives(r, arriving);
    return true;
}

/* MATCHED and CANCELED are nothing but events. Of any record at most one event comes, and it is the
 * next one in the log, or the record itself. */
static bool take(struct remake_mailbox *r, struct log_record *record, uint64_t at)
{
    bool came = record->type == LOG_MATCHED || record->type == LOG_CANCELED;

    if (record->placed)
        r->payload = record->at + record->size;
    if (record->type == LOG_MESSAGE) {
        record->message = at;
        record->at = r->payload;
    }
    if (!came && (r->due.type || !apply(r, record)))
        return false;
    if (!log_is_event(record))
        return true;
    came = log_is_same_event(record, &r->due);
    r->due.type = 0;
    return came;
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
    return found == CHAIN_END && r->due.type ? CHAIN_LOST : found;
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
    r->mailbox->log.due = NULL;
}
