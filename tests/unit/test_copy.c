/* Copies of large pieces: every byte arrives, and no other is touched, however they lie. */
#include "common/clock.h"
#include "common/copy.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <string.h>

SUITE("copy");

#define LINE 64u
#define SIZES 300u /* a few lines, whole and not */
#define LARGE 4096u
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif
#define ROOM (2 * LINE + LARGE + SIZES)
#define UNTOUCHED 0xa5
#define PAGE 4096u
#define PIECE (32u << 10)
#define TIMES 20u
#define SLOW 5u /* times as long as at another place; the fault that is looked for makes it 15 */

static _Alignas(PAGE) uint8_t from[PIECE + 2 * PAGE];
static _Alignas(PAGE) uint8_t to[PIECE + 2 * PAGE];

typedef void copy(uint8_t *to, const uint8_t *from, size_t size);

/* `size` bytes at to + `at` are those at from + `shift`, and nothing else was written. */
static bool has_only(size_t at, size_t shift, size_t size)
{
    for (size_t i = 0; i < ROOM; i++) {
        uint8_t expected = i < at || i >= at + size ? UNTOUCHED : from[shift + i - at];

        if (to[i] != expected)
            return false;
    }
    return true;
}

/* For each place in a line of where it goes, and each size. */
static void arrives(copy *copies, size_t size_min)
{
    codec_pattern(from, 1, 0, ROOM);
    for (size_t at = 0; at < LINE; at++)
        for (size_t size = size_min; size <= size_min + SIZES; size++) {
            size_t shift = (at * 7 + size) % LINE;

            memset(to, UNTOUCHED, ROOM);
            copies(to + at, from + shift, size);
            CU_ASSERT_TRUE(has_only(at, shift, size));
        }
}

TEST(copies_arrive)
{
    arrives(cw_copy, 0);
    arrives(cw_copy, 2048 - SIZES / 2);
    arrives(cw_copy, LARGE);
}

TEST(copies_past_the_cache_arrive)
{
    arrives(cw_copy_away, 0);
}

/* The least of several rounds through all places: whatever else the machine does only adds to a
 * time, and what it does for a while adds to those of all places. */
static void time_places(uint64_t least[LINE + 1])
{
    for (unsigned i = 0; i < TIMES; i++)
        for (size_t place = 0; place <= LINE; place++) {
            uint64_t before = cw_clock_ns();
            uint64_t took;

            cw_copy(to + (place == LINE ? PAGE / 2 : LINE + place), from + LINE, PIECE);
            took = cw_clock_ns() - before;
            if (i == 0 || took < least[place])
                least[place] = took;
        }
}

/* At no place within a line, a page behind what is copied, beside one that lies half a page behind.
 */
TEST(no_place_is_slow)
{
    uint64_t least[LINE + 1];

    if (SANITIZED) /* it would be timed: for it some places are slow */
        return;
    time_places(least);
    for (size_t place = 0; place < LINE; place++)
        CU_ASSERT_TRUE(least[place] < SLOW * least[LINE]);
}
