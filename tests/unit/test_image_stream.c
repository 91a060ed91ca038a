/* The stream of an image, the lines that tell of memory, and the policy of compression. */
#include "common/image.h"
#include "common/pack.h"
#include "rdevice/image/maps_line.h"
#include "rdevice/image/seen.h"
#include "rdevice/image/stream.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

SUITE("image stream");

#define ADDRESS 0x10000000ull

/* --- lines -------------------------------------------------------------------------------------
 */

static enum maps_line parse(const char *line, struct maps_region *region)
{
    return maps_parse(line, strlen(line), region);
}

TEST(a_region_is_read)
{
    struct maps_region r;

    CU_ASSERT_EQUAL(parse("7f00a000-7f00c000 r-xp 00002000 fe:01 1234    /usr/lib/a b.so", &r),
                    MAPS_REGION);
    CU_ASSERT_EQUAL(r.start, 0x7f00a000);
    CU_ASSERT_EQUAL(r.end, 0x7f00c000);
    CU_ASSERT_EQUAL(r.offset, 0x2000);
    CU_ASSERT_EQUAL(r.inode, 1234);
    CU_ASSERT_EQUAL(r.prot, PROT_READ | PROT_EXEC);
    CU_ASSERT_FALSE(r.shared || r.deleted || r.kernel || r.cut);
    CU_ASSERT_STRING_EQUAL(r.path, "/usr/lib/a b.so");
}

TEST(kinds_of_regions_are_known)
{
    struct maps_region r;

    parse("1000-2000 rw-s 00000000 00:01 77  /dev/zero (deleted)", &r);
    CU_ASSERT_TRUE(r.shared && r.deleted && !r.kernel);
    parse("7ffd1000-7ffd2000 r-xp 00000000 00:00 0    [vdso]", &r);
    CU_ASSERT_TRUE(r.kernel);
    parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]", &r);
    CU_ASSERT_TRUE(r.kernel);
    CU_ASSERT_EQUAL(parse("1000-2000 ---p 00000000 00:00 0", &r), MAPS_REGION);
    CU_ASSERT_EQUAL(r.prot, PROT_NONE);
    CU_ASSERT_STRING_EQUAL(r.path, "");
}

TEST(fields_are_read)
{
    struct maps_region r = {0};

    CU_ASSERT_EQUAL(parse("Anonymous:            12 kB", &r), MAPS_FIELD);
    CU_ASSERT_EQUAL(parse("Swap:                  4 kB", &r), MAPS_FIELD);
    CU_ASSERT_EQUAL(parse("Rss:                 100 kB", &r), MAPS_FIELD);
    CU_ASSERT_EQUAL(r.anonymous, 16384);
    CU_ASSERT_EQUAL(parse("VmFlags: rd wr mr mw me gd nr hg ", &r), MAPS_FIELD);
    CU_ASSERT_EQUAL(r.flags, CW_IMAGE_GROWS_DOWN | CW_IMAGE_NO_RESERVE | CW_IMAGE_HUGE_PAGES);
    CU_ASSERT_FALSE(r.device);
    parse("VmFlags: rd wr io pf", &r);
    CU_ASSERT_TRUE(r.device);
}

TEST(other_lines_are_wrong)
{
    static const char *const lines[] = {
        "",
        "1000",
        "1000-2000",
        "1000-2000 rw-p",
        "2000-1000 rw-p 00000000 00:00 0",
        "1000-1000 rw-p 00000000 00:00 0",
        "1000 2000 rw-p 00000000 00:00 0",
        "11112222333344445-2 rw-p 00000000 00:00 0",
        "1000-2000 rw-p 00000000 00:00 ",
    };
    struct maps_region r;

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        CU_ASSERT_EQUAL(parse(lines[i], &r), MAPS_WRONG);
}

TEST(a_long_path_is_cut)
{
    char line[2000] = "1000-2000 rw-p 00000000 00:00 5 /";
    struct maps_region r;

    memset(line + strlen(line), 'x', 1000);
    CU_ASSERT_EQUAL(parse(line, &r), MAPS_REGION);
    CU_ASSERT_TRUE(r.cut);
    CU_ASSERT_EQUAL(strlen(r.path), CW_IMAGE_PATH_MAX - 1);
}

/* --- streams -----------------------------------------------------------------------------------
 */

static struct cw_image_end last_end;
static uint32_t types[16];

static const uint8_t *block_at(int i)
{
    static uint8_t bytes[3][CW_IMAGE_BLOCK];
    static int times;

    memset(bytes[i], i + 1, sizeof(bytes[i]));
    bytes[i][100] = (uint8_t)++times; /* LZ4 makes it smaller all the same */
    return bytes[i];
}

/* A header, a region and a block for each number, 0: zeros; leaves *fd at the stream's beginning.
 */
static int write_stream(const uint8_t *const *blocks, int count, uint32_t base, uint32_t number)
{
    int fd = memfd_create("stream", 0);
    void *memory =
        mmap(NULL, stream_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct stream *s = stream_begin(memory, fd, base, number);
    struct cw_image_region region = {ADDRESS, ADDRESS + 16 * CW_IMAGE_BLOCK, .prot = 3,
                                     .kind = CW_IMAGE_ANONYMOUS};
    static struct cw_image_header header;
    struct cw_err err;

    CU_ASSERT_EQUAL(stream_header(s, &header, &err), 0);
    CU_ASSERT_EQUAL(stream_region(s, &region, &err), 0);
    for (int i = 0; i < count; i++)
        CU_ASSERT_EQUAL(stream_block(s, ADDRESS + (uint64_t)i * CW_IMAGE_BLOCK, CW_IMAGE_BLOCK,
                                     blocks[i], &err),
                        0);
    CU_ASSERT_EQUAL(stream_end(s, &err), 0);
    CU_ASSERT_EQUAL(stream_sent(s), (uint64_t)lseek(fd, 0, SEEK_END));
    munmap(memory, stream_size());
    lseek(fd, 0, SEEK_SET);
    return fd;
}

/* Checks all records but the header, leaves types[] of the blocks and last_end; returns how many.
 */
static int read_stream(int fd)
{
    static uint8_t body[sizeof(struct cw_image_header) + 2 * CW_IMAGE_BLOCK];
    struct cw_image_order order = {0};
    struct cw_image_record record;
    int blocks = 0;

    while (read(fd, &record, sizeof(record)) == (ssize_t)sizeof(record)) {
        CU_ASSERT_PTR_NULL_FATAL(cw_image_check_record(&record));
        CU_ASSERT_EQUAL_FATAL(read(fd, body, record.length), (ssize_t)record.length);
        if (record.type == CW_IMAGE_REGION) {
            CU_ASSERT_PTR_NULL(cw_image_check_region(&order, (const void *)body));
        } else if (record.type == CW_IMAGE_END) {
            memcpy(&last_end, body, sizeof(last_end));
            CU_ASSERT_PTR_NULL(cw_image_check_end(&order, &last_end, &last_end.hash));
        } else if (record.type != CW_IMAGE_HEADER) {
            CU_ASSERT_PTR_NULL(
                cw_image_check_block(&order, record.type, record.length, (const void *)body));
            types[blocks++] = record.type;
        }
    }
    CU_ASSERT_TRUE(order.ended);
    close(fd);
    return blocks;
}

/* Returns how many blocks. */
static int pass(const uint8_t *const *blocks, int count, uint32_t base, uint32_t number)
{
    return read_stream(write_stream(blocks, count, base, number));
}

static void make_table(void)
{
    uint64_t start, size;

    seen_range(&start, &size);
    CU_ASSERT_NOT_EQUAL_FATAL(size, 0);
}

TEST(blocks_that_stay_are_the_same)
{
    const uint8_t *blocks[] = {block_at(0), block_at(1), NULL, block_at(2)};
    struct cw_image_end first;

    make_table();
    CU_ASSERT_EQUAL(pass(blocks, 4, 0, 1), 4);
    CU_ASSERT_EQUAL(types[2], CW_IMAGE_BLOCK_ZERO);
    for (int i = 0; i < 4; i++)
        CU_ASSERT_NOT_EQUAL(types[i], CW_IMAGE_BLOCK_SAME);
    first = last_end;
    CU_ASSERT_EQUAL(pass(blocks, 4, 1, 2), 4);
    CU_ASSERT_TRUE(types[0] == CW_IMAGE_BLOCK_SAME && types[1] == CW_IMAGE_BLOCK_SAME &&
                   types[2] == CW_IMAGE_BLOCK_ZERO && types[3] == CW_IMAGE_BLOCK_SAME);
    CU_ASSERT_EQUAL(memcmp(&first, &last_end, sizeof(first)), 0);
    blocks[1] = block_at(1);
    pass(blocks, 4, 2, 3);
    CU_ASSERT_TRUE(types[0] == CW_IMAGE_BLOCK_SAME && types[1] != CW_IMAGE_BLOCK_SAME);
    CU_ASSERT_NOT_EQUAL(memcmp(&first, &last_end, sizeof(first)), 0);
}

/* An image that failed is no base, nor is one before the base. */
TEST(only_the_base_has_blocks)
{
    const uint8_t *blocks[] = {block_at(0), block_at(1), block_at(2)};

    make_table();
    pass(blocks, 3, 0, 201);
    pass(blocks, 1, 201, 202);
    CU_ASSERT_EQUAL(types[0], CW_IMAGE_BLOCK_SAME);
    pass(blocks, 3, 202, 203);
    CU_ASSERT_EQUAL(types[0], CW_IMAGE_BLOCK_SAME);
    CU_ASSERT_NOT_EQUAL(types[1], CW_IMAGE_BLOCK_SAME); /* 201 had it */
    pass(blocks, 3, 0, 204);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_NOT_EQUAL(types[i], CW_IMAGE_BLOCK_SAME);
}

TEST(a_closed_descriptor_is_an_error)
{
    void *memory =
        mmap(NULL, stream_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct stream *s = stream_begin(memory, -1, 0, 301);
    struct cw_err err = {0};

    CU_ASSERT_EQUAL(stream_end(s, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "could not be written"));
    munmap(memory, stream_size());
}

/* --- compression -------------------------------------------------------------------------------
 */

static int tried_of_64(uint64_t write_ns, uint64_t packed)
{
    struct pack pack = {0};
    int tried = 0;

    pack_tried(&pack, 100, packed);
    pack_wrote(&pack, 1000000, 1000 * write_ns);
    for (int i = 0; i < 64; i++)
        tried += pack_wanted(&pack);
    return tried;
}

TEST(slow_paths_are_compressed_for)
{
    CU_ASSERT_EQUAL(tried_of_64(10000, 50), 64); /* 0.1 GB/s, to a half */
    CU_ASSERT_EQUAL(tried_of_64(10000, 99), 7);  /* ... but it does not become smaller */
    CU_ASSERT_EQUAL(tried_of_64(300, 10), 7);    /* 3.3 GB/s */
}
