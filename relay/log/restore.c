#include "relay/log/restore.h"
#include "common/err.h"

#include <search.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A segment that the journal tells of. */
struct segment {
    uint64_t chain;
    uint32_t number;
    uint32_t extent;           /* LEDGER_EXTENTS: it is not on disk */
    struct relay_block *block; /* NULL: it is not in memory */
};

struct restore {
    struct ledger_memory *memory;
    struct supply supply;
    void *segments; /* a tree of tsearch */
    struct cw_err *err;
};

static int compare(const void *a, const void *b)
{
    const struct segment *x = a;
    const struct segment *y = b;

    if (x->chain != y->chain)
        return x->chain < y->chain ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int makes_no_sense(const struct restore *r, const char *what)
{
    return cw_err_set(r->err, CW_EPROTO, "a record of the journal makes no sense: %s", what);
}

/* The segment that a record is about. NULL without memory. */
static struct segment *segment_of(struct restore *r, const struct journal_record *record)
{
    struct segment key = {.chain = record->chain, .number = record->number};
    struct segment **found = tfind(&key, &r->segments, compare);
    struct segment *segment;

    if (found)
        return *found;
    segment = calloc(1, sizeof(*segment));
    if (!segment)
        return NULL;
    segment->chain = record->chain;
    segment->number = record->number;
    segment->extent = LEDGER_EXTENTS;
    if (tsearch(segment, &r->segments, compare))
        return segment;
    free(segment);
    return NULL;
}

static void let_go(struct restore *r, struct segment *segment)
{
    if (!segment->block)
        return;
    segment->block->mark.chain = 0;
    supply_give(&r->supply, segment->block);
    segment->block = NULL;
}

/* --- records -------------------------------------------------------------------------------------
 */

/* All states are of one step. */
static int take_cell(struct restore *r, const struct journal_record *record, const uint8_t *bytes)
{
    struct ledger_header *header = &r->memory->header;
    struct ledger_copy *copy;

    if (record->number >= LEDGER_CELLS || record->kind >= LEDGER_KINDS ||
        record->size != (record->kind == LEDGER_FREE ? 0 : LEDGER_BODY))
        return makes_no_sense(r, "a state");
    copy = &r->memory->cells[record->number].copy[0];
    *copy = (struct ledger_copy){
        .step = 1, .kind = record->kind, .generation = (uint32_t)record->chain};
    if (record->size)
        memcpy(copy->body, bytes, record->size);
    if (header->cells_used <= record->number)
        header->cells_used = record->number + 1;
    return CW_OK;
}

static int take_bytes(struct restore *r, const struct journal_record *record, const uint8_t *bytes)
{
    struct segment *segment;

    if (record->chain == 0 || record->from > RELAY_BLOCK_BYTES ||
        record->size > RELAY_BLOCK_BYTES - record->from)
        return makes_no_sense(r, "bytes of a segment");
    segment = segment_of(r, record);
    if (segment && !segment->block) {
        segment->block = supply_take(&r->supply);
        if (!segment->block)
            return cw_err_set(r->err, CW_EINVAL,
                              "it holds more than fits in memory; give the relay the --memory-max "
                              "that it had");
        segment->block->mark =
            (struct relay_mark){.chain = record->chain, .number = record->number};
    }
    if (!segment)
        return cw_err_set(r->err, CW_ENOMEM, "no memory");
    if (segment->extent != LEDGER_EXTENTS || record->from != segment->block->mark.used)
        return makes_no_sense(r, "bytes of a segment that do not follow those before");
    memcpy(segment->block->bytes + record->from, bytes, record->size);
    segment->block->mark.used += record->size;
    return CW_OK;
}

static int take_place(struct restore *r, const struct journal_record *record)
{
    struct ledger_header *header = &r->memory->header;
    struct segment *segment;

    if (record->chain == 0 || record->extent >= LEDGER_EXTENTS ||
        record->used > RELAY_BLOCK_BYTES || r->memory->extents[record->extent].chain != 0)
        return makes_no_sense(r, "a place on disk");
    segment = segment_of(r, record);
    if (!segment)
        return cw_err_set(r->err, CW_ENOMEM, "no memory");
    if (segment->extent != LEDGER_EXTENTS)
        return makes_no_sense(r, "a second place on disk");
    let_go(r, segment);
    segment->extent = record->extent;
    /* first: what is not counted here is not cleared either, should this be killed */
    if (header->extents_used <= record->extent)
        header->extents_used = record->extent + 1;
    atomic_signal_fence(memory_order_seq_cst);
    r->memory->extents[record->extent] = (struct ledger_extent){
        .chain = record->chain, .number = record->number, .used = record->used, .sum = record->sum};
    return CW_OK;
}

static int take_drop(struct restore *r, const struct journal_record *record)
{
    struct segment key = {.chain = record->chain, .number = record->number};
    struct segment **found = tfind(&key, &r->segments, compare);
    struct segment *segment = found ? *found : NULL;

    if (!segment)
        return CW_OK; /* it was never told of */
    let_go(r, segment);
    if (segment->extent != LEDGER_EXTENTS)
        r->memory->extents[segment->extent].chain = 0;
    tdelete(segment, &r->segments, compare);
    free(segment);
    return CW_OK;
}

static int take(struct restore *r, const struct journal_record *record, const uint8_t *bytes)
{
    switch ((enum journal_type)record->type) {
    case JOURNAL_CELL:
        return take_cell(r, record, bytes);
    case JOURNAL_BYTES:
        return take_bytes(r, record, bytes);
    case JOURNAL_PLACE:
        return take_place(r, record);
    case JOURNAL_DROP:
        return take_drop(r, record);
    case JOURNAL_TYPES:
        break;
    }
    return makes_no_sense(r, "its type");
}

/* --- the whole -----------------------------------------------------------------------------------
 */

static int take_all(struct restore *r, const uint8_t *bytes, uint64_t size)
{
    struct journal_reader reader = journal_read(bytes, size);
    struct journal_record record;
    const uint8_t *at;
    bool sense = true;
    int failed = CW_OK;

    while (!failed && sense && journal_next_part(&reader)) {
        r->memory->header.generation = reader.part.generation;
        while (!failed && journal_next_record(&reader, &record, &at, &sense))
            failed = take(r, &record, at);
    }
    return failed || sense ? failed : makes_no_sense(r, "it has no end");
}

/* An earlier attempt may have been killed. */
static void clear(struct ledger_memory *memory)
{
    struct ledger_header *header = &memory->header;

    if (header->cells_used <= LEDGER_CELLS)
        memset(memory->cells, 0, header->cells_used * sizeof(*memory->cells));
    if (header->extents_used <= LEDGER_EXTENTS)
        memset(memory->extents, 0, header->extents_used * sizeof(*memory->extents));
    *header = (struct ledger_header){0};
}

int restore(struct ledger_memory *memory, const struct relay_region *region, const uint8_t *bytes,
            const struct journal_summary *summary, struct cw_err *err)
{
    struct restore r = {.memory = memory, .err = err};
    int failed;

    clear(memory);
    supply_init(&r.supply, region);
    r.supply.carved_note = &memory->header.carved;
    failed = take_all(&r, bytes, summary->end);
    tdestroy(r.segments, free);
    if (failed)
        return failed;
    memory->header.magic = LEDGER_MAGIC;
    memory->header.version = LEDGER_VERSION;
    memory->header.block_bytes = sizeof(struct relay_block);
    memory->header.region_size = region->size;
    memory->header.done = 1;
    return CW_OK;
}
