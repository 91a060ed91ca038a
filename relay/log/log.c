#include "relay/log/point.h"

#include <assert.h>
#include <string.h>

void log_init(struct relay_log *log, struct relay_pool *pool, struct log_store *store,
              struct owed_copies *copies, bool kept)
{
    *log = (struct relay_log){.pool = pool, .copies = copies, .kept = kept};
    chain_init(&log->records, store, pool);
    chain_init(&log->payload, store, pool);
    chain_init(&log->decided.chain, store, pool);
    log->decided.chain.stays = true;
}

void log_free(struct relay_log *log)
{
    chain_free(&log->records);
    chain_free(&log->payload);
    chain_free(&log->decided.chain);
    log->decided.count = log->decided.cut = 0;
    relay_pool_free(log->pool, log->points, sizeof(*log->points));
    log->points = NULL;
    relay_pool_unlog(log->pool, log->bytes);
    log->bytes = 0;
    log->kept = false;
}

void log_outlive(struct relay_log *log, struct ledger_entry *entry)
{
    chain_keep(&log->records, entry, 0);
    chain_keep(&log->payload, entry, 1);
    chain_keep(&log->decided.chain, entry, 2);
}

/* --- writing -------------------------------------------------------------------------------------
 */

void log_hold(struct relay_log *log, uint64_t bytes)
{
    log->bytes += bytes;
    relay_pool_log(log->pool, bytes);
}

int log_append(struct relay_log *log, const struct log_record *record, uint64_t *position)
{
    uint8_t head[LOG_RECORD_MAX];
    uint32_t size = log_record_put(head, record);
    uint32_t carries = (uint32_t)log_record_carries(record);
    uint64_t held = 0;
    uint8_t *to = chain_append(&log->records, size + carries, position, &held);

    if (held)
        log_hold(log, held);
    if (!to)
        return CW_ENOMEM;
    memcpy(to, head, size);
    if (carries)
        memcpy(to + size, record->bytes, carries);
    return CW_OK;
}

/* --- what the rank has not taken */
/* An event, whose record is at `position`. */
static void note_event(struct relay_log *log, const struct log_record *record, uint64_t position)
{
    bool matched = record->type == LOG_MATCHED;
    uint64_t low = matched ? record->message : position;

    log->event_count++;
    if (low < log->late.low)
        log->late.low = low;
    if ((matched || record->placed) && record->at < log->late.floor)
        log->late.floor = record->at;
}

/* The marks follow what was taken: with two of them, no event need be looked for. */
static void note_taken(struct relay_log *log, uint64_t position)
{
    const struct log_mark now = {
        .position = position, .event = log->event_count, .low = UINT64_MAX, .floor = UINT64_MAX};

    if (log->taken < log->late.event)
        return;
    log->early = log->taken == now.event ? now : log->late;
    log->late = now;
}

static bool count(struct relay_log *log, const struct log_record *record, uint64_t position,
                  uint64_t next)
{
    if (log_is_event(record))
        note_event(log, record, position);
    log->determinant_count += (LOG_DETERMINANTS >> record->type) & 1;
    log->send_count += record->type == LOG_SEND;
    if (record->type == LOG_TAKEN || record->type == LOG_ANSWER)
        log->clock += record->clock;
    if (record->type != LOG_TAKEN)
        return true;
    log->taken += record->events;
    note_taken(log, next);
    return log->taken <= log->event_count;
}

static int put_at(struct relay_log *log, const struct log_record *record, uint64_t *position)
{
    if (log_append(log, record, position) < 0)
        return CW_ENOMEM;
    count(log, record, *position, chain_next(&log->records));
    return CW_OK;
}

int log_put(struct relay_log *log, const struct log_record *record)
{
    uint64_t position;

    return put_at(log, record, &position);
}

int log_offered(struct relay_log *log, const struct log_record *record, uint64_t *position)
{
    if (!log->due)
        return put_at(log, record, position);
    *log->due = *record;
    return CW_OK;
}

/* Something that came of the record before it. */
static int put_event(struct relay_log *log, const struct log_record *record)
{
    if (!log->due)
        return log_put(log, record);
    *log->due = *record;
    return CW_OK;
}

/* Sets at most `size` bytes of payload aside: a slice without a reference. */
static int set_aside(struct relay_log *log, uint32_t size, struct message_slice *slice,
                     uint64_t *position)
{
    slice->size = size;
    slice->block = chain_reserve(&log->payload, &slice->size, position);
    if (!slice->block)
        return CW_ENOMEM;
    slice->at = chain_offset(*position);
    log_hold(log, slice->size);
    return CW_OK;
}

/* A place for large payload, as slices without references; the copy is made, or owed.
 * Returns how many; record->at is where it begins. */
static int place(struct relay_log *log, struct log_record *record, struct relay_block *block,
                 struct message_slice slices[LOG_PART_SLICES])
{
    const uint8_t *from = record->bytes;
    uint32_t left = (uint32_t)record->size;
    int count = 0;

    record->placed = true;
    for (; left > 0; left -= slices[count++].size) {
        uint64_t position;

        assert(count < LOG_PART_SLICES);
        if (set_aside(log, left, &slices[count], &position) < 0)
            return CW_ENOMEM;
        if (count == 0)
            record->at = position;
        copies_owe(log->copies, slices[count].block->bytes + slices[count].at, slices[count].block,
                   from, slices[count].size, block);
        from += slices[count].size;
    }
    return count;
}

static uint8_t flags_of(const struct cw_message *header)
{
    return header->flags & ~(CW_MESSAGE_FIRST | CW_MESSAGE_LAST);
}

int log_message(struct relay_log *log, const struct cw_message *header, const uint8_t *at,
                uint32_t size, struct relay_block *block)
{
    struct log_record record = {.type = LOG_PASSED,
                                .flags = flags_of(header),
                                .tag = header->tag,
                                .total = header->total,
                                .req = header->req,
                                .size = size,
                                .bytes = at};
    struct message_slice slices[LOG_PART_SLICES];

    if (size > LOG_INLINE_MAX && !log->due && place(log, &record, block, slices) < 0)
        return CW_ENOMEM;
    return put_event(log, &record);
}

int log_part(struct relay_log *log, uint32_t src, const uint8_t *at, uint32_t size,
             struct relay_block *block, struct message_slice slices[LOG_PART_SLICES])
{
    struct log_record record = {.type = LOG_PART, .src = src, .size = size, .bytes = at};
    struct message_slice placed[LOG_PART_SLICES];
    uint64_t position;
    int count = 0;

    if (slices || size > LOG_INLINE_MAX)
        count = place(log, &record, block, placed);
    if (count < 0 || log_append(log, &record, &position) < 0)
        return CW_ENOMEM;
    for (int i = 0; slices && i < count; i++) {
        slices[i] = placed[i];
        slices[i].block->refs++;
    }
    return count;
}

int log_part_reserve(struct relay_log *log, uint32_t src, uint32_t size,
                     struct message_slice *slice)
{
    struct log_record record = {.type = LOG_PART, .src = src, .placed = true};
    uint64_t position;

    if (set_aside(log, size, slice, &record.at) < 0)
        return CW_ENOMEM;
    record.size = slice->size;
    if (log_append(log, &record, &position) < 0)
        return CW_ENOMEM;
    slice->block->refs++;
    return CW_OK;
}

int log_matched(struct relay_log *log, const struct cw_message *header, uint64_t record,
                uint64_t floor, uint64_t size)
{
    return put_event(log, &(struct log_record){.type = LOG_MATCHED,
                                               .flags = flags_of(header),
                                               .tag = header->tag,
                                               .total = header->total,
                                               .req = header->req,
                                               .message = record,
                                               .at = floor,
                                               .size = size});
}

int log_done(struct relay_log *log, enum log_record_type type, uint32_t req)
{
    return put_event(log, &(struct log_record){.type = type, .req = req});
}

int log_taken(struct relay_log *log, uint64_t event, uint64_t clock)
{
    assert(event > log->taken && event <= log->event_count && clock >= log->clock);
    return log_put(log, &(struct log_record){.type = LOG_TAKEN,
                                             .events = event - log->taken,
                                             .clock = clock - log->clock});
}

/* --- reading -------------------------------------------------------------------------------------
 */

static void give_pieces(const uint8_t *at, uint32_t size, struct relay_block *block,
                        piece_give *give, void *ctx)
{
    for (uint32_t n; size > 0; at += n, size -= n) {
        n = size < CW_FRAME_DATA_MAX ? size : CW_FRAME_DATA_MAX;
        give(ctx, at, n, block);
    }
}

void log_pieces(const struct relay_log *log, const struct message_slice *slices, uint32_t count,
                piece_give *give, void *ctx)
{
    if (count > 0)
        copies_pay_all(log->copies);
    for (uint32_t i = 0; i < count; i++)
        give_pieces(slices[i].block->bytes + slices[i].at, slices[i].size, slices[i].block, give,
                    ctx);
}

enum chain_found log_look(const struct relay_log *log, uint64_t *position,
                          struct log_record *record)
{
    struct chain_bytes bytes;
    enum chain_found found = chain_read(&log->records, position, &bytes);
    uint32_t size;

    if (found != CHAIN_HERE)
        return found;
    size = log_record_get(bytes.at, bytes.size, record);
    *position += size;
    return size > 0 ? CHAIN_HERE : CHAIN_LOST;
}

/* The next one of these types: a bit each. The position stays before it where it is AWAY. */
static enum chain_found next_of(const struct relay_log *log, uint32_t types, uint64_t *position,
                                struct log_record *record)
{
    enum chain_found found;

    do
        found = log_look(log, position, record);
    while (found == CHAIN_HERE && !(types & 1u << record->type));
    return found;
}

/* Of a message that is an event, and has not been matched: where it begins, its sender's request
 * stands. */
static enum chain_found find_sync(const struct relay_log *log, uint64_t position, uint32_t *sync)
{
    struct log_record message;
    enum chain_found found = log_look(log, &position, &message);

    *sync = (uint32_t)message.req;
    return found == CHAIN_END ? CHAIN_LOST : found;
}

/* A message without its bytes. */
static void make_offer(struct log_event *event, const struct log_record *record)
{
    event->type = LOG_PASSED;
    event->flags = CW_MESSAGE_UNMATCHED | CW_MESSAGE_OFFERED;
    event->req = (uint32_t)record->src;
    event->msg = (uint32_t)record->msg;
}

enum chain_found log_next_event(const struct relay_log *log, struct log_cursor *cursor,
                                struct log_event *event)
{
    struct log_record record;
    uint64_t before = cursor->events;
    uint32_t sync = 0;
    enum chain_found found = next_of(log, LOG_EVENTS, &cursor->events, &record);

    if (found == CHAIN_HERE && record.flags & CW_MESSAGE_SYNC) {
        found = find_sync(log, record.message, &sync);
        cursor->events = found == CHAIN_AWAY ? before : cursor->events;
    }
    if (found != CHAIN_HERE)
        return found;
    *event = (struct log_event){.type = record.type,
                                .flags = (uint8_t)record.flags,
                                .req = (uint32_t)record.req,
                                .sync = sync,
                                .tag = record.tag,
                                .total = record.total,
                                .size = record.size,
                                .record = record.message};
    if (record.type == LOG_PASSED)
        event->record = cursor->events - record.whole;
    if (record.type == LOG_MATCHED)
        event->type = LOG_PASSED;
    if (record.type == LOG_OFFERED)
        make_offer(event, &record);
    cursor->event++;
    return CHAIN_HERE;
}

enum chain_found log_next_determinant(const struct relay_log *log, struct log_cursor *cursor,
                                      struct log_determinant *determinant)
{
    struct log_record r;
    enum chain_found found =
        next_of(log, LOG_DETERMINANTS | 1u << LOG_SEND, &cursor->determinants, &r);

    if (found != CHAIN_HERE)
        return found;
    *determinant = (struct log_determinant){.type = r.type, .events = r.events};
    if (r.type == LOG_READINGS) {
        determinant->bytes = r.bytes;
        determinant->size = (uint32_t)r.size;
        return CHAIN_HERE;
    }
    if (r.type == LOG_SEND) {
        cursor->send++;
        determinant->send = (struct cw_send){.tag = r.tag,
                                             .dst = (uint32_t)r.dst,
                                             .kind = (uint32_t)r.kind,
                                             .total = r.total,
                                             .contents = r.contents};
        return CHAIN_HERE;
    }
    cursor->clock += r.clock;
    determinant->clock = cursor->clock;
    if (r.type == LOG_ANSWER)
        determinant->answer = (struct cw_probed){.clock = cursor->clock,
                                                 .found = 1,
                                                 .msg = (uint32_t)r.msg,
                                                 .tag = r.tag,
                                                 .total = r.total};
    return CHAIN_HERE;
}

/* --- what was left -------------------------------------------------------------------------------
 */

int log_return(struct relay_log *log, struct ledger_entry *entry, struct chain_end records,
               struct chain_end payload, uint32_t payload_solid,
               const struct log_decided_left *decided)
{
    int failed = chain_return(&log->records, entry, 0, records);

    log->payload.solid = payload_solid;
    if (!failed)
        failed = chain_return(&log->payload, entry, 1, payload);
    if (!failed)
        failed = chain_return(&log->decided.chain, entry, 2, decided->end);
    log->decided.count = decided->count;
    log->decided.cut = decided->cut;
    log_weigh(log);
    return failed;
}

struct log_decided_left log_decided_left(const struct relay_log *log)
{
    return (struct log_decided_left){.end = chain_end(&log->decided.chain),
                                     .count = log->decided.count,
                                     .cut = log->decided.cut};
}

/* Of a chain of which none is missing. */
static uint64_t weight_of(const struct chain *chain)
{
    uint64_t bytes = chain->room * sizeof(*chain->segments);

    for (uint32_t i = 0; i < chain->count; i++)
        bytes += sizeof(*chain->segments[i]) + chain->segments[i]->size;
    return bytes;
}

static uint64_t weight(const struct relay_log *log)
{
    uint64_t bytes = weight_of(&log->records) + weight_of(&log->decided.chain);

    for (uint32_t i = 0; i < log->payload.count; i++)
        bytes += log->payload.segments[i] ? log->payload.segments[i]->used : 0;
    return bytes;
}

void log_weigh(struct relay_log *log)
{
    relay_pool_unlog(log->pool, log->bytes);
    log->bytes = 0;
    log_hold(log, weight(log));
}

bool log_count(struct relay_log *log, const struct log_record *record, uint64_t position)
{
    return count(log, record, position - record->whole, position);
}

/* Where in the log payload is, is no part of what they say. */
bool log_is_same_event(const struct log_record *a, const struct log_record *b)
{
    return a->type == b->type && a->flags == b->flags && a->tag == b->tag && a->total == b->total &&
           a->req == b->req && a->size == b->size && a->message == b->message;
}
