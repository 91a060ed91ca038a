#include "tests/lib/image_maker.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define FIRST_ADDRESS 0x10000000ull
#define REGION_BLOCKS 64u /* the last block of each region is a short one */
#define SHORT_BYTES 12288u

static uint64_t mix(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t key[3] = {a, b, c};

    return XXH3_64bits(key, sizeof(key));
}

/* The number of the image that changed this block last; 0: it is zero. */
static uint32_t version_of(const struct image_plan *plan, uint32_t block, uint32_t number)
{
    if (!plan->plain && mix(plan->seed, block, 0) % 16 == 0)
        return 0;
    while (number > 1 && mix(plan->seed, block, number) % 4 != 0)
        number--;
    return number;
}

static void fill(const struct image_plan *plan, uint32_t block, uint32_t version, uint8_t *to,
                 size_t size)
{
    uint64_t x = mix(plan->seed + plan->rank, block, version) | 1;
    size_t step = plan->plain || block % 3 ? 8 : 64; /* those in between compress well */

    memset(to, (int)version, size);
    for (size_t i = 0; i < size; i += step) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        memcpy(to + i, &x, 8);
    }
}

struct maker {
    const struct image_plan *plan;
    struct image_stream *stream;
    XXH3_state_t *hash;
    struct cw_image_end end;
};

static void append(struct image_stream *s, const void *bytes, size_t size)
{
    if (s->size + size > s->room) {
        s->room = 2 * (s->size + size);
        s->bytes = realloc(s->bytes, s->room);
        if (!s->bytes)
            abort();
    }
    memcpy(s->bytes + s->size, bytes, size);
    s->size += size;
}

static void append_record(struct maker *m, uint32_t type, const void *body, size_t size,
                          size_t more)
{
    struct cw_image_record record = {type, (uint32_t)(size + more)};

    append(m->stream, &record, sizeof(record));
    append(m->stream, body, size);
    if (type != CW_IMAGE_END)
        XXH3_128bits_update(m->hash, body, size);
}

static void append_header(struct maker *m)
{
    const struct image_plan *plan = m->plan;
    struct cw_point point = image_point(plan);
    struct cw_image_header *h = calloc(1, sizeof(*h));

    *h = (struct cw_image_header){.magic = CW_IMAGE_MAGIC,
                                  .version = CW_IMAGE_VERSION,
                                  .size = sizeof(*h),
                                  .rank = plan->rank,
                                  .ranks = plan->rank + 1,
                                  .incarnation = plan->incarnation,
                                  .number = plan->number,
                                  .event = point.event,
                                  .clock = point.clock,
                                  .acts = point.acts,
                                  .taken_ns = 1700000000000000000ull,
                                  .program = "/usr/bin/program",
                                  .comm = "program"};
    memcpy(h->job, plan->job, CW_ID_SIZE);
    append_record(m, CW_IMAGE_HEADER, h, sizeof(*h), 0);
    free(h);
}

static void append_region(struct maker *m, uint32_t block)
{
    uint32_t left = m->plan->blocks - block;
    uint64_t start = FIRST_ADDRESS + (uint64_t)block * CW_IMAGE_BLOCK;
    struct cw_image_region region = {.start = start,
                                     .end = start + (uint64_t)REGION_BLOCKS * CW_IMAGE_BLOCK,
                                     .prot = 3,
                                     .kind = CW_IMAGE_ANONYMOUS};

    if (left < REGION_BLOCKS)
        region.end = start + (uint64_t)left * CW_IMAGE_BLOCK;
    append_record(m, CW_IMAGE_REGION, &region, sizeof(region), 0);
    m->end.regions++;
}

/* Of a block that is not zero. */
static void append_content(struct maker *m, struct cw_image_block *block, uint32_t i, bool same)
{
    const struct image_plan *plan = m->plan;
    uint8_t bytes[CW_IMAGE_BLOCK];
    char packed[CW_IMAGE_BLOCK];
    XXH128_hash_t hash;
    int n;

    fill(plan, i, version_of(plan, i, plan->number), bytes, block->size);
    hash = XXH3_128bits(bytes, block->size);
    block->hash = (struct cw_image_hash){hash.low64, hash.high64};
    m->end.bytes += block->size;
    if (same) {
        append_record(m, CW_IMAGE_BLOCK_SAME, block, sizeof(*block), 0);
        return;
    }
    n = plan->plain ? 0
                    : LZ4_compress_default((const char *)bytes, packed, (int)block->size,
                                           (int)block->size - 1);
    append_record(m, n > 0 ? CW_IMAGE_BLOCK_LZ4 : CW_IMAGE_BLOCK_DATA, block, sizeof(*block),
                  n > 0 ? (size_t)n : block->size);
    append(m->stream, n > 0 ? (const void *)packed : bytes, n > 0 ? (size_t)n : block->size);
}

static void append_block(struct maker *m, uint32_t i)
{
    const struct image_plan *plan = m->plan;
    uint32_t version = version_of(plan, i, plan->number);
    struct cw_image_block block = {
        .address = FIRST_ADDRESS + (uint64_t)i * CW_IMAGE_BLOCK,
        .size = i % REGION_BLOCKS == REGION_BLOCKS - 1 ? SHORT_BYTES : CW_IMAGE_BLOCK,
    };

    m->end.blocks++;
    if (version == 0)
        append_record(m, CW_IMAGE_BLOCK_ZERO, &block, sizeof(block), 0);
    else
        append_content(m, &block, i, plan->base && version_of(plan, i, plan->base) == version);
}

struct cw_point image_point(const struct image_plan *plan)
{
    return (struct cw_point){10ull * plan->number, 100ull * plan->number, 5ull * plan->number};
}

struct cw_put image_put(const struct image_plan *plan)
{
    return (struct cw_put){.number = plan->number,
                           .base = plan->base,
                           .bytes = (uint64_t)plan->blocks * CW_IMAGE_BLOCK,
                           .point = image_point(plan)};
}

void image_make(const struct image_plan *plan, struct image_stream *stream)
{
    struct maker m = {.plan = plan, .stream = stream, .hash = XXH3_createState()};
    XXH128_hash_t hash;

    stream->size = 0;
    XXH3_128bits_reset(m.hash);
    append_header(&m);
    for (uint32_t i = 0; i < plan->blocks; i++) {
        if (i % REGION_BLOCKS == 0)
            append_region(&m, i);
        append_block(&m, i);
    }
    hash = XXH3_128bits_digest(m.hash);
    m.end.hash = (struct cw_image_hash){hash.low64, hash.high64};
    append_record(&m, CW_IMAGE_END, &m.end, sizeof(m.end), 0);
    stream->memory = m.end.bytes;
    XXH3_freeState(m.hash);
}
