/* Copies past the cache: every byte arrives, and no other is touched, however they lie. */
#include "common/away.h"
#include "tests/trace/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <string.h>

#define LINE 64u
#define SIZES 300u /* a few lines, whole and not */
#define ROOM (2 * LINE + SIZES)
#define UNTOUCHED 0xa5

static _Alignas(LINE) uint8_t from[ROOM];
static _Alignas(LINE) uint8_t to[ROOM];

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
static void copies_arrive(void)
{
    codec_pattern(from, 1, 0, sizeof(from));
    for (size_t at = 0; at < LINE; at++)
        for (size_t size = 0; size <= SIZES; size++) {
            size_t shift = (at * 7 + size) % LINE;

            memset(to, UNTOUCHED, sizeof(to));
            cw_copy_away(to + at, from + shift, size);
            cw_away_fence();
            CU_ASSERT_TRUE(has_only(at, shift, size));
        }
}

void add_away_tests(void)
{
    CU_pSuite suite = CU_add_suite("away", NULL, NULL);

    CU_ADD_TEST(suite, copies_arrive);
}
