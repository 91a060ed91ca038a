/* The stream of an image as the restorer reads it: records, blocks after LZ4, and regions that are
 * mapped and filled. What it maps lies in a window of this process; a file is one of FILE_BYTES.
 *
 * The first byte chooses: a stream as it is; a right one of an image that is made up, with changes
 * (4 bytes where, 1 byte what); or one whose records come from the input, with right hashes. */
#include "rdevice/image/system.h"

#include "rdevice/restorer/report.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/image_maker.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW_START 0x10000000ull
#define WINDOW_END 0x30000000ull
#define FILE_BYTES 6000u
#define STREAM_MAX (4u << 20)

/* --- the system, as the restorer sees it ---------------------------------------------------------
 */

static int file_fd = -1;

static int fuzz_open(const char *path, int flags, unsigned mode)
{
    (void)flags;
    (void)mode;
    return strcmp(path, "/file") == 0 ? dup(file_fd) : -ENOENT;
}

/* Nothing but the window: else it could be memory of the fuzzer. */
static void *fuzz_map(uint64_t at, uint64_t size, int prot, int flags, int fd, uint64_t offset)
{
    if (at < WINDOW_START || size > WINDOW_END - WINDOW_START || at + size > WINDOW_END)
        return (void *)-(intptr_t)ENOMEM;
    return system_map(at, size, prot & ~PROT_EXEC, flags & ~MAP_GROWSDOWN, fd, offset);
}

#define system_open fuzz_open
#define system_map fuzz_map
#include "rdevice/restorer/input.c"

#include "rdevice/restorer/regions.c"
#undef system_open
#undef system_map

static jmp_buf ended;

/* What a report would print is read. */
static void read_arguments(const char *what, va_list args)
{
    for (; *what; what++) {
        if (*what != '%')
            continue;
        what++;
        if (*what == 's')
            must(strlen(va_arg(args, const char *)) < CW_IMAGE_PATH_MAX);
        else
            (void)va_arg(args, uint64_t);
    }
}

void report_end(const char *what, ...)
{
    va_list args;

    va_start(args, what);
    read_arguments(what, args);
    va_end(args);
    longjmp(ended, 1);
}

void report_break(const char *what, ...)
{
    va_list args;

    va_start(args, what);
    read_arguments(what, args);
    va_end(args);
    longjmp(ended, 1);
}

/* --- streams -------------------------------------------------------------------------------------
 */

static uint8_t stream[STREAM_MAX];
static size_t stream_size;
static XXH3_state_t made;
static struct cw_image_end made_end;

static void append(const void *bytes, size_t size)
{
    if (size == 0 || size > STREAM_MAX - stream_size)
        return;
    memcpy(stream + stream_size, bytes, size);
    stream_size += size;
}

static void append_record(uint32_t type, const void *body, size_t size, const void *more,
                          size_t more_size)
{
    struct cw_image_record record = {type, (uint32_t)(size + more_size)};

    append(&record, sizeof(record));
    append(body, size);
    append(more, more_size);
    if (type != CW_IMAGE_END)
        XXH3_128bits_update(&made, body, size);
}

struct script {
    const uint8_t *at;
    size_t left;
};

static uint32_t draw(struct script *s, uint32_t below)
{
    uint32_t value = 0;

    for (int i = 0; i < 2 && s->left > 0; i++, s->at++, s->left--)
        value = value << 8 | *s->at;
    return value % below;
}

static uint64_t page(struct script *s, uint32_t below)
{
    return (uint64_t)draw(s, below) * CW_IMAGE_PAGE;
}

static struct cw_image_hash hash_of(const void *bytes, size_t size)
{
    XXH128_hash_t sum = XXH3_128bits(bytes, size);

    return (struct cw_image_hash){sum.low64, sum.high64};
}

static uint64_t region_start; /* of the last one: blocks are looked for there */

static void make_region(struct script *s)
{
    struct cw_image_region region = {.kind = draw(s, 5),
                                     .prot = draw(s, 8),
                                     .flags = draw(s, 16),
                                     .file_size = draw(s, 4) ? FILE_BYTES : draw(s, 20000),
                                     .file_offset = page(s, 4)};
    static const uint8_t zeros[CW_IMAGE_PAGE];

    region.start = region_start = region_start + page(s, 64);
    region.end = region.start + page(s, 40);
    region.file_start = hash_of(zeros, sizeof(zeros));
    if (region.kind == CW_IMAGE_FILE_PRIVATE || region.kind == CW_IMAGE_FILE_SHARED ||
        draw(s, 8) == 0)
        strcpy(region.path, draw(s, 8) ? "/file" : "/none");
    append_record(CW_IMAGE_REGION, &region, sizeof(region), NULL, 0);
    made_end.regions++;
}

/* Its bytes are those of the script, also as LZ4: what comes out of them is what is promised. */
static void make_block(struct script *s)
{
    static char plain[CW_IMAGE_BLOCK];
    struct cw_image_block block = {.address = region_start + page(s, 40),
                                   .size = page(s, 16) + CW_IMAGE_PAGE};
    uint32_t type = CW_IMAGE_BLOCK_ZERO + draw(s, 4);
    size_t size = draw(s, 600);
    const void *bytes = s->at;

    size = size < s->left ? size : s->left;
    memset(plain, 0, sizeof(plain));
    if (type == CW_IMAGE_BLOCK_LZ4) {
        LZ4_decompress_safe(bytes, plain, (int)size, (int)block.size);
    } else if (type == CW_IMAGE_BLOCK_DATA) {
        memcpy(plain, bytes, size);
        bytes = plain;
        size = block.size;
    } else {
        size = 0;
    }
    if (type != CW_IMAGE_BLOCK_ZERO)
        block.hash = hash_of(plain, block.size);
    append_record(type, &block, sizeof(block), bytes, size);
    made_end.blocks++;
    made_end.bytes += type == CW_IMAGE_BLOCK_ZERO ? 0 : block.size;
    if (type == CW_IMAGE_BLOCK_LZ4) {
        s->at += size;
        s->left -= size;
    }
}

static void make_end(void)
{
    XXH128_hash_t sum = XXH3_128bits_digest(&made);

    made_end.hash = (struct cw_image_hash){sum.low64, sum.high64};
    append_record(CW_IMAGE_END, &made_end, sizeof(made_end), NULL, 0);
}

static struct image_stream right;

static void make_right(void)
{
    struct image_plan plan = {.rank = 1, .incarnation = 1, .number = 2, .blocks = 5, .seed = 1};

    if (!right.bytes)
        image_make(&plan, &right);
}

static void make_records(struct script s)
{
    const size_t head = sizeof(struct cw_image_record) + sizeof(struct cw_image_header);

    made_end = (struct cw_image_end){0};
    region_start = WINDOW_START;
    XXH3_128bits_reset(&made);
    XXH3_128bits_update(&made, right.bytes + sizeof(struct cw_image_record),
                        sizeof(struct cw_image_header));
    append(right.bytes, head);
    while (s.left > 4)
        if (draw(&s, 4) == 0)
            make_region(&s);
        else
            make_block(&s);
    make_end();
}

static void make_changes(struct script s)
{
    append(right.bytes, right.size);
    for (; s.left >= 5; s.at += 5, s.left -= 5) {
        uint32_t where;

        memcpy(&where, s.at, 4);
        stream[where % stream_size] = s.at[4];
    }
}

/* --- restoring ----------------------------------------------------------------------------------
 */

/* As in a process that begins. */
static void forget(int fd)
{
    munmap((void *)WINDOW_START, WINDOW_END - WINDOW_START);
    taken = buffer_at = buffer_end = fill_end = 0;
    memset(&header, 0, sizeof(header));
    memset(&order, 0, sizeof(order));
    memset(regions, 0, count * sizeof(*regions));
    count = 0;
    input_open(fd);
}

static void restore(bool whole)
{
    int fd = memfd_create("stream", MFD_CLOEXEC);
    volatile bool done = false;

    must(fd >= 0 && write(fd, stream, stream_size) == (ssize_t)stream_size &&
         lseek(fd, 0, SEEK_SET) == 0);
    forget(fd);
    if (setjmp(ended) == 0) {
        must(input_header()->version == CW_IMAGE_VERSION);
        regions_restore();
        done = true;
        must(taken <= stream_size);
        for (uint32_t i = 0; i < count; i++)
            must(regions_writable(regions[i].start, regions[i].end - regions[i].start) ==
                 ((regions[i].prot & PROT_BOTH) == PROT_BOTH));
    }
    must(done || !whole);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script s = {data + 1, size - 1};

    if (size == 0)
        return 0;
    if (file_fd < 0) {
        file_fd = memfd_create("file", MFD_CLOEXEC);
        must(file_fd >= 0 && ftruncate(file_fd, FILE_BYTES) == 0);
    }
    make_right();
    stream_size = 0;
    if (data[0] % 3 == 0)
        append(s.at, s.left);
    else if (data[0] % 3 == 1)
        make_changes(s);
    else
        make_records(s);
    restore(data[0] % 3 == 1 && s.left < 5);
    return 0;
}
