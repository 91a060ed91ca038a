#include "relay/core/log.h"

#include <assert.h>
#include <string.h>

#define VARINT_MAX 10u
#define ANSWER_BYTES 20u /* msg, tag, total */

/* A send, without its payload. */
struct log_send {
    uint64_t tag;
    uint64_t place; /* dst: 16 bits, kind: 2 bits, total: the rest */
};

_Static_assert(CW_RANKS_MAX <= 1u << 16 && CW_SEND_AM < 4 && CW_MESSAGE_MAX <= 1ull << 45,
               "a send fits 16 bytes");
_Static_assert(sizeof(struct log_event) == 24 && sizeof(struct message_slice) % 8 == 0,
               "records are multiples of 8");

void log_init(struct relay_log *log, struct relay_pool *pool, struct owed_copies *copies, bool kept)
{
    *log = (struct relay_log){.pool = pool, .copies = copies, .kept = kept};
}

void log_free(struct relay_log *log)
{
    struct log_cursor cursor = {0};
    struct log_event_view view;

    while (log_next_event(log, &cursor, &view))
        for (uint32_t i = 0; i < view.event->slices; i++)
            relay_block_release(view.slices[i].block);
    records_free(&log->events, log->pool);
    records_free(&log->determinants, log->pool);
    records_free(&log->sends, log->pool);
    if (log->block)
        relay_block_release(log->block);
    log->block = NULL;
    relay_pool_unlog(log->pool, log->bytes);
    log->bytes = 0;
    log->kept = false;
}

/* --- writing -------------------------------------------------------------------------------------
 */

static void hold(struct relay_log *log, uint64_t size)
{
    log->bytes += size;
    relay_pool_log(log->pool, size);
}

/* Room for `size` bytes at the end of one of its sequences. NULL without memory. */
static uint8_t *append(struct relay_log *log, struct records *r, size_t size)
{
    uint64_t held = 0;
    uint8_t *to = records_append(r, log->pool, size, &held);

    if (held)
        hold(log, held);
    return to;
}

/* Room for an event and `payload` bytes behind its optional size; returns where the payload goes.
 */
static uint8_t *event_append(struct relay_log *log, const struct log_event *event, uint64_t size,
                             size_t payload)
{
    bool cut = event->flags & CW_MESSAGE_TRUNC;
    size_t all = sizeof(*event) + (cut ? sizeof(size) : 0) + ((payload + 7) & ~(size_t)7);
    uint8_t *to = append(log, &log->events, all);

    if (!to)
        return NULL;
    memcpy(to, event, sizeof(*event));
    to += sizeof(*event);
    if (cut) {
        memcpy(to, &size, sizeof(size));
        to += sizeof(size);
    }
    log->event_count++;
    return to;
}

static struct log_event event_of(const struct cw_message *header)
{
    return (struct log_event){.type = LOG_MESSAGE,
                              .tag = header->tag,
                              .total = header->total,
                              .req = header->req,
                              .flags = header->flags & (CW_MESSAGE_TRUNC | CW_MESSAGE_ACTIVE)};
}

int log_reserve(struct relay_log *log, uint32_t size, struct message_slice *slice)
{
    if (!log->block || log->block_used == RELAY_BLOCK_BYTES) {
        struct relay_block *block = relay_block_new_cold(log->pool);

        if (!block)
            return CW_ENOMEM;
        if (log->block)
            relay_block_release(log->block);
        log->block = block;
        log->block_used = 0;
    }
    if (size > RELAY_BLOCK_BYTES - log->block_used)
        size = RELAY_BLOCK_BYTES - log->block_used;
    *slice = (struct message_slice){log->block, log->block_used, size};
    log->block->refs++;
    log->block_used += size;
    return CW_OK;
}

int log_place(struct relay_log *log, const uint8_t *at, uint32_t size, struct relay_block *block,
              struct message_slice slices[2])
{
    int count = 0;

    assert(size > 0 && size <= RELAY_BLOCK_BYTES);
    for (uint32_t done = 0; done < size; done += slices[count++].size)
        if (log_reserve(log, size - done, &slices[count]) < 0) {
            while (count-- > 0)
                relay_block_release(slices[count].block);
            return CW_ENOMEM;
        }
    for (int i = 0; i < count; i++) {
        copies_owe(log->copies, slices[i].block->bytes + slices[i].at, slices[i].block, at,
                   slices[i].size, block);
        at += slices[i].size;
    }
    return count;
}

int log_message(struct relay_log *log, const struct cw_message *header, const uint8_t *at,
                uint64_t size, struct relay_block *block)
{
    struct message_slice slices[2];
    struct log_event event = event_of(header);
    uint8_t *to;

    if (size > LOG_INLINE_MAX) {
        int count = log_place(log, at, (uint32_t)size, block, slices);
        int result = count < 0 ? count : log_message_slices(log, header, slices, size);

        while (count-- > 0)
            relay_block_release(slices[count].block);
        return result;
    }
    to = event_append(log, &event, size, size);
    if (!to)
        return CW_ENOMEM;
    if (size)
        memcpy(to, at, size);
    return CW_OK;
}

int log_message_slices(struct relay_log *log, const struct cw_message *header,
                       const struct message_slice *slices, uint64_t size)
{
    struct log_event event = event_of(header);
    uint64_t left = size;
    uint32_t count = 0;
    uint8_t *to;

    for (const struct message_slice *s = slices; left > 0 && count < LOG_SLICES_MAX; s++, count++)
        left -= s->size < left ? s->size : left;
    if (left > 0)
        return CW_ENOMEM;
    event.slices = count;
    to = event_append(log, &event, size, event.slices * sizeof(*slices));
    if (!to)
        return CW_ENOMEM;
    left = size;
    for (uint32_t i = 0; i < event.slices; i++) {
        struct message_slice slice = slices[i];

        slice.size = slice.size < left ? slice.size : (uint32_t)left;
        left -= slice.size;
        slice.block->refs++;
        memcpy(to + i * sizeof(slice), &slice, sizeof(slice));
    }
    hold(log, size);
    return CW_OK;
}

int log_done(struct relay_log *log, enum log_event_type type, uint32_t req)
{
    struct log_event event = {.type = type, .req = req};

    return event_append(log, &event, 0, 0) ? CW_OK : CW_ENOMEM;
}

static size_t put_varint(uint8_t *to, uint64_t v)
{
    size_t size = 0;

    for (; v >= 0x80; v >>= 7)
        to[size++] = (uint8_t)v | 0x80;
    to[size++] = (uint8_t)v;
    return size;
}

static int determinant_append(struct relay_log *log, const uint8_t *head, size_t head_size,
                              const void *body, size_t size)
{
    uint8_t *to = append(log, &log->determinants, head_size + size);

    if (!to)
        return CW_ENOMEM;
    memcpy(to, head, head_size);
    if (size)
        memcpy(to + head_size, body, size);
    return CW_OK;
}

int log_taken(struct relay_log *log, uint64_t event, uint64_t clock)
{
    uint8_t head[1 + 2 * VARINT_MAX] = {LOG_TAKEN};
    size_t size = 1;

    assert(event > log->taken && event <= log->event_count && clock >= log->clock);
    size += put_varint(head + size, event - log->taken);
    size += put_varint(head + size, clock - log->clock);
    if (determinant_append(log, head, size, NULL, 0) < 0)
        return CW_ENOMEM;
    log->taken = event;
    log->clock = clock;
    return CW_OK;
}

int log_readings(struct relay_log *log, const uint8_t *bytes, uint32_t size)
{
    uint8_t head[1 + VARINT_MAX] = {LOG_READINGS};
    size_t head_size = 1 + put_varint(head + 1, size);

    return determinant_append(log, head, head_size, bytes, size);
}

int log_answer(struct relay_log *log, const struct cw_probed *answer)
{
    uint8_t head[1 + VARINT_MAX] = {LOG_ANSWER};
    size_t head_size = 1 + put_varint(head + 1, answer->clock - log->clock);
    uint8_t body[ANSWER_BYTES];
    struct cw_writer w = cw_writer(body, sizeof(body));

    assert(answer->clock >= log->clock);
    cw_put_u32(&w, answer->msg);
    cw_put_u64(&w, answer->tag);
    cw_put_u64(&w, answer->total);
    if (determinant_append(log, head, head_size, body, sizeof(body)) < 0)
        return CW_ENOMEM;
    log->clock = answer->clock;
    return CW_OK;
}

int log_send(struct relay_log *log, const struct cw_send *send)
{
    struct log_send record = {
        .tag = send->tag,
        .place = send->dst | (uint64_t)send->kind << 16 | send->total << 18,
    };
    uint8_t *to = append(log, &log->sends, sizeof(record));

    if (!to)
        return CW_ENOMEM;
    memcpy(to, &record, sizeof(record));
    log->send_count++;
    return CW_OK;
}

/* --- reading -------------------------------------------------------------------------------------
 */

void log_pieces(const struct relay_log *log, const struct message_slice *slices, uint32_t count,
                piece_give *give, void *ctx)
{
    if (count > 0)
        copies_pay_all(log->copies);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t done = 0, n; done < slices[i].size; done += n) {
            n = slices[i].size - done;
            n = n < CW_FRAME_DATA_MAX ? n : CW_FRAME_DATA_MAX;
            give(ctx, slices[i].block->bytes + slices[i].at + done, n, slices[i].block);
        }
}

bool log_next_event(const struct relay_log *log, struct log_cursor *cursor,
                    struct log_event_view *view)
{
    size_t left;
    const uint8_t *start = records_peek(&log->events, &cursor->events, &left);
    const uint8_t *at = start;
    size_t payload;

    if (!start)
        return false;
    view->event = (const struct log_event *)start;
    view->size = view->event->total;
    at += sizeof(*view->event);
    if (view->event->flags & CW_MESSAGE_TRUNC) {
        memcpy(&view->size, at, sizeof(view->size));
        at += sizeof(view->size);
    }
    view->bytes = at;
    view->slices = (const struct message_slice *)at;
    payload = view->event->slices ? view->event->slices * sizeof(*view->slices)
                                  : (view->size + 7) & ~7ull;
    records_advance(&cursor->events, (size_t)(at - start) + payload);
    cursor->event++;
    return true;
}

static size_t get_varint(const uint8_t *from, uint64_t *v)
{
    size_t size = 0;

    *v = 0;
    do
        *v |= (uint64_t)(from[size] & 0x7f) << (7 * size);
    while (from[size++] & 0x80);
    return size;
}

bool log_next_determinant(const struct relay_log *log, struct log_cursor *cursor,
                          struct log_determinant *determinant)
{
    size_t left;
    const uint8_t *at = records_peek(&log->determinants, &cursor->determinants, &left);
    struct cw_reader r;
    size_t used = 1;
    uint64_t v;

    if (!at)
        return false;
    *determinant = (struct log_determinant){.type = at[0]};
    if (determinant->type == LOG_TAKEN)
        used += get_varint(at + used, &determinant->events);
    used += get_varint(at + used, &v);
    if (determinant->type == LOG_READINGS) {
        determinant->bytes = at + used;
        determinant->size = (uint32_t)v;
        used += v;
    } else {
        cursor->clock += v;
        determinant->clock = cursor->clock;
    }
    if (determinant->type == LOG_ANSWER) {
        r = cw_reader(at + used, ANSWER_BYTES);
        determinant->answer = (struct cw_probed){.clock = cursor->clock, .found = 1};
        determinant->answer.msg = cw_get_u32(&r);
        determinant->answer.tag = cw_get_u64(&r);
        determinant->answer.total = cw_get_u64(&r);
        used += ANSWER_BYTES;
    }
    records_advance(&cursor->determinants, used);
    return true;
}

bool log_next_send(const struct relay_log *log, struct log_cursor *cursor, struct cw_send *send)
{
    struct log_send record;
    size_t left;
    const uint8_t *at = records_peek(&log->sends, &cursor->sends, &left);

    if (!at)
        return false;
    memcpy(&record, at, sizeof(record));
    *send = (struct cw_send){.tag = record.tag,
                             .dst = record.place & 0xffff,
                             .kind = (record.place >> 16) & 3,
                             .total = record.place >> 18};
    records_advance(&cursor->sends, sizeof(record));
    cursor->send++;
    return true;
}
