/* Any bytes are readings, or are refused; what is taken as readings is written again as the same
 * bytes. The first byte says how much room a reader of bytes has; the rest is the stream. */
#include "common/readings.h"

#include <stdlib.h>
#include <string.h>

#define STREAM_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Nothing is taken by those that ask for something else. */
static void ask_wrongly(struct readings_reader *r)
{
    uint8_t other = r->bytes[0] == READING_TIME ? READING_CPU : READING_TIME;
    struct readings_reader before = *r;
    uint8_t room[1];
    int64_t number;
    size_t got;

    must(readings_get_number(r, other, &number) != READINGS_OK);
    must(readings_get_bytes(r, other, room, sizeof(room), &got) != READINGS_OK);
    must(memcmp(&before, r, sizeof(before)) == 0);
}

/* One that takes any reading takes as much. */
static void skip(const struct readings_reader *before, const struct readings_reader *after,
                 enum readings_result result)
{
    struct readings_reader r = *before;
    uint8_t kind;

    must(readings_skip(&r, &kind) == result && r.left == after->left);
    must(result != READINGS_OK || kind == before->bytes[0]);
}

/* Takes one reading and writes it again. */
static enum readings_result pass_on(struct readings_reader *r, struct readings_writer *w,
                                    size_t room)
{
    static uint8_t bytes[STREAM_MAX];
    enum readings_result result;
    uint8_t kind = r->bytes[0];
    int64_t number;
    size_t got = 0;

    if (!reading_is_bytes(kind)) {
        result = readings_get_number(r, kind, &number);
        must(result != READINGS_OK || readings_put_number(w, kind, number));
        return result;
    }
    result = readings_get_bytes(r, kind, bytes, room, &got);
    if (result == READINGS_OTHER) /* too long for that room */
        result = readings_get_bytes(r, kind, bytes, sizeof(bytes), &got);
    else
        must(result != READINGS_OK || got <= room);
    must(result != READINGS_OK || readings_put_bytes(w, kind, bytes, got));
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t again[STREAM_MAX + READING_NUMBER_MAX];
    struct readings_writer w = {.bytes = again, .size = sizeof(again)};
    struct readings_reader r = {.bytes = data + 1, .left = size - 1};

    if (size < 1 || size > STREAM_MAX)
        return 0;
    while (r.left > 0) {
        struct readings_reader before = r;
        enum readings_result result;

        ask_wrongly(&r);
        result = pass_on(&r, &w, data[0]);
        skip(&before, &r, result);
        if (result != READINGS_OK)
            break;
        must(w.used == size - 1 - r.left && memcmp(again, data + 1, w.used) == 0);
    }
    return 0;
}
