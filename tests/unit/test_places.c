/* Places of images by their numbers. */
#include "dispatcher/ranks/places.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdbool.h>

SUITE("places");

static void add(struct places *places, uint32_t number, uint64_t value)
{
    places_set(places, number, PLACE_STDIN, (uint64_t[PLACE_VALUES]){value});
}

static bool is_at(const struct places *places, uint32_t number, uint64_t value)
{
    const uint64_t *at = places_at(places, number, PLACE_STDIN);

    return at && *at == value;
}

TEST(found_by_number)
{
    struct places places = {0};

    CU_ASSERT_TRUE(is_at(&places, 0, 0));
    CU_ASSERT_PTR_NULL(places_at(&places, 1, PLACE_STDIN));
    add(&places, 7, 70);
    add(&places, 9, 90);
    CU_ASSERT_TRUE(is_at(&places, 7, 70));
    CU_ASSERT_TRUE(is_at(&places, 9, 90));
    CU_ASSERT_TRUE(is_at(&places, 0, 0));
    CU_ASSERT_PTR_NULL(places_at(&places, 8, PLACE_STDIN));
    add(&places, 7, 71);
    CU_ASSERT_TRUE(is_at(&places, 7, 71));
    CU_ASSERT_EQUAL(places.count, 2);
}

TEST(oldest_is_forgotten)
{
    struct places places = {0};

    for (uint32_t number = 1; number <= 20; number++) {
        add(&places, number, number);
        for (uint32_t n = 1; n <= number; n++)
            CU_ASSERT_EQUAL(is_at(&places, n, n), n + PLACES_MAX > number);
    }
}

/* Newer images may all fail: the one that can be gone on from stays. */
TEST(base_is_kept)
{
    for (uint32_t base = 1; base <= PLACES_MAX; base++) {
        struct places places = {0};

        for (uint32_t number = 1; number <= PLACES_MAX; number++)
            add(&places, number, number);
        places_forget_before(&places, base);
        for (uint32_t number = 1; number <= PLACES_MAX; number++)
            CU_ASSERT_EQUAL(is_at(&places, number, number), number >= base);
        for (uint32_t number = 10; number < 30; number++) {
            add(&places, number, number);
            CU_ASSERT_TRUE(is_at(&places, base, base));
            CU_ASSERT_TRUE(is_at(&places, number, number));
        }
        CU_ASSERT_TRUE(is_at(&places, 27, 27));
        CU_ASSERT_PTR_NULL(places_at(&places, 26, PLACE_STDIN));
        places_forget_before(&places, 28);
        CU_ASSERT_PTR_NULL(places_at(&places, base, PLACE_STDIN));
        CU_ASSERT_PTR_NULL(places_at(&places, 27, PLACE_STDIN));
        CU_ASSERT_TRUE(is_at(&places, 28, 28));
    }
}

/* One image has a place in each thing by itself, whichever is known first. */
TEST(in_several_things)
{
    struct places places = {0};

    add(&places, 5, 50);
    CU_ASSERT_PTR_NULL(places_at(&places, 5, PLACE_PMI));
    places_set(&places, 5, PLACE_PMI, (uint64_t[PLACE_VALUES]){1, 2, 3});
    CU_ASSERT_EQUAL(places_at(&places, 5, PLACE_PMI)[2], 3);
    CU_ASSERT_TRUE(is_at(&places, 5, 50));
    for (uint32_t number = 6; number <= 9; number++)
        add(&places, number, number);
    places_set(&places, 5, PLACE_PMI,
               (uint64_t[PLACE_VALUES]){1}); /* older than all that are kept */
    CU_ASSERT_PTR_NULL(places_at(&places, 5, PLACE_PMI));
    CU_ASSERT_TRUE(is_at(&places, 6, 6));
}
