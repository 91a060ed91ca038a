/* A job of two relays, one of which is killed and comes back: what was under way on the link
 * between them, either way, comes again, and once. Rank 0 is at home at relay 0, rank 1 at relay 1.
 */
#include "common/cred.h"
#include "tests/trace/ends.h"
#include "tests/trace/killed.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>

SUITE_AFTER_EACH("trace of links whose relay returns", fixture_end);

#define RESUME_MS 5000
#define TOTAL 60000u
#define PART 20000u

static struct fixture relay[2];
static struct client *const r0 = &relay[0].rank[0];
static struct client *const r1 = &relay[1].rank[1];
static struct client *const end0 = &relay[0].other[0]; /* of the link: it dials */
static struct client *const end1 = &relay[1].other[0];

static void pump(void)
{
    ends_pump(end0, end1);
}

static void dial(void)
{
    ends_dial(&relay[0], end0, &relay[1], end1);
}

/* --- the job ------------------------------------------------------------------------------------
 */
static void say_routes(struct fixture *f, uint32_t self)
{
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct cw_route route = {
            .self = self, .relays = 2, .home = rank, .first = rank, .step = 1, .count = 1};
        uint8_t body[CW_ROUTE_SIZE];

        cw_route_put(body, &route);
        say_frame(&f->dispatcher, CW_FRAME_ROUTE, body, sizeof(body));
    }
}

static void say_link(void)
{
    struct cw_link link = {.peer = 1, .address = "unix:there"};
    uint8_t body[CW_LINK_SIZE + CW_LINK_ADDRESS_MAX];
    uint8_t key[CW_KEY_SIZE];
    uint8_t under[CW_KEY_SIZE];

    cw_cred_job_key(under, relay[0].relay_key, relay[0].job);
    cw_cred_link_key(key, under, 0);
    cw_cred_seal(link.sealed, key, under);
    say_frame(&relay[0].dispatcher, CW_FRAME_LINK, body, cw_link_put(body, &link));
}

static void forget_stories(void)
{
    for (int i = 0; i < 2; i++) {
        fixture_forget(&relay[i]);
    }
}

static bool journal; /* relay 0 has one */

/* All but the link. */
static void start_apart(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (journal && i == 0)
            fixture_init_journal(&relay[i]);
        else
            fixture_init_left(&relay[i], FIXTURE_MEMORY, 0);
        relay[i].resume_ms = RESUME_MS;
        relay[i].merged = true;
        fixture_connect(&relay[i], &relay[i].dispatcher, "d");
        fixture_hello_dispatcher(&relay[i].dispatcher, 2);
        say_routes(&relay[i], i);
    }
    say_link();
}

static void start(void)
{
    start_apart();
    dial();
    fixture_connect(&relay[0], r0, "0");
    fixture_hello_rank(r0, 0, 1);
    fixture_connect(&relay[1], r1, "1");
    fixture_hello_rank(r1, 1, 1);
    forget_stories();
}

/* The link breaks at the other end, too. */
static void kill_one(uint32_t which)
{
    struct relay_returned returned;
    struct client *other = which ? end0 : end1;

    relay[0].dial = (struct relay_dial){0};
    relay[0].dials = 0;
    returned = fixture_kill(&relay[which]);
    CU_ASSERT_EQUAL(returned.jobs, 1);
    CU_ASSERT_EQUAL(returned.sessions, 3);
    CU_ASSERT_EQUAL(returned.lost, 0);
    other->stalled = false;
    fixture_close(other, "reset");
    fixture_come_back(&relay[which].dispatcher);
    fixture_come_back(which ? r1 : r0);
    CU_ASSERT_EQUAL(relay[0].dial.peer, 1);
    CU_ASSERT_STRING_EQUAL(relay[0].dial.address, "unix:there");
    CU_ASSERT_TRUE_FATAL(relay[0].dial.resumes);
    forget_stories();
    dial();
    pump();
}

/* --- tests --------------------------------------------------------------------------------------
 */
static void frames_come_again(uint32_t killed, bool lost)
{
    start();
    say_send(r0, 1, 5, "one");
    pump();
    say_send_kind(r0, CW_SEND_SYNC, 1, 9, 6, "two");
    say_send(r1, 0, 7, "three");
    if (lost) {
        ends_lose(end0);
        ends_lose(end1);
    }
    kill_one(killed);
    say_recv(r1, 1, 5);
    say_recv(r1, 2, 6);
    say_recv(r0, 3, 7);
    pump();
    CU_ASSERT_EQUAL(r1->inbox.complete, 2);
    CU_ASSERT_EQUAL(r0->inbox.complete, 1);
    CU_ASSERT_EQUAL(r0->event, 2); /* and SENT */
    CU_ASSERT_PTR_NOT_NULL(strstr(relay[1].story, "1 > MESSAGE req 1 tag 5 total 3"));
    CU_ASSERT_PTR_NOT_NULL(strstr(relay[1].story, "'two'"));
    CU_ASSERT_PTR_NOT_NULL(strstr(relay[0].story, "0 > SENT req 9"));
    CU_ASSERT_PTR_NOT_NULL(strstr(relay[0].story, "'three'"));
    fixture_end();
}

TEST(either_relay_is_killed)
{
    for (uint32_t killed = 0; killed < 2; killed++) {
        frames_come_again(killed, false);
        frames_come_again(killed, true);
    }
}

/* A message that has come in part. */
static void message_goes_on(uint32_t killed, bool posted, bool lost)
{
    start();
    if (posted)
        say_recv(r1, 7, 5);
    say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PART);
    pump();
    say_more(r0, 5, PART, PART);
    if (lost)
        ends_lose(end0);
    kill_one(killed);
    say_more(r0, 5, 2 * PART, PART);
    pump();
    if (!posted)
        say_recv(r1, 7, 5);
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, TOTAL));
    CU_ASSERT_EQUAL(r1->inbox.complete, 1);
    fixture_end();
}

TEST(messages_go_on)
{
    for (int how = 0; how < 8; how++)
        message_goes_on(how & 1, how & 2, how & 4);
}

/* What was received of a link is told when it survives the loss of power: the other relay lets go
 * of it then. */
TEST(received_is_told_when_it_is_committed)
{
    journal = true;
    start();
    journal = false;
    say_recv(r0, 1, 5);
    relay[0].disk_waits = true;
    relay[0].dials = 0;
    say_send(r1, 0, 5, "one");
    CU_ASSERT_TRUE(ends_move(end1, end0));
    end1->stalled = end0->stalled = false;
    fixture_close(end1, "cut");
    fixture_close(end0, "cut");
    CU_ASSERT_EQUAL(relay[0].dials, 0);
    fixture_disk_all(&relay[0]);
    CU_ASSERT_EQUAL(relay[0].dials, 1);
    CU_ASSERT_TRUE(relay[0].dial.resumes);
    CU_ASSERT_TRUE(relay[0].dial.received > 0);
    relay[0].disk_waits = false;
    dial();
    pump();
    CU_ASSERT_EQUAL(r0->inbox.complete, 1);
}

/* One after the other, and both with what they were to say. */
TEST(both_relays_are_killed)
{
    start();
    for (uint32_t i = 0; i < 6; i++) {
        say_recv(r1, i, 5);
        say_begin(r0, CW_SEND_TAG, 1, 5, TOTAL, PART);
        if (i % 3)
            kill_one(i % 3 - 1);
        say_more(r0, 5, PART, TOTAL - PART);
        kill_one(i & 1);
        kill_one(!(i & 1));
        CU_ASSERT_TRUE(fixture_received(r1, i, 5, TOTAL));
    }
    CU_ASSERT_EQUAL(r1->inbox.complete, 6);
}

/* The link that was asked for and is not there yet is asked for again. */
TEST(link_that_was_not_there_yet)
{
    struct relay_returned returned;

    start_apart();
    relay[0].dial = (struct relay_dial){0};
    returned = fixture_kill(&relay[0]);
    CU_ASSERT_EQUAL(returned.sessions, 1);
    fixture_come_back(&relay[0].dispatcher);
    CU_ASSERT_EQUAL(relay[0].dial.peer, 1);
    CU_ASSERT_FALSE(relay[0].dial.resumes);
    returned = fixture_kill(&relay[1]); /* which had been told of its ranks */
    CU_ASSERT_EQUAL(returned.lost, 0);
    fixture_come_back(&relay[1].dispatcher);
    dial();
    CU_ASSERT_PTR_NOT_NULL(strstr(relay[0].story, "d > NOTICE LINKED"));
    expect_has(&relay[1], "d > NOTICE LINKED 'linked to the 1 other relays of the job'\n");
}

/* Nobody resumes it. */
TEST(link_that_is_given_up)
{
    struct relay_returned returned;

    start();
    returned = fixture_kill(&relay[1]);
    CU_ASSERT_EQUAL(returned.lost, 0);
    fixture_come_back(&relay[1].dispatcher);
    fixture_tick(&relay[1], 1);
    forget_stories();
    fixture_tick(&relay[1], 1 + RESUME_MS * 1000000ull);
    expect_has(&relay[1],
               "d > NOTICE UNLINKED 'the link to relay 0 of the job broke: its relay was "
               "killed; it was not resumed for 5000 ms'\n");
}
