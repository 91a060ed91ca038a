/* Images of ranks that are lost together, and go on together. */
#include "dispatcher/job/image_sets.h"
#include "tests/unit/images_site.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE("images in sets");

#define GROUP 4u /* ranks 0 to 3; others are another group */
#define ALL ((1u << GROUP) - 1)

/* An image is due of all of so many ranks, which have one server. */
static void begin_in_sets(uint32_t ranks)
{
    static const uint8_t of_group[2 * GROUP] = {0, 0, 0, 0, 1, 1, 1, 1};

    im_begin_due(ranks, 1, S);
    im.config.of_group = of_group;
}

/* Asks as long as there is somebody to be asked. Returns whom, as bits. */
static uint32_t ask_all(uint32_t *set)
{
    enum images_action action;
    uint32_t asked = 0;

    while ((action = im_settle()) == IMAGES_ASK) {
        asked |= 1u << im_order.rank;
        *set = im_order.set;
    }
    CU_ASSERT_EQUAL(action, IMAGES_NOTHING);
    return asked;
}

/* The image that it was asked for, until its process could go on from it. */
static void store(uint32_t rank)
{
    uint32_t number = im_ranks[rank].number;

    CU_ASSERT_TRUE(im_taken(rank, number));
    CU_ASSERT_TRUE(im_stored(rank, number));
    images_placed(&im, rank, number);
}

/* Trims whatever is to be trimmed. Returns of which ranks, as bits. */
static uint32_t trim_all(void)
{
    uint32_t trimmed = 0;
    enum images_action action;

    while ((action = im_settle()) == IMAGES_TRIM || action == IMAGES_DROP) {
        if (action == IMAGES_DROP)
            continue;
        trimmed |= 1u << im_order.rank;
        CU_ASSERT_EQUAL(im_trimmed(im_order.rank, im_order.number, true), im_order.number);
    }
    CU_ASSERT_EQUAL(action, IMAGES_NOTHING);
    return trimmed;
}

/* A set of the group that is whole, and trimmed to. */
static void one_set(void)
{
    uint32_t set = 0;

    CU_ASSERT_EQUAL_FATAL(ask_all(&set), ALL);
    for (uint32_t rank = 0; rank < GROUP; rank++)
        store(rank);
    CU_ASSERT_EQUAL(trim_all(), ALL);
}

TEST(all_of_a_group_are_asked_together)
{
    uint32_t set = 0;

    begin_in_sets(2 * GROUP);
    for (uint32_t rank = 1; rank < 2 * GROUP; rank++) /* of rank 0 alone one is due */
        im_ranks[rank].history.since_ns = im_now;
    CU_ASSERT_EQUAL(ask_all(&set), ALL);
    CU_ASSERT_EQUAL(set, 1);
    CU_ASSERT_EQUAL(im_transfers(0), GROUP);
}

TEST(the_next_set_waits_until_none_is_busy)
{
    uint32_t set = 0, trims = 0, asks = 0;
    enum images_action action;

    begin_in_sets(GROUP);
    CU_ASSERT_EQUAL(ask_all(&set), ALL);
    for (uint32_t rank = 1; rank < GROUP; rank++)
        store(rank);
    im_taken(0, 1);
    im_now += 5 * S;
    CU_ASSERT_EQUAL(ask_all(&set), 0);
    im_stored(0, 1);
    images_placed(&im, 0, 1);
    while ((action = im_settle()) != IMAGES_NOTHING) {
        trims += action == IMAGES_TRIM && im_trimmed(im_order.rank, 1, true) == 1;
        asks += action == IMAGES_ASK && im_order.set == 2;
    }
    CU_ASSERT_EQUAL(trims, GROUP);
    CU_ASSERT_EQUAL(asks, GROUP);
}

TEST(logs_are_trimmed_once_all_of_a_set_are_of_use)
{
    uint32_t set = 0;

    begin_in_sets(GROUP);
    CU_ASSERT_EQUAL(ask_all(&set), ALL);
    for (uint32_t rank = 0; rank < GROUP - 1; rank++)
        store(rank);
    im_taken(GROUP - 1, 1);
    im_stored(GROUP - 1, 1);
    CU_ASSERT_EQUAL(trim_all(), 0);
    images_placed(&im, GROUP - 1, 1);
    CU_ASSERT_EQUAL(trim_all(), ALL);
}

/* One of them failed: the set before counts, and the next one that is whole. */
TEST(a_set_with_a_gap_does_not_count)
{
    uint32_t set = 0;

    begin_in_sets(GROUP);
    one_set();
    im_now += S;
    CU_ASSERT_EQUAL(ask_all(&set), ALL);
    for (uint32_t rank = 1; rank < GROUP; rank++)
        store(rank);
    im_ended(0, 2, false);
    CU_ASSERT_EQUAL(trim_all(), 0);
    im_now += 2 * S;
    CU_ASSERT_EQUAL(ask_all(&set), ALL);
    CU_ASSERT_EQUAL(set, 3);
    for (uint32_t rank = 0; rank < GROUP; rank++)
        store(rank);
    CU_ASSERT_EQUAL(trim_all(), ALL);
    for (uint32_t rank = 0; rank < GROUP; rank++)
        CU_ASSERT_EQUAL(im_choice(rank), 3);
}

TEST(a_rank_that_crashes_alone_goes_on_from_its_newest_image)
{
    uint32_t set = 0;

    begin_in_sets(GROUP);
    one_set();
    im_now += S;
    CU_ASSERT_EQUAL(ask_all(&set), ALL);
    store(1);
    CU_ASSERT_EQUAL(im_choice(1), 2);
}

TEST(a_lost_group_goes_on_from_its_newest_whole_set)
{
    uint32_t set = 0;

    begin_in_sets(GROUP);
    one_set();
    im_now += S;
    CU_ASSERT_EQUAL(ask_all(&set), ALL);
    store(1);
    im_taken(2, 2);
    for (uint32_t rank = 0; rank < GROUP; rank++)
        images_rank_down(&im, rank, true);
    CU_ASSERT_TRUE(images_group_lost(&im, 0));
    im_stored(2, 2); /* told late */
    images_placed(&im, 2, 2);
    for (uint32_t rank = 0; rank < GROUP; rank++)
        CU_ASSERT_EQUAL(im_choice(rank), 1);
    images_fail(&im, 3, 1, "it is damaged");
    CU_ASSERT_EQUAL(im_choice(3), -1);
}

/* What was stored, but is not whole as a set, is of no use to any. */
TEST(a_lost_group_without_a_set_begins_again)
{
    uint32_t set = 0;

    begin_in_sets(GROUP);
    CU_ASSERT_EQUAL(ask_all(&set), ALL);
    store(1);
    CU_ASSERT_TRUE(images_group_lost(&im, 0));
    for (uint32_t rank = 0; rank < GROUP; rank++)
        CU_ASSERT_EQUAL(im_choice(rank), 0);
}

TEST(a_group_whose_set_is_gone_is_lost)
{
    begin_in_sets(GROUP);
    one_set();
    images_fail(&im, 3, 1, "it is damaged");
    CU_ASSERT_FALSE(images_group_lost(&im, 0));
}

/* Two sets are whole, and the logs of some are trimmed to the second. */
TEST(a_lost_group_whose_logs_are_being_trimmed_goes_on_from_that_set)
{
    uint32_t set = 0;

    begin_in_sets(GROUP);
    one_set();
    im_now += S;
    CU_ASSERT_EQUAL(ask_all(&set), ALL);
    for (uint32_t rank = 0; rank < GROUP; rank++)
        store(rank);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_TRIM);
    CU_ASSERT_EQUAL(im_trimmed(im_order.rank, 2, true), 2);
    CU_ASSERT_TRUE(images_group_lost(&im, 0));
    for (uint32_t rank = 0; rank < GROUP; rank++)
        CU_ASSERT_EQUAL(im_choice(rank), 2);
}

/* A rank is down, or has ended: the others have images, each for itself, and no log is trimmed. */
TEST(while_one_is_down_images_are_of_none)
{
    uint32_t set = 9;

    begin_in_sets(GROUP);
    images_rank_down(&im, 2, false);
    CU_ASSERT_EQUAL(ask_all(&set), 3);
    CU_ASSERT_EQUAL(set, 0);
    store(0);
    CU_ASSERT_EQUAL(ask_all(&set), 1u << 3);
    CU_ASSERT_EQUAL(im_choice(0), 1);
}
