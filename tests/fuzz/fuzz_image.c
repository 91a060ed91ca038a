/* Any bytes are records of an image, a vdso, a line of /proc/self/maps, or another file of /proc
 * that an image is made from (fdinfo, stat, syscall), or are refused; or what a rank prints, with
 * marks of images in it. The first byte says which; nothing beyond the bytes is touched. */
#include "common/image.h"
#include "dispatcher/ranks/output.h"
#include "rdevice/image/system.h"

static long fuzz_read_file(const char *path, void *to, uint64_t size);
#define system_read_file fuzz_read_file
#include "rdevice/image/header.c"
#include "rdevice/image/interrupted.c"
#include "rdevice/image/special.c"
#undef system_read_file
#include "rdevice/image/maps_line.h"
#include "rdevice/restorer/vdso.h"
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#define VDSO_BYTES 4096u
#define PRINTED_MAX 65536u

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

/* --- files of /proc ------------------------------------------------------------------------------
 */

static const uint8_t *file_bytes;
static size_t file_size;

static long fuzz_read_file(const char *path, void *to, uint64_t size)
{
    size_t n = file_size < size - 1 ? file_size : size - 1;

    must(strlen(path) > 0);
    if (n > 0)
        memcpy(to, file_bytes, n);
    ((char *)to)[n] = '\0';
    return (long)n;
}

/* Nothing is written behind the watches. */
static void take_fdinfo(const uint8_t *data, size_t size)
{
    static const char *const kinds[] = {"anon_inode:[eventfd]", "anon_inode:[timerfd]",
                                        "anon_inode:[eventpoll]", "anon_inode:[else]"};
    struct file_watch *watches = malloc(FILE_WATCHES_MAX * sizeof(*watches));
    struct file *file = calloc(1, sizeof(*file));
    struct cw_err err = {0};

    must(watches && file);
    if (size > 0) {
        strcpy(file->path, kinds[data[0] % 4]);
        file_bytes = data + 1;
        file_size = size - 1;
        must(special_read(file, watches, &err) == (data[0] % 4 != 3));
        must(file->watches <= FILE_WATCHES_MAX);
    }
    free(watches);
    free(file);
}

static void take_stat(const uint8_t *data, size_t size)
{
    struct cw_image_bounds bounds = {0};
    struct cw_err err = {0};

    file_bytes = data;
    file_size = size;
    if (read_bounds(&bounds, &err) == CW_OK)
        must(bounds.start_stack != 0);
}

static void take_syscall(const uint8_t *data, size_t size)
{
    struct interrupted call = {0};
    ucontext_t frame = {0};
    greg_t *r = frame.uc_mcontext.gregs;

    file_bytes = data;
    file_size = size;
    interrupted_look(1, &call);
    r[REG_RAX] = -EINTR;
    r[REG_RIP] = (greg_t)call.pc;
    r[REG_RSP] = (greg_t)call.sp;
    r[REG_RDI] = (greg_t)call.argument[0];
    r[REG_RSI] = (greg_t)call.argument[1];
    r[REG_RDX] = (greg_t)call.argument[2];
    r[REG_R10] = (greg_t)call.argument[3];
    r[REG_R8] = (greg_t)call.argument[4];
    r[REG_R9] = (greg_t)call.argument[5];
    interrupted_again(&call, &frame);
    must(r[REG_RAX] == -EINTR || (call.known && r[REG_RAX] == call.number));
}

/* --- what a rank prints --------------------------------------------------------------------------
 */

static const uint8_t secret[CW_MARK_SIZE] = {0xff, 'c', 'r', 0xff, 'e', 't', '\n', 1,
                                             2,    3,   4,   5,    6,   7,   8,    0xff};

struct printing {
    struct output_stream stream;
    struct places places;
    struct output_sink sink;
    struct channel *rank;
    int out_fd;
    uint8_t text[PRINTED_MAX]; /* without marks */
    size_t size;
    uint32_t images;
};

static void print(struct printing *p, const void *bytes, size_t size, bool text)
{
    struct cw_err err = {0};

    if (text) {
        memcpy(p->text + p->size, bytes, size);
        p->size += size;
    }
    must(channel_put(p->rank, bytes, size, &err) == CW_OK);
    must(output_stream_read(&p->stream, OUTPUT_READS_A_TURN, 1, &err) == CW_OK);
}

static void print_mark(struct printing *p)
{
    struct cw_output_mark mark = {.number = ++p->images, .check = ~p->images};
    uint8_t bytes[CW_OUTPUT_MARK_SIZE];

    memcpy(mark.mark, secret, CW_MARK_SIZE);
    memcpy(bytes, &mark, sizeof(bytes));
    print(p, bytes, sizeof(bytes) / 2, false);
    print(p, bytes + sizeof(bytes) / 2, sizeof(bytes) - sizeof(bytes) / 2, false);
    must(places_at(&p->places, p->images, PLACE_STDOUT));
}

/* Of 1 to 127 alone: a mark cannot come of that and of its own beginnings, for its last 4 bytes are
 * the 4 before, inverted. */
static void print_text(struct printing *p, const uint8_t *data, size_t size)
{
    uint8_t text[64];

    for (size_t i = 0; i < size; i++)
        text[i] = (uint8_t)(data[i] % 127 + 1);
    print(p, text, size, true);
}

/* Pieces of text, beginnings of marks, and marks: all but the marks comes out. */
static void print_all(struct printing *p, const uint8_t *data, size_t size)
{
    while (size > 1 && p->size + 512 < PRINTED_MAX) {
        uint8_t what = data[0];
        size_t n = what % 64 + 1;

        data++;
        size--;
        n = n < size ? n : size;
        if (what >= 0xc0) {
            print_mark(p);
        } else if (what >= 0x80) {
            print(p, secret, what % (CW_MARK_SIZE - 1) + 1u, true);
        } else {
            print_text(p, data, n);
            data += n;
            size -= n;
        }
    }
}

static void take_output(const uint8_t *data, size_t size)
{
    static struct printing p;
    static uint8_t got[PRINTED_MAX];
    struct cw_err err = {0};

    p = (struct printing){.out_fd = memfd_create("out", MFD_CLOEXEC)};
    p.rank = channel_new(NULL, false);
    must(p.out_fd >= 0 && p.rank);
    output_sink_open_fd(&p.sink, p.out_fd, "output");
    must(output_stream_open(&p.stream, p.rank, 0, &p.sink, false, &err) == CW_OK);
    output_stream_set_mark(&p.stream, secret, &p.places, PLACE_STDOUT);
    print_all(&p, data, size);
    channel_end(p.rank);
    channel_leave(p.rank);
    must(output_stream_read(&p.stream, OUTPUT_READS_A_TURN, 2, &err) == CW_OK);
    output_stream_give_up(&p.stream);
    must(output_stream_tick(&p.stream, 3 * OUTPUT_PARTIAL_NS, &err) == CW_OK);
    must(pread(p.out_fd, got, sizeof(got), 0) == (ssize_t)p.size);
    must(memcmp(got, p.text, p.size) == 0);
    output_stream_close(&p.stream);
    output_sink_close(&p.sink, &err);
    close(p.out_fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const parts[])(const uint8_t *, size_t) = {
        take_stream, take_line, take_vdso, take_fdinfo, take_stat, take_syscall, take_output};

    if (size > 0)
        parts[data[0] % (sizeof(parts) / sizeof(*parts))](data + 1, size - 1);
    return 0;
}
