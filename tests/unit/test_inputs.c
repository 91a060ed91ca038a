#include "relay/log/inputs.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("inputs");

#define TAG(context, source, tag) ((uint64_t)(context) << 48 | (uint64_t)(source) << 32 | (tag))

static struct log_inputs inputs;

static void is_described(const char *text, size_t size)
{
    char to[400];

    memset(to, '?', sizeof(to));
    inputs_describe(&inputs, to, size);
    CU_ASSERT_STRING_EQUAL(to, text);
    CU_ASSERT_EQUAL(to[size], '?');
}

static void add_readings(void)
{
    uint8_t bytes[256] = {0};
    struct readings_writer w = {.bytes = bytes + READINGS_HEAD, .size = sizeof(bytes) - 8};

    for (int i = 0; i < 17; i++)
        readings_put_number(&w, READING_CLOCK + 1, i / 4 * 1000000);
    readings_put_bytes(&w, READING_RANDOM, "123456789", 9);
    readings_put_bytes(&w, READING_RANDOM, "", 0);
    readings_put_number(&w, READING_NAMED, 0);
    inputs_add_readings(&inputs, bytes, READINGS_HEAD + w.used);
}

/* One of each, and several. */
TEST(as_text)
{
    inputs = (struct log_inputs){0};
    is_described("no input", 200);
    add_readings();
    inputs.answers = 3;
    inputs_add_message(&inputs, TAG(0, 2, 7));
    is_described("17 clock readings, 2 random numbers, 1 file name, 3 probes, "
                 "1 message from rank 2 with tag 7",
                 200);
    inputs_add_message(&inputs, TAG(1, 3, 12));
    inputs_add_message(&inputs, TAG(5, 3, 13));
    inputs_add_message(&inputs, TAG(0, 2, 7));
    inputs.active = inputs.done = 1;
    is_described(
        "17 clock readings, 2 random numbers, 1 file name, 3 probes, 2 messages from rank "
        "2 with tag 7, 2 messages of collectives from rank 3, 1 active message, 1 end of a "
        "request",
        200);
    inputs_begin(&inputs);
    is_described("no input", 200);
}

/* Who is not among the first senders is counted, however many there are. */
TEST(many_senders)
{
    inputs = (struct log_inputs){0};
    for (unsigned i = 0; i < 1000; i++)
        inputs_add_message(&inputs, TAG(0, i % 500, 1));
    is_described("2 messages from rank 0 with tag 1, 2 messages from rank 1 with tag 1, 2 messages "
                 "from rank 2 with tag 1, 2 messages from rank 3 with tag 1, 992 other messages",
                 200);
}

/* What no program wrote, and more than is looked at, are bytes. */
TEST(bytes_alone)
{
    static uint8_t many[INPUTS_READ_MAX / 4 + READINGS_HEAD];

    inputs = (struct log_inputs){0};
    inputs_add_readings(&inputs, (const uint8_t *)"noon", 4);
    is_described("no input", 200);
    inputs_add_readings(&inputs, (const uint8_t *)"--clock-\x0f\x0a\xff", 11);
    is_described("1 clock reading, 1 more byte of readings", 200);
    inputs = (struct log_inputs){0};
    for (size_t i = 0; i < sizeof(many); i++)
        many[i] = i % 2 ? 0x02 : READING_TIME;
    for (int i = 0; i < 5; i++)
        inputs_add_readings(&inputs, many, sizeof(many));
    is_described("32768 clock readings, 16384 more bytes of readings", 200);
}

/* It says so where there is no room. */
TEST(too_little_room)
{
    inputs = (struct log_inputs){0};
    add_readings();
    is_described("17 clock readings, 2 random numbers, 1 file name", 54);
    is_described("17 clock readings, 2 random numbers, ...", 53);
    is_described("17 clock readings, ...", 40);
    is_described("17 clock readings, ...", 23);
    is_described("...", 22);
    is_described("...", INPUTS_TEXT_MIN);
}
