#include "relay/log/commit.h"
#include "relay/log/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int commit_init(struct commit *commit, struct ledger *ledger, const struct relay_journal *journal)
{
    *commit = (struct commit){.ledger = ledger,
                              .copies = journal->copies,
                              .relay = journal->relay,
                              .journal = journal->number,
                              .file = journal->file};
    commit->cells = malloc(LEDGER_CELLS * sizeof(*commit->cells));
    commit->cell_due = calloc(LEDGER_CELLS, sizeof(*commit->cell_due));
    if (!journal->copies)
        commit->buffer = aligned_alloc(JOURNAL_ALIGN, JOURNAL_PART_MAX);
    if (commit->cells && commit->cell_due && (commit->buffer || commit->copies))
        return CW_OK;
    commit_fini(commit);
    return CW_ENOMEM;
}

void commit_fini(struct commit *commit)
{
    free(commit->cells);
    free(commit->cell_due);
    free(commit->buffer);
    *commit = (struct commit){0};
}

/* --- lists ---------------------------------------------------------------------------------------
 */

static void list_remove(struct log_segment *segment)
{
    struct segment_notes *notes = &segment->notes;
    struct segment_list *list = notes->list;

    if (!list)
        return;
    *(notes->prev ? &notes->prev->notes.next : &list->first) = notes->next;
    *(notes->next ? &notes->next->notes.prev : &list->last) = notes->prev;
    notes->prev = notes->next = NULL;
    notes->list = NULL;
}

static void list_move(struct segment_list *list, struct log_segment *segment)
{
    if (segment->notes.list == list)
        return;
    list_remove(segment);
    segment->notes.list = list;
    segment->notes.prev = list->last;
    *(list->last ? &list->last->notes.next : &list->first) = segment;
    list->last = segment;
}

/* --- what changes --------------------------------------------------------------------------------
 */

void commit_segment(struct commit *commit, struct log_segment *segment, uint32_t size)
{
    if (!commit->buffer && !commit->copies)
        return;
    if (!commit_is_on(commit)) { /* all of it is noted when there is a journal */
        list_move(&commit->done, segment);
        return;
    }
    commit->due_bytes += size;
    list_move(&commit->due, segment);
}

bool commit_gone(struct commit *commit, struct log_segment *segment)
{
    bool has_place = segment->extent != STORE_NO_EXTENT && !commit->copies;

    if (commit->awaited == segment)
        commit->awaited = NULL;
    if (!commit_is_on(commit) || (!segment->notes.told && !has_place)) {
        list_remove(segment);
        return false;
    }
    list_move(&commit->gone, segment);
    commit_want(commit); /* others wait for its place */
    return true;
}

/* A commit has ended that knows of the end of these. */
static void free_going(struct commit *commit)
{
    while (commit->going.first)
        list_move(&commit->free, commit->going.first);
}

/* Nobody asks what became of these. */
static void free_all(struct commit *commit)
{
    free_going(commit);
    while (commit->gone.first)
        list_move(&commit->free, commit->gone.first);
}

struct log_segment *commit_next_gone(struct commit *commit)
{
    struct log_segment *segment = commit->free.first;

    if (segment)
        list_remove(segment);
    return segment;
}

void commit_stop(struct commit *commit, int error)
{
    commit->error = error;
    free_all(commit);
}

/* --- what is noted -------------------------------------------------------------------------------
 */

void commit_begin(struct commit *commit)
{
    uint32_t cells = commit_is_on(commit) ? commit->ledger->memory->header.cells_used : 0;

    for (uint32_t cell = 0; cell < cells; cell++)
        commit_cell(commit, cell);
    commit_want(commit);
}

static void forget(struct log_segment *segment)
{
    segment->notes.bytes = 0;
    segment->notes.told = segment->notes.placed = false;
}

/* Another journal begins, with all that is. */
static void begin_another(struct commit *commit)
{
    commit->journal++;
    commit->file ^= !commit->copies;
    commit->part = commit->at = commit->began = 0;
    while (commit->done.first)
        list_move(&commit->due, commit->done.first);
    for (struct log_segment *s = commit->due.first; s; s = s->notes.next)
        forget(s);
    for (struct log_segment *s = commit->gone.first; s; s = s->notes.next)
        forget(s);
    commit_begin(commit);
}

static bool is_long(const struct commit *commit)
{
    uint64_t most = commit->began * COMMIT_JOURNAL_SHARE;

    if (most < COMMIT_JOURNAL_MIN)
        most = COMMIT_JOURNAL_MIN;
    return commit->began > 0 && commit->ends && commit->at >= most;
}

static bool has_place(const struct commit *commit, const struct log_segment *segment)
{
    return !commit->copies && segment->extent != STORE_NO_EXTENT &&
           segment->state != SEGMENT_WRITING;
}

/* All of these return false where there is no room for all of it. */
static bool put_place(struct log_segment *segment, struct journal_writer *writer)
{
    if (segment->notes.placed)
        return true;
    if (journal_room(writer) == 0)
        return false;
    journal_add(writer, &(struct journal_record){.type = JOURNAL_PLACE,
                                                 .chain = segment->chain,
                                                 .number = segment->number,
                                                 .extent = segment->extent,
                                                 .used = segment->used,
                                                 .sum = segment->sum});
    segment->notes.told = segment->notes.placed = true;
    return true;
}

static bool put_bytes(struct commit *commit, struct log_segment *segment,
                      struct journal_writer *writer)
{
    struct segment_notes *notes = &segment->notes;

    while (notes->bytes < segment->used) {
        uint32_t room = journal_room(writer);
        uint32_t size = segment->used - notes->bytes;

        if (room == 0)
            return false;
        if (size > room)
            size = room;
        memcpy(journal_add(writer, &(struct journal_record){.type = JOURNAL_BYTES,
                                                            .size = size,
                                                            .chain = segment->chain,
                                                            .number = segment->number,
                                                            .from = notes->bytes}),
               segment->bytes + notes->bytes, size);
        notes->bytes += size;
        notes->told = true;
        commit->due_bytes -= size < commit->due_bytes ? size : commit->due_bytes;
    }
    return true;
}

/* Its bytes that are to be noted are in memory. */
static bool is_here(const struct log_segment *segment)
{
    return segment->notes.bytes == segment->used ||
           (segment->bytes && segment->state != SEGMENT_READING);
}

static bool put_segments(struct commit *commit, struct journal_writer *writer)
{
    while (commit->due.first) {
        struct log_segment *segment = commit->due.first;

        if (!has_place(commit, segment) && !is_here(segment)) {
            commit->awaited = segment;
            return false;
        }
        if (!(has_place(commit, segment) ? put_place(segment, writer)
                                         : put_bytes(commit, segment, writer)))
            return false;
        list_move(&commit->done, segment);
    }
    return true;
}

static bool put_gone(struct commit *commit, struct journal_writer *writer)
{
    while (commit->gone.first) {
        struct log_segment *segment = commit->gone.first;

        if (segment->notes.told && journal_room(writer) == 0)
            return false;
        if (segment->notes.told)
            journal_add(writer, &(struct journal_record){.type = JOURNAL_DROP,
                                                         .chain = segment->chain,
                                                         .number = segment->number});
        /* no place of ours is told to copies */
        list_move(commit->copies ? &commit->free : &commit->going, segment);
    }
    return true;
}

static bool put_cells(struct commit *commit, struct journal_writer *writer)
{
    while (commit->cell_count > 0) {
        uint32_t cell = commit->cells[commit->cell_count - 1];
        const struct ledger_copy *copy = ledger_copy_of(commit->ledger, cell);
        struct journal_record record = {.type = JOURNAL_CELL, .number = cell};
        uint8_t *to;

        if (journal_room(writer) < LEDGER_BODY)
            return false;
        if (copy && copy->kind != LEDGER_FREE) {
            record.kind = copy->kind;
            record.chain = copy->generation;
            record.size = LEDGER_BODY;
        }
        to = journal_add(writer, &record);
        if (record.size)
            memcpy(to, copy->body, LEDGER_BODY);
        commit->cell_due[cell] = 0;
        commit->cell_count--;
    }
    return true;
}

/* --- writing -------------------------------------------------------------------------------------
 */

/* A commit that has begun is ended. */
static bool is_due(const struct commit *commit)
{
    bool due = commit->cell_count > 0 || commit->due.first || commit->gone.first;

    return due && (commit->wanted || !commit->ends || commit->due_bytes > JOURNAL_PART_MAX / 2);
}

bool commit_is_next(const struct commit *commit)
{
    bool begins = commit->ends || commit->part == 0;

    return commit_is_on(commit) && !commit->out && is_due(commit) &&
           (!commit->copies || !begins || commit->number < commit->acked + COMMITS_OUT_MAX);
}

/* As much as there is room for. */
static void put_all(struct commit *commit, struct journal_writer *writer)
{
    commit->ends =
        put_gone(commit, writer) && put_segments(commit, writer) && put_cells(commit, writer);
    if (!commit->ends)
        return;
    commit->due_bytes = 0;
    commit->wanted = false;
}

static struct journal_part part_of(const struct commit *commit)
{
    return (struct journal_part){.relay = commit->relay,
                                 .journal = commit->journal,
                                 .number = commit->part,
                                 .ends = commit->ends,
                                 .generation = commit->ledger->memory->header.generation};
}

bool commit_next(struct commit *commit, struct relay_log_io *io)
{
    struct journal_writer writer;
    struct journal_part part;

    if (commit->copies || !commit_is_next(commit))
        return false;
    if (is_long(commit))
        begin_another(commit);
    journal_start(&writer, commit->buffer, JOURNAL_PART_MAX);
    commit->out = true;
    put_all(commit, &writer);
    part = part_of(commit);
    *io = (struct relay_log_io){.write = true,
                                .sync = true,
                                .file = commit->file ? STORE_JOURNAL_1 : STORE_JOURNAL_0,
                                .offset = commit->at,
                                .at = commit->buffer,
                                .size = journal_finish(&writer, &part)};
    commit->size = io->size;
    return true;
}

bool commit_done(struct commit *commit, int error)
{
    assert(commit->out);
    commit->out = false;
    if (error) {
        commit_stop(commit, error);
        return true;
    }
    commit->part++;
    commit->at += commit->size;
    if (!commit->ends)
        return false;
    if (commit->began == 0)
        commit->began = commit->at;
    commit->held = true;
    free_going(commit);
    return true;
}

/* --- to copies -----------------------------------------------------------------------------------
 */

void commit_copy(struct commit *commit, bool holds)
{
    commit->copying = true;
    commit->holds = holds;
    commit->ends = true;
    commit->error = 0;
    commit->acked = commit->number; /* what is on its way does not count any more */
    begin_another(commit);
}

void commit_copy_end(struct commit *commit)
{
    free_all(commit);
    while (commit->due.first)
        list_move(&commit->done, commit->due.first);
    while (commit->cell_count > 0)
        commit->cell_due[commit->cells[--commit->cell_count]] = 0;
    commit->due_bytes = 0;
    commit->awaited = NULL;
    commit->copying = commit->holds = commit->wanted = false;
}

uint32_t commit_copy_part(struct commit *commit, uint8_t *at, uint32_t room)
{
    struct journal_writer writer;
    struct journal_part part;
    bool begins = commit->ends;

    if (!commit_is_next(commit) || (commit->awaited && !is_here(commit->awaited)))
        return 0;
    commit->awaited = NULL;
    journal_start(&writer, at, room);
    put_all(commit, &writer);
    if (!commit->ends && journal_is_empty(&writer)) {
        commit->ends = begins; /* something is awaited first */
        return 0;
    }
    commit->number += begins;
    commit->holds |= commit->ends;
    part = part_of(commit);
    commit->part++;
    return journal_seal(&writer, &part);
}

void commit_copied(struct commit *commit, uint64_t number)
{
    commit->acked = number;
}
