#include "common/image.h"

#include <string.h>

/* Of records of each type: the length, or the least and most. */
struct record_shape {
    uint32_t least, most;
};

static const struct record_shape shapes[] = {
    [CW_IMAGE_HEADER] = {sizeof(struct cw_image_header), sizeof(struct cw_image_header)},
    [CW_IMAGE_REGION] = {sizeof(struct cw_image_region), sizeof(struct cw_image_region)},
    [CW_IMAGE_BLOCK_ZERO] = {sizeof(struct cw_image_block), sizeof(struct cw_image_block)},
    [CW_IMAGE_BLOCK_SAME] = {sizeof(struct cw_image_block), sizeof(struct cw_image_block)},
    [CW_IMAGE_BLOCK_DATA] = {sizeof(struct cw_image_block) + CW_IMAGE_PAGE,
                             sizeof(struct cw_image_block) + CW_IMAGE_BLOCK},
    [CW_IMAGE_BLOCK_LZ4] = {sizeof(struct cw_image_block) + 1,
                            sizeof(struct cw_image_block) + CW_IMAGE_BLOCK - 1},
    [CW_IMAGE_END] = {sizeof(struct cw_image_end), sizeof(struct cw_image_end)},
};

static bool is_terminated(const char *text, size_t size)
{
    while (size > 0)
        if (text[--size] == '\0')
            return true;
    return false;
}

static bool is_paged(uint64_t value)
{
    return value % CW_IMAGE_PAGE == 0;
}

const char *cw_image_check_record(const struct cw_image_record *record)
{
    const struct record_shape *shape = &shapes[0];

    if (record->type >= CW_IMAGE_HEADER && record->type <= CW_IMAGE_END)
        shape = &shapes[record->type];
    if (shape->most == 0)
        return "a record of a type that does not exist";
    if (record->length < shape->least || record->length > shape->most)
        return "a record whose length cannot be";
    return NULL;
}

static const char *check_systems(const struct cw_image_header *header)
{
    for (uint32_t i = 0; i < header->systems; i++) {
        const struct cw_image_system *s = &header->system[i];

        if (!is_paged(s->start) || !is_paged(s->end) || s->start >= s->end ||
            s->end > CW_IMAGE_USER_END || !is_terminated(s->name, sizeof(s->name)))
            return "a header whose mappings of the kernel make no sense";
    }
    return NULL;
}

const char *cw_image_check_header(const struct cw_image_header *header)
{
    if (header->magic != CW_IMAGE_MAGIC)
        return "not an image";
    if (header->version != CW_IMAGE_VERSION)
        return "an image of another version of Causeway";
    if (header->size != sizeof(*header) || header->number == 0 || header->rank >= header->ranks ||
        header->systems > CW_IMAGE_SYSTEM_MAX || header->vdso_size > CW_IMAGE_VDSO_MAX ||
        header->auxv_size > sizeof(header->auxv) ||
        !is_terminated(header->program, sizeof(header->program)) ||
        !is_terminated(header->comm, sizeof(header->comm)))
        return "a header that makes no sense";
    return check_systems(header);
}

const char *cw_image_check_region(struct cw_image_order *order,
                                  const struct cw_image_region *region)
{
    if (order->ended)
        return "a region after the end";
    if (++order->regions > CW_IMAGE_REGIONS_MAX)
        return "too many regions";
    if (!is_paged(region->start) || !is_paged(region->end) || region->start >= region->end ||
        region->end > CW_IMAGE_USER_END || region->start < order->region_end ||
        region->kind < CW_IMAGE_ANONYMOUS || region->kind > CW_IMAGE_SHARED ||
        region->prot > CW_IMAGE_PROT_ALL || !is_paged(region->file_offset) ||
        !is_terminated(region->path, sizeof(region->path)))
        return "a region that makes no sense";
    order->region_start = order->last_end = region->start;
    order->region_end = region->end;
    order->region_kind = region->kind;
    return NULL;
}

const char *cw_image_check_block(struct cw_image_order *order, uint32_t type, uint64_t length,
                                 const struct cw_image_block *block)
{
    uint64_t payload = length - sizeof(*block);
    uint64_t end = block->address + block->size;

    if (order->ended || order->regions == 0)
        return "a block outside of all regions";
    if (!is_paged(block->address) || !is_paged(block->size) || block->size == 0 ||
        block->size > CW_IMAGE_BLOCK || block->address < order->last_end ||
        block->address >= order->region_end || end > order->region_end ||
        block->address / CW_IMAGE_BLOCK != (end - 1) / CW_IMAGE_BLOCK ||
        order->region_kind == CW_IMAGE_FILE_SHARED)
        return "a block that makes no sense";
    if ((type == CW_IMAGE_BLOCK_DATA && payload != block->size) ||
        (type == CW_IMAGE_BLOCK_LZ4 && payload >= block->size))
        return "a block with more or fewer bytes than it says";
    if (type == CW_IMAGE_BLOCK_ZERO && (block->hash.low || block->hash.high))
        return "a block of zeros with a checksum";
    order->last_end = end;
    order->blocks++;
    if (type != CW_IMAGE_BLOCK_ZERO)
        order->bytes += block->size;
    return NULL;
}

const char *cw_image_check_end(struct cw_image_order *order, const struct cw_image_end *end,
                               const struct cw_image_hash *hash)
{
    if (order->ended)
        return "a second end";
    order->ended = true;
    if (end->regions != order->regions || end->blocks != order->blocks ||
        end->bytes != order->bytes)
        return "an end that counts other records than there were";
    if (end->hash.low != hash->low || end->hash.high != hash->high)
        return "a checksum that differs";
    return NULL;
}
