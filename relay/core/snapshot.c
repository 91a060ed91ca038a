#include "relay/core/snapshot.h"

/* --- what is held --------------------------------------------------------------------------------
 */

static int append(struct relay_mailbox *mailbox, const struct log_record *record)
{
    uint64_t position;

    return log_append(&mailbox->log, record, &position);
}

/* Large payload stays where it is in the log. */
static int append_slice(struct relay_mailbox *mailbox, const struct message_slice *slice,
                        uint64_t point)
{
    uint32_t number = slice->block ? slice->block->mark.number : slice->number;
    const struct log_record record = {.type = LOG_HELD_PART,
                                      .placed = true,
                                      .size = slice->size,
                                      .at = chain_position(number, slice->at)};

    log_pin(&mailbox->log, record.at, point);
    return append(mailbox, &record);
}

static int append_bytes(struct relay_mailbox *mailbox, const struct relay_message *message,
                        uint64_t point)
{
    const struct log_record few = {
        .type = LOG_HELD_PART, .size = message->inline_used, .bytes = message->bytes};
    int failed = message->inline_used ? append(mailbox, &few) : CW_OK;

    for (uint32_t i = 0; !failed && i < message->slice_count; i++)
        failed = append_slice(mailbox, &message->slices[i], point);
    return failed;
}

/* From now on it is found in the snapshot; so says also the state of who is sending it. */
static void move(struct relay_mailbox *mailbox, struct relay_message *message, uint64_t position)
{
    struct relay_rank *sender = mailbox->job->ranked[message->src];

    message->record = position;
    if (sender && sender->transfer.message == message)
        ledger_change(sender->transfer.entry);
}

/* `end`: what it is. */
static int append_message(struct relay_mailbox *mailbox, struct relay_message *message,
                          struct log_record end)
{
    const struct log_record held = {.type = LOG_HELD,
                                    .src = message->src,
                                    .kind = message->kind,
                                    .req = message->sender_req,
                                    .tag = message->waiting.tag,
                                    .total = message->total,
                                    .at = message->floor};
    bool delivered = message_delivered(message);
    uint64_t position;
    int failed = log_append(&mailbox->log, &held, &position);

    if (failed)
        return failed;
    move(mailbox, message, position);
    end.type = LOG_HELD_END;
    end.flags |= delivered ? LOG_HELD_DELIVERED : 0;
    if (!delivered)
        failed = append_bytes(mailbox, message, log_point_last(&mailbox->log)->position);
    return failed ? failed : append(mailbox, &end);
}

static int append_messages(struct relay_mailbox *mailbox)
{
    int failed = CW_OK;

    for (struct match_waiting *w = TAILQ_FIRST(&mailbox->index.all); w && !failed;
         w = TAILQ_NEXT(w, in_order))
        failed = append_message(mailbox, (struct relay_message *)w, (struct log_record){0});
    for (uint32_t i = 0; i < mailbox->probed_size && !failed; i++)
        if (mailbox->probed[i])
            failed = append_message(mailbox, mailbox->probed[i],
                                    (struct log_record){.flags = LOG_HELD_OUT, .msg = i});
    for (struct relay_message *m = LIST_FIRST(&mailbox->open); m && !failed;
         m = LIST_NEXT(m, in_open))
        failed = append_message(
            mailbox, m,
            (struct log_record){.flags = LOG_HELD_MATCHED | (m->offered ? LOG_HELD_OFFERED : 0),
                                .msg = m->req,
                                .total = m->capacity});
    return failed;
}

static int append_posted(struct relay_mailbox *mailbox)
{
    uint64_t count = match_posted_count(&mailbox->index);
    struct match_posted **all = relay_pool_alloc(mailbox->pool, (count + 1) * sizeof(*all));
    int failed = CW_OK;

    if (!all)
        return CW_ENOMEM;
    match_posted_all(&mailbox->index, all);
    for (uint64_t i = 0; i < count && !failed; i++)
        failed = append(mailbox, &(struct log_record){.type = LOG_POSTED,
                                                      .req = all[i]->req,
                                                      .tag = all[i]->tag,
                                                      .mask = all[i]->mask,
                                                      .total = all[i]->capacity});
    relay_pool_free(mailbox->pool, all, (count + 1) * sizeof(*all));
    return failed;
}

static int append_state(struct relay_mailbox *mailbox)
{
    const struct snapshot_state state = {.streams = mailbox->streams, .stats = mailbox->stats};

    return append(mailbox, &(struct log_record){.type = LOG_STATE,
                                                .size = sizeof(state),
                                                .bytes = (const uint8_t *)&state});
}

void snapshot_take(struct relay_mailbox *mailbox, const struct cw_point *at)
{
    uint64_t before = mailbox->log.bytes;
    int failed;

    if (!log_point_fits(&mailbox->log)) {
        mailbox_set_asked(mailbox, false);
        return;
    }
    failed = log_point_begin(&mailbox->log, at);
    if (!failed)
        failed = append_state(mailbox);
    if (!failed)
        failed = append_messages(mailbox);
    if (!failed)
        failed = append_posted(mailbox);
    mailbox->log.snapshots += mailbox->log.bytes - before;
    mailbox_set_asked(mailbox, false);
    mailbox_logged(mailbox, failed);
}

/* --- the end of what was before ------------------------------------------------------------------
 */

/* Then nobody knows yet whether it comes to that point again: one that went on otherwise is at none
 * that its predecessor came to after that. */
static bool repeats_elsewhere(const struct relay_mailbox *mailbox)
{
    return mailbox->elsewhere && mailbox->feed.conn->state == CONN_REPEATING;
}

enum snapshot_trimmed mailbox_trim(struct relay_mailbox *mailbox, const struct cw_point *at)
{
    const struct log_point *point = log_point_find(&mailbox->log, at);
    const struct feed *feed = &mailbox->feed;

    if (!point)
        return TRIM_UNKNOWN;
    if (feed->conn && ((!feed->direct && !feed->away) || repeats_elsewhere(mailbox)))
        return TRIM_LATER;
    log_trim(&mailbox->log, point);
    mailbox_set_asked(mailbox, mailbox->asked);
    ledger_change(&mailbox->entry);
    return TRIM_DONE;
}
