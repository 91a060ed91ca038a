#include "relay/core/remake_mailbox.h"
#include "relay/core/apply.h"
#include "relay/core/snapshot.h"

#include <string.h>

void remake_mailbox_begin(struct remake_mailbox *r, struct relay_mailbox *mailbox,
                          const struct log_points_left *points)
{
    *r = (struct remake_mailbox){.mailbox = mailbox, .points = *points};
    mailbox->log.due = &r->due;
}

/* More bytes of it are to come. */
static void arrives(struct remake_mailbox *r, struct relay_message *message)
{
    message->next_free = r->arriving;
    r->arriving = message;
}

/* All that are known, and the last one that there was. */
static uint32_t count_of(const struct log_points_left *left)
{
    bool known = left->count > 0 && left->at[left->count - 1] == left->snapshot;

    return left->any ? left->count + !known : 0;
}

static uint64_t position_of(const struct remake_mailbox *r)
{
    return r->point < r->points.count ? r->points.at[r->point] : r->points.snapshot;
}

static bool is_last(const struct remake_mailbox *r)
{
    return r->point == count_of(&r->points) - 1;
}

/* --- the snapshot of the last point --------------------------------------------------------------
 */

static bool on_state(struct relay_mailbox *mailbox, const struct log_record *record)
{
    struct snapshot_state state;

    if (record->placed || record->size != sizeof(state))
        return false;
    memcpy(&state, record->bytes, sizeof(state));
    mailbox->streams = (uint32_t)state.streams;
    mailbox->stats = state.stats;
    return true;
}

static bool on_held(struct remake_mailbox *r, struct log_record *record)
{
    struct relay_mailbox *mailbox = r->mailbox;

    if (r->held)
        return false;
    record->message = r->position;
    r->held = message_new(&mailbox->shared->messages, mailbox->pool, record, true);
    return r->held;
}

static bool on_held_part(struct remake_mailbox *r, const struct log_record *record)
{
    if (!r->held || record->size > r->held->total - r->held->arrived)
        return false;
    r->held->arrived += record->size;
    return true;
}

static void on_matched(struct relay_mailbox *mailbox, struct relay_message *message,
                       const struct log_record *end)
{
    mailbox_bind(mailbox, message, (uint32_t)end->msg, end->total);
    if (end->flags & LOG_HELD_DELIVERED)
        message->arrived = message_wanted(message);
    message->delivered = message->arrived;
    message->begun = message->delivered > 0 || end->flags & LOG_HELD_DELIVERED;
}

static bool on_held_end(struct remake_mailbox *r, const struct log_record *end)
{
    struct relay_mailbox *mailbox = r->mailbox;
    struct relay_message *message = r->held;
    uint64_t number = end->msg;
    bool out = end->flags & LOG_HELD_OUT;

    if (!message ||
        (out && (number >= mailbox_out_max(mailbox) || mailbox_is_out(mailbox, number))))
        return false;
    message->offered = mailbox->elsewhere && (out || end->flags & LOG_HELD_OFFERED);
    if (end->flags & LOG_HELD_MATCHED)
        on_matched(mailbox, message, end);
    else if (out ? mailbox_put_out(mailbox, message, (uint32_t)number) < 0
                 : match_wait(&mailbox->index, &message->waiting) < 0)
        return false;
    r->held = NULL;
    if (message->arrived < message->total)
        arrives(r, message);
    return !message->matched || message->arrived < message->total; /* else it had been let go of */
}

static bool build(struct remake_mailbox *r, struct log_record *record)
{
    struct relay_message *arriving;

    switch (record->type) {
    case LOG_STATE:
        return on_state(r->mailbox, record);
    case LOG_HELD:
        return on_held(r, record);
    case LOG_HELD_PART:
        return on_held_part(r, record);
    case LOG_HELD_END:
        return on_held_end(r, record);
    default: /* POSTED */
        return apply_record(r->mailbox, record, &arriving) == CW_OK;
    }
}

/* --- all points ----------------------------------------------------------------------------------
 */

static bool on_point(struct remake_mailbox *r, const struct log_record *record)
{
    struct relay_log *log = &r->mailbox->log;
    struct log_point point;

    if (!log_point_read(record, r->position, &point) ||
        (r->point == 0 && log_points_return(log, &r->points) < 0))
        return false;
    if (r->point < r->points.count)
        log_point_return(log, &point);
    if (is_last(r)) {
        log_go_on_from(log, &point);
        r->mailbox->event = point.event_count;
        r->payload = point.payload;
    }
    return true;
}

static bool is_of_snapshot(const struct log_record *record)
{
    return record->type >= LOG_STATE && record->type <= LOG_POSTED;
}

/* What a snapshot refers to must stay, as long as its point is known. */
static bool on_record(struct remake_mailbox *r, struct log_record *record)
{
    if (record->placed && !log_pin(&r->mailbox->log, record->at, position_of(r)))
        return false;
    return !is_last(r) || build(r, record);
}

/* The next record of it; CHAIN_END: there is none. */
static enum chain_found read_record(struct remake_mailbox *r)
{
    uint64_t next = r->amid ? r->position : position_of(r);
    struct log_record record;
    enum chain_found found = log_look(&r->mailbox->log, &next, &record);
    bool good;

    if (found != CHAIN_HERE)
        return found == CHAIN_END && !r->amid ? CHAIN_LOST : found;
    if (r->amid && !is_of_snapshot(&record))
        return CHAIN_END;
    r->position = next - record.whole;
    good = r->amid ? on_record(r, &record) : on_point(r, &record);
    r->amid = true;
    r->position = next;
    return good ? CHAIN_HERE : CHAIN_LOST;
}

static enum chain_found read_points(struct remake_mailbox *r)
{
    enum chain_found found = CHAIN_END;

    if (r->points.count > LOG_POINTS_MAX || r->points.trimmed > r->points.count)
        return CHAIN_LOST;
    while (found == CHAIN_END && r->point < count_of(&r->points)) {
        do
            found = read_record(r);
        while (found == CHAIN_HERE);
        if (found == CHAIN_END) {
            r->point++;
            r->amid = false;
        }
    }
    return found;
}

/* --- records -------------------------------------------------------------------------------------
 */

/* Its bytes are taken up at the end, if they are still needed then. */
static bool on_part(struct remake_mailbox *r, const struct log_record *record)
{
    struct relay_message **at = &r->arriving;
    struct relay_message *message;

    while (*at && (*at)->src != record->src)
        at = &(*at)->next_free;
    message = *at;
    if (!message || record->size > message->total - message->arrived)
        return false;
    if (record->size == message->total - message->arrived)
        *at = message->next_free;
    mailbox_arrives(r->mailbox, message, NULL, (uint32_t)record->size, NULL);
    mailbox_came(r->mailbox, message);
    return true;
}

static bool apply(struct remake_mailbox *r, const struct log_record *record)
{
    struct relay_message *arriving;

    if (record->type == LOG_PART)
        return on_part(r, record);
    if (apply_record(r->mailbox, record, &arriving) < 0)
        return false;
    if (arriving)
        arrives(r, arriving);
    return true;
}

/* MATCHED and CANCELED are nothing but events. Of any record at most one event comes, and it is the
 * next one in the log, or the record itself. */
static bool take(struct remake_mailbox *r, struct log_record *record, uint64_t at)
{
    bool came = record->type == LOG_MATCHED || record->type == LOG_CANCELED;

    if (record->placed)
        r->payload = record->at + record->size;
    if (record->type == LOG_MESSAGE || record->type == LOG_OFFERED) {
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

        found = log_look(&mailbox->log, &r->position, &record);
        if (found == CHAIN_HERE && (!log_count(&mailbox->log, &record, r->position) ||
                                    !take(r, &record, r->position - record.whole)))
            found = CHAIN_LOST;
    }
    return found == CHAIN_END && r->due.type ? CHAIN_LOST : found;
}

enum chain_found remake_mailbox_step(struct remake_mailbox *r)
{
    enum chain_found found = read_points(r);

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
        mailbox_abandon(r->mailbox, message);
    }
    if (r->held)
        mailbox_message_free(r->mailbox, r->held);
    r->held = NULL;
    r->mailbox->log.due = NULL;
}
