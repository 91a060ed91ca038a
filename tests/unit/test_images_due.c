/* When an image is due, and whose turn it is. */
#include "tests/unit/images_site.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE("images that are due");

/* --- turns --- */

/* Ranks 0 and 1 compute. */
TEST(who_does_not_answer_leaves_its_turn_to_others)
{
    im_begin_due(3, 1, S);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(images_deadline_ns(&im), im_now + IMAGES_ASK_NS);
    im_now += IMAGES_ASK_NS;
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_order.rank, 2);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(im_transfers(0), 1);
    CU_ASSERT_EQUAL(im_late(0), 2);
    /* they answer all the same */
    CU_ASSERT_TRUE(im_taken(0, 1));
    CU_ASSERT_TRUE(im_taken(1, 1));
    CU_ASSERT_EQUAL(im_transfers(0), 3);
    CU_ASSERT_EQUAL(im_late(0), 0);
    CU_ASSERT_TRUE(im_stored(0, 1));
    images_rank_down(&im, 1, true);
    CU_ASSERT_EQUAL(im_transfers(0), 1);
}

TEST(few_may_be_late_at_a_time)
{
    uint32_t asked = 0;

    im_begin(IMAGES_LATE_MAX + 8, 1, S);
    im_all_live();
    for (uint32_t i = 0; i < 2 * IMAGES_LATE_MAX; i++) {
        im_now += IMAGES_ASK_NS;
        while (im_settle() == IMAGES_ASK)
            asked += im_ranks[im_order.rank].number == 1;
    }
    CU_ASSERT_EQUAL(asked, IMAGES_LATE_MAX + IMAGES_TRANSFERS_MAX);
    CU_ASSERT_EQUAL(im_late(0), IMAGES_LATE_MAX);
    CU_ASSERT_EQUAL(im_transfers(0), IMAGES_TRANSFERS_MAX);
}

/* With another number: the rank takes one once. */
TEST(what_may_be_lost_is_asked_again)
{
    im_begin_due(1, 1, S);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    im_now += IMAGES_ASK_AGAIN_NS;
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_order.number, 2);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(im_late(0), 1);
    /* the first one was not lost */
    CU_ASSERT_TRUE(im_taken(0, 1));
    CU_ASSERT_TRUE(im_stored(0, 1));
    CU_ASSERT_EQUAL(im_late(0) + im_transfers(0), 0);
}

TEST(who_needs_one_most_is_asked_first)
{
    im_begin(4, 1, S);
    im_all_live();
    im.config.policy.log_urgent = 100 * MIB;
    im_now += S;
    images_log(&im, 2, 100 * MIB);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_order.rank, 2);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_order.rank, 3);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
    images_rank_down(&im, 3, true);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_order.rank, 0);
}

/* --- when one is due --- */

/* Messages that the rank has not received stay in its log, whatever it is trimmed to. */
TEST(what_cannot_be_trimmed_has_not_grown)
{
    im_begin(1, 1, 1000 * S);
    im.config.policy.log_urgent = 64 * MIB;
    im_all_live();
    images_log(&im, 0, 100 * MIB);
    CU_ASSERT_EQUAL_FATAL(im_settle(), IMAGES_ASK);
    CU_ASSERT_TRUE(im_taken(0, 1));
    images_log(&im, 0, 110 * MIB);
    CU_ASSERT_TRUE(im_stored(0, 1));
    images_placed(&im, 0, 1);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_TRIM);
    im_trimmed(0, 1, true);
    images_log(&im, 0, 95 * MIB);
    CU_ASSERT_EQUAL(im_ranks[0].history.log_grown, 10 * MIB);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
    images_log(&im, 0, 140 * MIB);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
    images_log(&im, 0, 149 * MIB);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
}

TEST(the_first_one_waits_for_a_moment)
{
    struct image_policy policy = {.log_much = IMAGE_LOG_MUCH, .log_urgent = UINT64_MAX};
    struct image_history h = {.since_ns = S, .first = true};

    CU_ASSERT_TRUE(image_policy_due_ns(&policy, &h, IMAGE_MTBF_NS) > S + IMAGE_FIRST_NS);
    h.log_grown = IMAGE_LOG_MIN;
    CU_ASSERT_EQUAL(image_policy_due_ns(&policy, &h, IMAGE_MTBF_NS), S + IMAGE_FIRST_NS);
}

TEST(a_log_as_large_as_an_image_makes_one_due)
{
    struct image_policy policy = {.log_much = IMAGE_LOG_MUCH, .log_urgent = UINT64_MAX};
    struct image_history h = {
        .since_ns = S, .cost_ns = S / 10, .sent = 64 * MIB, .log_grown = 64 * MIB - 1};
    uint64_t later = image_policy_due_ns(&policy, &h, IMAGE_MTBF_NS);

    h.log_grown = 64 * MIB;
    CU_ASSERT_EQUAL(image_policy_due_ns(&policy, &h, IMAGE_MTBF_NS), S + S / 10 * IMAGE_SHARE);
    CU_ASSERT_TRUE(later > S + S / 10 * IMAGE_SHARE);
}

TEST(a_log_that_grows_fast_does_not_wait_long)
{
    struct image_policy policy = {0};
    struct image_history h = {
        .since_ns = S, .cost_ns = S / 10, .sent = 300 * MIB, .log_grown = 128 * MIB};

    image_policy_set_room(&policy, 1ull << 50, UINT64_MAX, 8);
    CU_ASSERT_EQUAL(policy.log_much, IMAGE_LOG_MUCH);
    image_policy_set_room(&policy, 2048 * MIB, UINT64_MAX, 8);
    CU_ASSERT_EQUAL(policy.log_much, 128 * MIB);
    /* the image costs more */
    CU_ASSERT_TRUE(image_policy_due_ns(&policy, &h, IMAGE_MTBF_NS) > S + S / 10 * IMAGE_SHARE);
    h.sent = 64 * MIB;
    CU_ASSERT_EQUAL(image_policy_due_ns(&policy, &h, IMAGE_MTBF_NS), S + S / 10 * IMAGE_SHARE_MUCH);
    h.first = true;
    CU_ASSERT_EQUAL(image_policy_due_ns(&policy, &h, IMAGE_MTBF_NS), S);
}

TEST(a_log_without_room_does_not_wait)
{
    struct image_policy policy = {.every_ns = 100 * S};
    struct image_history h = {
        .since_ns = S, .cost_ns = S, .sent = 300 * MIB, .log_grown = 128 * MIB - 1};

    image_policy_set_room(&policy, 2048 * MIB, 2048 * MIB, 8);
    CU_ASSERT_EQUAL(image_policy_due_ns(&policy, &h, IMAGE_MTBF_NS), 101 * S);
    h.log_grown++;
    CU_ASSERT_EQUAL(image_policy_due_ns(&policy, &h, IMAGE_MTBF_NS), 0);
    image_policy_set_room(&policy, 2048 * MIB, UINT64_MAX, 8);
    CU_ASSERT_EQUAL(image_policy_due_ns(&policy, &h, IMAGE_MTBF_NS), 101 * S);
}

/* However small it is. */
TEST(a_small_log_without_room_does_not_wait)
{
    im_begin(1, 1, 0);
    image_policy_set_room(&im.config.policy, 8 * MIB, 0, 1);
    im_all_live();
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    images_log(&im, 0, 2 * MIB - 1);
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    images_log(&im, 0, 2 * MIB);
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
}

TEST(crashes_make_them_due_more_often)
{
    struct image_policy policy = {.log_much = IMAGE_LOG_MUCH, .log_urgent = UINT64_MAX};
    struct image_history h = {.cost_ns = 2 * S};
    uint64_t calm = image_policy_due_ns(&policy, &h, image_policy_mtbf_ns(&policy, 9000 * S, 0));
    uint64_t rough = image_policy_due_ns(&policy, &h, image_policy_mtbf_ns(&policy, 9000 * S, 1));

    CU_ASSERT_TRUE(rough < calm);
    /* sqrt(2 * 2 * 9000) = 189.7 */
    CU_ASSERT_TRUE(rough > 189 * S && rough < 191 * S);
    /* never more than their share */
    CU_ASSERT_TRUE(image_policy_due_ns(&policy, &h, S) == 2 * S * IMAGE_SHARE);
}

TEST(what_the_user_says_counts)
{
    struct image_policy policy = {.every_ns = 3 * S, .mtbf_ns = 7 * S, .log_urgent = UINT64_MAX};
    struct image_history h = {.since_ns = S, .first = true, .cost_ns = 100 * S};

    CU_ASSERT_EQUAL(image_policy_due_ns(&policy, &h, S), 4 * S);
    CU_ASSERT_EQUAL(image_policy_mtbf_ns(&policy, 9000 * S, 1), 7 * S);
}

TEST(images_leave_half_of_the_time)
{
    struct image_policy policy = {.every_ns = 3 * S, .turns = 4, .log_urgent = UINT64_MAX};
    struct image_history h = {.since_ns = S, .cost_ns = S / 4};

    CU_ASSERT_EQUAL(image_policy_due_ns(&policy, &h, S), 4 * S);
    h.cost_ns = 2 * S;
    CU_ASSERT_EQUAL(image_policy_due_ns(&policy, &h, S), S + 16 * S);
    im_begin(5, 1, S);
    CU_ASSERT_EQUAL(im.config.policy.turns, 3);
    im_begin(5, 2, S);
    CU_ASSERT_EQUAL(im.config.policy.turns, 2);
}

TEST(large_numbers_do_not_wrap)
{
    struct image_policy policy = {.log_much = IMAGE_LOG_MUCH, .log_urgent = UINT64_MAX};
    struct image_history h = {.cost_ns = 1ull << 50};

    CU_ASSERT_TRUE(image_policy_due_ns(&policy, &h, UINT64_MAX / 2) >= (1ull << 50) * IMAGE_SHARE);
}
