/* Several servers of a rank, and what becomes of its images when one is lost for good, or another
 * is to have them. */
#include "tests/unit/images_site.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE("images of several servers");

/* Server 0 is gone with all that it had; `next` (as bits) take its place. */
static void lose_server_0(uint32_t next)
{
    for (uint32_t rank = 0; rank < im.config.ranks; rank++) {
        images_server_gone(&im, 0, rank);
        images_assign(&im, rank, im_ranks[rank].servers | next);
    }
}

/* Of one rank, which has server 0 of two. */
static void begin_with_an_image(void)
{
    im_begin_due(1, 2, S);
    im_one_image(1);
    CU_ASSERT_EQUAL(im_trimmed(0, 1, true), 1);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
}

TEST(after_its_server_a_rank_is_asked_at_once_for_a_whole_image)
{
    begin_with_an_image();
    lose_server_0(2);
    CU_ASSERT_EQUAL(im_choice(0), -1);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_order.servers, 2);
    CU_ASSERT_EQUAL(im_order.base, 0);
    CU_ASSERT_EQUAL(im_transfers(0), 0);
    CU_ASSERT_EQUAL(im_transfers(1), 1);
    CU_ASSERT_TRUE(im_taken(0, 2));
    CU_ASSERT_TRUE(im_stored(0, 2));
    images_placed(&im, 0, 2);
    CU_ASSERT_EQUAL(im_choice(0), 2);
}

TEST(the_image_that_is_gone_with_a_server_is_told)
{
    begin_with_an_image();
    CU_ASSERT_EQUAL(images_server_gone(&im, 1, 0), 0);
    CU_ASSERT_EQUAL(images_server_gone(&im, 0, 0), 1);
}

TEST(a_rank_without_a_server_is_not_asked)
{
    begin_with_an_image();
    lose_server_0(0);
    im_now += 100 * S;
    CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
    images_assign(&im, 0, 2);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
}

TEST(a_rank_that_crashes_before_its_next_image_is_lost)
{
    begin_with_an_image();
    lose_server_0(2);
    images_rank_down(&im, 0, true);
    images_restart(&im, 0);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_LOST);
}

TEST(one_whose_log_is_whole_begins_again)
{
    im_begin_due(1, 2, S);
    im_one_image(1);
    lose_server_0(2);
    images_rank_down(&im, 0, true);
    images_restart(&im, 0);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_BEGIN);
}

/* The old image is there until the new one is. */
TEST(what_is_at_another_server_is_taken_anew_and_stays_of_use)
{
    begin_with_an_image();
    images_assign(&im, 0, 2);
    CU_ASSERT_EQUAL(im_choice(0), 1);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_order.base, 0);
    CU_ASSERT_EQUAL(im_order.servers, 2);
    CU_ASSERT_TRUE(im_taken(0, 2));
    images_rank_down(&im, 0, true);
    images_restart(&im, 0);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_FETCH);
    CU_ASSERT_EQUAL(im_order.number, 1);
    CU_ASSERT_EQUAL(im_order.servers, 1);
}

TEST(both_servers_are_told_what_is_dropped)
{
    begin_with_an_image();
    images_assign(&im, 0, 2);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    im_taken(0, 2);
    im_stored(0, 2);
    images_placed(&im, 0, 2);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_TRIM);
    CU_ASSERT_EQUAL(im_trimmed(0, 2, true), 2);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_DROP);
    CU_ASSERT_EQUAL(im_order.number, 1);
    CU_ASSERT_EQUAL(im_order.servers, 3);
}

/* It is on its way to a server that is lost: the next one does not wait for its end. */
TEST(a_copy_that_is_on_its_way_to_a_lost_server_is_over)
{
    im_begin_due(1, 2, S);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    CU_ASSERT_TRUE(im_taken(0, 1));
    CU_ASSERT_EQUAL(im_transfers(0), 1);
    lose_server_0(2);
    CU_ASSERT_EQUAL(im_transfers(0), 0);
    im_now += S;
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_order.number, 2);
    CU_ASSERT_EQUAL(im_order.servers, 2);
    CU_ASSERT_FALSE(im_ended(0, 1, false));
    CU_ASSERT_EQUAL(im_ranks[0].request, IMAGES_ASKED);
}

/* --- kept twice --- */

/* One rank with an image at both of three servers. */
static void begin_with_two(void)
{
    im_begin(1, 3, S);
    images_assign(&im, 0, 3);
    im_all_live();
    im_now += S;
    CU_ASSERT_EQUAL_FATAL(im_settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_order.servers, 3);
    im_taken(0, 1);
}

TEST(an_image_counts_when_all_have_it)
{
    begin_with_two();
    CU_ASSERT_FALSE(im_stored_at(1, 0, 1));
    images_placed(&im, 0, 1);
    CU_ASSERT_EQUAL(im_choice(0), 0);
    CU_ASSERT_EQUAL(im_transfers(0), 1);
    CU_ASSERT_FALSE(im_stored_at(1, 0, 1));
    CU_ASSERT_TRUE(im_stored_at(0, 0, 1));
    CU_ASSERT_EQUAL(im_choice(0), 1);
    CU_ASSERT_EQUAL(im_transfers(0), 0);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_TRIM);
}

TEST(one_that_a_lost_server_did_not_have_yet_counts_without_it)
{
    begin_with_two();
    im_stored_at(1, 0, 1);
    images_placed(&im, 0, 1);
    lose_server_0(0);
    CU_ASSERT_EQUAL(im_choice(0), 1);
}

TEST(the_other_copy_is_of_use_and_the_next_image_goes_to_the_new_pair)
{
    begin_with_two();
    im_stored(0, 1);
    images_placed(&im, 0, 1);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_TRIM);
    CU_ASSERT_EQUAL(im_trimmed(0, 1, true), 1);
    lose_server_0(4);
    CU_ASSERT_EQUAL(im_choice(0), 1);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_order.servers, 6);
    CU_ASSERT_EQUAL(im_order.base, 0);
    images_rank_down(&im, 0, true);
    images_restart(&im, 0);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_FETCH);
    CU_ASSERT_EQUAL(im_order.servers, 2);
}

TEST(one_that_is_damaged_at_a_server_is_of_use_at_the_other)
{
    begin_with_two();
    im_stored(0, 1);
    images_placed(&im, 0, 1);
    CU_ASSERT_TRUE(images_lacks(&im, 0, 1, 0));
    CU_ASSERT_EQUAL(im_choice(0), 1);
    CU_ASSERT_EQUAL(images_find(&im, 0, 1)->held, 2);
    CU_ASSERT_FALSE(images_lacks(&im, 0, 1, 1));
}

TEST(nothing_is_asked_while_one_of_two_is_away)
{
    im_begin(1, 2, S);
    images_assign(&im, 0, 3);
    images_server_lost(&im, 1);
    im_all_live();
    im_now += S;
    CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
    CU_ASSERT_TRUE(images_wants_server(&im, 1, im_now));
    images_server_opens(&im, 1);
    images_held_end(&im, 1);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
}
