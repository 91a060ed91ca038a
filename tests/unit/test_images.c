/* The core of images: which there are, which are of use, and which a rank is restarted from. */
#include "tests/unit/images_site.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("images");

/* --- one after the other --- */

TEST(an_image_is_asked_for_stored_and_trimmed_to)
{
    im_begin(1, 1, S);
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    im_all_live();
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(images_deadline_ns(&im), im_now + S);
    im_now += S;
    im_one_image(1);
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(im_choice(0), 1);
    CU_ASSERT_EQUAL(im_trimmed(0, 1, true), 1);
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    im_now += S;
    im_one_image(2);
    CU_ASSERT_EQUAL(im_order.point.clock, 200);
    CU_ASSERT_EQUAL(im_trimmed(0, 2, true), 2);
    CU_ASSERT_EQUAL(im_next(), IMAGES_DROP);
    CU_ASSERT_EQUAL(im_order.number, 1);
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
}

TEST(older_images_are_tried_while_the_log_allows_them)
{
    im_begin_due(1, 1, S);
    im_one_image(1);
    im_trimmed(0, 1, true);
    im_now += S;
    im_one_image(2);
    CU_ASSERT_EQUAL(im_choice(0), 2);
    images_fail(&im, 0, 2, "damaged");
    CU_ASSERT_EQUAL(im_choice(0), 1);
    images_fail(&im, 0, 1, "damaged");
    CU_ASSERT_EQUAL(im_choice(0), -1);
}

TEST(the_beginning_is_there_until_the_log_begins_later)
{
    im_begin_due(1, 1, S);
    CU_ASSERT_EQUAL(im_choice(0), 0);
    im_one_image(1);
    images_fail(&im, 0, 1, "damaged");
    CU_ASSERT_EQUAL(im_choice(0), 0);
    im_trimmed(0, 1, true);
    CU_ASSERT_EQUAL(im_choice(0), -1);
    /* nothing is there to restart it from: the next image is due at once */
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
}

TEST(one_whose_point_the_relay_does_not_know_is_of_no_use)
{
    im_begin_due(1, 1, S);
    im_one_image(1);
    CU_ASSERT_EQUAL(im_trimmed(0, 1, false), 0);
    CU_ASSERT_EQUAL(im_choice(0), 0);
    /* it stays as the base of the next */
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    im_now += S;
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_order.base, 1);
}

TEST(one_without_its_places_is_neither_chosen_nor_trimmed_to)
{
    im_begin_due(1, 1, S);
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
    im_taken(0, 1);
    im_stored(0, 1);
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(im_choice(0), 0);
    images_placed(&im, 0, 1);
    CU_ASSERT_EQUAL(im_choice(0), 1);
    CU_ASSERT_EQUAL(im_next(), IMAGES_TRIM);
}

/* As from a host whose node is far away. */
TEST(the_next_one_is_due_after_one_whose_taking_is_told_late)
{
    im_begin_due(1, 1, 10 * S);
    CU_ASSERT_TRUE(im_settle() == IMAGES_ASK && im_stored(0, im_order.number));
    im_now += S;
    CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
    CU_ASSERT_FALSE(im_taken(0, 1));
    im_now += 10 * S;
    CU_ASSERT_TRUE(im_settle() == IMAGES_ASK && im_order.number == 2);
}

TEST(one_stored_after_a_crash_is_trimmed_to_when_the_rank_lives_again)
{
    im_begin_due(1, 1, S);
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
    im_taken(0, 1);
    images_rank_down(&im, 0, true);
    CU_ASSERT_EQUAL(im_choice(0), 0);
    im_stored(0, 1);
    images_placed(&im, 0, 1);
    /* it may be starting from its beginning */
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    images_rank_live(&im, 0, 2, im_now);
    CU_ASSERT_EQUAL(im_next(), IMAGES_TRIM);
}

TEST(a_trim_without_an_answer_is_said_again)
{
    im_begin_due(1, 1, 100 * S);
    im_one_image(1);
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    im_now += IMAGES_TRIM_NS;
    CU_ASSERT_EQUAL(im_next(), IMAGES_TRIM);
}

TEST(what_is_not_taken_or_stored_is_given_up_and_asked_again)
{
    im_begin_due(1, 1, S);
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(images_deadline_ns(&im), im_now + IMAGES_ASK_NS);
    im_now += IMAGES_TAKE_NS;
    CU_ASSERT_EQUAL(im_next(), IMAGES_GIVE_UP);
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    im_now += IMAGES_RETRY_MIN_NS;
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_order.number, 2);
    im_taken(0, 2);
    CU_ASSERT_TRUE(im_ended(0, 2, false));
    im_now += IMAGES_RETRY_MIN_NS;
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    im_now += IMAGES_RETRY_MIN_NS;
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
    im_taken(0, 3);
    im_now += IMAGES_STORE_NS;
    CU_ASSERT_EQUAL(im_next(), IMAGES_GIVE_UP);
    CU_ASSERT_TRUE(im_ranks[0].stuck); /* so the reason why the next one does not come is known */
    /* it comes all the same */
    CU_ASSERT_TRUE(im_stored(0, 3));
    CU_ASSERT_FALSE(im_stored(0, 3));
    CU_ASSERT_FALSE(im_stored(0, 9));
    im_ended(0, 3, true);
    CU_ASSERT_FALSE(im_ranks[0].stuck);
}

TEST(ranks_take_turns_and_a_server_has_few_at_a_time)
{
    bool asked[RANKS] = {false};

    im_begin_due(RANKS, 1, S);
    for (uint32_t round = 0; round < RANKS / IMAGES_TRANSFERS_MAX; round++) {
        uint32_t some[IMAGES_TRANSFERS_MAX];

        for (uint32_t i = 0; i < IMAGES_TRANSFERS_MAX; i++) {
            CU_ASSERT_EQUAL_FATAL(im_next(), IMAGES_ASK);
            CU_ASSERT_FALSE(asked[im_order.rank]);
            asked[some[i] = im_order.rank] = true;
        }
        CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
        im_now += S; /* the first ones are due again, and wait behind the others */
        for (uint32_t i = 0; i < IMAGES_TRANSFERS_MAX; i++) {
            im_taken(some[i], im_ranks[some[i]].last);
            im_ended(some[i], im_ranks[some[i]].last, false);
            im_ranks[some[i]].retry_ns = 0;
        }
    }
}

TEST(a_crash_ends_what_was_asked_for)
{
    im_begin_due(2, 2, S);
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
    images_rank_down(&im, 0, true);
    CU_ASSERT_EQUAL(im_transfers(0), 0);
    CU_ASSERT_EQUAL(im_transfers(1), 1);
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    images_rank_live(&im, 0, 2, im_now);
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_order.rank, 0);
    CU_ASSERT_EQUAL(im_order.number, 2);
}

/* The point may have reached the relay between two of them. */
TEST(of_several_answers_to_one_trim_the_good_one_counts)
{
    im_begin_due(1, 1, S);
    im_one_image(1);
    im_now += IMAGES_TRIM_NS;
    im.config.policy.every_ns = 0;
    CU_ASSERT_EQUAL(im_next(), IMAGES_TRIM);
    CU_ASSERT_EQUAL(im_trimmed(0, 1, false), 0);
    CU_ASSERT_EQUAL(im_choice(0), 1);
    CU_ASSERT_EQUAL(im_trimmed(0, 1, true), 1);
    CU_ASSERT_EQUAL(im_choice(0), 1);
}

/* It may be on its way from the older one, which the relay has to know then. */
TEST(nothing_is_trimmed_while_the_rank_is_restarted)
{
    im_begin_due(1, 1, S);
    im_one_image(1);
    im_trimmed(0, 1, true);
    im_now += S;
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
    im_taken(0, 2);
    images_rank_down(&im, 0, true);
    CU_ASSERT_EQUAL(im_choice(0), 1);
    CU_ASSERT_TRUE(im_stored(0, 2));
    images_placed(&im, 0, 2);
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    images_rank_live(&im, 0, 2, im_now);
    CU_ASSERT_EQUAL(im_next(), IMAGES_TRIM);
    CU_ASSERT_EQUAL(im_order.number, 2);
}

/* --- servers --- */

TEST(nothing_is_asked_while_the_server_is_away)
{
    im_begin(1, 1, S);
    images_server_lost(&im, 0);
    im_all_live();
    CU_ASSERT_FALSE(images_wants_server(&im, 0, im_now));
    im_now += S;
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    CU_ASSERT_TRUE(images_wants_server(&im, 0, im_now));
    images_server_opens(&im, 0);
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    images_held_end(&im, 0);
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
}

TEST(what_a_server_has_lost_is_not_chosen)
{
    im_begin_due(1, 1, S);
    im_one_image(1);
    images_server_lost(&im, 0);
    CU_ASSERT_EQUAL(im_choice(0), 1);
    images_server_opens(&im, 0);
    CU_ASSERT_EQUAL(im_choice(0), 1);
    images_held_end(&im, 0);
    CU_ASSERT_EQUAL(im_choice(0), 0);
    im_trimmed(0, 1, true);
    CU_ASSERT_EQUAL(im_choice(0), -1);
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_order.base, 0);
}

TEST(one_stored_while_nobody_listened_is_known_from_the_list)
{
    im_begin_due(1, 1, S);
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
    im_taken(0, 1);
    images_server_lost(&im, 0);
    images_server_opens(&im, 0);
    images_held(&im, 0, &(struct cw_stored){.number = 1, .incarnation = 1, .point = im_point(1)},
                im_now);
    images_held_end(&im, 0);
    CU_ASSERT_EQUAL(im_ranks[0].request, IMAGES_IDLE);
    images_placed(&im, 0, 1);
    CU_ASSERT_EQUAL(im_choice(0), 1);
}

/* Both ranks have server 1. */
TEST(what_a_server_holds_is_of_its_ranks_alone)
{
    im_begin(2, 2, S);
    images_assign(&im, 0, 2);
    im_all_live();
    im_now += S;
    im_one_image(1);
    images_server_opens(&im, 0);
    images_held_end(&im, 0);
    CU_ASSERT_EQUAL(im_choice(0), 1);
    images_server_opens(&im, 1);
    images_held_end(&im, 1);
    CU_ASSERT_EQUAL(im_choice(0), 0);
}

/* --- restarts --- */

/* A rank whose log begins at image 1, with a newer one; it has crashed. */
static void two_images_and_a_crash(void)
{
    im_begin_due(1, 1, S);
    im_one_image(1);
    im_trimmed(0, 1, true);
    im_now += S;
    im_one_image(2);
    images_rank_down(&im, 0, true);
}

static void expect(enum images_action action, uint32_t number)
{
    CU_ASSERT_EQUAL(im_settle(), action);
    CU_ASSERT_EQUAL(im_order.rank, 0);
    CU_ASSERT_EQUAL(im_order.number, number);
}

TEST(the_newest_image_of_use_is_fetched)
{
    two_images_and_a_crash();
    CU_ASSERT_FALSE(images_fetched(&im, 0));
    images_restart(&im, 0);
    expect(IMAGES_FETCH, 2);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
    CU_ASSERT_TRUE(images_fetched(&im, 0));
    CU_ASSERT_FALSE(images_fetched(&im, 0));
    images_fail(&im, 0, 2, "damaged");
    images_restart(&im, 0);
    expect(IMAGES_FETCH, 1);
    images_fail(&im, 0, 1, "damaged, too");
    images_restart(&im, 0);
    expect(IMAGES_LOST, 0);
    CU_ASSERT_STRING_EQUAL(im_ranks[0].why, "damaged, too");
}

TEST(a_rank_without_images_begins_at_its_beginning)
{
    im_begin(1, 1, S);
    im_all_live();
    images_rank_down(&im, 0, true);
    images_restart(&im, 0);
    expect(IMAGES_BEGIN, 0);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
}

TEST(what_did_not_come_is_fetched_again_later)
{
    uint32_t tries, pauses = 0;

    two_images_and_a_crash();
    images_restart(&im, 0);
    expect(IMAGES_FETCH, 2);
    while (images_fetched(&im, 0) && images_broke_off(&im, 0, false, im_now, &tries)) {
        CU_ASSERT_EQUAL(tries, ++pauses);
        images_restart(&im, 0);
        CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
        CU_ASSERT_TRUE(images_deadline_ns(&im) - im_now <= IMAGES_FETCH_PAUSE_MAX_NS);
        im_now = images_deadline_ns(&im);
        expect(IMAGES_FETCH, 2);
    }
    CU_ASSERT_EQUAL(tries, IMAGES_BREAKS_MAX);
    images_fail(&im, 0, 2, "it breaks off");
    images_restart(&im, 0);
    expect(IMAGES_FETCH, 1);
    images_restarted(&im, 0);
    CU_ASSERT_TRUE(images_broke_off(&im, 0, false, im_now, &tries));
    CU_ASSERT_EQUAL(tries, 1);
}

/* Who can start from its beginning does not wait long. */
TEST(a_server_that_is_away_is_waited_for)
{
    uint32_t tries;

    two_images_and_a_crash();
    while (images_broke_off(&im, 0, true, im_now, &tries))
        ;
    CU_ASSERT_EQUAL(tries, IMAGES_AWAY_MAX);
    images_restart(&im, 0);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
    images_hurry(&im, 0);
    expect(IMAGES_FETCH, 2);
    im_begin(1, 1, S);
    im_all_live();
    while (images_broke_off(&im, 0, true, im_now, &tries))
        ;
    CU_ASSERT_EQUAL(tries, IMAGES_AWAY_BEGIN_MAX);
}

/* --- on demand --- */

TEST(a_person_can_have_one_now)
{
    im_begin(2, 1, 1000 * S);
    images_rank_live(&im, 1, 1, im_now);
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    images_demand_all(&im);
    CU_ASSERT_EQUAL(im_ranks[0].demand, IMAGES_FAILED);
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_order.rank, 1);
    im_taken(1, 1);
    CU_ASSERT_EQUAL(im_ranks[1].demand, IMAGES_WANTED);
    im_stored(1, 1);
    CU_ASSERT_EQUAL(im_ranks[1].demand, IMAGES_WANTED);
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
    images_demand_fail(&im, 1, "none comes"); /* it only waits for its place */
    CU_ASSERT_EQUAL(im_ranks[1].demand, IMAGES_WANTED);
    images_placed(&im, 1, 1);
    CU_ASSERT_EQUAL(im_ranks[1].demand, IMAGES_DONE);
    CU_ASSERT_EQUAL(im_next(), IMAGES_TRIM);
    CU_ASSERT_EQUAL(im_next(), IMAGES_NOTHING);
}

TEST(one_that_is_of_no_use_is_not_what_a_person_wanted)
{
    im_begin(1, 1, 1000 * S);
    im_all_live();
    images_demand_all(&im);
    CU_ASSERT_EQUAL(im_next(), IMAGES_ASK);
    im_taken(0, 1);
    im_stored(0, 1);
    images_fail(&im, 0, 1, "damaged");
    CU_ASSERT_EQUAL(im_ranks[0].demand, IMAGES_FAILED);
}

/* That its last ones failed does not matter. */
TEST(what_a_person_wants_does_not_wait_for_a_pause)
{
    im_begin_due(1, 1, S);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    im_taken(0, 1);
    im_ended(0, 1, false);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
    images_demand_all(&im);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    /* it could not be passed on, and is not tried all the time */
    images_not_asked(&im, 0, im_now);
    CU_ASSERT_EQUAL(im_settle(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(images_deadline_ns(&im), im_now + IMAGES_RETRY_MIN_NS);
    CU_ASSERT_EQUAL(im_transfers(0), 0);
    im_now += IMAGES_RETRY_MIN_NS;
    CU_ASSERT_EQUAL(im_settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(im_ranks[0].demand, IMAGES_WANTED);
    images_not_asked(&im, 0, im_now);
    images_demand_fail(&im, 0, "none comes");
    CU_ASSERT_EQUAL(im_ranks[0].demand, IMAGES_FAILED);
    CU_ASSERT_STRING_EQUAL(im_ranks[0].why, "none comes");
}

/* --- anything, in any order --- */

#define TRACES 300
#define STEPS 400

/* What the other sides know. A relay can forget an older point as soon as it is told TRIM. */
struct world {
    uint32_t held[RANKS];  /* images at the server, a bit each */
    uint32_t known[RANKS]; /* points at the relay, likewise */
    uint32_t begin[RANKS]; /* where the log begins */
    uint32_t trim[RANKS];  /* TRIM that is not answered; 0: none */
    uint32_t taken[RANKS]; /* being copied; 0: none */
    uint32_t asked[RANKS];
    uint32_t bad[RANKS]; /* images that are of no use, a bit each */
};
static struct world w;
static uint32_t seed;

static uint32_t draw(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static void obey(void)
{
    for (int i = 0; im_next() != IMAGES_NOTHING; i++)
        CU_ASSERT_FATAL(i < 1000);
}

static void act_on_orders(void)
{
    enum images_action action;

    for (int i = 0; (action = im_next()) != IMAGES_NOTHING; i++) {
        CU_ASSERT_FATAL(i < 1000);
        switch (action) {
        case IMAGES_ASK:
            CU_ASSERT_FATAL(im_order.number < 32);
            CU_ASSERT(im_order.base == 0 || w.held[im_order.rank] >> im_order.base & 1);
            w.asked[im_order.rank] = im_order.number;
            break;
        case IMAGES_TRIM:
            CU_ASSERT_FATAL(w.held[im_order.rank] >> im_order.number & 1);
            w.trim[im_order.rank] = im_order.number;
            break;
        case IMAGES_DROP:
            /* never one that may still be needed */
            CU_ASSERT_FATAL(im_order.number < w.begin[im_order.rank] ||
                            !(w.held[im_order.rank] & w.known[im_order.rank] &
                              ((2u << im_order.number) - 1) &
                              ~((1u << w.begin[im_order.rank]) - 1)));
            w.held[im_order.rank] &= ~((2u << im_order.number) - 1);
            break;
        default:
            break;
        }
    }
}

static void check_choice(uint32_t rank)
{
    int number = im_choice(rank);

    if (number > 0) {
        CU_ASSERT_FATAL(w.held[rank] >> number & 1);
        CU_ASSERT_FATAL((uint32_t)number >= im_ranks[rank].begin);
    } else if (number == 0) {
        CU_ASSERT_FATAL(im_ranks[rank].begin == 0);
    } else { /* never because of what others did */
        CU_ASSERT_FATAL(w.bad[rank] >> im_ranks[rank].begin & 1);
    }
}

/* The server holds three: of a fourth the oldest but one goes. */
static void hold(uint32_t rank, uint32_t number)
{
    uint32_t held = w.held[rank] |= 1u << number;

    if (__builtin_popcount(held) > (int)IMAGES_HELD_MAX) {
        held &= held - 1;
        w.held[rank] &= ~(held & -held);
    }
}

static void one_step(uint32_t rank)
{
    switch (draw(9)) {
    case 0:
        images_rank_live(&im, rank, im_ranks[rank].incarnation + !im_ranks[rank].live, im_now);
        break;
    case 1:
        images_rank_down(&im, rank, draw(2));
        if (draw(2)) /* the next incarnation did not come to what was not trimmed to */
            w.known[rank] &= (2u << (w.trim[rank] ? w.trim[rank] : w.begin[rank])) - 1;
        w.asked[rank] = 0;
        break;
    case 2:
        if (w.asked[rank] && im_taken(rank, w.asked[rank])) {
            w.known[rank] |= 1u << w.asked[rank];
            w.taken[rank] = w.asked[rank];
            w.asked[rank] = 0;
        }
        break;
    case 3:
    case 4:
        if (w.taken[rank] && draw(4)) {
            hold(rank, w.taken[rank]);
            im_stored(rank, w.taken[rank]);
            if (draw(2)) {
                images_placed(&im, rank, w.taken[rank]);
            } else {
                images_fail(&im, rank, w.taken[rank], "damaged");
                w.bad[rank] |= 1u << w.taken[rank];
                w.known[rank] &= ~(1u << w.taken[rank]);
            }
            im_ended(rank, w.taken[rank], true);
        } else if (w.taken[rank]) {
            im_ended(rank, w.taken[rank], false);
        }
        w.taken[rank] = 0;
        break;
    case 5:
        if (w.trim[rank]) {
            bool known = w.known[rank] >> w.trim[rank] & 1;

            if (known)
                w.begin[rank] = w.trim[rank];
            im_trimmed(rank, w.trim[rank], known);
            w.trim[rank] = 0;
        }
        break;
    case 6:
        images_log(&im, rank, draw(512) * MIB);
        break;
    case 7:
        if (draw(4) == 0 && im_choice(rank) > 0) {
            w.known[rank] &= ~(1u << im_choice(rank));
            w.bad[rank] |= 1u << im_choice(rank);
            images_fail(&im, rank, (uint32_t)im_choice(rank), "damaged");
        }
        break;
    case 8:
        im_now += draw(3) * S;
        break;
    }
}

TEST(nothing_that_is_needed_goes)
{
    for (uint32_t trace = 0; trace < TRACES; trace++) {
        seed = trace;
        memset(&w, 0, sizeof(w));
        im_begin(RANKS, 1 + trace % 2, 5 * S);
        for (uint32_t step = 0; step < STEPS; step++) {
            one_step(draw(RANKS));
            act_on_orders();
            for (uint32_t rank = 0; rank < RANKS; rank++)
                check_choice(rank);
            for (uint32_t i = 0; i < im.config.servers; i++)
                CU_ASSERT_FATAL(im_transfers(i) <= RANKS);
        }
        obey();
    }
}
