#include "relay/inspect/rank.h"
#include "relay/log/point.h"

#include <stdio.h>

#define RECORDS 0u /* which chain of a rank's */
#define PAYLOAD 1u

struct look {
    struct inspect_image *image;
    struct inspect_chain payload;
    const char *what;     /* the records, and whose */
    struct relay_log log; /* its counts alone */
    bool trimmed;         /* its first events are not here, and the point is still to come ... */
    uint64_t begins;      /* ... at which the log begins: the position of its record */
    uint64_t bytes;
    struct inspect_damage *damage;
};

static bool take_payload(void *ctx, uint32_t number, const uint8_t *bytes, uint32_t used)
{
    (void)number;
    (void)bytes;
    *(uint64_t *)ctx += used;
    return true;
}

/* The bytes that stand beside a record are in the payload chain. */
static bool is_placed_well(const struct look *look, const struct log_record *record)
{
    uint64_t number = record->at >> CHAIN_SHIFT;
    uint32_t at = chain_offset(record->at);
    uint64_t left = record->size;

    if (left > RELAY_BLOCK_BYTES || number > UINT32_MAX)
        return false;
    for (; left > 0; at = 0, number++) {
        uint32_t used = inspect_chain_used(look->image, &look->payload, (uint32_t)number);

        if (used == 0 && number < look->payload.solid)
            return true; /* nobody reads that record any more */
        if (used <= at)
            return false;
        left -= left < used - at ? left : used - at;
    }
    return true;
}

/* What was let go of is counted there. `position`: of the record. */
static bool begin_at(struct look *look, const struct log_record *record, uint64_t position)
{
    struct log_point point;

    if (!log_point_read(record, position, &point))
        return false;
    log_go_on_from(&look->log, &point);
    look->trimmed = false;
    return true;
}

/* `position`: behind it. */
static const char *what_is_wrong(struct look *look, uint32_t size, const struct log_record *record,
                                 uint64_t position)
{
    if (size == 0)
        return "there is no record that makes sense";
    if (record->placed && !is_placed_well(look, record))
        return "a record whose payload is missing";
    if (look->trimmed && position - size == look->begins)
        return begin_at(look, record, look->begins) ? NULL
                                                    : "there is no point where the log begins";
    if (!look->trimmed && !log_count(&look->log, record, position))
        return "more events are taken than there are";
    return NULL;
}

static bool take_records(void *ctx, uint32_t number, const uint8_t *bytes, uint32_t used)
{
    struct look *look = ctx;
    struct log_record record;
    uint32_t size;

    look->bytes += used;
    for (uint32_t at = 0; at < used; at += size) {
        const char *wrong;

        size = log_record_get(bytes + at, used - at, &record);
        wrong = what_is_wrong(look, size, &record, ((uint64_t)number << CHAIN_SHIFT) + at + size);
        if (!wrong)
            continue;
        inspect_damaged(look->damage, "%s: position %llu (segment %u, byte %u): %s", look->what,
                        (unsigned long long)number << CHAIN_SHIFT | at, number, at, wrong);
        return false;
    }
    return true;
}

void inspect_rank(struct inspect_image *image, uint32_t cell, const char *who,
                  struct inspect_rank *rank, struct inspect_damage *damage)
{
    const struct saved_rank *saved = ledger_find(&image->ledger, cell, LEDGER_RANK);
    char records_of[INSPECT_TEXT_MAX / 2];
    char payload_of[INSPECT_TEXT_MAX / 2];
    struct inspect_chain records = {
        .what = records_of, .cell = cell, .which = RECORDS, .end = saved->records};
    struct look look = {.image = image,
                        .payload = {.what = payload_of,
                                    .cell = cell,
                                    .which = PAYLOAD,
                                    .end = saved->payload,
                                    .solid = saved->payload_solid},
                        .trimmed = saved->points.trimmed,
                        .begins = saved->points.at[0],
                        .what = records_of,
                        .damage = damage};

    *rank = (struct inspect_rank){0};
    snprintf(records_of, sizeof(records_of), "%s, records", who);
    snprintf(payload_of, sizeof(payload_of), "%s, payload", who);
    rank->whole = inspect_chain(image, &look.payload, take_payload, &rank->payload_bytes,
                                &rank->sizes, damage);
    rank->whole &= inspect_chain(image, &records, take_records, &look, &rank->sizes, damage);
    rank->record_bytes = look.bytes;
    rank->events = look.log.event_count;
    rank->taken = look.log.taken;
    rank->sends = look.log.send_count;
}
