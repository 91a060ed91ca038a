/* Any bytes are records of an image, a line of /proc/self/maps, or a vdso, or are refused. The
 * first byte says which; nothing beyond the bytes is touched. */
#include "common/image.h"
#include "rdevice/image/maps_line.h"
#include "rdevice/restorer/vdso.h"

#include <stdlib.h>
#include <string.h>

#define VDSO_BYTES 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* What is taken lies in a region, and the regions and blocks follow each other. */
static const char *take_record(struct cw_image_order *order, const struct cw_image_record *record,
                               const uint8_t *body)
{
    struct cw_image_order before = *order;
    struct cw_image_header header;
    struct cw_image_region region;
    struct cw_image_block block;
    struct cw_image_end end;
    const char *fault;

    switch (record->type) {
    case CW_IMAGE_HEADER:
        memcpy(&header, body, sizeof(header));
        return cw_image_check_header(&header);
    case CW_IMAGE_REGION:
        memcpy(&region, body, sizeof(region));
        fault = cw_image_check_region(order, &region);
        if (!fault)
            must(region.start >= before.region_end && region.end > region.start &&
                 region.end <= CW_IMAGE_USER_END);
        return fault;
    case CW_IMAGE_END:
        memcpy(&end, body, sizeof(end));
        return cw_image_check_end(order, &end, &end.hash);
    default:
        memcpy(&block, body, sizeof(block));
        fault = cw_image_check_block(order, record->type, record->length, &block);
        if (!fault)
            must(block.address >= before.last_end && block.size <= CW_IMAGE_BLOCK &&
                 block.address + block.size <= order->region_end);
        return fault;
    }
}

static void take_stream(const uint8_t *data, size_t size)
{
    struct cw_image_order order = {0};
    struct cw_image_record record;

    for (size_t at = 0; size - at >= sizeof(record);) {
        memcpy(&record, data + at, sizeof(record));
        at += sizeof(record);
        if (cw_image_check_record(&record) || record.length > size - at ||
            take_record(&order, &record, data + at))
            return;
        at += record.length;
    }
}

static void take_line(const uint8_t *data, size_t size)
{
    struct maps_region region = {0};
    enum maps_line kind = maps_parse((const char *)data, size, &region);

    if (kind == MAPS_REGION)
        must(region.start < region.end && strlen(region.path) < sizeof(region.path));
}

/* The old one, the new one, or both are what came. */
static void take_vdso(const uint8_t *data, size_t size)
{
    static uint8_t old[VDSO_BYTES] __attribute__((aligned(4096)));
    uint8_t *new = aligned_alloc(64, VDSO_BYTES);
    size_t length = size < VDSO_BYTES ? size : VDSO_BYTES;

    must(new != NULL);
    memset(old, 0, sizeof(old));
    memset(new, 0, VDSO_BYTES);
    memcpy(old, data, length);
    memcpy(new, data, length);
    vdso_redirect(old, sizeof(old), new, VDSO_BYTES);
    free(new);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] % 3 == 0)
        take_stream(data + 1, size - 1);
    else if (data[0] % 3 == 1)
        take_line(data + 1, size - 1);
    else
        take_vdso(data + 1, size - 1);
    return 0;
}
