#include "relay/log/store.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define EXTENTS_MIN 64u

_Static_assert(RELAY_BLOCK_BYTES % STORE_ALIGN == 0, "segments are aligned on disk");

void store_init(struct log_store *store, struct relay_pool *pool, struct ledger *ledger,
                uint64_t memory_max, uint64_t disk_max)
{
    uint64_t extents = disk_max / RELAY_BLOCK_BYTES;

    *store =
        (struct log_store){.pool = pool, .ledger = ledger, .memory_max = memory_max, .round = 1};
    if (ledger && extents > LEDGER_EXTENTS)
        extents = LEDGER_EXTENTS;
    store->memory_begin = memory_max / STORE_BEGIN_SHARE;
    if (store->memory_begin > STORE_BEGIN_MAX)
        store->memory_begin = STORE_BEGIN_MAX;
    store->write_begin = store->memory_begin / 2;
    store->extents_max = extents < STORE_NO_EXTENT ? (uint32_t)extents : STORE_NO_EXTENT - 1;
}

int store_keep_journal(struct log_store *store, const struct relay_journal *journal)
{
    if (!journal->copies && store->write_begin > STORE_BEGIN_JOURNAL)
        store->write_begin = STORE_BEGIN_JOURNAL;
    return commit_init(&store->commit, store->ledger, journal);
}

/* --- lists ---------------------------------------------------------------------------------------
 */

static void list_add(struct segment_list *list, struct log_segment *segment)
{
    segment->prev = list->last;
    segment->next = NULL;
    *(list->last ? &list->last->next : &list->first) = segment;
    list->last = segment;
}

static void list_remove(struct segment_list *list, struct log_segment *segment)
{
    *(segment->prev ? &segment->prev->next : &list->first) = segment->next;
    *(segment->next ? &segment->next->prev : &list->last) = segment->prev;
    segment->prev = segment->next = NULL;
}

static struct segment_list *list_of(struct log_store *store, uint8_t state)
{
    switch (state) {
    case SEGMENT_FULL:
        return &store->full;
    case SEGMENT_CLEAN:
        return &store->clean;
    case SEGMENT_WANTED:
        return &store->wanted;
    case SEGMENT_WRITING:
    case SEGMENT_READING:
        return &store->out;
    default:
        return NULL;
    }
}

/* In memory, and on disk as well. */
static bool is_clean(uint8_t state)
{
    return state == SEGMENT_CLEAN || state == SEGMENT_READING;
}

static void change(struct log_store *store, struct log_segment *segment, enum segment_state state)
{
    struct segment_list *from = list_of(store, segment->state);
    struct segment_list *to = list_of(store, state);

    if (from)
        list_remove(from, segment);
    if (to)
        list_add(to, segment);
    store->clean_now += is_clean(state) ? segment->size : 0;
    store->clean_now -= is_clean(segment->state) ? segment->size : 0;
    store->writing += (state == SEGMENT_WRITING) - (segment->state == SEGMENT_WRITING);
    store->out_count += (to == &store->out) - (from == &store->out);
    segment->state = (uint8_t)state;
}

/* --- places on disk ------------------------------------------------------------------------------
 */

static bool has_extent(const struct log_store *store)
{
    return store->free_count > 0 || store->extents < store->extents_max;
}

static uint32_t take_extent(struct log_store *store)
{
    if (store->free_count)
        return store->free_extents[--store->free_count];
    if (store->ledger) {
        store->ledger->memory->extents[store->extents].chain = 0;
        store->ledger->memory->header.extents_used = store->extents + 1;
    }
    return store->extents++;
}

/* Without memory for it the place is used no more. One that was left is given by store_returned. */
static void give_extent(struct log_store *store, uint32_t extent)
{
    uint32_t room = store->free_room ? store->free_room * 2 : EXTENTS_MIN;
    uint32_t *more;

    if (store->ledger)
        store->ledger->memory->extents[extent].chain = 0;
    if (extent < store->extents_left)
        return;
    if (store->free_count == store->free_room) {
        more = relay_pool_alloc(store->pool, room * sizeof(*more));
        if (!more)
            return;
        if (store->free_count)
            memcpy(more, store->free_extents, store->free_count * sizeof(*more));
        relay_pool_free(store->pool, store->free_extents, store->free_room * sizeof(*more));
        store->free_extents = more;
        store->free_room = room;
    }
    store->free_extents[store->free_count++] = extent;
}

/* --- memory --------------------------------------------------------------------------------------
 */

static void let_go(struct log_store *store, struct log_segment *segment)
{
    if (!segment->bytes)
        return;
    if (segment->block)
        relay_block_release(segment->block);
    else
        relay_pool_free(segment->pool, segment->bytes, segment->size);
    segment->block = NULL;
    segment->bytes = NULL;
    store->memory_now -= segment->stays ? 0 : segment->size;
}

/* The memory of one segment that is on disk as well, and that nobody else holds. */
static bool evict(struct log_store *store)
{
    for (uint32_t i = 0; i < STORE_EVICT_TRIES && store->clean.first; i++) {
        struct log_segment *segment = store->clean.first;

        if (segment->block->refs == 1 && segment->round != store->round &&
            segment != store->commit.awaited) {
            change(store, segment, SEGMENT_COLD);
            let_go(store, segment);
            return true;
        }
        change(store, segment, SEGMENT_CLEAN); /* to the end */
    }
    return false;
}

/* The block that was let go of last is the one that comes: its memory was used before. */
static bool take_block(struct log_store *store, struct log_segment *segment)
{
    while (store->memory_now + segment->size > store->memory_begin && evict(store))
        ;
    do
        segment->block = relay_block_new_cold(segment->pool);
    while (!segment->block && evict(store));
    if (!segment->block)
        return false;
    segment->bytes = segment->block->bytes;
    return true;
}

struct log_segment *store_new(struct log_store *store, struct relay_pool *pool, uint32_t size,
                              bool stays)
{
    struct log_segment *segment = relay_pool_alloc(pool, sizeof(*segment));

    if (!segment)
        return NULL;
    *segment =
        (struct log_segment){.pool = pool, .size = size, .extent = STORE_NO_EXTENT, .stays = stays};
    if (size < STORE_SEGMENT_BYTES)
        segment->bytes = relay_pool_alloc(pool, size);
    else
        take_block(store, segment);
    if (!segment->bytes) {
        relay_pool_free(pool, segment, sizeof(*segment));
        return NULL;
    }
    store->memory_now += stays ? 0 : size;
    return segment;
}

void store_name(struct log_store *store, struct log_segment *segment, uint64_t chain,
                uint32_t number)
{
    segment->chain = chain;
    segment->number = number;
    if (chain)
        commit_segment(&store->commit, segment, 0);
    segment->block->mark = (struct relay_mark){.chain = chain, .number = number};
}

static void free_segment(struct log_store *store, struct log_segment *segment)
{
    let_go(store, segment);
    if (segment->extent != STORE_NO_EXTENT)
        give_extent(store, segment->extent);
    relay_pool_free(segment->pool, segment, sizeof(*segment));
}

static void drop(struct log_store *store, struct log_segment *segment)
{
    if (list_of(store, segment->state) == &store->out) {
        segment->dropped = true;
        return;
    }
    change(store, segment, SEGMENT_OPEN);
    if (segment->chain && commit_gone(&store->commit, segment))
        let_go(store, segment);
    else
        free_segment(store, segment);
}

void store_drop(struct log_store *store, struct log_segment *segment)
{
    if (!segment->chain) {
        drop(store, segment);
        return;
    }
    segment->next_dropped = store->dropped;
    store->dropped = segment;
}

void store_settle(struct log_store *store)
{
    while (store->dropped) {
        struct log_segment *segment = store->dropped;

        store->dropped = segment->next_dropped;
        drop(store, segment);
    }
}

void store_committed(struct log_store *store)
{
    struct log_segment *segment;

    while ((segment = commit_next_gone(&store->commit)))
        free_segment(store, segment);
}

void store_fini(struct log_store *store)
{
    commit_stop(&store->commit, ECANCELED);
    store_committed(store);
    store_settle(store);
    while (store->out.first) {
        struct log_segment *segment = store->out.first;

        assert(segment->dropped);
        change(store, segment, SEGMENT_OPEN);
        free_segment(store, segment);
    }
    relay_pool_free(store->pool, store->free_extents,
                    store->free_room * sizeof(*store->free_extents));
    assert(store->memory_now == 0);
    commit_fini(&store->commit);
}

/* --- to disk and back ----------------------------------------------------------------------------
 */

void store_seal(struct log_store *store, struct log_segment *segment)
{
    if (segment->block)
        segment->block->mark.used = segment->used;
    if (segment->block && store->extents_max > 0 && !segment->stays)
        change(store, segment, SEGMENT_FULL);
}

bool store_want(struct log_store *store, struct log_segment *segment)
{
    if (segment->bytes && segment->state != SEGMENT_READING)
        return true;
    if (segment->state == SEGMENT_COLD)
        change(store, segment, SEGMENT_WANTED);
    return false;
}

/* Now, or after the first commit: what a place holds that is free may still count in a journal,
 * until the next one does. */
static bool can_write(const struct log_store *store)
{
    return store->full.first && !store->error &&
           (has_extent(store) || commit_frees(&store->commit));
}

static bool may_write(const struct log_store *store)
{
    return can_write(store) && has_extent(store) &&
           (!commit_is_on_disk(&store->commit) || store->commit.held);
}

static bool next_write(struct log_store *store, struct relay_log_io *io)
{
    struct log_segment *segment = store->full.first;

    if (!may_write(store) || store->memory_now - store->clean_now <= store->write_begin ||
        segment->block->filling > 0)
        return false;
    segment->extent = take_extent(store);
    segment->sum = XXH3_64bits(segment->bytes, segment->used);
    change(store, segment, SEGMENT_WRITING);
    *io = (struct relay_log_io){.write = true, .sync = commit_is_on_disk(&store->commit)};
    return true;
}

static bool next_read(struct log_store *store)
{
    struct log_segment *segment = store->wanted.first;

    if (!segment || !take_block(store, segment))
        return false;
    store->memory_now += segment->size;
    change(store, segment, SEGMENT_READING);
    return true;
}

bool store_next_io(struct log_store *store, struct relay_log_io *io)
{
    const struct log_segment *segment;

    *io = (struct relay_log_io){0};
    if (store->commit.awaited)
        store_want(store, store->commit.awaited);
    if (store->out_count == STORE_IO_MAX || (!next_read(store) && !next_write(store, io)))
        return false;
    segment = store->out.last;
    io->offset = (uint64_t)segment->extent * RELAY_BLOCK_BYTES;
    io->at = segment->bytes;
    io->size = segment->size;
    io->segment = store->out.last;
    return true;
}

/* It can be found on disk by who comes after us. */
static void enter_extent(struct log_store *store, struct log_segment *segment)
{
    struct ledger_extent *extent;

    if (!store->ledger || !segment->chain)
        return;
    if (!segment->dropped)
        commit_segment(&store->commit, segment, 0);
    extent = &store->ledger->memory->extents[segment->extent];
    extent->number = segment->number;
    extent->used = segment->used;
    extent->sum = segment->sum;
    atomic_signal_fence(memory_order_seq_cst);
    extent->chain = segment->chain;
}

/* What could not be written stays in memory. */
static void written(struct log_store *store, struct log_segment *segment, int error)
{
    change(store, segment, error ? SEGMENT_FULL : SEGMENT_CLEAN);
    if (!error) {
        enter_extent(store, segment);
        return;
    }
    store->error = error;
    give_extent(store, segment->extent);
    segment->extent = STORE_NO_EXTENT;
}

/* A disk may also give other bytes than it was given. */
static void arrived(struct log_store *store, struct log_segment *segment, int error)
{
    bool good = !error && XXH3_64bits(segment->bytes, segment->used) == segment->sum;

    change(store, segment, good ? SEGMENT_CLEAN : SEGMENT_LOST);
    if (!good)
        let_go(store, segment);
    else if (segment->chain)
        segment->block->mark = (struct relay_mark){
            .chain = segment->chain, .number = segment->number, .used = segment->used};
}

void store_io_done(struct log_store *store, const struct relay_log_done *done)
{
    struct log_segment *segment = done->segment;

    if (segment->state == SEGMENT_WRITING) {
        written(store, segment, done->error);
    } else {
        store->arrived = true;
        segment->round = store->round;
        arrived(store, segment, done->error);
    }
    if (segment->dropped)
        drop(store, segment);
}

void store_end_round(struct log_store *store)
{
    store->arrived = false;
    store->round++;
}

void store_trim(struct log_store *store)
{
    while (store->memory_now > store->memory_max && evict(store))
        ;
}

bool store_is_crowded(const struct log_store *store)
{
    return store->extents_max > 0 && !store->error && store->memory_now > store->memory_max;
}

/* Nothing that is written makes room, with `slack` bytes more. */
static bool has_no_room(const struct log_store *store, uint64_t slack)
{
    return store->memory_now - store->clean_now > store->memory_max + slack &&
           store->writing == 0 && !can_write(store);
}

bool store_is_full(const struct log_store *store)
{
    return has_no_room(store, 0);
}

bool store_spent(const struct log_store *store)
{
    return has_no_room(store, store->extents_max ? store->memory_max / STORE_SLACK_SHARE : 0);
}

bool store_is_exceeded(const struct log_store *store)
{
    return has_no_room(store, store->memory_max / STORE_EXCESS_SHARE + STORE_EXCESS_MIN);
}

/* --- what was left -------------------------------------------------------------------------------
 */

struct log_segment *store_return(struct log_store *store, struct relay_pool *pool,
                                 struct ledger_piece *piece, bool stays)
{
    struct log_segment *segment = relay_pool_alloc(pool, sizeof(*segment));

    if (!segment)
        return NULL;
    *segment = (struct log_segment){.pool = pool,
                                    .chain = piece->chain,
                                    .number = piece->number,
                                    .size = piece->used > STORE_SEGMENT_BYTES ? piece->used
                                                                              : STORE_SEGMENT_BYTES,
                                    .used = piece->used,
                                    .extent = STORE_NO_EXTENT,
                                    .stays = stays};
    if (piece->extent != LEDGER_EXTENTS) {
        segment->extent = piece->extent;
        segment->sum = piece->sum;
    }
    if (piece->block) {
        relay_block_adopt(pool, piece->block);
        segment->block = piece->block;
        segment->bytes = piece->block->bytes;
        store->memory_now += stays ? 0 : segment->size;
    }
    if (segment->extent != STORE_NO_EXTENT)
        change(store, segment, segment->bytes ? SEGMENT_CLEAN : SEGMENT_COLD);
    commit_segment(&store->commit, segment, segment->used);
    piece->taken = true;
    return segment;
}

void store_return_begin(struct log_store *store)
{
    store->extents = store->extents_left = store->ledger->memory->header.extents_used;
}

void store_returned(struct log_store *store)
{
    uint32_t left = store->extents_left;

    store->extents_left = 0;
    for (uint32_t i = 0; i < left; i++)
        if (store->ledger->memory->extents[i].chain == 0)
            give_extent(store, i);
}
