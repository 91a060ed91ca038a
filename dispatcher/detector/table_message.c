#include "dispatcher/detector/table_message.h"
#include "dispatcher/detector/detector.h"

#define GAP_MORE 0x80u /* of the first byte of a gap: a second follows, with higher bits */

static uint32_t get_gap(struct cw_reader *r)
{
    uint32_t low = cw_get_u8(r);

    return low < GAP_MORE ? low : (low - GAP_MORE) + GAP_MORE * (uint32_t)cw_get_u8(r);
}

static void put_gap(struct cw_writer *w, uint32_t gap)
{
    if (gap < GAP_MORE) {
        cw_put_u8(w, (uint8_t)gap);
        return;
    }
    cw_put_u8(w, (uint8_t)(gap % GAP_MORE + GAP_MORE));
    cw_put_u8(w, (uint8_t)(gap / GAP_MORE));
}
_Static_assert(DETECTOR_PROCESSES_MAX / GAP_MORE <= 255, "a gap has two bytes");

/* --- reading --- */

bool table_next_change(struct cw_reader *entries, uint32_t *distance, uint8_t *code)
{
    if (entries->left == 0)
        return false;
    *distance += 1 + get_gap(entries);
    *code = cw_get_u8(entries);
    return true;
}

/* All changes lie in the table, so that they can be applied one by one. */
static bool changes_are_sound(struct cw_reader entries, uint32_t n)
{
    uint32_t distance = 0;
    uint8_t code;

    while (!entries.bad && distance < n && table_next_change(&entries, &distance, &code))
        ;
    return !entries.bad && distance < n;
}

static void read_table(struct table_message *m, struct cw_reader *r)
{
    m->lane = cw_get_u8(r);
    m->number = cw_get_u16(r);
    m->heartbeat = cw_get_u32(r);
    m->entries = *r;
    r->left = 0;
}

static bool is_sound(const struct table_message *m, const struct cw_reader *r, uint32_t n)
{
    if (!cw_reader_end(r) || m->heartbeat > DETECTOR_HEARTBEAT_MAX)
        return false;
    if (m->kind == TABLE_WHOLE)
        return m->entries.left == n - 1;
    return m->kind != TABLE_DIFFERENCE || changes_are_sound(m->entries, n);
}

int table_message_read(struct table_message *m, const void *bytes, size_t size, uint32_t n,
                       struct cw_err *err)
{
    struct cw_reader r = cw_reader(bytes, size);
    uint8_t kind = cw_get_u8(&r);

    *m = (struct table_message){.kind = kind};
    switch (kind) {
    case TABLE_WHOLE:
    case TABLE_DIFFERENCE:
        read_table(m, &r);
        break;
    case TABLE_WANTED:
        m->lane = cw_get_u8(&r);
        break;
    case TABLE_PING:
        break;
    case TABLE_PONG:
        m->heartbeat = cw_get_u32(&r);
        break;
    default:
        return cw_err_set(err, CW_EPROTO, "a message of a detector of kind %u", kind);
    }
    if (is_sound(m, &r, n))
        return CW_OK;
    return cw_err_set(err, CW_EPROTO,
                      "a message of a detector of kind %u with %zu bytes: malformed", kind, size);
}

/* --- writing --- */

static void put_head(struct cw_writer *w, const struct table_message *m, uint8_t kind)
{
    cw_put_u8(w, kind);
    cw_put_u8(w, m->lane);
    cw_put_u16(w, m->number);
    cw_put_u32(w, m->heartbeat);
}

/* False: that would be as long as the whole table. */
static bool put_changes(struct cw_writer *w, const uint8_t *codes, const uint8_t *before,
                        uint32_t n)
{
    size_t end = w->used + n - 1;
    uint32_t last = 0;

    for (uint32_t d = 1; d < n; d++) {
        if (codes[d] == before[d])
            continue;
        if (w->used + 3 >= end)
            return false;
        put_gap(w, d - last - 1);
        cw_put_u8(w, codes[d]);
        last = d;
    }
    return true;
}

void table_message_write(struct cw_writer *w, const struct table_message *m, const uint8_t *codes,
                         const uint8_t *before, uint32_t n)
{
    size_t start = w->used;

    put_head(w, m, TABLE_DIFFERENCE);
    if (before && put_changes(w, codes, before, n))
        return;
    w->used = start;
    put_head(w, m, TABLE_WHOLE);
    cw_put_bytes(w, codes + 1, n - 1);
}

void table_message_write_short(struct cw_writer *w, const struct table_message *m)
{
    cw_put_u8(w, (uint8_t)m->kind);
    if (m->kind == TABLE_WANTED)
        cw_put_u8(w, m->lane);
    if (m->kind == TABLE_PONG)
        cw_put_u32(w, m->heartbeat);
}
