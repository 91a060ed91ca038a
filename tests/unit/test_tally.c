#include "rdevice/tally.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("tally");

#define TAG(context, source, tag) ((uint64_t)(context) << 48 | (uint64_t)(source) << 32 | (tag))

static struct tally tally;

static void is_described(const char *text, size_t size)
{
    static const char before[] = "it sends; since its start: ";
    char to[400];

    memset(to, '?', sizeof(to));
    strcpy(to, "it sends");
    size += sizeof(before) - 1;
    tally_append(&tally, to, size);
    CU_ASSERT_EQUAL(strncmp(to, before, sizeof(before) - 1), 0);
    CU_ASSERT_STRING_EQUAL(to + sizeof(before) - 1, text);
    CU_ASSERT_EQUAL(to[size], '?');
}

static void add_readings(void)
{
    uint8_t bytes[256];
    struct readings_writer w = {.bytes = bytes, .size = sizeof(bytes)};

    for (int i = 0; i < 17; i++)
        readings_put_number(&w, READING_CLOCK + 1, i / 4 * 1000000);
    readings_put_bytes(&w, READING_RANDOM, "123456789", 9);
    readings_put_bytes(&w, READING_RANDOM, "", 0);
    readings_put_number(&w, READING_NAMED, 0);
    tally_readings(&tally, bytes, w.used);
}

/* One of each, and several. */
TEST(as_text)
{
    tally = (struct tally){0};
    is_described("no input", 200);
    add_readings();
    tally.answers = 3;
    tally_message(&tally, TAG(0, 2, 7));
    is_described("17 clock readings, 2 random numbers, 1 file name, 3 probes, "
                 "1 message from rank 2 with tag 7",
                 200);
    tally_message(&tally, TAG(1, 3, 12));
    tally_message(&tally, TAG(5, 3, 13));
    tally_message(&tally, TAG(0, 2, 7));
    tally.active = tally.done = 1;
    is_described(
        "17 clock readings, 2 random numbers, 1 file name, 3 probes, 2 messages from rank "
        "2 with tag 7, 2 messages of collectives from rank 3, 1 active message, 1 end of a "
        "request",
        200);
}

/* Who is not among the first senders is counted, however many there are. */
TEST(many_senders)
{
    tally = (struct tally){0};
    for (unsigned i = 0; i < 1000; i++)
        tally_message(&tally, TAG(0, i % 500, 1));
    is_described("2 messages from rank 0 with tag 1, 2 messages from rank 1 with tag 1, 2 messages "
                 "from rank 2 with tag 1, 2 messages from rank 3 with tag 1, 992 other messages",
                 200);
}

/* What no program wrote, and more than is looked at, are bytes. */
TEST(bytes_alone)
{
    static uint8_t many[TALLY_READ_MAX / 4];

    tally = (struct tally){0};
    tally_readings(&tally, (const uint8_t *)"\x0f\x0a\xff", 3);
    is_described("1 clock reading, 1 more byte of readings", 200);
    tally = (struct tally){0};
    for (size_t i = 0; i < sizeof(many); i++)
        many[i] = i % 2 ? 0x02 : READING_TIME;
    for (int i = 0; i < 5; i++)
        tally_readings(&tally, many, sizeof(many));
    is_described("32768 clock readings, 16384 more bytes of readings", 200);
}

/* It says so where there is no room, or nothing. */
TEST(too_little_room)
{
    char text[100] = "it sends";

    tally = (struct tally){0};
    for (int i = 0; i < 2; i++)
        add_readings();
    tally.answers = 1000000;
    tally.active = 1;
    is_described("34 clock readings, 4 random numbers, 2 file names, 1000000 probes, "
                 "1 active message",
                 89);
    is_described("34 clock readings, 4 random numbers, 2 file names, 1000000 probes, ...", 88);
    tally_append(&tally, text, 8 + TALLY_TEXT_MIN - 1);
    CU_ASSERT_STRING_EQUAL(text, "it sends");
}

/* With the longest numbers there is room for something behind them. */
TEST(since_a_send)
{
    char text[TALLY_TEXT_MIN] = "";

    tally = (struct tally){.act = UINT64_MAX, .poll = UINT64_MAX, .active = 1};
    tally_append(&tally, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "; since act 18446744073709551615 at poll 18446744073709551615, "
                                 "which agreed: ...");
}
