#include "relay/log/held.h"
#include "common/err.h"

#include <search.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A segment that the memory has, or that is on disk. */
struct held_segment {
    uint64_t chain;
    uint32_t number;
    uint32_t extent;           /* LEDGER_EXTENTS: it is not on disk */
    uint32_t round;            /* that named it last */
    struct relay_block *block; /* NULL: it is not in memory */
    struct held_segment *next; /* that is gone with this commit */
    bool gone;
};

static int compare(const void *a, const void *b)
{
    const struct held_segment *x = a;
    const struct held_segment *y = b;

    if (x->chain != y->chain)
        return x->chain < y->chain ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int makes_no_sense(const char *what, struct cw_err *err)
{
    return cw_err_set(err, CW_EPROTO, "a record of the journal makes no sense: %s", what);
}

/* What was stored before is there before what is stored after. */
static void fence(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

/* --- segments ------------------------------------------------------------------------------------
 */

static struct held_segment *find(const struct held *held, uint64_t chain, uint32_t number)
{
    const struct held_segment key = {.chain = chain, .number = number};
    struct held_segment **found = tfind(&key, &held->segments, compare);

    return found ? *found : NULL;
}

/* NULL without memory. */
static struct held_segment *add(struct held *held, uint64_t chain, uint32_t number)
{
    struct held_segment *segment = calloc(1, sizeof(*segment));

    if (!segment)
        return NULL;
    segment->chain = chain;
    segment->number = number;
    segment->extent = LEDGER_EXTENTS;
    if (tsearch(segment, &held->segments, compare))
        return segment;
    free(segment);
    return NULL;
}

/* The one that a record is about; NULL without memory. */
static struct held_segment *segment_of(struct held *held, const struct journal_record *record)
{
    struct held_segment *segment = find(held, record->chain, record->number);

    if (!segment)
        segment = add(held, record->chain, record->number);
    if (segment)
        segment->round = held->round;
    return segment;
}

static void give_block(struct held *held, struct relay_block *block)
{
    block->mark.chain = 0;
    supply_give(&held->supply, block);
}

static void let_go(struct held *held, struct held_segment *segment)
{
    if (segment->block)
        give_block(held, segment->block);
    segment->block = NULL;
}

static void forget(struct held *held, struct held_segment *segment)
{
    let_go(held, segment);
    if (segment->extent != LEDGER_EXTENTS)
        held->ledger.memory->extents[segment->extent].chain = 0;
    tdelete(segment, &held->segments, compare);
    free(segment);
}

static void mark_gone(struct held *held, struct held_segment *segment)
{
    if (segment->gone)
        return;
    segment->gone = true;
    segment->next = held->gone;
    held->gone = segment;
}

static void forget_gone(struct held *held)
{
    while (held->gone) {
        struct held_segment *segment = held->gone;

        held->gone = segment->next;
        forget(held, segment);
    }
}

/* A block, which has this name once it is the segment's. */
static int take_block(struct held *held, struct held_segment *segment, struct cw_err *err)
{
    struct relay_block *block = supply_take(&held->supply);

    if (!block)
        return cw_err_set(err, CW_EINVAL,
                          "it holds more than fits in memory; give the relay the --memory-max that "
                          "it had");
    block->mark.used = 0;
    block->mark.number = segment->number;
    fence();
    block->mark.chain = segment->chain;
    segment->block = block;
    return CW_OK;
}

/* --- records -------------------------------------------------------------------------------------
 */

static int take_cell(struct held *held, const struct journal_record *record, const uint8_t *bytes,
                     struct cw_err *err)
{
    bool is_free = record->kind == LEDGER_FREE;

    if (record->number >= LEDGER_CELLS || record->kind >= LEDGER_KINDS ||
        record->size != (is_free ? 0 : LEDGER_BODY))
        return makes_no_sense("a state", err);
    held->named[record->number] = held->round;
    ledger_put(&held->ledger, record->number, record->kind, (uint32_t)record->chain,
               is_free ? NULL : bytes);
    return CW_OK;
}

/* Behind what is there; what is there already has come before. */
static int append(struct held_segment *segment, const struct journal_record *record,
                  const uint8_t *bytes, struct cw_err *err)
{
    struct relay_block *block = segment->block;
    uint32_t used = block->mark.used;

    if (record->from > used)
        return makes_no_sense("bytes of a segment that do not follow those before", err);
    if (record->from + record->size <= used)
        return CW_OK;
    memcpy(block->bytes + used, bytes + (used - record->from), record->from + record->size - used);
    fence();
    block->mark.used = record->from + record->size;
    return CW_OK;
}

static int take_bytes(struct held *held, const struct journal_record *record, const uint8_t *bytes,
                      struct cw_err *err)
{
    struct held_segment *segment;

    if (record->chain == 0 || record->from > RELAY_BLOCK_BYTES ||
        record->size > RELAY_BLOCK_BYTES - record->from)
        return makes_no_sense("bytes of a segment", err);
    segment = segment_of(held, record);
    if (!segment)
        return cw_err_set(err, CW_ENOMEM, "no memory");
    if (segment->extent != LEDGER_EXTENTS || segment->gone)
        return makes_no_sense("bytes of a segment that is not in memory", err);
    if (!segment->block && take_block(held, segment, err) < 0)
        return err->code;
    return append(segment, record, bytes, err);
}

static int take_place(struct held *held, const struct journal_record *record, struct cw_err *err)
{
    struct ledger_memory *memory = held->ledger.memory;
    struct held_segment *segment;

    if (!held->at_once || record->chain == 0 || record->extent >= LEDGER_EXTENTS ||
        record->used > RELAY_BLOCK_BYTES || memory->extents[record->extent].chain != 0)
        return makes_no_sense("a place on disk", err);
    segment = segment_of(held, record);
    if (!segment)
        return cw_err_set(err, CW_ENOMEM, "no memory");
    if (segment->extent != LEDGER_EXTENTS || segment->gone)
        return makes_no_sense("a second place on disk", err);
    let_go(held, segment);
    segment->extent = record->extent;
    /* first: what is not counted here is not cleared either, should this be killed */
    if (memory->header.extents_used <= record->extent)
        memory->header.extents_used = record->extent + 1;
    fence();
    memory->extents[record->extent] = (struct ledger_extent){
        .chain = record->chain, .number = record->number, .used = record->used, .sum = record->sum};
    return CW_OK;
}

static int take_drop(struct held *held, const struct journal_record *record)
{
    struct held_segment *segment = find(held, record->chain, record->number);

    if (!segment)
        return CW_OK; /* it was never told of */
    segment->round = held->round;
    if (held->at_once) /* its place may be another one's in this very commit */
        forget(held, segment);
    else
        mark_gone(held, segment);
    return CW_OK;
}

static int take_record(struct held *held, const struct journal_record *record, const uint8_t *bytes,
                       struct cw_err *err)
{
    switch ((enum journal_type)record->type) {
    case JOURNAL_CELL:
        return take_cell(held, record, bytes, err);
    case JOURNAL_BYTES:
        return take_bytes(held, record, bytes, err);
    case JOURNAL_PLACE:
        return take_place(held, record, err);
    case JOURNAL_DROP:
        return take_drop(held, record);
    case JOURNAL_TYPES:
        break;
    }
    return makes_no_sense("its type", err);
}

/* --- the end of a commit -------------------------------------------------------------------------
 */

static void sweep_segment(const void *node, VISIT visit, void *ctx)
{
    struct held_segment *segment = *(struct held_segment *const *)node;
    struct held *held = ctx;

    if ((visit == postorder || visit == leaf) && segment->round != held->round)
        mark_gone(held, segment);
}

/* What the first commit of a journal has not named had gone before it. */
static void sweep(struct held *held)
{
    uint32_t cells = held->ledger.memory->header.cells_used;

    twalk_r(held->segments, sweep_segment, held);
    for (uint32_t cell = 0; cell < cells; cell++)
        if (held->named[cell] != held->round)
            ledger_put(&held->ledger, cell, LEDGER_FREE, 0, NULL);
}

static void end_commit(struct held *held)
{
    struct ledger_header *header = &held->ledger.memory->header;

    if (held->first)
        sweep(held);
    header->generation = held->generation;
    ledger_step(&held->ledger);
    if (!held->at_once)
        header->magic = LEDGER_MAGIC;
    held->first = false;
    forget_gone(held);
}

bool held_is_left(const struct ledger_memory *memory, uint32_t incarnation)
{
    const struct ledger_header *header = &memory->header;

    return header->magic == LEDGER_MAGIC && header->done > 0 && header->incarnation == incarnation;
}

bool held_is_whole(const struct held *held)
{
    const struct ledger_memory *memory = held->ledger.memory;

    return memory && held_is_left(memory, memory->header.incarnation);
}

/* --- parts ---------------------------------------------------------------------------------------
 */

void held_begin(struct held *held)
{
    held->journal = 0;
}

/* It is the next one, or the first one of another journal. */
static bool follows(struct held *held, const struct journal_part *part)
{
    if (part->journal == held->journal)
        return part->number == held->part;
    if (part->number != 0)
        return false;
    held->journal = part->journal;
    held->round++;
    held->first = true;
    return true;
}

int held_take(struct held *held, struct journal_reader *reader, struct cw_err *err)
{
    struct journal_record record;
    const uint8_t *bytes;
    bool sense = true;
    int failed = CW_OK;

    if (!follows(held, &reader->part))
        return makes_no_sense("a part that is not the next one", err);
    while (!failed && journal_next_record(reader, &record, &bytes, &sense))
        failed = take_record(held, &record, bytes, err);
    if (!failed && !sense)
        failed = makes_no_sense("it has no end", err);
    if (failed)
        return failed;
    held->part = reader->part.number + 1;
    held->generation = reader->part.generation;
    if (reader->part.ends)
        end_commit(held);
    return CW_OK;
}

/* --- beginning and end ---------------------------------------------------------------------------
 */

/* Nobody takes it for what a relay has left, and no block for a segment's. */
static void clear(struct ledger_memory *memory, struct supply *supply)
{
    struct ledger_header *header = &memory->header;
    uint64_t carved = header->carved <= supply->region.size ? header->carved : 0;
    struct relay_block *block;

    header->magic = 0;
    supply_return(supply, carved);
    for (uint64_t i = 0; (block = supply_at(supply, i)); i++)
        block->mark.chain = 0;
    supply_return(supply, 0);
    if (header->cells_used <= LEDGER_CELLS)
        memset(memory->cells, 0, header->cells_used * sizeof(*memory->cells));
    if (header->extents_used <= LEDGER_EXTENTS)
        memset(memory->extents, 0, header->extents_used * sizeof(*memory->extents));
    *header = (struct ledger_header){0};
}

/* Blocks that were left. Returns 0 or CW_ENOMEM. */
static int find_blocks(struct held *held)
{
    const struct ledger_header *header = &held->ledger.memory->header;
    struct relay_block *block;

    supply_return(&held->supply, header->carved);
    for (uint64_t i = 0; (block = supply_at(&held->supply, i)); i++) {
        struct held_segment *segment = NULL;

        if (block->mark.chain && block->mark.used <= RELAY_BLOCK_BYTES &&
            !find(held, block->mark.chain, block->mark.number)) {
            segment = add(held, block->mark.chain, block->mark.number);
            if (!segment)
                return CW_ENOMEM;
            segment->block = block;
        }
        if (!segment)
            give_block(held, block);
    }
    return CW_OK;
}

static int begin(struct held *held, struct ledger_memory *memory, const struct relay_region *region)
{
    *held = (struct held){.named = calloc(LEDGER_CELLS, sizeof(*held->named))};
    if (!held->named)
        return CW_ENOMEM;
    supply_init(&held->supply, region);
    held->supply.carved_note = &memory->header.carved;
    return CW_OK;
}

static void begin_anew(struct held *held, struct ledger_memory *memory, uint32_t incarnation)
{
    clear(memory, &held->supply);
    ledger_open(&held->ledger, memory, held->supply.region.size);
    memory->header.magic = 0; /* until there is a whole commit */
    memory->header.incarnation = incarnation;
}

int held_open(struct held *held, struct ledger_memory *memory, const struct relay_region *region,
              uint32_t incarnation)
{
    const struct ledger_header *header = &memory->header;

    if (begin(held, memory, region) < 0)
        return CW_ENOMEM;
    if (header->incarnation != incarnation || !ledger_open(&held->ledger, memory, region->size) ||
        header->extents_used > 0) {
        begin_anew(held, memory, incarnation);
        return CW_OK;
    }
    if (find_blocks(held) == CW_OK)
        return CW_OK;
    held_close(held);
    return CW_ENOMEM;
}

int held_open_anew(struct held *held, struct ledger_memory *memory,
                   const struct relay_region *region)
{
    if (begin(held, memory, region) < 0)
        return CW_ENOMEM;
    held->at_once = true;
    begin_anew(held, memory, 0);
    return CW_OK;
}

void held_finish(struct held *held)
{
    held->ledger.memory->header.magic = LEDGER_MAGIC;
}

void held_close(struct held *held)
{
    tdestroy(held->segments, free);
    free(held->named);
    *held = (struct held){0};
}
