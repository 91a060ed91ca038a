#include "relay/log/chain.h"

#include <assert.h>
#include <string.h>

#define TABLE_MIN 4u

_Static_assert(RELAY_BLOCK_BYTES <= 1u << CHAIN_SHIFT, "a position holds a place in a segment");

void chain_init(struct chain *chain, struct log_store *store, struct relay_pool *pool)
{
    *chain = (struct chain){.store = store, .pool = pool};
}

static void drop(struct chain *chain, uint32_t at)
{
    if (chain->segments[at])
        store_drop(chain->store, chain->segments[at]);
    chain->segments[at] = NULL;
}

void chain_free(struct chain *chain)
{
    for (uint32_t i = 0; i < chain->count; i++)
        drop(chain, i);
    relay_pool_free(chain->pool, chain->segments, chain->room * sizeof(*chain->segments));
    if (chain->entry)
        ledger_change(chain->entry);
    *chain = (struct chain){.store = chain->store, .pool = chain->pool, .stays = chain->stays};
}

void chain_keep(struct chain *chain, struct ledger_entry *entry, uint32_t which)
{
    if (!entry->ledger)
        return;
    chain->entry = entry;
    chain->name = ledger_chain(entry, which);
}

struct chain_end chain_end(const struct chain *chain)
{
    return (struct chain_end){.first = chain->first,
                              .count = chain->count,
                              .used = chain->count ? chain->segments[chain->count - 1]->used : 0};
}

void chain_thin(struct chain *chain, uint32_t number, uint64_t pin)
{
    uint32_t gone = 0;

    if (number <= chain->first)
        return;
    assert(number - chain->first <= chain->count);
    for (uint32_t i = 0; i < number - chain->first; i++)
        if (chain->segments[i] && chain->segments[i]->pin < pin)
            drop(chain, i);
    while (gone < number - chain->first && !chain->segments[gone])
        gone++;
    if (gone)
        memmove(chain->segments, chain->segments + gone,
                (chain->count - gone) * sizeof(*chain->segments));
    chain->first += gone;
    chain->count -= gone;
    if (number > chain->solid)
        chain->solid = number;
    if (chain->entry)
        ledger_change(chain->entry);
}

void chain_trim(struct chain *chain, uint32_t number)
{
    chain_thin(chain, number, UINT64_MAX);
}

uint64_t chain_next(const struct chain *chain)
{
    uint32_t end = chain->first + chain->count;

    return chain->count ? chain_position(end - 1, chain->segments[chain->count - 1]->used)
                        : chain_position(end, 0);
}

uint64_t chain_memory(const struct chain *chain)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < chain->count; i++)
        bytes += chain->segments[i] && chain->segments[i]->bytes ? chain->segments[i]->size : 0;
    return bytes;
}

/* --- writing -------------------------------------------------------------------------------------
 */

static struct log_segment *last_of(const struct chain *chain)
{
    return chain->count ? chain->segments[chain->count - 1] : NULL;
}

static bool table_room(struct chain *chain, uint64_t *held)
{
    uint32_t room = chain->room ? chain->room * 2 : TABLE_MIN;
    struct log_segment **segments;

    if (chain->count < chain->room)
        return true;
    segments = relay_pool_alloc(chain->pool, room * sizeof(*segments));
    if (!segments)
        return false;
    if (chain->count)
        memcpy(segments, chain->segments, chain->count * sizeof(*segments));
    relay_pool_free(chain->pool, chain->segments, chain->room * sizeof(*segments));
    *held += (room - chain->room) * sizeof(*segments);
    chain->segments = segments;
    chain->room = room;
    return true;
}

/* One more; the last one is full. NULL without memory. */
static struct log_segment *add(struct chain *chain, uint32_t size, uint64_t *held)
{
    struct log_segment *last = last_of(chain);
    struct log_segment *segment;

    if (!table_room(chain, held))
        return NULL;
    segment = store_new(chain->store, chain->pool, size, chain->stays);
    if (!segment)
        return NULL;
    if (last)
        store_seal(chain->store, last);
    *held += sizeof(*segment) + size;
    if (segment->block)
        store_name(chain->store, segment, chain->name, chain->first + chain->count);
    chain->segments[chain->count++] = segment;
    return segment;
}

/* The last one, where it has `size` bytes of room; NULL: another one is needed. */
static struct log_segment *with_room(const struct chain *chain, uint32_t size)
{
    struct log_segment *last = last_of(chain);

    return last && last->size - last->used >= size ? last : NULL;
}

static uint32_t next_size(const struct chain *chain, uint32_t needed)
{
    uint32_t size = chain->count   ? last_of(chain)->size * 2
                    : chain->entry ? STORE_SEGMENT_BYTES
                                   : CHAIN_SEGMENT_MIN;

    while (size < needed)
        size *= 2;
    if (size <= CHAIN_SEGMENT_SMALL)
        return size;
    return needed > STORE_SEGMENT_BYTES ? needed : STORE_SEGMENT_BYTES;
}

static uint64_t take(struct chain *chain, struct log_segment *segment, uint32_t size)
{
    uint64_t position = (uint64_t)(chain->first + chain->count - 1) << CHAIN_SHIFT | segment->used;

    store_use(chain->store, segment, size);
    if (chain->entry)
        ledger_change(chain->entry);
    return position;
}

uint8_t *chain_append(struct chain *chain, uint32_t size, uint64_t *position, uint64_t *held)
{
    struct log_segment *segment = with_room(chain, size);

    assert(size <= RELAY_BLOCK_BYTES);
    if (!segment)
        segment = add(chain, next_size(chain, size), held);
    if (!segment)
        return NULL;
    *position = take(chain, segment, size);
    return segment->bytes + segment->used - size;
}

struct relay_block *chain_reserve(struct chain *chain, uint32_t *size, uint64_t *position)
{
    struct log_segment *segment = with_room(chain, 1);
    uint64_t held = 0;

    if (!segment)
        segment = add(chain, STORE_SEGMENT_BYTES, &held);
    if (!segment)
        return NULL;
    if (*size > segment->size - segment->used)
        *size = segment->size - segment->used;
    *position = take(chain, segment, *size);
    return segment->block;
}

/* --- reading -------------------------------------------------------------------------------------
 */

/* Asks for so many in a row, where there is memory for them. */
static void want(const struct chain *chain, uint32_t first)
{
    if (chain->store->memory_now > chain->store->memory_max)
        return;
    for (uint32_t i = first; i < chain->count && i - first < CHAIN_AHEAD; i++)
        if (chain->segments[i])
            store_want(chain->store, chain->segments[i]);
}

enum chain_found chain_read(const struct chain *chain, uint64_t *position,
                            struct chain_bytes *bytes)
{
    uint32_t number = chain_number(*position) - chain->first;
    struct log_segment *segment;

    if (chain_number(*position) < chain->first)
        return CHAIN_LOST;
    if (number >= chain->count)
        return CHAIN_END;
    segment = chain->segments[number];
    if (segment && chain_offset(*position) == segment->used) {
        if (++number == chain->count)
            return CHAIN_END;
        *position = (uint64_t)(chain->first + number) << CHAIN_SHIFT;
        segment = chain->segments[number];
    }
    if (!segment)
        return CHAIN_LOST;
    if (chain_offset(*position) == 0)
        want(chain, number + 1);
    if (!store_want(chain->store, segment)) {
        want(chain, number + 1);
        return segment->state == SEGMENT_LOST ? CHAIN_LOST : CHAIN_AWAY;
    }
    *bytes = (struct chain_bytes){.at = segment->bytes + chain_offset(*position),
                                  .size = segment->used - chain_offset(*position),
                                  .block = segment->block};
    return CHAIN_HERE;
}

/* --- what was left -------------------------------------------------------------------------------
 */

static int return_piece(struct chain *chain, struct ledger_piece *piece)
{
    uint64_t held = 0;
    struct log_segment *segment;

    if (!piece || piece->taken || piece->used > RELAY_BLOCK_BYTES)
        return CW_EPROTO;
    segment = table_room(chain, &held)
                  ? store_return(chain->store, chain->pool, piece, chain->stays)
                  : NULL;
    if (!segment)
        return CW_ENOMEM;
    chain->segments[chain->count++] = segment;
    return CW_OK;
}

/* One that had been let go of. */
static int skip(struct chain *chain)
{
    uint64_t held = 0;

    if (!table_room(chain, &held))
        return CW_ENOMEM;
    chain->segments[chain->count++] = NULL;
    return CW_OK;
}

int chain_return(struct chain *chain, struct ledger_entry *entry, uint32_t which,
                 struct chain_end end)
{
    struct ledger *ledger = entry->ledger;

    chain_keep(chain, entry, which);
    chain->first = end.first;
    for (uint32_t i = 0; i < end.count; i++) {
        struct ledger_piece *piece = ledger_left(ledger, chain->name, end.first + i);
        int failed;

        if (piece && i == end.count - 1)
            piece->used = end.used; /* what follows it there was never done */
        failed = piece || end.first + i >= chain->solid ? return_piece(chain, piece) : skip(chain);
        if (failed)
            return failed;
        if (piece && i < end.count - 1 && chain->segments[i]->extent == STORE_NO_EXTENT)
            store_seal(chain->store, chain->segments[i]);
    }
    return CW_OK;
}
