/* The core of images, and when one is due. */
#include "dispatcher/job/images.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

SUITE("images");

#define RANKS 4u
#define S 1000000000ull
#define MIB (1ull << 20)

static struct images im;
static struct images_rank ranks[64];
static uint64_t now;
static struct images_order order;

static void begin(uint32_t count, uint32_t servers, uint64_t every_ns)
{
    struct images_config config = {
        .ranks = count,
        .servers = servers,
        .policy = {.every_ns = every_ns, .log_much = IMAGE_LOG_MUCH, .log_urgent = UINT64_MAX}};

    memset(ranks, 0, sizeof(ranks));
    now = 100 * S;
    images_init(&im, &config, ranks, now);
    for (uint32_t i = 0; i < servers; i++) {
        images_server_opens(&im, i);
        images_held_end(&im, i);
    }
}

static void all_live(void)
{
    for (uint32_t rank = 0; rank < im.config.ranks; rank++)
        images_rank_live(&im, rank, 1, now);
}

/* All ranks live, and an image of each is due. */
static void begin_due(uint32_t count, uint32_t servers, uint64_t every_ns)
{
    begin(count, servers, every_ns);
    all_live();
    now += every_ns;
}

static struct cw_point point_of(uint32_t number)
{
    return (struct cw_point){.event = 10 * number, .clock = 100 * number, .acts = 5 * number};
}

static enum images_action next(void)
{
    return images_next(&im, now, &order);
}

/* Over several passes, as long as there may be something at once. */
static enum images_action settle(void)
{
    enum images_action action;

    do
        action = next();
    while (action == IMAGES_NOTHING && images_deadline_ns(&im) == 0);
    return action;
}

static bool taken(uint32_t rank, uint32_t number)
{
    struct cw_image_report report = {.number = number, .point = point_of(number)};

    return images_taken(&im, rank, &report, now);
}

static bool ended(uint32_t rank, uint32_t number, bool stored)
{
    struct cw_image_report report = {
        .number = number, .stored = stored, .stall_ns = S / 100, .sent = 20 * MIB};

    return images_ended(&im, rank, &report, "it failed", now);
}

static bool stored(uint32_t rank, uint32_t number)
{
    struct cw_stored s = {
        .rank = rank, .incarnation = 1, .number = number, .point = point_of(number)};

    return images_stored(&im, &s, now);
}

static uint32_t trimmed(uint32_t rank, uint32_t number, bool known)
{
    return images_trimmed(
        &im, &(struct cw_trim){.rank = rank, .known = known, .point = point_of(number)});
}

static uint32_t transfers(uint32_t server)
{
    return im.server[server].requests[IMAGES_ASKED] + im.server[server].requests[IMAGES_TAKEN];
}

static uint32_t late(uint32_t server)
{
    return im.server[server].requests[IMAGES_LATE];
}

/* What the rank would be restarted from; -1: nothing is left. */
static int choice(uint32_t rank)
{
    uint32_t number;

    return images_choose(&im, rank, &number) ? (int)number : -1;
}

/* One image of rank 0, all the way until it may be trimmed to. */
static void one_image(uint32_t number)
{
    CU_ASSERT_EQUAL_FATAL(next(), IMAGES_ASK);
    CU_ASSERT_EQUAL_FATAL(order.number, number);
    CU_ASSERT_TRUE(taken(0, number));
    CU_ASSERT_TRUE(stored(0, number));
    CU_ASSERT_TRUE(ended(0, number, true));
    images_placed(&im, 0, number);
    CU_ASSERT_EQUAL(next(), IMAGES_TRIM);
    CU_ASSERT_EQUAL(order.number, number);
}

/* --- one after the other --- */

TEST(an_image_is_asked_for_stored_and_trimmed_to)
{
    begin(1, 1, S);
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    all_live();
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(images_deadline_ns(&im), now + S);
    now += S;
    one_image(1);
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(choice(0), 1);
    CU_ASSERT_EQUAL(trimmed(0, 1, true), 1);
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    now += S;
    one_image(2);
    CU_ASSERT_EQUAL(order.point.clock, 200);
    CU_ASSERT_EQUAL(trimmed(0, 2, true), 2);
    CU_ASSERT_EQUAL(next(), IMAGES_DROP);
    CU_ASSERT_EQUAL(order.number, 1);
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
}

TEST(older_images_are_tried_while_the_log_allows_them)
{
    begin_due(1, 1, S);
    one_image(1);
    trimmed(0, 1, true);
    now += S;
    one_image(2);
    CU_ASSERT_EQUAL(choice(0), 2);
    images_fail(&im, 0, 2, "damaged");
    CU_ASSERT_EQUAL(choice(0), 1);
    images_fail(&im, 0, 1, "damaged");
    CU_ASSERT_EQUAL(choice(0), -1);
}

TEST(the_beginning_is_there_until_the_log_begins_later)
{
    begin_due(1, 1, S);
    CU_ASSERT_EQUAL(choice(0), 0);
    one_image(1);
    images_fail(&im, 0, 1, "damaged");
    CU_ASSERT_EQUAL(choice(0), 0);
    trimmed(0, 1, true);
    CU_ASSERT_EQUAL(choice(0), -1);
    /* nothing is there to restart it from: the next image is due at once */
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
}

TEST(one_whose_point_the_relay_does_not_know_is_of_no_use)
{
    begin_due(1, 1, S);
    one_image(1);
    CU_ASSERT_EQUAL(trimmed(0, 1, false), 0);
    CU_ASSERT_EQUAL(choice(0), 0);
    /* it stays as the base of the next */
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    now += S;
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
    CU_ASSERT_EQUAL(order.base, 1);
}

TEST(one_without_its_places_is_neither_chosen_nor_trimmed_to)
{
    begin_due(1, 1, S);
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
    taken(0, 1);
    stored(0, 1);
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(choice(0), 0);
    images_placed(&im, 0, 1);
    CU_ASSERT_EQUAL(choice(0), 1);
    CU_ASSERT_EQUAL(next(), IMAGES_TRIM);
}

/* As from a host whose node is far away. */
TEST(the_next_one_is_due_after_one_whose_taking_is_told_late)
{
    begin_due(1, 1, 10 * S);
    CU_ASSERT_TRUE(settle() == IMAGES_ASK && stored(0, order.number));
    now += S;
    CU_ASSERT_EQUAL(settle(), IMAGES_NOTHING);
    CU_ASSERT_FALSE(taken(0, 1));
    now += 10 * S;
    CU_ASSERT_TRUE(settle() == IMAGES_ASK && order.number == 2);
}

TEST(one_stored_after_a_crash_is_trimmed_to_when_the_rank_lives_again)
{
    begin_due(1, 1, S);
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
    taken(0, 1);
    images_rank_down(&im, 0, true);
    CU_ASSERT_EQUAL(choice(0), 0);
    stored(0, 1);
    images_placed(&im, 0, 1);
    /* it may be starting from its beginning */
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    images_rank_live(&im, 0, 2, now);
    CU_ASSERT_EQUAL(next(), IMAGES_TRIM);
}

TEST(a_trim_without_an_answer_is_said_again)
{
    begin_due(1, 1, 100 * S);
    one_image(1);
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    now += IMAGES_TRIM_NS;
    CU_ASSERT_EQUAL(next(), IMAGES_TRIM);
}

TEST(what_is_not_taken_or_stored_is_given_up_and_asked_again)
{
    begin_due(1, 1, S);
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(images_deadline_ns(&im), now + IMAGES_ASK_NS);
    now += IMAGES_TAKE_NS;
    CU_ASSERT_EQUAL(next(), IMAGES_GIVE_UP);
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    now += IMAGES_RETRY_MIN_NS;
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
    CU_ASSERT_EQUAL(order.number, 2);
    taken(0, 2);
    CU_ASSERT_TRUE(ended(0, 2, false));
    now += IMAGES_RETRY_MIN_NS;
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    now += IMAGES_RETRY_MIN_NS;
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
    taken(0, 3);
    now += IMAGES_STORE_NS;
    CU_ASSERT_EQUAL(next(), IMAGES_GIVE_UP);
    CU_ASSERT_TRUE(ranks[0].stuck); /* so the reason why the next one does not come is known */
    /* it comes all the same */
    CU_ASSERT_TRUE(stored(0, 3));
    CU_ASSERT_FALSE(stored(0, 3));
    CU_ASSERT_FALSE(stored(0, 9));
    ended(0, 3, true);
    CU_ASSERT_FALSE(ranks[0].stuck);
}

TEST(ranks_take_turns_and_a_server_has_few_at_a_time)
{
    bool asked[RANKS] = {false};

    begin_due(RANKS, 1, S);
    for (uint32_t round = 0; round < RANKS / IMAGES_TRANSFERS_MAX; round++) {
        uint32_t some[IMAGES_TRANSFERS_MAX];

        for (uint32_t i = 0; i < IMAGES_TRANSFERS_MAX; i++) {
            CU_ASSERT_EQUAL_FATAL(next(), IMAGES_ASK);
            CU_ASSERT_FALSE(asked[order.rank]);
            asked[some[i] = order.rank] = true;
        }
        CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
        now += S; /* the first ones are due again, and wait behind the others */
        for (uint32_t i = 0; i < IMAGES_TRANSFERS_MAX; i++) {
            taken(some[i], ranks[some[i]].last);
            ended(some[i], ranks[some[i]].last, false);
            ranks[some[i]].retry_ns = 0;
        }
    }
}

TEST(a_crash_ends_what_was_asked_for)
{
    begin_due(2, 2, S);
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
    images_rank_down(&im, 0, true);
    CU_ASSERT_EQUAL(transfers(0), 0);
    CU_ASSERT_EQUAL(transfers(1), 1);
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    images_rank_live(&im, 0, 2, now);
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
    CU_ASSERT_EQUAL(order.rank, 0);
    CU_ASSERT_EQUAL(order.number, 2);
}

/* The point may have reached the relay between two of them. */
TEST(of_several_answers_to_one_trim_the_good_one_counts)
{
    begin_due(1, 1, S);
    one_image(1);
    now += IMAGES_TRIM_NS;
    im.config.policy.every_ns = 0;
    CU_ASSERT_EQUAL(next(), IMAGES_TRIM);
    CU_ASSERT_EQUAL(trimmed(0, 1, false), 0);
    CU_ASSERT_EQUAL(choice(0), 1);
    CU_ASSERT_EQUAL(trimmed(0, 1, true), 1);
    CU_ASSERT_EQUAL(choice(0), 1);
}

/* It may be on its way from the older one, which the relay has to know then. */
TEST(nothing_is_trimmed_while_the_rank_is_restarted)
{
    begin_due(1, 1, S);
    one_image(1);
    trimmed(0, 1, true);
    now += S;
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
    taken(0, 2);
    images_rank_down(&im, 0, true);
    CU_ASSERT_EQUAL(choice(0), 1);
    CU_ASSERT_TRUE(stored(0, 2));
    images_placed(&im, 0, 2);
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    images_rank_live(&im, 0, 2, now);
    CU_ASSERT_EQUAL(next(), IMAGES_TRIM);
    CU_ASSERT_EQUAL(order.number, 2);
}

/* --- servers --- */

TEST(nothing_is_asked_while_the_server_is_away)
{
    begin(1, 1, S);
    images_server_lost(&im, 0);
    all_live();
    CU_ASSERT_FALSE(images_wants_server(&im, 0, now));
    now += S;
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    CU_ASSERT_TRUE(images_wants_server(&im, 0, now));
    images_server_opens(&im, 0);
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    images_held_end(&im, 0);
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
}

TEST(what_a_server_has_lost_is_not_chosen)
{
    begin_due(1, 1, S);
    one_image(1);
    images_server_lost(&im, 0);
    CU_ASSERT_EQUAL(choice(0), 1);
    images_server_opens(&im, 0);
    CU_ASSERT_EQUAL(choice(0), 1);
    images_held_end(&im, 0);
    CU_ASSERT_EQUAL(choice(0), 0);
    trimmed(0, 1, true);
    CU_ASSERT_EQUAL(choice(0), -1);
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
    CU_ASSERT_EQUAL(order.base, 0);
}

TEST(one_stored_while_nobody_listened_is_known_from_the_list)
{
    begin_due(1, 1, S);
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
    taken(0, 1);
    images_server_lost(&im, 0);
    images_server_opens(&im, 0);
    images_held(&im, &(struct cw_stored){.number = 1, .incarnation = 1, .point = point_of(1)}, now);
    images_held_end(&im, 0);
    CU_ASSERT_EQUAL(ranks[0].request, IMAGES_IDLE);
    images_placed(&im, 0, 1);
    CU_ASSERT_EQUAL(choice(0), 1);
}

/* Both ranks have server 1. */
TEST(what_a_server_holds_is_of_its_ranks_alone)
{
    static const uint8_t of_rank[] = {1, 1};

    begin(2, 2, S);
    im.config.of_rank = of_rank;
    all_live();
    now += S;
    one_image(1);
    images_server_opens(&im, 0);
    images_held_end(&im, 0);
    CU_ASSERT_EQUAL(choice(0), 1);
    images_server_opens(&im, 1);
    images_held_end(&im, 1);
    CU_ASSERT_EQUAL(choice(0), 0);
}

/* --- restarts --- */

/* A rank whose log begins at image 1, with a newer one; it has crashed. */
static void two_images_and_a_crash(void)
{
    begin_due(1, 1, S);
    one_image(1);
    trimmed(0, 1, true);
    now += S;
    one_image(2);
    images_rank_down(&im, 0, true);
}

static void expect(enum images_action action, uint32_t number)
{
    CU_ASSERT_EQUAL(settle(), action);
    CU_ASSERT_EQUAL(order.rank, 0);
    CU_ASSERT_EQUAL(order.number, number);
}

TEST(the_newest_image_of_use_is_fetched)
{
    two_images_and_a_crash();
    CU_ASSERT_FALSE(images_fetched(&im, 0));
    images_restart(&im, 0);
    expect(IMAGES_FETCH, 2);
    CU_ASSERT_EQUAL(settle(), IMAGES_NOTHING);
    CU_ASSERT_TRUE(images_fetched(&im, 0));
    CU_ASSERT_FALSE(images_fetched(&im, 0));
    images_fail(&im, 0, 2, "damaged");
    images_restart(&im, 0);
    expect(IMAGES_FETCH, 1);
    images_fail(&im, 0, 1, "damaged, too");
    images_restart(&im, 0);
    expect(IMAGES_LOST, 0);
    CU_ASSERT_STRING_EQUAL(ranks[0].why, "damaged, too");
}

TEST(a_rank_without_images_begins_at_its_beginning)
{
    begin(1, 1, S);
    all_live();
    images_rank_down(&im, 0, true);
    images_restart(&im, 0);
    expect(IMAGES_BEGIN, 0);
    CU_ASSERT_EQUAL(settle(), IMAGES_NOTHING);
}

TEST(what_did_not_come_is_fetched_again_later)
{
    uint32_t tries, pauses = 0;

    two_images_and_a_crash();
    images_restart(&im, 0);
    expect(IMAGES_FETCH, 2);
    while (images_fetched(&im, 0) && images_broke_off(&im, 0, false, now, &tries)) {
        CU_ASSERT_EQUAL(tries, ++pauses);
        images_restart(&im, 0);
        CU_ASSERT_EQUAL(settle(), IMAGES_NOTHING);
        CU_ASSERT_TRUE(images_deadline_ns(&im) - now <= IMAGES_FETCH_PAUSE_MAX_NS);
        now = images_deadline_ns(&im);
        expect(IMAGES_FETCH, 2);
    }
    CU_ASSERT_EQUAL(tries, IMAGES_BREAKS_MAX);
    images_fail(&im, 0, 2, "it breaks off");
    images_restart(&im, 0);
    expect(IMAGES_FETCH, 1);
    images_restarted(&im, 0);
    CU_ASSERT_TRUE(images_broke_off(&im, 0, false, now, &tries));
    CU_ASSERT_EQUAL(tries, 1);
}

/* Who can start from its beginning does not wait long. */
TEST(a_server_that_is_away_is_waited_for)
{
    uint32_t tries;

    two_images_and_a_crash();
    while (images_broke_off(&im, 0, true, now, &tries))
        ;
    CU_ASSERT_EQUAL(tries, IMAGES_AWAY_MAX);
    images_restart(&im, 0);
    CU_ASSERT_EQUAL(settle(), IMAGES_NOTHING);
    images_hurry(&im, 0);
    expect(IMAGES_FETCH, 2);
    begin(1, 1, S);
    all_live();
    while (images_broke_off(&im, 0, true, now, &tries))
        ;
    CU_ASSERT_EQUAL(tries, IMAGES_AWAY_BEGIN_MAX);
}

/* --- on demand --- */

TEST(a_person_can_have_one_now)
{
    begin(2, 1, 1000 * S);
    images_rank_live(&im, 1, 1, now);
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    images_demand_all(&im);
    CU_ASSERT_EQUAL(ranks[0].demand, IMAGES_FAILED);
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
    CU_ASSERT_EQUAL(order.rank, 1);
    taken(1, 1);
    CU_ASSERT_EQUAL(ranks[1].demand, IMAGES_WANTED);
    stored(1, 1);
    CU_ASSERT_EQUAL(ranks[1].demand, IMAGES_WANTED);
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    images_demand_fail(&im, 1, "none comes"); /* it only waits for its place */
    CU_ASSERT_EQUAL(ranks[1].demand, IMAGES_WANTED);
    images_placed(&im, 1, 1);
    CU_ASSERT_EQUAL(ranks[1].demand, IMAGES_DONE);
    CU_ASSERT_EQUAL(next(), IMAGES_TRIM);
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
}

TEST(one_that_is_of_no_use_is_not_what_a_person_wanted)
{
    begin(1, 1, 1000 * S);
    all_live();
    images_demand_all(&im);
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
    taken(0, 1);
    stored(0, 1);
    images_fail(&im, 0, 1, "damaged");
    CU_ASSERT_EQUAL(ranks[0].demand, IMAGES_FAILED);
}

/* That its last ones failed does not matter. */
TEST(what_a_person_wants_does_not_wait_for_a_pause)
{
    begin_due(1, 1, S);
    CU_ASSERT_EQUAL(settle(), IMAGES_ASK);
    taken(0, 1);
    ended(0, 1, false);
    CU_ASSERT_EQUAL(settle(), IMAGES_NOTHING);
    images_demand_all(&im);
    CU_ASSERT_EQUAL(settle(), IMAGES_ASK);
    /* it could not be passed on, and is not tried all the time */
    images_not_asked(&im, 0, now);
    CU_ASSERT_EQUAL(settle(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(images_deadline_ns(&im), now + IMAGES_RETRY_MIN_NS);
    CU_ASSERT_EQUAL(transfers(0), 0);
    now += IMAGES_RETRY_MIN_NS;
    CU_ASSERT_EQUAL(settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(ranks[0].demand, IMAGES_WANTED);
    images_not_asked(&im, 0, now);
    images_demand_fail(&im, 0, "none comes");
    CU_ASSERT_EQUAL(ranks[0].demand, IMAGES_FAILED);
    CU_ASSERT_STRING_EQUAL(ranks[0].why, "none comes");
}

/* --- turns --- */

/* Ranks 0 and 1 compute. */
TEST(who_does_not_answer_leaves_its_turn_to_others)
{
    begin_due(3, 1, S);
    CU_ASSERT_EQUAL(settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(settle(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(images_deadline_ns(&im), now + IMAGES_ASK_NS);
    now += IMAGES_ASK_NS;
    CU_ASSERT_EQUAL(settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(order.rank, 2);
    CU_ASSERT_EQUAL(settle(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(transfers(0), 1);
    CU_ASSERT_EQUAL(late(0), 2);
    /* they answer all the same */
    CU_ASSERT_TRUE(taken(0, 1));
    CU_ASSERT_TRUE(taken(1, 1));
    CU_ASSERT_EQUAL(transfers(0), 3);
    CU_ASSERT_EQUAL(late(0), 0);
    CU_ASSERT_TRUE(stored(0, 1));
    images_rank_down(&im, 1, true);
    CU_ASSERT_EQUAL(transfers(0), 1);
}

TEST(few_may_be_late_at_a_time)
{
    uint32_t asked = 0;

    begin(IMAGES_LATE_MAX + 8, 1, S);
    all_live();
    for (uint32_t i = 0; i < 2 * IMAGES_LATE_MAX; i++) {
        now += IMAGES_ASK_NS;
        while (settle() == IMAGES_ASK)
            asked += ranks[order.rank].number == 1;
    }
    CU_ASSERT_EQUAL(asked, IMAGES_LATE_MAX + IMAGES_TRANSFERS_MAX);
    CU_ASSERT_EQUAL(late(0), IMAGES_LATE_MAX);
    CU_ASSERT_EQUAL(transfers(0), IMAGES_TRANSFERS_MAX);
}

/* With another number: the rank takes one once. */
TEST(what_may_be_lost_is_asked_again)
{
    begin_due(1, 1, S);
    CU_ASSERT_EQUAL(settle(), IMAGES_ASK);
    now += IMAGES_ASK_AGAIN_NS;
    CU_ASSERT_EQUAL(settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(order.number, 2);
    CU_ASSERT_EQUAL(settle(), IMAGES_NOTHING);
    CU_ASSERT_EQUAL(late(0), 1);
    /* the first one was not lost */
    CU_ASSERT_TRUE(taken(0, 1));
    CU_ASSERT_TRUE(stored(0, 1));
    CU_ASSERT_EQUAL(late(0) + transfers(0), 0);
}

TEST(who_needs_one_most_is_asked_first)
{
    begin(4, 1, S);
    all_live();
    im.config.policy.log_urgent = 100 * MIB;
    now += S;
    images_log(&im, 2, 100 * MIB);
    CU_ASSERT_EQUAL(settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(order.rank, 2);
    CU_ASSERT_EQUAL(settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(order.rank, 3);
    CU_ASSERT_EQUAL(settle(), IMAGES_NOTHING);
    images_rank_down(&im, 3, true);
    CU_ASSERT_EQUAL(settle(), IMAGES_ASK);
    CU_ASSERT_EQUAL(order.rank, 0);
}

/* --- when one is due --- */

/* Messages that the rank has not received stay in its log, whatever it is trimmed to. */
TEST(what_cannot_be_trimmed_has_not_grown)
{
    begin(1, 1, 1000 * S);
    im.config.policy.log_urgent = 64 * MIB;
    all_live();
    images_log(&im, 0, 100 * MIB);
    CU_ASSERT_EQUAL_FATAL(settle(), IMAGES_ASK);
    CU_ASSERT_TRUE(taken(0, 1));
    images_log(&im, 0, 110 * MIB);
    CU_ASSERT_TRUE(stored(0, 1));
    images_placed(&im, 0, 1);
    CU_ASSERT_EQUAL(settle(), IMAGES_TRIM);
    trimmed(0, 1, true);
    images_log(&im, 0, 95 * MIB);
    CU_ASSERT_EQUAL(ranks[0].history.log_grown, 10 * MIB);
    CU_ASSERT_EQUAL(settle(), IMAGES_NOTHING);
    images_log(&im, 0, 140 * MIB);
    CU_ASSERT_EQUAL(settle(), IMAGES_NOTHING);
    images_log(&im, 0, 149 * MIB);
    CU_ASSERT_EQUAL(settle(), IMAGES_ASK);
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
    begin(1, 1, 0);
    image_policy_set_room(&im.config.policy, 8 * MIB, 0, 1);
    all_live();
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    images_log(&im, 0, 2 * MIB - 1);
    CU_ASSERT_EQUAL(next(), IMAGES_NOTHING);
    images_log(&im, 0, 2 * MIB);
    CU_ASSERT_EQUAL(next(), IMAGES_ASK);
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
    begin(5, 1, S);
    CU_ASSERT_EQUAL(im.config.policy.turns, 3);
    begin(5, 2, S);
    CU_ASSERT_EQUAL(im.config.policy.turns, 2);
}

TEST(large_numbers_do_not_wrap)
{
    struct image_policy policy = {.log_much = IMAGE_LOG_MUCH, .log_urgent = UINT64_MAX};
    struct image_history h = {.cost_ns = 1ull << 50};

    CU_ASSERT_TRUE(image_policy_due_ns(&policy, &h, UINT64_MAX / 2) >= (1ull << 50) * IMAGE_SHARE);
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
    for (int i = 0; next() != IMAGES_NOTHING; i++)
        CU_ASSERT_FATAL(i < 1000);
}

static void act_on_orders(void)
{
    enum images_action action;

    for (int i = 0; (action = next()) != IMAGES_NOTHING; i++) {
        CU_ASSERT_FATAL(i < 1000);
        switch (action) {
        case IMAGES_ASK:
            CU_ASSERT_FATAL(order.number < 32);
            CU_ASSERT(order.base == 0 || w.held[order.rank] >> order.base & 1);
            w.asked[order.rank] = order.number;
            break;
        case IMAGES_TRIM:
            CU_ASSERT_FATAL(w.held[order.rank] >> order.number & 1);
            w.trim[order.rank] = order.number;
            break;
        case IMAGES_DROP:
            /* never one that may still be needed */
            CU_ASSERT_FATAL(order.number < w.begin[order.rank] ||
                            !(w.held[order.rank] & w.known[order.rank] &
                              ((2u << order.number) - 1) & ~((1u << w.begin[order.rank]) - 1)));
            w.held[order.rank] &= ~((2u << order.number) - 1);
            break;
        default:
            break;
        }
    }
}

static void check_choice(uint32_t rank)
{
    int number = choice(rank);

    if (number > 0) {
        CU_ASSERT_FATAL(w.held[rank] >> number & 1);
        CU_ASSERT_FATAL((uint32_t)number >= ranks[rank].begin);
    } else if (number == 0) {
        CU_ASSERT_FATAL(ranks[rank].begin == 0);
    } else { /* never because of what others did */
        CU_ASSERT_FATAL(w.bad[rank] >> ranks[rank].begin & 1);
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
        images_rank_live(&im, rank, ranks[rank].incarnation + !ranks[rank].live, now);
        break;
    case 1:
        images_rank_down(&im, rank, draw(2));
        if (draw(2)) /* the next incarnation did not come to what was not trimmed to */
            w.known[rank] &= (2u << (w.trim[rank] ? w.trim[rank] : w.begin[rank])) - 1;
        w.asked[rank] = 0;
        break;
    case 2:
        if (w.asked[rank] && taken(rank, w.asked[rank])) {
            w.known[rank] |= 1u << w.asked[rank];
            w.taken[rank] = w.asked[rank];
            w.asked[rank] = 0;
        }
        break;
    case 3:
    case 4:
        if (w.taken[rank] && draw(4)) {
            hold(rank, w.taken[rank]);
            stored(rank, w.taken[rank]);
            if (draw(2)) {
                images_placed(&im, rank, w.taken[rank]);
            } else {
                images_fail(&im, rank, w.taken[rank], "damaged");
                w.bad[rank] |= 1u << w.taken[rank];
                w.known[rank] &= ~(1u << w.taken[rank]);
            }
            ended(rank, w.taken[rank], true);
        } else if (w.taken[rank]) {
            ended(rank, w.taken[rank], false);
        }
        w.taken[rank] = 0;
        break;
    case 5:
        if (w.trim[rank]) {
            bool known = w.known[rank] >> w.trim[rank] & 1;

            if (known)
                w.begin[rank] = w.trim[rank];
            trimmed(rank, w.trim[rank], known);
            w.trim[rank] = 0;
        }
        break;
    case 6:
        images_log(&im, rank, draw(512) * MIB);
        break;
    case 7:
        if (draw(4) == 0 && choice(rank) > 0) {
            w.known[rank] &= ~(1u << choice(rank));
            w.bad[rank] |= 1u << choice(rank);
            images_fail(&im, rank, (uint32_t)choice(rank), "damaged");
        }
        break;
    case 8:
        now += draw(3) * S;
        break;
    }
}

TEST(nothing_that_is_needed_goes)
{
    for (uint32_t trace = 0; trace < TRACES; trace++) {
        seed = trace;
        memset(&w, 0, sizeof(w));
        begin(RANKS, 1 + trace % 2, 5 * S);
        for (uint32_t step = 0; step < STEPS; step++) {
            one_step(draw(RANKS));
            act_on_orders();
            for (uint32_t rank = 0; rank < RANKS; rank++)
                check_choice(rank);
            for (uint32_t i = 0; i < im.config.servers; i++)
                CU_ASSERT_FATAL(transfers(i) <= RANKS);
        }
        obey();
    }
}
