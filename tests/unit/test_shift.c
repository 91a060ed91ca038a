/* Clocks that are shifted, by numbers alone. */
#include "rdevice/shift.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE("shift");

#define S 1000000000ll

TEST(clocks_have_names)
{
    CU_ASSERT_EQUAL(shift_clock_of(CLOCK_MONOTONIC), SHIFT_MONOTONIC);
    CU_ASSERT_EQUAL(shift_clock_of(CLOCK_MONOTONIC_COARSE), SHIFT_MONOTONIC);
    CU_ASSERT_EQUAL(shift_clock_of(CLOCK_MONOTONIC_RAW), SHIFT_RAW);
    CU_ASSERT_EQUAL(shift_clock_of(CLOCK_BOOTTIME), SHIFT_BOOT);
    CU_ASSERT_EQUAL(shift_clock_of(CLOCK_PROCESS_CPUTIME_ID), SHIFT_PROCESS);
    CU_ASSERT_EQUAL(shift_clock_of(CLOCK_REALTIME), SHIFT_NONE);
    CU_ASSERT_EQUAL(shift_apply(SHIFT_NONE, 5), 5);
}

/* In the order of a rank's life; what is shifted stays so. */
TEST(nothing_goes_back)
{
    CU_ASSERT_EQUAL(shift_apply(SHIFT_MONOTONIC, 100 * S), 100 * S);
    shift_told(SHIFT_MONOTONIC, 90 * S); /* the same machine */
    CU_ASSERT_TRUE(shift_on);
    CU_ASSERT_EQUAL(shift_apply(SHIFT_MONOTONIC, 100 * S), 100 * S);
    CU_ASSERT_EQUAL(shift_back(SHIFT_MONOTONIC, 105 * S, 100 * S), 105 * S);
    shift_told(SHIFT_MONOTONIC, 900 * S); /* another one, since 800 s */
    CU_ASSERT_EQUAL(shift_back(SHIFT_MONOTONIC, 905 * S, 101 * S), 106 * S);
    CU_ASSERT_EQUAL(shift_apply(SHIFT_MONOTONIC, 101 * S), 900 * S);
    CU_ASSERT_EQUAL(shift_apply(SHIFT_MONOTONIC, 102 * S), 901 * S);
    CU_ASSERT_EQUAL(shift_back(SHIFT_MONOTONIC, 3 * S, 102 * S), 0); /* long past */
    CU_ASSERT_EQUAL(shift_apply(SHIFT_BOOT, 102 * S), 102 * S);      /* each by itself */
}

TEST(goes_on_from_an_image)
{
    shift_note(SHIFT_RAW, shift_apply(SHIFT_RAW, 500 * S));
    CU_ASSERT_EQUAL(shift_move(SHIFT_RAW, 510 * S, 10 * S, true), 0);
    CU_ASSERT_EQUAL(shift_apply(SHIFT_RAW, 510 * S), 510 * S);
    shift_note(SHIFT_RAW, 520 * S);
    /* another machine, that was started earlier, then one that was started later */
    CU_ASSERT_EQUAL(shift_move(SHIFT_RAW, 9000 * S, 5 * S, false), -8475 * S);
    CU_ASSERT_EQUAL(shift_apply(SHIFT_RAW, 9001 * S), 526 * S);
    CU_ASSERT_EQUAL(shift_back(SHIFT_RAW, 530 * S, 9001 * S), 9005 * S);
    shift_note(SHIFT_RAW, 530 * S);
    CU_ASSERT_EQUAL(shift_move(SHIFT_RAW, 7 * S, 0, false), (530 - 7 + 8475) * S);
    CU_ASSERT_EQUAL(shift_apply(SHIFT_RAW, 8 * S), 531 * S);
    /* the same machine, whose clock was set back all the same */
    shift_note(SHIFT_RAW, 540 * S);
    CU_ASSERT_EQUAL(shift_move(SHIFT_RAW, 1 * S, 2 * S, true), (542 - 1 - 523) * S);
    CU_ASSERT_EQUAL(shift_apply(SHIFT_RAW, 1 * S), 542 * S);
}
