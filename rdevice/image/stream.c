#include "rdevice/image/stream.h"

#include "common/pack.h"
#include "rdevice/image/seen.h"
#include "rdevice/image/system.h"

#include <errno.h>
#include <lz4.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct stream {
    XXH3_state_t hash; /* over what is not the blocks' bytes */
    int fd, also;      /* also: -1: nowhere */
    uint32_t base, number;
    uint64_t regions, blocks, bytes, sent;
    struct pack pack;
    uint64_t used;
    LZ4_stream_t compressor;
    char packed[CW_IMAGE_BLOCK];
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
    s->also = -1;
    s->base = base;
    s->number = number;
    return s;
}

void stream_also(struct stream *s, int fd)
{
    s->also = fd;
}

static int write_to(const struct stream *s, int fd, struct cw_err *err)
{
    uint64_t done = 0;

    while (done < s->used) {
        long n = system_call(SYS_write, fd, s->buffer + done, s->used - done);

        if (n == -EINTR)
            continue;
        if (n <= 0)
            return cw_err_set(err, CW_ESYS, "the image could not be written: %s",
                              n == -EAGAIN ? "nothing more of it was taken in time; the checkpoint "
                                             "server's disk is slow, or it stands still"
                              : n          ? strerrordesc_np((int)-n)
                                           : "nothing was taken");
        done += (uint64_t)n;
    }
    return 0;
}

static int flush(struct stream *s, struct cw_err *err)
{
    uint64_t start_ns = system_now_ns();

    if (write_to(s, s->fd, err) || (s->also >= 0 && write_to(s, s->also, err)))
        return err->code;
    pack_wrote(&s->pack, s->used, system_now_ns() - start_ns);
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

/* In place, if that is wanted and makes it smaller. Returns how long it is now. */
static uint64_t compress(struct stream *s, char *payload, uint64_t size)
{
    int packed;

    if (!pack_wanted(&s->pack))
        return size;
    packed =
        LZ4_compress_fast_extState(&s->compressor, payload, s->packed, (int)size, (int)size - 1, 1);
    pack_tried(&s->pack, size, packed > 0 ? (uint64_t)packed : size);
    if (packed <= 0)
        return size;
    memcpy(payload, s->packed, (size_t)packed);
    return (uint64_t)packed;
}

/* Its bytes lie where they are to be sent from. Returns how many are sent. */
static uint64_t settle_block(struct stream *s, struct cw_image_record *record,
                             struct cw_image_block *block, char *payload)
{
    XXH128_hash_t hash = XXH3_128bits(payload, block->size);
    uint64_t length = 0;

    block->hash = (struct cw_image_hash){hash.low64, hash.high64};
    record->type = CW_IMAGE_BLOCK_SAME;
    if (!seen_has(s->base, block)) {
        length = compress(s, payload, block->size);
        record->type = length < block->size ? CW_IMAGE_BLOCK_LZ4 : CW_IMAGE_BLOCK_DATA;
    }
    seen_put(s->number, block);
    s->bytes += block->size;
    return length;
}

/* The bytes are copied first, since memory that the copy itself uses changes meanwhile. */
int stream_block(struct stream *s, uint64_t address, uint64_t size, const void *from,
                 struct cw_err *err)
{
    struct cw_image_record record = {CW_IMAGE_BLOCK_ZERO, sizeof(struct cw_image_block)};
    struct cw_image_block block = {.address = address, .size = size};
    uint64_t length = 0;
    char *payload;

    if (reserve(s, sizeof(record) + sizeof(block) + size, err))
        return err->code;
    payload = s->buffer + s->used + sizeof(record) + sizeof(block);
    if (from) {
        memcpy(payload, from, size);
        length = settle_block(s, &record, &block, payload);
    }
    record.length += (uint32_t)length;
    s->blocks++;
    XXH3_128bits_update(&s->hash, &block, sizeof(block));
    put(s, &record, sizeof(record));
    put(s, &block, sizeof(block));
    s->used += length;
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
