#include "relay/log/record.h"

#include <stddef.h>

#define PLACED 0x80u /* in the byte of the type */
#define FIELDS_MAX 7 /* of one type */

enum field {
    END,
    SRC,
    DST,
    KIND,
    FLAGS,
    TAG,
    MASK,
    TOTAL,
    REQ,
    MSG,
    EVENTS,
    CLOCK,
    CONTENTS,
    MESSAGE,
    SIZE,
    AT
};

/* Where a field is in a record, and the largest value that makes sense. */
static const struct {
    size_t offset;
    uint64_t most;
} fields[] = {
    [SRC] = {offsetof(struct log_record, src), UINT32_MAX},
    [DST] = {offsetof(struct log_record, dst), UINT32_MAX},
    [KIND] = {offsetof(struct log_record, kind), UINT32_MAX},
    [FLAGS] = {offsetof(struct log_record, flags), UINT8_MAX},
    [TAG] = {offsetof(struct log_record, tag), UINT64_MAX},
    [MASK] = {offsetof(struct log_record, mask), UINT64_MAX},
    [TOTAL] = {offsetof(struct log_record, total), UINT64_MAX},
    [REQ] = {offsetof(struct log_record, req), UINT32_MAX},
    [MSG] = {offsetof(struct log_record, msg), UINT32_MAX},
    [EVENTS] = {offsetof(struct log_record, events), UINT64_MAX},
    [CLOCK] = {offsetof(struct log_record, clock), UINT64_MAX},
    [CONTENTS] = {offsetof(struct log_record, contents), UINT64_MAX},
    [MESSAGE] = {offsetof(struct log_record, message), UINT64_MAX},
    [SIZE] = {offsetof(struct log_record, size), UINT64_MAX},
    [AT] = {offsetof(struct log_record, at), UINT64_MAX},
};

/* What a type has, in this order; AT follows where the bytes stand beside the records. */
static const uint8_t fields_of[LOG_RECORD_TYPES][FIELDS_MAX + 1] = {
    [LOG_MESSAGE] = {SRC, KIND, REQ, TAG, TOTAL},
    [LOG_PART] = {SRC, SIZE},
    [LOG_PASSED] = {FLAGS, TAG, TOTAL, REQ, SIZE},
    [LOG_MATCHED] = {FLAGS, TAG, TOTAL, REQ, MESSAGE, AT, SIZE},
    [LOG_SENT] = {REQ},
    [LOG_CANCELED] = {REQ},
    [LOG_TAKEN] = {EVENTS, CLOCK},
    [LOG_READINGS] = {SIZE},
    [LOG_ANSWER] = {FLAGS, TAG, MASK, TOTAL, MSG, CLOCK},
    [LOG_SEND] = {DST, KIND, TAG, TOTAL, CONTENTS},
    [LOG_RECV] = {REQ, TAG, MASK, TOTAL},
    [LOG_MRECV] = {MSG, REQ, TOTAL},
    [LOG_CANCEL] = {REQ, TAG, MASK},
    [LOG_POINT] = {SIZE},
    [LOG_STATE] = {SIZE},
    [LOG_HELD] = {SRC, KIND, REQ, TAG, TOTAL, AT},
    [LOG_HELD_PART] = {SIZE},
    [LOG_HELD_END] = {FLAGS, MSG, TOTAL},
    [LOG_POSTED] = {REQ, TAG, MASK, TOTAL},
    [LOG_OFFERED] = {SRC, KIND, REQ, TAG, TOTAL, MSG},
};

/* These use all of their bits, others are small numbers most of the time. */
static bool is_fixed(uint8_t field)
{
    return field == TAG || field == MASK || field == CONTENTS;
}

static uint8_t *put(uint8_t *to, uint8_t field, const struct log_record *r)
{
    uint64_t v;

    memcpy(&v, (const uint8_t *)r + fields[field].offset, sizeof(v));
    if (is_fixed(field)) {
        memcpy(to, &v, sizeof(v));
        return to + sizeof(v);
    }
    for (; v >= 0x80; v >>= 7)
        *to++ = (uint8_t)v | 0x80;
    *to++ = (uint8_t)v;
    return to;
}

uint32_t log_record_put(uint8_t *to, const struct log_record *r)
{
    uint8_t *at = to;

    *at++ = (uint8_t)(r->type | (r->placed ? PLACED : 0));
    for (const uint8_t *field = fields_of[r->type]; *field != END; field++)
        at = put(at, *field, r);
    if (r->placed)
        at = put(at, AT, r);
    return (uint32_t)(at - to);
}

static uint64_t get_number(struct cw_reader *from)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = cw_get_u8(from);

        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return v;
    }
    from->bad = true;
    return 0;
}

static void get(struct cw_reader *from, uint8_t field, struct log_record *r)
{
    uint64_t v = is_fixed(field) ? cw_get_u64(from) : get_number(from);

    from->bad |= v > fields[field].most;
    memcpy((uint8_t *)r + fields[field].offset, &v, sizeof(v));
}

uint32_t log_record_get(const uint8_t *bytes, uint32_t size, struct log_record *r)
{
    struct cw_reader from = cw_reader(bytes, size);
    uint8_t type = cw_get_u8(&from);

    *r = (struct log_record){.type = type & ~PLACED, .placed = type & PLACED};
    if (r->type >= LOG_RECORD_TYPES || fields_of[r->type][0] == END ||
        (r->placed && !log_record_has_bytes(r)))
        return 0;
    for (const uint8_t *field = fields_of[r->type]; *field != END; field++)
        get(&from, *field, r);
    if (r->placed)
        get(&from, AT, r);
    if (log_record_carries(r) > 0)
        r->bytes = cw_get_bytes(&from, r->size);
    r->whole = size - (uint32_t)from.left;
    return from.bad ? 0 : r->whole;
}
