/* Any bytes are readings, or are refused; what is taken as readings, and written again, is taken as
 * the same, and written as the same bytes. The first byte says how much room a reader of bytes has;
 * the rest is the stream. */
#include "common/readings.h"
#include "tests/fuzz/fuzz.h"

#define STREAM_MAX 65536
#define REPEATS_MAX 10000 /* readings that are looked at */

/* Nothing is taken by those that ask for something else. */
static void ask_wrongly(struct readings_reader *r)
{
    uint8_t other = readings_next_kind(r) == READING_TIME ? READING_CPU : READING_TIME;
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
    uint64_t count;
    uint8_t kind;

    if (result == READINGS_OK && after->left == before->left)
        return; /* it comes again */
    must(readings_skip(&r, &kind, &count) == result && r.left == after->left);
    must(result != READINGS_OK || (kind == readings_next_kind(before) && count == 1));
}

static void mix(uint64_t *seen, uint64_t value)
{
    *seen = (*seen ^ value) * 0x9e3779b97f4a7c15;
}

/* Takes one reading and writes it again. */
static enum readings_result pass_on(struct readings_reader *r, struct readings_writer *w,
                                    size_t room, uint64_t *seen)
{
    static uint8_t bytes[STREAM_MAX];
    enum readings_result result;
    uint8_t kind = readings_next_kind(r);
    int64_t number = 0;
    size_t got = 0;

    mix(seen, kind);
    if (!reading_is_bytes(kind)) {
        result = readings_get_number(r, kind, &number);
        must(result != READINGS_OK || readings_put_number(w, kind, number));
        mix(seen, (uint64_t)number);
        return result;
    }
    result = readings_get_bytes(r, kind, bytes, room, &got);
    if (result == READINGS_OTHER) /* too long for that room */
        result = readings_get_bytes(r, kind, bytes, sizeof(bytes), &got);
    else
        must(result != READINGS_OK || got <= room);
    must(result != READINGS_OK || readings_put_bytes(w, kind, bytes, got));
    for (size_t i = 0; i < got; i++)
        mix(seen, bytes[i]);
    return result;
}

/* Returns how many were taken. */
static size_t pass_all(struct readings_reader *r, struct readings_writer *w, size_t room,
                       size_t max, uint64_t *seen)
{
    size_t count = 0;

    while (count < max && r->left > 0) {
        struct readings_reader before = *r;
        uint64_t seen_before = *seen;
        enum readings_result result;

        ask_wrongly(r);
        result = pass_on(r, w, room, seen);
        skip(&before, r, result);
        if (result != READINGS_OK) {
            *seen = seen_before;
            break;
        }
        count++;
    }
    return count;
}

/* What is written may be shorter, for what comes again is counted; all that comes fits. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t again[STREAM_MAX + READING_NUMBER_MAX], third[sizeof(again)];
    struct readings_writer w = {.bytes = again, .size = sizeof(again)};
    struct readings_writer w3 = {.bytes = third, .size = sizeof(third)};
    struct readings_reader r = {.bytes = data + 1, .left = size - 1};
    struct readings_reader r2 = {.bytes = again};
    uint64_t seen = 0, seen_again = 0;
    size_t count;

    if (size < 1 || size > STREAM_MAX)
        return 0;
    count = pass_all(&r, &w, data[0], REPEATS_MAX, &seen);
    r2.left = w.used;
    must(w.used <= size - 1 + READING_NUMBER_MAX);
    must(pass_all(&r2, &w3, data[0], REPEATS_MAX + 1, &seen_again) == count);
    must(r2.left == 0 && seen == seen_again && w.used == w3.used &&
         memcmp(again, third, w.used) == 0);
    return 0;
}
