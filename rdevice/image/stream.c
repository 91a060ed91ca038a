#include "rdevice/image/stream.h"

#include "rdevice/image/system.h"
#include "rdevice/image/table.h"

#include <errno.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct stream {
    XXH3_state_t hash; /* over what is not the blocks' bytes */
    int fd;
    uint32_t base, number;
    uint64_t regions, blocks, bytes, sent;
    uint64_t used;
    char buffer[STREAM_BUFFER_BYTES];
};

uint64_t stream_size(void)
{
    return sizeof(struct stream);
}

struct stream *stream_begin(void *memory, int fd, uint32_t base, uint32_t number)
{
    struct stream *s = memory;

    XXH3_128bits_reset(&s->hash);
    s->fd = fd;
    s->base = base;
    s->number = number;
    return s;
}

static int flush(struct stream *s, struct cw_err *err)
{
    uint64_t done = 0;

    while (done < s->used) {
        long n = system_call(SYS_write, s->fd, s->buffer + done, s->used - done);

        if (n == -EINTR)
            continue;
        if (n <= 0)
            return cw_err_set(err, CW_ESYS, "the image could not be written: %s",
                              n == -EAGAIN ? "nobody took it in time"
                              : n          ? strerrordesc_np((int)-n)
                                           : "nothing was taken");
        done += (uint64_t)n;
    }
    s->sent += s->used;
    s->used = 0;
    return 0;
}

static int reserve(struct stream *s, uint64_t size, struct cw_err *err)
{
    return s->used + size > sizeof(s->buffer) ? flush(s, err) : 0;
}

static void put(struct stream *s, const void *from, uint64_t size)
{
    memcpy(s->buffer + s->used, from, size);
    s->used += size;
}

/* A record that is no block. */
static int put_record(struct stream *s, uint32_t type, const void *body, uint32_t size,
                      struct cw_err *err)
{
    struct cw_image_record record = {type, size};

    if (reserve(s, sizeof(record) + size, err))
        return err->code;
    put(s, &record, sizeof(record));
    put(s, body, size);
    return 0;
}

int stream_header(struct stream *s, const struct cw_image_header *header, struct cw_err *err)
{
    XXH3_128bits_update(&s->hash, header, sizeof(*header));
    return put_record(s, CW_IMAGE_HEADER, header, sizeof(*header), err);
}

int stream_region(struct stream *s, const struct cw_image_region *region, struct cw_err *err)
{
    s->regions++;
    XXH3_128bits_update(&s->hash, region, sizeof(*region));
    return put_record(s, CW_IMAGE_REGION, region, sizeof(*region), err);
}

/* The bytes are copied first, since memory that the copy itself uses changes meanwhile. */
int stream_block(struct stream *s, uint64_t address, uint64_t size, const void *from,
                 struct cw_err *err)
{
    struct cw_image_record record = {CW_IMAGE_BLOCK_ZERO, sizeof(struct cw_image_block)};
    struct cw_image_block block = {.address = address, .size = size};
    char *payload;

    if (reserve(s, sizeof(record) + sizeof(block) + size, err))
        return err->code;
    payload = s->buffer + s->used + sizeof(record) + sizeof(block);
    if (from) {
        XXH128_hash_t hash;

        memcpy(payload, from, size);
        hash = XXH3_128bits(payload, size);
        block.hash = (struct cw_image_hash){hash.low64, hash.high64};
        record.type = CW_IMAGE_BLOCK_DATA;
        if (table_has(s->base, &block))
            record.type = CW_IMAGE_BLOCK_SAME;
        table_put(s->number, &block);
        s->bytes += size;
    }
    if (record.type == CW_IMAGE_BLOCK_DATA)
        record.length += (uint32_t)size;
    s->blocks++;
    XXH3_128bits_update(&s->hash, &block, sizeof(block));
    put(s, &record, sizeof(record));
    put(s, &block, sizeof(block));
    if (record.type == CW_IMAGE_BLOCK_DATA)
        s->used += size;
    return 0;
}

int stream_end(struct stream *s, struct cw_err *err)
{
    XXH128_hash_t hash = XXH3_128bits_digest(&s->hash);
    struct cw_image_end end = {s->regions, s->blocks, s->bytes, {hash.low64, hash.high64}};

    if (put_record(s, CW_IMAGE_END, &end, sizeof(end), err))
        return err->code;
    return flush(s, err);
}

uint64_t stream_sent(const struct stream *s)
{
    return s->sent;
}

uint64_t stream_bytes(const struct stream *s)
{
    return s->bytes;
}
