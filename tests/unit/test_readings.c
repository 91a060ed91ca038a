#include "common/readings.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

SUITE("readings");

#define REALTIME (READING_CLOCK + 0)
#define MONOTONIC (READING_CLOCK + 1)

static uint8_t buffer[4096];

static struct readings_writer writer(size_t size)
{
    return (struct readings_writer){.bytes = buffer, .size = size};
}

static struct readings_reader reader(const void *bytes, size_t size)
{
    return (struct readings_reader){.bytes = bytes, .left = size};
}

TEST(numbers)
{
    static const int64_t values[] = {0,
                                     1,
                                     -1,
                                     63,
                                     64,
                                     -64,
                                     -65,
                                     1700000000123456789,
                                     1700000000123456788,
                                     INT64_MAX,
                                     INT64_MIN,
                                     0,
                                     INT64_MIN,
                                     INT64_MAX};
    struct readings_writer w = writer(sizeof(buffer));
    struct readings_reader r;
    int64_t value;

    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
        CU_ASSERT_TRUE(readings_put_number(&w, REALTIME, values[i]));
    r = reader(buffer, w.used);
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        CU_ASSERT_EQUAL(readings_get_number(&r, REALTIME, &value), READINGS_OK);
        CU_ASSERT_EQUAL(value, values[i]);
    }
    CU_ASSERT_EQUAL(readings_get_number(&r, REALTIME, &value), READINGS_END);
}

/* docs/protocol.md shows these bytes. */
TEST(layout)
{
    static const uint8_t bytes[] = {1,  0xc8, 0x01, 1, 0x3c, 1,   0x01,
                                    15, 0x0a, 21,   3, 'a',  'b', 'c'};
    struct readings_writer w = writer(sizeof(buffer));

    readings_put_number(&w, REALTIME, 100);
    readings_put_number(&w, REALTIME, 130);
    readings_put_number(&w, REALTIME, 129);
    readings_put_number(&w, READING_TIME, 5);
    readings_put_bytes(&w, READING_RANDOM, "abc", 3);
    CU_ASSERT_EQUAL(w.used, sizeof(bytes));
    CU_ASSERT_EQUAL(memcmp(buffer, bytes, sizeof(bytes)), 0);
}

/* Numbers that come again are counted, up to where bytes come in between, or the buffer is emptied.
 * docs/protocol.md shows these bytes. */
TEST(repeats)
{
    static const uint8_t bytes[] = {15, 0x0a, 35, 3, 21, 1, 'a', 15, 0x00, 35, 1};
    struct readings_writer w = writer(sizeof(buffer));
    struct readings_reader r;
    uint8_t got;
    int64_t value;
    size_t size;

    for (int i = 0; i < 4; i++)
        readings_put_number(&w, READING_TIME, 5);
    readings_put_bytes(&w, READING_RANDOM, "a", 1);
    for (int i = 0; i < 2; i++)
        readings_put_number(&w, READING_TIME, 5);
    CU_ASSERT_EQUAL(w.used, sizeof(bytes));
    CU_ASSERT_EQUAL(memcmp(buffer, bytes, sizeof(bytes)), 0);
    r = reader(buffer, w.used);
    for (int i = 0; i < 6; i++) {
        CU_ASSERT_EQUAL(readings_next_kind(&r), READING_TIME);
        CU_ASSERT_EQUAL(readings_get_number(&r, REALTIME, &value), READINGS_OTHER);
        CU_ASSERT_EQUAL(readings_get_number(&r, READING_TIME, &value), READINGS_OK);
        CU_ASSERT_EQUAL(value, 5);
        if (i == 3)
            CU_ASSERT_EQUAL(readings_get_bytes(&r, READING_RANDOM, &got, 1, &size), READINGS_OK);
    }
    CU_ASSERT_EQUAL(r.left, 0);
    w.used = 0;
    readings_put_number(&w, READING_TIME, 5);
    CU_ASSERT_EQUAL(memcmp(buffer, bytes + 7, 2), 0);
}

TEST(kinds_have_their_own_differences)
{
    struct readings_writer w = writer(sizeof(buffer));
    struct readings_reader r;
    int64_t value;
    size_t used;

    readings_put_number(&w, REALTIME, 1700000000000000000);
    readings_put_number(&w, MONOTONIC, 5);
    used = w.used;
    readings_put_number(&w, REALTIME, 1700000000000000030);
    readings_put_number(&w, MONOTONIC, 35);
    CU_ASSERT_EQUAL(w.used - used, 4);
    r = reader(buffer, w.used);
    readings_get_number(&r, REALTIME, &value);
    readings_get_number(&r, MONOTONIC, &value);
    CU_ASSERT_EQUAL(value, 5);
    readings_get_number(&r, REALTIME, &value);
    CU_ASSERT_EQUAL(value, 1700000000000000030);
    readings_get_number(&r, MONOTONIC, &value);
    CU_ASSERT_EQUAL(value, 35);
}

TEST(bytes)
{
    struct readings_writer w = writer(sizeof(buffer));
    uint8_t sent[300], got[300];
    struct readings_reader r;
    size_t size;

    for (size_t i = 0; i < sizeof(sent); i++)
        sent[i] = (uint8_t)(i * 7);
    CU_ASSERT_TRUE(readings_put_bytes(&w, READING_RANDOM, sent, 0));
    CU_ASSERT_TRUE(readings_put_bytes(&w, READING_RANDOM, sent, sizeof(sent)));
    r = reader(buffer, w.used);
    CU_ASSERT_EQUAL(readings_get_bytes(&r, READING_RANDOM, got, 0, &size), READINGS_OK);
    CU_ASSERT_EQUAL(size, 0);
    CU_ASSERT_EQUAL(readings_get_bytes(&r, READING_RANDOM, got, 299, &size), READINGS_OTHER);
    CU_ASSERT_EQUAL(readings_get_bytes(&r, READING_RANDOM, got, 300, &size), READINGS_OK);
    CU_ASSERT_EQUAL(size, 300);
    CU_ASSERT_EQUAL(memcmp(got, sent, 300), 0);
    CU_ASSERT_EQUAL(r.left, 0);
}

TEST(another_kind_takes_nothing)
{
    struct readings_writer w = writer(sizeof(buffer));
    struct readings_reader r;
    uint8_t got[8];
    int64_t value;
    size_t size;

    readings_put_number(&w, READING_TIME, 7);
    readings_put_bytes(&w, READING_RANDOM, "x", 1);
    r = reader(buffer, w.used);
    CU_ASSERT_EQUAL(readings_get_number(&r, REALTIME, &value), READINGS_OTHER);
    CU_ASSERT_EQUAL(readings_get_bytes(&r, READING_RANDOM, got, 8, &size), READINGS_OTHER);
    CU_ASSERT_EQUAL(r.left, w.used);
    CU_ASSERT_EQUAL(readings_get_number(&r, READING_TIME, &value), READINGS_OK);
    CU_ASSERT_EQUAL(value, 7);
    CU_ASSERT_EQUAL(readings_get_number(&r, READING_TIME, &value), READINGS_OTHER);
    CU_ASSERT_EQUAL(readings_get_bytes(&r, READING_RANDOM, got, 8, &size), READINGS_OK);
}

/* A full buffer takes nothing, and the differences go on as if it had never been offered. */
TEST(full)
{
    struct readings_writer w = writer(READING_NUMBER_MAX + 1);
    struct readings_reader r;
    int64_t value;

    CU_ASSERT_FALSE(readings_put_bytes(&w, READING_RANDOM, "12", 2));
    CU_ASSERT_EQUAL(w.used, 0);
    CU_ASSERT_TRUE(readings_put_number(&w, REALTIME, 10));
    CU_ASSERT_EQUAL(w.used, 2);
    CU_ASSERT_FALSE(readings_put_number(&w, REALTIME, 20));
    CU_ASSERT_FALSE(readings_put_bytes(&w, READING_RANDOM, "", 0));
    CU_ASSERT_EQUAL(w.used, 2);
    r = reader(buffer, w.used);
    CU_ASSERT_EQUAL(readings_get_number(&r, REALTIME, &value), READINGS_OK);
    CU_ASSERT_EQUAL(value, 10);
    w.used = 0;
    CU_ASSERT_TRUE(readings_put_number(&w, REALTIME, 20));
    r.bytes = buffer;
    r.left = w.used;
    CU_ASSERT_EQUAL(readings_get_number(&r, REALTIME, &value), READINGS_OK);
    CU_ASSERT_EQUAL(value, 20);
}

/* Two writers after each other: the second goes on with what the first one's log had. */
TEST(goes_on_after_a_restart)
{
    struct readings_writer w = writer(2048);
    struct readings_writer next = {.bytes = buffer + 2048, .size = 2048};
    struct readings_reader r;
    int64_t value;

    readings_put_number(&w, REALTIME, 1000);
    r = reader(buffer, w.used);
    readings_put_number(&w, REALTIME, 2000); /* never came to the log */
    readings_get_number(&r, REALTIME, &value);
    memcpy(next.last, r.last, sizeof(next.last));
    readings_put_number(&next, REALTIME, 3000);
    r.bytes = next.bytes;
    r.left = next.used;
    CU_ASSERT_EQUAL(readings_get_number(&r, REALTIME, &value), READINGS_OK);
    CU_ASSERT_EQUAL(value, 3000);
}

static enum readings_result number_of(const void *bytes, size_t size)
{
    struct readings_reader r = reader(bytes, size);
    struct readings_reader before = r;
    int64_t value;
    enum readings_result result = readings_get_number(&r, REALTIME, &value);

    if (result != READINGS_OK)
        CU_ASSERT_EQUAL(memcmp(&before, &r, sizeof(r)), 0);
    return result;
}

TEST(hostile_numbers)
{
    CU_ASSERT_EQUAL(number_of("\x01", 1), READINGS_BAD);
    CU_ASSERT_EQUAL(number_of("\x01\x80", 2), READINGS_BAD);
    CU_ASSERT_EQUAL(number_of("\x01\x80\x00", 3), READINGS_BAD); /* not the shortest form */
    CU_ASSERT_EQUAL(number_of("\x00\x00", 2), READINGS_BAD);     /* no kind */
    CU_ASSERT_EQUAL(number_of("\x24\x00", 2), READINGS_BAD);     /* READING_KINDS */
    CU_ASSERT_EQUAL(number_of("\x23\x01", 2), READINGS_BAD);     /* READING_SAME as what? */
    CU_ASSERT_EQUAL(number_of("\xff\x00", 2), READINGS_BAD);
    CU_ASSERT_EQUAL(number_of("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11), READINGS_OK);
    CU_ASSERT_EQUAL(number_of("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11), READINGS_BAD);
    CU_ASSERT_EQUAL(number_of("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00", 12),
                    READINGS_BAD);
}

static enum readings_result bytes_of(const void *bytes, size_t size)
{
    struct readings_reader r = reader(bytes, size);
    uint8_t got[16];
    size_t got_size;

    return readings_get_bytes(&r, READING_RANDOM, got, sizeof(got), &got_size);
}

TEST(hostile_bytes)
{
    CU_ASSERT_EQUAL(bytes_of("\x15", 1), READINGS_BAD);
    CU_ASSERT_EQUAL(bytes_of("\x15\x01", 2), READINGS_BAD); /* says one byte, has none */
    CU_ASSERT_EQUAL(bytes_of("\x15\x02x", 3), READINGS_BAD);
    CU_ASSERT_EQUAL(bytes_of("\x15\x01x", 3), READINGS_OK);
    CU_ASSERT_EQUAL(bytes_of("\x15\x11yyyyyyyyyyyyyyyyy", 19), READINGS_OTHER); /* 17, room 16 */
    CU_ASSERT_EQUAL(bytes_of("\x15\x11yyyyyyyyyyyyyyyy", 18), READINGS_BAD);
    CU_ASSERT_EQUAL(bytes_of("\x15\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x", 12), READINGS_BAD);
}

/* Random readings, cut into pieces wherever the buffer was full, come back as they were. */
TEST(many_in_pieces)
{
    static uint8_t pieces[1 << 20];
    static int64_t values[20000];
    struct readings_writer w = writer(64);
    struct readings_reader r = {0};
    size_t ends[20000], count = 0, at = 0;

    srand(1);
    for (size_t i = 0; i < 20000; i++) {
        values[i] = (int64_t)(((uint64_t)rand() << 33 ^ (uint64_t)rand()) >> rand() % 64);
        if (readings_put_number(&w, MONOTONIC, values[i]))
            continue;
        memcpy(pieces + at, buffer, w.used);
        at += w.used;
        ends[count++] = at;
        w.used = 0;
        CU_ASSERT_TRUE(readings_put_number(&w, MONOTONIC, values[i]));
    }
    memcpy(pieces + at, buffer, w.used);
    ends[count++] = at + w.used;
    CU_ASSERT_TRUE(count > 100);
    at = 0;
    for (size_t i = 0, piece = 0; i < 20000; i++) {
        int64_t value;

        while (readings_get_number(&r, MONOTONIC, &value) == READINGS_END && piece < count) {
            r.bytes = pieces + at;
            r.left = ends[piece] - at;
            at = ends[piece++];
        }
        CU_ASSERT_EQUAL_FATAL(value, values[i]);
    }
    CU_ASSERT_EQUAL(r.left, 0);
}

TEST(names)
{
    CU_ASSERT_STRING_EQUAL(readings_kind_name(REALTIME), "clock_gettime(CLOCK_REALTIME)");
    CU_ASSERT_STRING_EQUAL(readings_kind_name(READING_TIME), "time");
    CU_ASSERT_STRING_EQUAL(readings_kind_name(0), "?");
    CU_ASSERT_STRING_EQUAL(readings_kind_name(255), "?");
}
