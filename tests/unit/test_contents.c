/* The hash of what a message carries. */
#include "common/setup.h"
#include "rdevice/contents.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE("contents");

#define LARGE (300u << 10)

static uint8_t bytes[LARGE];

static struct contents begin(uint32_t flags)
{
    struct contents c = {0};

    contents_begin(&c, flags);
    codec_pattern(bytes, 7, 0, sizeof(bytes));
    return c;
}

static uint64_t of(struct contents *c, size_t from, size_t size)
{
    return contents_of(c, &(struct iovec){.iov_base = bytes + from, .iov_len = size}, 1, 0);
}

/* The same bytes elsewhere, then each of some bytes another one. */
static void check(uint32_t flags, size_t size, const size_t *at, int count, bool seen)
{
    struct contents c = begin(flags);
    uint64_t was = of(&c, 0, size);

    CU_ASSERT_NOT_EQUAL(was, 0);
    CU_ASSERT_EQUAL(of(&c, 0, size), was);
    memmove(bytes + 3, bytes, size);
    CU_ASSERT_EQUAL(of(&c, 3, size), was);
    begin(flags);
    for (int i = 0; i < count; i++) {
        bytes[at[i]] ^= 0x10;
        CU_ASSERT_EQUAL(of(&c, 0, size) != was, seen);
        bytes[at[i]] ^= 0x10;
    }
}

TEST(each_byte_of_a_small_one)
{
    for (size_t size = 1; size <= 1024; size += size < 40 ? 1 : 41) {
        const size_t at[] = {0, size / 3, size / 2, size - 1};

        check(0, size, at, 4, true);
        check(CW_SETUP_CONTENTS_ALL, size, at, 4, true);
    }
}

TEST(samples_of_a_large_one)
{
    for (size_t size = 1025; size <= LARGE - 3; size = size * 3 / 2) {
        const size_t at[] = {0, 63, size - 64, size - 1};

        check(0, size, at, 4, true);
        check(CW_SETUP_CONTENTS_ALL, size, at, 4, true);
    }
    check(0, LARGE - 3, (const size_t[]){64, 5000, LARGE - 100}, 3, false);
    check(CW_SETUP_CONTENTS_ALL, LARGE - 3, (const size_t[]){64, 5000, LARGE - 100}, 3, true);
}

/* In order, and not how they are cut into bytes of a header and of data. */
TEST(pieces)
{
    struct contents c = begin(0);
    struct iovec two[] = {{bytes, 10}, {bytes + 10, 20}};
    struct iovec swapped[] = {two[1], two[0]};
    uint64_t data = of(&c, 10, 20);

    CU_ASSERT_NOT_EQUAL(contents_of(&c, two, 2, 0), contents_of(&c, swapped, 2, 0));
    CU_ASSERT_EQUAL(contents_of(&c, two, 2, 10), data);
    CU_ASSERT_EQUAL(contents_of(&c, &(struct iovec){bytes, 30}, 1, 10), data);
    bytes[9] ^= 1;
    CU_ASSERT_EQUAL(contents_of(&c, two, 2, 10), data);
    bytes[10] ^= 1;
    CU_ASSERT_NOT_EQUAL(contents_of(&c, two, 2, 10), data);
}

/* Nothing to compare. */
TEST(none)
{
    struct contents c = begin(0);
    struct iovec piece = {bytes, 10};

    CU_ASSERT_EQUAL(contents_of(&c, &piece, 0, 0), 0);
    CU_ASSERT_EQUAL(contents_of(&c, &piece, 1, 10), 0);
    CU_ASSERT_EQUAL(contents_of(&c, &piece, 1, 11), 0);
    CU_ASSERT_EQUAL(contents_of(&c, &piece, 1, CONTENTS_UNLIKE), 0);
    CU_ASSERT_EQUAL(of(&c, 0, 0), 0);
    c = begin(CW_SETUP_CONTENTS_NONE);
    CU_ASSERT_EQUAL(of(&c, 0, 10), 0);
    contents_more(&c, bytes, 10);
    CU_ASSERT_EQUAL(of(&c, 0, 10), 0);
}

/* What follows the first piece of one message shows in the hash of the next that has one. */
TEST(message_in_steps)
{
    struct contents c = begin(0);
    uint64_t next = of(&c, 0, 10);
    uint64_t changed;

    contents_more(&c, bytes + 100, 5000);
    contents_more(&c, bytes + 100, 50);
    CU_ASSERT_EQUAL(of(&c, 0, 0), 0);
    changed = of(&c, 0, 10);
    CU_ASSERT_NOT_EQUAL(changed, next);
    CU_ASSERT_EQUAL(of(&c, 0, 10), next);
    contents_more(&c, bytes + 100, 5000);
    bytes[149] ^= 1;
    contents_more(&c, bytes + 100, 50);
    CU_ASSERT_NOT_EQUAL(of(&c, 0, 10), changed);
}
