#include "rdevice/restorer/input.h"

#include "rdevice/image/system.h"
#include "rdevice/restorer/report.h"

#include <errno.h>
#include <lz4.h>
#include <string.h>

#define XXH_INLINE_ALL
#define XXH_NO_STDLIB
#include <xxhash.h>

#define INPUT_BYTES 1048576u
#define INPUT_DIRECT_BYTES 16384u /* at least so many are read to where they belong */

static int input = -1;
static uint64_t taken; /* bytes of the stream so far */
static char buffer[INPUT_BYTES];
static uint64_t buffer_at, buffer_end;
static char packed[CW_IMAGE_BLOCK];
static struct cw_image_header header;
static struct cw_image_order order;
static XXH3_state_t hash;

void input_open(int fd)
{
    input = fd;
    XXH3_128bits_reset(&hash);
}

static void __attribute__((noreturn)) wrong(const char *what)
{
    report_end("the image is damaged: %s, before byte %d of the stream; an older one is to be "
               "taken",
               what, (int64_t)taken);
}

static uint64_t read_some(void *to, uint64_t size)
{
    long n;

    do
        n = system_call(SYS_read, input, to, size);
    while (n == -EINTR);
    if (n < 0)
        report_break("the stream of the image broke off after byte %d: %e", (int64_t)taken, n);
    if (n == 0)
        report_break("the stream of the image ends too early, after byte %d", (int64_t)taken);
    return (uint64_t)n;
}

static void take(void *to, uint64_t size)
{
    char *at = to;

    for (uint64_t n; size > 0; at += n, size -= n, taken += n) {
        if (buffer_at == buffer_end && size >= INPUT_DIRECT_BYTES) {
            n = read_some(at, size);
            continue;
        }
        if (buffer_at == buffer_end) {
            buffer_end = read_some(buffer, sizeof(buffer));
            buffer_at = 0;
        }
        n = buffer_end - buffer_at < size ? buffer_end - buffer_at : size;
        memcpy(at, buffer + buffer_at, n);
        buffer_at += n;
    }
}

static struct cw_image_record take_record(void)
{
    struct cw_image_record record;
    const char *fault;

    take(&record, sizeof(record));
    fault = cw_image_check_record(&record);
    if (fault)
        wrong(fault);
    return record;
}

/* What comes first tells whether it is an image at all, and of which version. */
const struct cw_image_header *input_header(void)
{
    struct cw_image_record record;
    const char *fault;

    take(&record, sizeof(record));
    take(&header, 16);
    if (record.type != CW_IMAGE_HEADER || header.magic != CW_IMAGE_MAGIC)
        report_end("what came is not an image");
    if (header.version != CW_IMAGE_VERSION)
        report_end("the image is of version %d of the format, this causeway-restore knows version "
                   "%d; both must come from one version of Causeway",
                   (int64_t)header.version, (int64_t)CW_IMAGE_VERSION);
    fault = cw_image_check_record(&record);
    if (fault)
        wrong(fault);
    take((char *)&header + 16, sizeof(header) - 16);
    fault = cw_image_check_header(&header);
    if (fault)
        wrong(fault);
    XXH3_128bits_update(&hash, &header, sizeof(header));
    return &header;
}

static const char *check_end(const struct cw_image_end *end)
{
    XXH128_hash_t sum = XXH3_128bits_digest(&hash);
    struct cw_image_hash own = {sum.low64, sum.high64};

    return cw_image_check_end(&order, end, &own);
}

static const char *take_block(struct input_record *record)
{
    take(&record->block, sizeof(record->block));
    XXH3_128bits_update(&hash, &record->block, sizeof(record->block));
    if (record->type == CW_IMAGE_BLOCK_SAME)
        return "a block that refers to another image";
    return cw_image_check_block(&order, record->type, record->length, &record->block);
}

void input_next(struct input_record *record)
{
    struct cw_image_record head = take_record();
    const char *fault = NULL;

    record->type = head.type;
    record->length = head.length;
    switch (head.type) {
    case CW_IMAGE_HEADER:
        fault = "a second header";
        break;
    case CW_IMAGE_REGION:
        take(&record->region, sizeof(record->region));
        XXH3_128bits_update(&hash, &record->region, sizeof(record->region));
        fault = cw_image_check_region(&order, &record->region);
        break;
    case CW_IMAGE_END:
        take(&record->end, sizeof(record->end));
        fault = check_end(&record->end);
        break;
    default:
        fault = take_block(record);
    }
    if (fault)
        wrong(fault);
}

void input_payload(const struct input_record *record, void *to)
{
    uint64_t size = record->block.size;
    uint64_t length = record->length - sizeof(record->block);
    XXH128_hash_t sum;

    if (record->type == CW_IMAGE_BLOCK_LZ4) {
        take(packed, length);
        if (LZ4_decompress_safe(packed, to, (int)length, (int)size) != (int)size)
            wrong("a block that cannot be decompressed");
    } else {
        take(to, size);
    }
    sum = XXH3_128bits(to, size);
    if (sum.low64 != record->block.hash.low || sum.high64 != record->block.hash.high)
        wrong("a block whose checksum differs");
}
