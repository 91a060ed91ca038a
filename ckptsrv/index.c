#include "ckptsrv/index.h"
#include "ckptsrv/units.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE (64u << 10)

/* --- making one ----------------------------------------------------------------------------------
 */

static uint8_t *extend(struct index_maker *maker, size_t more)
{
    size_t size = maker->size ? maker->size : FIRST_SIZE;
    uint8_t *bytes;

    if (maker->used + more > INDEX_BYTES_MAX)
        return NULL;
    while (size < maker->used + more)
        size *= 2;
    if (size != maker->size) {
        bytes = realloc(maker->bytes, size);
        if (!bytes)
            return NULL;
        maker->bytes = bytes;
        maker->size = size;
    }
    bytes = maker->bytes + maker->used;
    maker->used += more;
    return bytes;
}

/* Bytes of the record's body in an index, without its place. */
static size_t body_bytes(const struct cw_image_record *record)
{
    return index_is_block(record->type) ? sizeof(struct cw_image_block) : record->length;
}

bool index_add(struct index_maker *maker, const struct cw_image_record *record, const void *body,
               uint64_t place)
{
    size_t size = body_bytes(record);
    size_t head = maker->used ? 0 : sizeof(struct index_header);
    uint8_t *to = extend(maker, head + sizeof(*record) + size +
                                    (index_has_place(record->type) ? sizeof(place) : 0));

    if (!to)
        return false;
    memset(to, 0, head);
    to += head;
    memcpy(to, record, sizeof(*record));
    memcpy(to + sizeof(*record), body, size);
    if (index_has_place(record->type))
        memcpy(to + sizeof(*record) + size, &place, sizeof(place));
    maker->stream += sizeof(*record) + record->length;
    return true;
}

static struct cw_image_hash hash_of(const void *bytes, size_t size)
{
    XXH128_hash_t hash = XXH3_128bits(bytes, size);

    return (struct cw_image_hash){hash.low64, hash.high64};
}

void index_finish(struct index_maker *maker, uint64_t stored)
{
    struct index_header header = {.magic = INDEX_MAGIC,
                                  .version = INDEX_VERSION,
                                  .size = sizeof(header),
                                  .body = maker->used - sizeof(header),
                                  .stream = maker->stream,
                                  .stored = stored};

    header.body_hash = hash_of(maker->bytes + sizeof(header), header.body);
    header.hash = XXH3_64bits(&header, offsetof(struct index_header, hash));
    memcpy(maker->bytes, &header, sizeof(header));
}

void index_clear(struct index_maker *maker)
{
    free(maker->bytes);
    *maker = (struct index_maker){0};
}

/* --- reading one ---------------------------------------------------------------------------------
 */

struct index_reader index_reader(const uint8_t *bytes, size_t size)
{
    return (struct index_reader){bytes + sizeof(struct index_header),
                                 size - sizeof(struct index_header)};
}

bool index_next(struct index_reader *reader, struct index_entry *entry)
{
    struct cw_reader r = cw_reader(reader->at, reader->left);
    size_t size;

    cw_get_copy(&r, &entry->record, sizeof(entry->record));
    if (r.bad || cw_image_check_record(&entry->record))
        return false;
    size = body_bytes(&entry->record);
    entry->body = cw_get_bytes(&r, size);
    entry->place = entry->bytes = 0;
    if (index_has_place(entry->record.type)) {
        entry->place = cw_get_u64(&r);
        entry->bytes = entry->record.length - sizeof(entry->block);
    }
    if (r.bad)
        return false;
    if (index_is_block(entry->record.type))
        memcpy(&entry->block, entry->body, sizeof(entry->block));
    reader->at = r.at;
    reader->left = r.left;
    return true;
}

static const char *take_end(struct index_order *o, const uint8_t *body)
{
    XXH128_hash_t digest = XXH3_128bits_digest(&o->hash);
    struct cw_image_hash hash = {digest.low64, digest.high64};
    struct cw_image_end end;

    memcpy(&end, body, sizeof(end));
    return cw_image_check_end(&o->order, &end, &hash);
}

static const char *take_header(struct index_order *o, const uint8_t *body)
{
    struct cw_image_header header;

    o->begun = true;
    XXH3_128bits_reset(&o->hash);
    memcpy(&header, body, sizeof(header));
    return cw_image_check_header(&header);
}

const char *index_order_take(struct index_order *o, const struct cw_image_record *record,
                             const uint8_t *body)
{
    struct cw_image_region region;
    struct cw_image_block block;
    const char *wrong;

    if (o->begun != (record->type != CW_IMAGE_HEADER))
        return o->begun ? "a second header" : "it begins without a header";
    if (o->order.ended)
        return "records after the end";
    if (record->type == CW_IMAGE_END)
        return take_end(o, body);
    if (record->type == CW_IMAGE_HEADER) {
        wrong = take_header(o, body);
    } else if (record->type == CW_IMAGE_REGION) {
        memcpy(&region, body, sizeof(region));
        wrong = cw_image_check_region(&o->order, &region);
    } else {
        memcpy(&block, body, sizeof(block));
        wrong = cw_image_check_block(&o->order, record->type, record->length, &block);
    }
    XXH3_128bits_update(&o->hash, body, body_bytes(record));
    return wrong;
}

static void summarize_header(struct index_summary *summary, const uint8_t *body)
{
    struct cw_image_header header;

    memcpy(&header, body, sizeof(header));
    memcpy(summary->job, header.job, CW_ID_SIZE);
    memcpy(summary->program, header.program, sizeof(summary->program));
    summary->ranks = header.ranks;
    summary->taken_ns = header.taken_ns;
    summary->image.rank = header.rank;
    summary->image.incarnation = header.incarnation;
    summary->image.number = header.number;
    summary->image.point = (struct cw_point){header.event, header.clock, header.acts};
}

static uint64_t end_of(const struct index_entry *entry)
{
    return entry->place + (entry->bytes + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
}

static const char *check_entry(struct index_order *order, const struct index_entry *entry,
                               struct index_summary *summary)
{
    uint32_t type = entry->record.type;
    const char *wrong;

    if (type == CW_IMAGE_BLOCK_SAME)
        return "a block that is in another image";
    if (index_has_place(type) &&
        (entry->place % UNIT_BYTES || entry->place > INT64_MAX - CW_IMAGE_BLOCK))
        return "a block at a place that cannot be";
    wrong = index_order_take(order, &entry->record, entry->body);
    if (wrong)
        return wrong;
    if (type == CW_IMAGE_HEADER)
        summarize_header(summary, entry->body);
    if (index_has_place(type) && end_of(entry) > summary->end)
        summary->end = end_of(entry);
    return NULL;
}

static const char *check_file(const uint8_t *bytes, size_t size, struct index_header *header)
{
    struct cw_image_hash hash;

    if (size < sizeof(*header))
        return "it is too short";
    memcpy(header, bytes, sizeof(*header));
    if (header->magic != INDEX_MAGIC)
        return "it is no index of an image";
    if (header->version != INDEX_VERSION)
        return "it is of another version of Causeway";
    if (header->hash != XXH3_64bits(bytes, offsetof(struct index_header, hash)))
        return "the checksum of its beginning differs";
    if (header->size != sizeof(*header) || header->body != size - sizeof(*header))
        return "it is longer or shorter than it says";
    hash = hash_of(bytes + sizeof(*header), header->body);
    if (hash.low != header->body_hash.low || hash.high != header->body_hash.high)
        return "its checksum differs";
    return NULL;
}

bool index_is_foreign(const uint8_t *bytes, size_t size)
{
    struct cw_reader r = cw_reader(bytes, size);
    struct index_header header;
    struct cw_image_record first;

    if (cw_get_u64(&r) == INDEX_MAGIC && cw_get_u32(&r) != INDEX_VERSION && !r.bad)
        return true;
    if (check_file(bytes, size, &header))
        return false;
    r = cw_reader(bytes + sizeof(header), size - sizeof(header));
    cw_get_copy(&r, &first, sizeof(first)); /* of the image's own header */
    return cw_get_u64(&r) == CW_IMAGE_MAGIC && cw_get_u32(&r) != CW_IMAGE_VERSION && !r.bad;
}

const char *index_check(const uint8_t *bytes, size_t size, struct index_summary *summary)
{
    struct index_order check = {0};
    struct index_header header;
    uint64_t stream = 0;
    struct index_reader reader;
    struct index_entry entry;
    const char *wrong = check_file(bytes, size, &header);

    if (wrong)
        return wrong;
    *summary = (struct index_summary){.stream = header.stream, .image.stored = header.stored};
    reader = index_reader(bytes, size);
    while (!wrong && index_next(&reader, &entry)) {
        wrong = check_entry(&check, &entry, summary);
        stream += sizeof(entry.record) + entry.record.length;
    }
    if (wrong)
        return wrong;
    if (!check.order.ended || reader.left > 0)
        return "it ends too early";
    if (stream != header.stream)
        return "its stream is longer or shorter than it says";
    summary->image.bytes = check.order.bytes;
    summary->blocks = check.order.blocks;
    summary->regions = check.order.regions;
    return NULL;
}

const char *index_check_of(const uint8_t *bytes, size_t size, const uint8_t job[CW_ID_SIZE],
                           uint32_t rank, uint32_t number, struct index_summary *summary)
{
    const char *wrong = index_check(bytes, size, summary);

    if (wrong)
        return wrong;
    if (memcmp(summary->job, job, CW_ID_SIZE) != 0 || summary->image.rank != rank ||
        summary->image.number != number)
        return "it is of another image than its name says";
    return NULL;
}
