#include "ckptsrv/intake.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>

struct intake {
    struct intake_config config;
    struct index_order order;
    struct index_maker index;
    struct index_reader base;
    struct index_entry base_entry; /* the block at hand of the base */
    bool base_ended;
    uint8_t plain[CW_IMAGE_BLOCK]; /* a block that was compressed */
};

_Static_assert(sizeof(struct cw_image_record) + sizeof(struct cw_image_header) <=
                       INTAKE_RECORD_MAX &&
                   sizeof(struct cw_image_record) + sizeof(struct cw_image_block) +
                           CW_IMAGE_BLOCK <=
                       INTAKE_RECORD_MAX,
               "any record fits");

static int wrong_stream(struct cw_err *err, const char *what)
{
    return cw_err_set(err, CW_EPROTO, "the image is damaged or wrong: %s", what);
}

static bool next_base(struct intake *intake)
{
    do
        intake->base_ended = !index_next(&intake->base, &intake->base_entry);
    while (!intake->base_ended && !index_is_block(intake->base_entry.record.type));
    return !intake->base_ended;
}

struct intake *intake_new(const struct intake_config *config)
{
    struct intake *intake = calloc(1, sizeof(*intake));

    if (!intake)
        return NULL;
    intake->config = *config;
    intake->base_ended = config->base == NULL;
    if (config->base) {
        intake->base = index_reader(config->base, config->base_size);
        next_base(intake);
    }
    return intake;
}

void intake_free(struct intake *intake)
{
    if (!intake)
        return;
    index_clear(&intake->index);
    free(intake);
}

/* --- one record ----------------------------------------------------------------------------------
 */

static int add(struct intake *intake, const struct cw_image_record *record, const void *body,
               uint64_t place, struct cw_err *err)
{
    if (index_add(&intake->index, record, body, place))
        return CW_OK;
    return cw_err_set(err, CW_ELIMIT,
                      "no memory for the index of an image, which has %zu bytes, and may have %llu",
                      intake->index.used, (unsigned long long)INDEX_BYTES_MAX);
}

/* What PUT and HELLO have said, and the header says. */
static int compare_header(const struct intake_config *config, const uint8_t *body,
                          struct cw_err *err)
{
    const struct cw_point *point = &config->put.point;
    struct cw_image_header bytes;
    const struct cw_image_header *header = &bytes;

    memcpy(&bytes, body, sizeof(bytes));
    if (memcmp(header->job, config->job, CW_ID_SIZE) != 0)
        return cw_err_set(err, CW_EPROTO, "the image is of another job than this connection");
    if (header->rank != config->rank || header->incarnation != config->incarnation)
        return cw_err_set(err, CW_EPROTO,
                          "the image is of rank %u, incarnation %u; this connection is of rank %u, "
                          "incarnation %u",
                          header->rank, header->incarnation, config->rank, config->incarnation);
    if (header->number != config->put.number)
        return cw_err_set(err, CW_EPROTO, "the image has the number %u, and PUT said %u",
                          header->number, config->put.number);
    if (header->event != point->event || header->clock != point->clock ||
        header->acts != point->acts)
        return cw_err_set(err, CW_EPROTO, "the image is of another point than PUT said");
    return CW_OK;
}

enum intake_verdict intake_verify(uint32_t type, const struct cw_image_block *block,
                                  const uint8_t *bytes, size_t size, uint8_t plain[CW_IMAGE_BLOCK])
{
    XXH128_hash_t hash;

    if (type == CW_IMAGE_BLOCK_LZ4) {
        int n = LZ4_decompress_safe((const char *)bytes, (char *)plain, (int)size, CW_IMAGE_BLOCK);

        if (n < 0 || (uint64_t)n != block->size)
            return INTAKE_NOT_PACKED;
        bytes = plain;
    }
    hash = XXH3_128bits(bytes, block->size);
    return hash.low64 == block->hash.low && hash.high64 == block->hash.high ? INTAKE_WHOLE
                                                                            : INTAKE_DIFFERS;
}

/* Puts what the base has of this block in its place. */
static int take_same(struct intake *intake, const uint8_t *body, const struct cw_image_block *block,
                     struct cw_err *err)
{
    const struct index_entry *base = &intake->base_entry;

    while (!intake->base_ended && base->block.address < block->address)
        next_base(intake);
    if (intake->base_ended || base->block.address != block->address ||
        base->block.size != block->size || base->block.hash.low != block->hash.low ||
        base->block.hash.high != block->hash.high || !index_has_place(base->record.type))
        return wrong_stream(err, "a block that is not the same in the image that it refers to");
    if (intake->config.share(intake->config.ctx, base->place, base->bytes, err) < 0)
        return err->code;
    return add(intake, &base->record, body, base->place, err);
}

static int take_block(struct intake *intake, const struct cw_image_record *record,
                      const uint8_t *body, struct cw_err *err)
{
    const uint8_t *bytes = body + sizeof(struct cw_image_block);
    size_t size = record->length - sizeof(struct cw_image_block);
    struct cw_image_block block;
    enum intake_verdict verdict;
    uint64_t place = 0;

    memcpy(&block, body, sizeof(block));
    if (record->type == CW_IMAGE_BLOCK_SAME)
        return take_same(intake, body, &block, err);
    if (!index_has_place(record->type))
        return add(intake, record, body, 0, err);
    verdict = intake_verify(record->type, &block, bytes, size, intake->plain);
    if (verdict)
        return wrong_stream(err, verdict == INTAKE_DIFFERS ? "a block whose checksum differs"
                                                           : "a block that cannot be decompressed");
    if (intake->config.write(intake->config.ctx, bytes, size, &place, err) < 0)
        return err->code;
    return add(intake, record, body, place, err);
}

static int take_record(struct intake *intake, const struct cw_image_record *record,
                       const uint8_t *body, struct cw_err *err)
{
    const char *wrong = index_order_take(&intake->order, record, body);

    if (wrong)
        return wrong_stream(err, wrong);
    if (record->type == CW_IMAGE_HEADER && compare_header(&intake->config, body, err) < 0)
        return err->code;
    if (index_is_block(record->type))
        return take_block(intake, record, body, err);
    return add(intake, record, body, 0, err);
}

/* --- records -------------------------------------------------------------------------------------
 */

/* A header of another version may have another length. */
static int check_first(const struct intake *intake, const uint8_t *body, size_t size,
                       struct cw_err *err)
{
    struct cw_reader r = cw_reader(body, size);
    uint64_t magic = cw_get_u64(&r);
    uint32_t version = cw_get_u32(&r);

    if (intake->order.begun || r.bad || magic != CW_IMAGE_MAGIC || version == CW_IMAGE_VERSION)
        return CW_OK;
    return cw_err_set(err, CW_EPROTO,
                      "the image is of version %u, this checkpoint server keeps version %u; use "
                      "the same version of Causeway everywhere",
                      version, CW_IMAGE_VERSION);
}

int intake_take(struct intake *intake, const uint8_t *bytes, size_t size, size_t *taken,
                struct cw_err *err)
{
    struct cw_image_record record;
    const char *wrong;

    *taken = 0;
    while (!intake->order.order.ended && size - *taken >= sizeof(record)) {
        const uint8_t *body = bytes + *taken + sizeof(record);
        size_t left = size - *taken - sizeof(record);

        memcpy(&record, bytes + *taken, sizeof(record));
        if (check_first(intake, body, left, err) < 0)
            return err->code;
        wrong = cw_image_check_record(&record);
        if (wrong)
            return wrong_stream(err, wrong);
        if (left < record.length)
            return CW_OK;
        if (take_record(intake, &record, body, err) < 0)
            return err->code;
        *taken += sizeof(record) + record.length;
    }
    return CW_OK;
}

bool intake_ended(const struct intake *intake)
{
    return intake->order.order.ended;
}

struct index_maker *intake_index(struct intake *intake, uint64_t stored, uint64_t *bytes)
{
    index_finish(&intake->index, stored);
    *bytes = intake->order.order.bytes;
    return &intake->index;
}
