#include "relay/core/records.h"

static struct records_segment *segment_in_block(struct relay_pool *pool)
{
    struct relay_block *block = relay_block_new(pool, false);
    struct records_segment *segment;

    if (!block)
        return NULL;
    segment = (struct records_segment *)block->bytes;
    *segment =
        (struct records_segment){.block = block, .size = RELAY_BLOCK_BYTES - sizeof(*segment)};
    return segment;
}

static struct records_segment *segment_new(struct relay_pool *pool, size_t before, size_t size)
{
    struct records_segment *segment;
    size_t room = before ? before * 2 : RECORDS_SEGMENT_MIN;

    if (room < size)
        room = size;
    if (room > RECORDS_SEGMENT_MAX && size <= RELAY_BLOCK_BYTES - sizeof(*segment))
        return segment_in_block(pool);
    segment = relay_pool_alloc(pool, sizeof(*segment) + room);
    if (segment)
        *segment = (struct records_segment){.size = room};
    return segment;
}

void *records_append(struct records *r, struct relay_pool *pool, size_t size, uint64_t *held)
{
    struct records_segment *last = r->last;

    if (!last || last->size - last->used < size) {
        struct records_segment *segment = segment_new(pool, last ? last->size : 0, size);

        if (!segment)
            return NULL;
        *held += sizeof(*segment) + segment->size;
        if (last)
            last->next = segment;
        else
            r->first = segment;
        r->last = last = segment;
    }
    last->used += size;
    return last->bytes + last->used - size;
}

const void *records_peek(const struct records *r, struct records_cursor *cursor, size_t *left)
{
    if (!cursor->segment)
        *cursor = (struct records_cursor){.segment = r->first};
    if (!cursor->segment)
        return NULL;
    if (cursor->at == cursor->segment->used && cursor->segment->next)
        *cursor = (struct records_cursor){.segment = cursor->segment->next};
    *left = cursor->segment->used - cursor->at;
    return *left ? cursor->segment->bytes + cursor->at : NULL;
}

void records_free(struct records *r, struct relay_pool *pool)
{
    while (r->first) {
        struct records_segment *segment = r->first;

        r->first = segment->next;
        if (segment->block)
            relay_block_release(segment->block);
        else
            relay_pool_free(pool, segment, sizeof(*segment) + segment->size);
    }
    r->last = NULL;
}
