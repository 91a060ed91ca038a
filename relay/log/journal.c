#include "relay/log/journal.h"

#include <assert.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define RECORD_ALIGN 8u

_Static_assert(sizeof(struct journal_part) == 56 && sizeof(struct journal_record) == 48,
               "as in docs/log-format.md");

static uint64_t whole(uint64_t size, uint64_t align)
{
    return (size + align - 1) / align * align;
}

static uint64_t sum_of(const uint8_t *part, uint32_t size)
{
    struct journal_part head;
    XXH3_state_t state;

    memcpy(&head, part, sizeof(head));
    head.sum = 0;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, &head, sizeof(head));
    XXH3_64bits_update(&state, part + sizeof(head), size - sizeof(head));
    return XXH3_64bits_digest(&state);
}

/* --- writing -------------------------------------------------------------------------------------
 */

void journal_start(struct journal_writer *writer, uint8_t *at, uint32_t room)
{
    *writer = (struct journal_writer){.at = at, .room = room, .size = sizeof(struct journal_part)};
}

uint32_t journal_room(const struct journal_writer *writer)
{
    uint32_t left = writer->room - writer->size;
    uint32_t head = sizeof(struct journal_record) + RECORD_ALIGN;

    return left > head ? left - head : 0;
}

uint8_t *journal_add(struct journal_writer *writer, const struct journal_record *record)
{
    uint8_t *at = writer->at + writer->size;
    uint32_t size = (uint32_t)whole(record->size, RECORD_ALIGN);

    assert(record->size <= journal_room(writer));
    memcpy(at, record, sizeof(*record));
    memset(at + sizeof(*record) + record->size, 0, size - record->size);
    writer->size += (uint32_t)sizeof(*record) + size;
    return at + sizeof(*record);
}

uint32_t journal_seal(struct journal_writer *writer, const struct journal_part *part)
{
    struct journal_part head = *part;

    head.magic = JOURNAL_MAGIC;
    head.version = JOURNAL_VERSION;
    head.size = writer->size;
    head.sum = 0;
    memcpy(writer->at, &head, sizeof(head));
    head.sum = sum_of(writer->at, writer->size);
    memcpy(writer->at, &head, sizeof(head));
    return writer->size;
}

uint32_t journal_finish(struct journal_writer *writer, const struct journal_part *part)
{
    uint32_t size = (uint32_t)whole(writer->size, JOURNAL_ALIGN);

    journal_seal(writer, part);
    memset(writer->at + writer->size, 0, size - writer->size);
    return size;
}

/* --- reading -------------------------------------------------------------------------------------
 */

bool journal_part_at(const uint8_t *bytes, uint64_t size, struct journal_part *part)
{
    if (size < sizeof(*part))
        return false;
    memcpy(part, bytes, sizeof(*part));
    return part->magic == JOURNAL_MAGIC && part->version == JOURNAL_VERSION && part->journal > 0 &&
           part->journal <= JOURNAL_NUMBER_MAX && part->size >= sizeof(*part) &&
           part->size <= JOURNAL_PART_MAX && part->size <= size &&
           sum_of(bytes, part->size) == part->sum;
}

struct journal_reader journal_read_part(const uint8_t *bytes, const struct journal_part *part)
{
    return (struct journal_reader){.bytes = bytes,
                                   .size = part->size,
                                   .next = part->size,
                                   .at = sizeof(*part),
                                   .end = part->size,
                                   .part = *part};
}

/* It is of the journal at hand, and comes next. */
static bool follows(const struct journal_part *part, const struct journal_part *last)
{
    if (last->journal == 0)
        return part->number == 0;
    return part->relay == last->relay && part->journal == last->journal &&
           part->number == last->number + 1;
}

bool journal_next_part(struct journal_reader *reader)
{
    uint64_t left = reader->size - reader->next;
    struct journal_part part;

    if (!journal_part_at(reader->bytes + reader->next, left, &part) ||
        !follows(&part, &reader->part))
        return false;
    reader->part = part;
    reader->at = reader->next + sizeof(part);
    reader->end = reader->next + part.size;
    reader->next += whole(part.size, JOURNAL_ALIGN);
    if (reader->next > reader->size)
        reader->next = reader->size;
    return true;
}

bool journal_next_record(struct journal_reader *reader, struct journal_record *record,
                         const uint8_t **bytes, bool *sense)
{
    uint64_t left = reader->end - reader->at;

    *sense = left == 0;
    if (left < sizeof(*record))
        return false;
    memcpy(record, reader->bytes + reader->at, sizeof(*record));
    left -= sizeof(*record);
    *sense = record->type > 0 && record->type < JOURNAL_TYPES &&
             record->size <= JOURNAL_BYTES_MAX && whole(record->size, RECORD_ALIGN) <= left;
    if (!*sense)
        return false;
    *bytes = reader->bytes + reader->at + sizeof(*record);
    reader->at += sizeof(*record) + whole(record->size, RECORD_ALIGN);
    return true;
}

void journal_look(const uint8_t *bytes, uint64_t size, struct journal_summary *summary)
{
    struct journal_reader reader = journal_read(bytes, size);
    struct journal_part first;

    *summary = (struct journal_summary){0};
    if (size >= sizeof(first)) {
        memcpy(&first, bytes, sizeof(first));
        summary->version = first.magic == JOURNAL_MAGIC ? first.version : 0;
    }
    while (journal_next_part(&reader)) {
        summary->journal = reader.part.journal;
        summary->relay = reader.part.relay;
        summary->parts++;
        if (!reader.part.ends)
            continue;
        summary->commits++;
        summary->committed = summary->parts;
        summary->end = reader.next;
    }
}

unsigned journal_newest(const struct journal_summary found[2])
{
    return found[1].commits > 0 && (found[0].commits == 0 || found[1].journal > found[0].journal);
}

uint64_t journal_next_number(const struct journal_summary found[2])
{
    return (found[0].journal > found[1].journal ? found[0].journal : found[1].journal) + 1;
}
