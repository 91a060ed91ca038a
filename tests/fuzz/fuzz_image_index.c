/* The reader of an image's index. The checksums of the input are made right, so that what lies
 * behind them is reached. */
#include "ckptsrv/index.h"
#include "tests/fuzz/fuzz.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static void make_right(uint8_t *bytes, size_t size)
{
    struct index_header header;
    XXH128_hash_t hash;

    memcpy(&header, bytes, sizeof(header));
    header.magic = INDEX_MAGIC;
    header.version = INDEX_VERSION;
    header.size = sizeof(header);
    header.body = size - sizeof(header);
    hash = XXH3_128bits(bytes + sizeof(header), header.body);
    header.body_hash = (struct cw_image_hash){hash.low64, hash.high64};
    header.hash = XXH3_64bits(&header, offsetof(struct index_header, hash));
    memcpy(bytes, &header, sizeof(header));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct index_summary summary;
    struct index_reader reader;
    struct index_entry entry;
    uint8_t *bytes;

    index_check(data, size, &summary);
    if (size < sizeof(struct index_header))
        return 0;
    bytes = malloc(size);
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    make_right(bytes, size);
    index_check(bytes, size, &summary);
    reader = index_reader(bytes, size);
    while (index_next(&reader, &entry))
        if (index_has_place(entry.record.type) && entry.bytes > CW_IMAGE_BLOCK)
            abort();
    free(bytes);
    return 0;
}
