/* Changes the header of an image in the store of a checkpoint server, whose checksums are right
 * again afterwards:
 *
 *   tamper INDEX version|features|rank|number
 *
 * of a later version of Causeway, of a processor that can more, of the next rank, with the next
 * number. */
#include "ckptsrv/index.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(INDEX_BYTES_MAX);

    if (!file || !bytes) {
        perror(path);
        exit(1);
    }
    *size = fread(bytes, 1, INDEX_BYTES_MAX, file);
    fclose(file);
    return bytes;
}

static void change(uint8_t *body, const char *what)
{
    struct cw_image_header header;

    memcpy(&header, body, sizeof(header));
    if (strcmp(what, "version") == 0)
        header.version++;
    else if (strcmp(what, "features") == 0)
        memset(header.features, 0xff, sizeof(header.features));
    else if (strcmp(what, "rank") == 0)
        header.rank = (header.rank + 1) % header.ranks;
    else
        header.number++;
    memcpy(body, &header, sizeof(header));
}

static void copy_entry(struct index_maker *maker, const struct index_entry *entry, const char *what,
                       XXH3_state_t *hash)
{
    uint32_t type = entry->record.type;
    size_t size = index_is_block(type) ? sizeof(struct cw_image_block) : entry->record.length;
    uint8_t *body = malloc(size);

    memcpy(body, entry->body, size);
    if (type == CW_IMAGE_HEADER)
        change(body, what);
    if (type == CW_IMAGE_END) {
        XXH128_hash_t sum = XXH3_128bits_digest(hash);
        struct cw_image_hash own = {sum.low64, sum.high64};

        memcpy(body + offsetof(struct cw_image_end, hash), &own, sizeof(own));
    }
    XXH3_128bits_update(hash, body, size);
    index_add(maker, &entry->record, body, entry->place);
    free(body);
}

int main(int argc, char **argv)
{
    struct index_maker maker = {0};
    struct index_header header;
    struct index_reader reader;
    struct index_entry entry;
    XXH3_state_t hash;
    uint8_t *bytes;
    size_t size;
    FILE *file;

    if (argc != 3)
        return 2;
    bytes = read_file(argv[1], &size);
    memcpy(&header, bytes, sizeof(header));
    reader = index_reader(bytes, size);
    XXH3_128bits_reset(&hash);
    while (index_next(&reader, &entry))
        copy_entry(&maker, &entry, argv[2], &hash);
    index_finish(&maker, header.stored);
    file = fopen(argv[1], "r+b");
    if (!file || fwrite(maker.bytes, 1, maker.used, file) != maker.used || fclose(file) != 0) {
        perror(argv[1]);
        return 1;
    }
    return 0;
}
