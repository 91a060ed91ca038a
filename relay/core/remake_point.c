#include "relay/core/remake_point.h"
#include "relay/core/apply.h"
#include "relay/core/snapshot.h"

#include <string.h>

void remake_arrives(struct remake_mailbox *r, struct relay_message *message)
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

/* --- the snapshot of the last one ----------------------------------------------------------------
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

    if (!message || (out && (number >= PROBED_MAX || mailbox_is_out(mailbox, number))))
        return false;
    if (end->flags & LOG_HELD_MATCHED)
        on_matched(mailbox, message, end);
    else if (out ? mailbox_put_out(mailbox, message, (uint32_t)number) < 0
                 : match_wait(&mailbox->index, &message->waiting) < 0)
        return false;
    r->held = NULL;
    if (message->arrived < message->total)
        remake_arrives(r, message);
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

/* --- all of them ---------------------------------------------------------------------------------
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
        r->mailbox->feed.origin = point.from;
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

enum chain_found remake_points(struct remake_mailbox *r)
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
