/* A job of three relays, of which the log of the first one is copied to others, and which is lost:
 * nothing that others have seen of it is, and it sends nothing twice. Rank 0 is at home at relay 0,
 * rank 1 at relay 1; relay 2 is a spare's. */
#include "common/cred.h"
#include "relay/log/held.h"
#include "tests/trace/ends.h"
#include "tests/trace/killed.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>

SUITE_AFTER_EACH("trace of copies", fixture_end);

#define RELAYS 3u
#define RESUME_MS 5000

static struct fixture relay[RELAYS];
static struct fixture next; /* in the place of relay 0 */
static struct client *const d0 = &relay[0].dispatcher;
static struct client *const d1 = &relay[1].dispatcher;
static struct client *const r0 = &relay[0].rank[0];
static struct client *const r1 = &relay[1].rank[1];

/* Of the link of relays 0 and 1, and of the copies of relay 0 at 1 and 2. */
static struct client *const link0 = &relay[0].other[0];
static struct client *const link1 = &relay[1].other[0];
static struct client *const out[RELAYS] = {NULL, &relay[0].other[1], &relay[0].other[2]};
static struct client *const in[RELAYS] = {NULL, &relay[1].other[1], &relay[2].other[1]};

/* --- what the dispatcher says -------------------------------------------------------------------
 */
static void say_routes(struct fixture *f, uint32_t self)
{
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct cw_route route = {
            .self = self, .relays = RELAYS, .home = rank, .first = rank, .step = 1, .count = 1};
        uint8_t body[CW_ROUTE_SIZE];

        cw_route_put(body, &route);
        say_frame(&f->dispatcher, CW_FRAME_ROUTE, body, sizeof(body));
    }
}

static void say_link_to(struct fixture *f, uint32_t self, uint32_t peer, uint32_t incarnation,
                        bool opens)
{
    struct cw_link link = {
        .peer = peer, .flags = opens ? 0 : CW_LINK_COPIES, .incarnation = incarnation};
    uint8_t body[CW_LINK_SIZE + CW_LINK_ADDRESS_MAX];
    uint8_t key[CW_KEY_SIZE];
    uint8_t under[CW_KEY_SIZE];

    snprintf(link.address, sizeof(link.address), "unix:%u.%u", peer, incarnation);
    cw_cred_job_key(under, f->relay_key, f->job);
    cw_cred_link_key(key, under, self);
    cw_cred_seal(link.sealed, key, under);
    say_frame(&f->dispatcher, CW_FRAME_LINK, body, cw_link_put(body, &link));
}

static void say_copy_as(struct fixture *f, uint32_t incarnation, uint32_t number, uint32_t count,
                        uint32_t first, uint32_t second)
{
    uint8_t body[CW_COPY_SIZE];

    cw_copy_put(body, &(struct cw_copy){.number = number,
                                        .incarnation = incarnation,
                                        .count = count,
                                        .peer = {first, second}});
    say_frame(&f->dispatcher, CW_FRAME_COPY, body, sizeof(body));
}

static void say_copy(uint32_t number, uint32_t count, uint32_t first, uint32_t second)
{
    say_copy_as(&relay[0], 1, number, count, first, second);
}

static void say_cover(struct fixture *f, uint64_t token)
{
    uint8_t body[CW_COVER_SIZE];

    cw_cover_put(body, &(struct cw_cover){.token = token});
    say_frame(&f->dispatcher, CW_FRAME_COVER, body, sizeof(body));
}

static void say_close(struct fixture *f, uint32_t of, uint32_t incarnation)
{
    uint8_t body[CW_COPY_CLOSE_SIZE];

    cw_copy_close_put(body, &(struct cw_copy_close){.relay = of, .incarnation = incarnation});
    say_frame(&f->dispatcher, CW_FRAME_COPY_CLOSE, body, sizeof(body));
}

static void say_rank_end(struct fixture *f, uint32_t rank)
{
    uint8_t body[CW_RANK_END_SIZE];

    cw_rank_end_put(body, &(struct cw_rank_end){.rank = rank, .incarnation = 1});
    say_frame(&f->dispatcher, CW_FRAME_RANK_END, body, sizeof(body));
}

/* --- the job ------------------------------------------------------------------------------------
 */
static uint64_t copy_region = LEFT_REGION;
static struct cw_copy_closed closed;
static uint64_t covered; /* the token of the last COVERED */

static void note(struct client *c, const struct codec_frame *frame)
{
    struct cw_cover cover;

    (void)c;
    if (frame->header.type == CW_FRAME_COPY_CLOSED)
        CU_ASSERT_TRUE(cw_copy_closed_get(frame->body, &closed));
    if (frame->header.type == CW_FRAME_COVERED && cw_cover_get(frame->body, &cover))
        covered = cover.token;
}

static void forget_stories(void)
{
    for (uint32_t i = 0; i < RELAYS; i++)
        fixture_forget(&relay[i]);
}

static void copy_to(uint32_t peer)
{
    ends_pump(out[peer], in[peer]);
}

/* Relay 0 opens its session for copies with this one, as it has asked last. */
static void open_copy(uint32_t peer)
{
    CU_ASSERT_TRUE_FATAL(relay[0].dial.copies && relay[0].dial.peer == peer);
    CU_ASSERT_TRUE(ends_dial(&relay[0], out[peer], &relay[peer], in[peer]));
}

/* `low`: relay 0 opens the link, else relay 1. Nothing is copied yet. */
static void start(bool low)
{
    closed = (struct cw_copy_closed){0};
    covered = 0;
    for (uint32_t i = 0; i < RELAYS; i++) {
        fixture_init_copies(&relay[i], RELAYS, copy_region);
        relay[i].resume_ms = RESUME_MS;
        relay[i].merged = true;
        relay[i].on_frame = note;
        fixture_connect(&relay[i], &relay[i].dispatcher, "d");
        fixture_hello_dispatcher(&relay[i].dispatcher, 2);
        say_routes(&relay[i], i);
    }
    for (uint32_t i = 0; i < RELAYS; i++)
        for (uint32_t j = 0; j < RELAYS; j++)
            if (i != j)
                say_link_to(&relay[i], i, j, 1, i + j == 1 && i == (low ? 0 : 1));
    if (low)
        ends_dial(&relay[0], link0, &relay[1], link1);
    else
        ends_dial(&relay[1], link1, &relay[0], link0);
    expect_has(&relay[0], "d > NOTICE LINKED 'linked to the 1 other relays of the job'\n");
    expect_has(&relay[2], "d > NOTICE LINKED 'linked to the 0 other relays of the job'\n");
    fixture_connect(&relay[0], r0, "0");
    fixture_hello_rank(r0, 0, 1);
    fixture_connect(&relay[1], r1, "1");
    fixture_hello_rank(r1, 1, 1);
    forget_stories();
}

static void start_covered(bool low)
{
    start(low);
    say_copy(1, 1, 1, 0);
    open_copy(1);
    copy_to(1);
    expect_has(&relay[0], "d > NOTICE COVERED rank 0 'its log is copied'\n");
    forget_stories();
}

static void start_two(void)
{
    start(true);
    say_copy(1, 2, 1, 2);
    relay[0].dial.peer = 1; /* of the two that were asked for, in turn */
    forget_stories();
}

static bool link_waits(void)
{
    return !relay_conn_has_output(link0->conn);
}

/* --- what is held back --------------------------------------------------------------------------
 */
TEST(covered_when_all_of_it_is_there)
{
    start(true);
    say_send(r0, 1, 5, "before");
    CU_ASSERT_FALSE(link_waits());
    ends_pump(link0, link1);
    say_copy(1, 1, 1, 0);
    CU_ASSERT_STRING_EQUAL(relay[0].dial.address, "unix:1.1");
    CU_ASSERT_EQUAL(relay[0].dial.number, 1);
    open_copy(1);
    expect(&relay[0], "0 < SEND to 1 tag 5 total 6 'before'\n"
                      "d < COPY\n");
    copy_to(1);
    expect(&relay[0], "d > NOTICE COVERED rank 0 'its log is copied'\n");
    CU_ASSERT_TRUE(held_is_left(relay[1].config.copies[0].memory, 1));
}

TEST(what_goes_outside_waits_and_nothing_else)
{
    start_covered(true);
    say_recv(r0, 7, 5);
    say_send(r0, 0, 5, "self");
    expect_has(&relay[0], "0 > MESSAGE req 7 tag 5 total 4 FIRST LAST event 1 'self'\n");
    say_send(r0, 1, 6, "other");
    CU_ASSERT_TRUE(link_waits());
    say_cover(&relay[0], 77);
    CU_ASSERT_EQUAL(covered, 0);
    copy_to(1);
    CU_ASSERT_EQUAL(covered, 77);
    CU_ASSERT_FALSE(link_waits());
    ends_pump(link0, link1);
    say_recv(r1, 8, 6);
    expect_has(&relay[1], "1 > MESSAGE req 8 tag 6 total 5 FIRST LAST event 1 'other'\n");
}

TEST(cover_is_answered_at_once_where_nothing_is_copied)
{
    start(true);
    say_cover(&relay[0], 5);
    CU_ASSERT_EQUAL(covered, 5);
}

/* A rank whose session may go on has words that the relay does not know. */
TEST(cover_waits_for_a_rank_that_may_come_back)
{
    start(true);
    fixture_close(r0, "reset");
    say_cover(&relay[0], 5);
    CU_ASSERT_EQUAL(covered, 0);
    fixture_come_back(r0);
    CU_ASSERT_EQUAL(covered, 5);
    fixture_close(r0, "crash");
    say_cover(&relay[0], 6);
    CU_ASSERT_EQUAL(covered, 5);
    say_rank_end(&relay[0], 0);
    CU_ASSERT_EQUAL(covered, 6);
}

TEST(cover_outlives_the_process)
{
    start(true);
    fixture_close(r0, "reset");
    say_cover(&relay[0], 5);
    in[1]->stalled = link1->stalled = false;
    fixture_kill(&relay[0]);
    fixture_close(link1, "reset");
    fixture_come_back(d0);
    CU_ASSERT_EQUAL(covered, 0);
    fixture_come_back(r0);
    CU_ASSERT_EQUAL(covered, 5);
}

TEST(some_commits_are_on_their_way)
{
    start_covered(true);
    for (uint32_t i = 0; i < 3 * COMMITS_OUT_MAX; i++)
        say_send(r0, 1, i, "word");
    CU_ASSERT_TRUE(link_waits());
    while (link_waits())
        CU_ASSERT_TRUE_FATAL(ends_move(out[1], in[1]) || ends_move(in[1], out[1]));
    copy_to(1);
    ends_pump(link0, link1);
    say_recv(r1, 8, 3 * COMMITS_OUT_MAX - 1);
    CU_ASSERT_TRUE(r1->event == 1);
}

TEST(large_messages_go_through)
{
    start_covered(true);
    say_recv(r1, 8, 5);
    say_begin(r0, CW_SEND_TAG, 1, 5, 3000000, 1);
    for (uint32_t at = 1; at < 3000000; at += 200000)
        say_more(r0, 5, at, at + 200000 < 3000000 ? 200000 : 3000000 - at);
    while (ends_move(out[1], in[1]) || ends_move(in[1], out[1]) || ends_move(link0, link1) ||
           ends_move(link1, link0))
        ;
    CU_ASSERT_TRUE(fixture_received(r1, 8, 5, 3000000));
}

/* --- two backups --------------------------------------------------------------------------------
 */
/* Both sessions are opened, in the order in which they were asked for. */
static void open_two(void)
{
    struct relay_dial second = relay[0].dial;

    /* the fixture keeps the last one; the first differs in its number and address alone */
    CU_ASSERT_EQUAL_FATAL(relay[0].dials, 2);
    relay[0].dial.peer = 1;
    open_copy(1);
    relay[0].dial = second;
    relay[0].dial.peer = 2;
    open_copy(2);
}

TEST(the_slower_one_decides)
{
    start_two();
    open_two();
    copy_to(1);
    say_send(r0, 1, 6, "two");
    expect(&relay[0], "0 < SEND to 1 tag 6 total 3 'two'\n");
    copy_to(2);
    copy_to(1);
    copy_to(2);
    expect_has(&relay[0], "d > NOTICE COVERED rank 0 'its log is copied'\n");
    say_send(r0, 1, 7, "three");
    ends_pump(link0, link1);
    copy_to(2);
    CU_ASSERT_TRUE(link_waits());
    copy_to(1);
    CU_ASSERT_FALSE(link_waits());
}

TEST(one_of_two_is_lost)
{
    start_two();
    open_two();
    copy_to(1);
    copy_to(2);
    ends_break(out[1], in[1]);
    say_send(r0, 1, 7, "held");
    copy_to(2);
    CU_ASSERT_TRUE(link_waits());
    forget_stories();
    say_copy(2, 1, 2, 0); /* it stays held: relay 2 had it before */
    CU_ASSERT_TRUE(link_waits());
    copy_to(2);
    CU_ASSERT_FALSE(link_waits());
    expect_has(&relay[0], "d > NOTICE COVERED rank 0 'its log is copied'\n");
}

/* --- backups that go ----------------------------------------------------------------------------
 */
TEST(another_backup)
{
    start_covered(true);
    say_send(r0, 1, 7, "held");
    CU_ASSERT_TRUE(link_waits());
    ends_break(out[1], in[1]);
    say_copy(2, 1, 2, 0);
    CU_ASSERT_FALSE(link_waits()); /* the dispatcher knows that nothing is covered */
    ends_pump(link0, link1);
    open_copy(2);
    copy_to(2);
    expect_has(&relay[0], "d > NOTICE COVERED rank 0 'its log is copied'\n");
    say_send(r0, 1, 8, "held");
    CU_ASSERT_TRUE(link_waits());
    copy_to(2);
    CU_ASSERT_FALSE(link_waits());
}

TEST(no_backup_any_more)
{
    start_covered(true);
    say_send(r0, 1, 7, "held");
    say_copy(2, 0, 0, 0);
    CU_ASSERT_FALSE(link_waits());
    say_cover(&relay[0], 3);
    CU_ASSERT_EQUAL(covered, 3);
}

/* The dispatcher's COPY cannot come, for its session waits for what the lost backup does not say.
 */
TEST(dispatcher_that_resumes_says_what_it_has_sent)
{
    start_covered(true);
    say_send(r0, 1, 7, "held");
    ends_break(out[1], in[1]);
    fixture_close(d0, "reset");
    fixture_come_back(d0);
    CU_ASSERT_FALSE(d0->open); /* its WELCOME waits */
    fixture_close(d0, "reset");
    d0->codec = d0->saved; /* as before that attempt */
    d0->received = d0->saved_received;
    d0->hello.event = 2;
    d0->hello.incarnation = 2; /* that was for its successor: who is cut off stays silent */
    fixture_resume(d0, d0->received);
    CU_ASSERT_FALSE(d0->open || !link_waits());
    fixture_close(d0, "reset");
    d0->codec = d0->saved;
    d0->received = d0->saved_received;
    d0->hello.incarnation = 1;
    fixture_resume(d0, d0->received);
    CU_ASSERT_TRUE_FATAL(d0->open);
    CU_ASSERT_FALSE(link_waits());
    say_copy(2, 1, 2, 0);
    open_copy(2);
    copy_to(2);
    expect_has(&relay[0], "d > NOTICE COVERED rank 0 'its log is copied'\n");
}

TEST(copy_session_resumes)
{
    start_covered(true);
    say_send(r0, 1, 7, "held");
    ends_lose(out[1]);
    ends_break(out[1], in[1]);
    CU_ASSERT_TRUE(relay[0].dial.resumes && relay[0].dial.copies);
    say_send(r0, 1, 8, "and this");
    open_copy(1);
    copy_to(1);
    CU_ASSERT_FALSE(link_waits());
    ends_pump(link0, link1);
    say_recv(r1, 8, 8);
    CU_ASSERT_EQUAL(r1->event, 1);
}

/* A drill. */
TEST(copy_session_is_cut)
{
    uint8_t body[CW_WORD_SIZE];

    start_covered(true);
    cw_word_put(body, CW_CUT_LINKS);
    say_frame(d0, CW_FRAME_CUT, body, sizeof(body));
    CU_ASSERT_TRUE(relay_conn_done(out[1]->conn) && relay_conn_done(link0->conn));
}

TEST(backup_is_killed)
{
    start_covered(true);
    say_send(r0, 1, 7, "held");
    CU_ASSERT_EQUAL(fixture_kill(&relay[1]).jobs, 1);
    out[1]->stalled = link0->stalled = false;
    relay[0].dials = 0;
    fixture_close(link0, "reset");
    fixture_close(out[1], "reset");
    relay[0].dial.copies = true; /* it was asked for last */
    CU_ASSERT_TRUE_FATAL(relay[0].dial.resumes && relay[0].dial.peer == 1);
    CU_ASSERT_FALSE(ends_dial(&relay[0], out[1], &relay[1], in[1]));
    CU_ASSERT_FALSE(relay[0].dial.resumes); /* all of it goes there again */
    open_copy(1);
    copy_to(1);
    CU_ASSERT_TRUE(held_is_left(relay[1].config.copies[0].memory, 1));
}

/* It is killed alone: it may have been covered, so it holds back from the beginning. */
TEST(relay_is_killed_and_returns)
{
    start_covered(true);
    CU_ASSERT_EQUAL(fixture_kill(&relay[0]).jobs, 1);
    in[1]->stalled = link1->stalled = false;
    fixture_close(link1, "reset");
    fixture_close(in[1], "reset");
    fixture_forget(&relay[0]);
    fixture_come_back(d0); /* is answered once that is covered */
    CU_ASSERT_TRUE_FATAL(relay[0].dial.copies);
    CU_ASSERT_FALSE(relay[0].dial.resumes);
    open_copy(1);
    copy_to(1);
    expect_has(&relay[0], "d > NOTICE COVERED rank 0 'its log is copied'\n");
    fixture_come_back(r0);
    say_send(r0, 1, 7, "held");
    copy_to(1);
}

/* --- the relay is lost --------------------------------------------------------------------------
 */
/* Relay 0 is cut off, and another process takes its place with the copy at this relay. */
static void lose_to(uint32_t backup, bool low)
{
    struct ledger_memory *left;
    struct relay_returned returned;

    link1->stalled = false;
    fixture_close(link1, "its host is silent");
    say_close(&relay[backup], 0, 1);
    CU_ASSERT_EQUAL_FATAL(closed.covered, 1);
    left = left_copy(relay[backup].config.copies[0].memory);
    returned = fixture_init_successor(&next, left, 2);
    CU_ASSERT_EQUAL(returned.jobs, 1);
    CU_ASSERT_EQUAL(returned.lost, 0);
    CU_ASSERT_STRING_EQUAL(returned.why, "");
    next.resume_ms = RESUME_MS;
    next.merged = true;
    next.on_frame = note;
    fixture_close(d0, "its host is silent");
    next.dispatcher = *d0;
    *d0 = (struct client){.fixture = &relay[0]};
    next.dispatcher.fixture = &next;
    fixture_come_back(&next.dispatcher);
    say_link_to(&next, 0, 1, 1, low);
    say_link_to(&next, 0, 2, 1, false);
    say_rank_end(&next, 0);
    say_link_to(&relay[1], 1, 0, 2, !low);
    if (low) {
        CU_ASSERT_EQUAL_FATAL(next.dial.incarnation, 2);
        CU_ASSERT_TRUE_FATAL(next.dial.resumes && !next.dial.copies);
        ends_dial(&next, &next.other[0], &relay[1], link1);
    } else {
        CU_ASSERT_STRING_EQUAL(relay[1].dial.address, "unix:0.2");
        CU_ASSERT_TRUE_FATAL(relay[1].dial.resumes && !relay[1].dial.copies);
        ends_dial(&relay[1], link1, &next, &next.other[0]);
    }
    forget_stories();
    fixture_forget(&next);
}

static void pump_next(void)
{
    ends_pump(&next.other[0], link1);
}

/* What rank 0 had sent comes once, and the rest of it when it is repeated. */
static void lost_amid_messages(bool low)
{
    struct client *r = &next.rank[0];

    start_covered(low);
    say_recv(r1, 8, 5);
    say_send(r0, 1, 5, "came");
    copy_to(1);
    ends_pump(link0, link1);
    say_send(r0, 1, 6, "covered");
    copy_to(1);
    say_send(r0, 1, 7, "lost");
    CU_ASSERT_EQUAL(r1->event, 1);
    lose_to(1, low);
    pump_next();
    say_recv(r1, 9, 6);
    CU_ASSERT_EQUAL(r1->event, 2);
    say_send(r1, 0, 3, "back");
    pump_next();
    fixture_connect(&next, r, "0");
    fixture_hello_rank(r, 0, 2);
    CU_ASSERT_EQUAL(r->welcome.acts, 2);
    say_live(r, 0, 0);
    say_send(r, 1, 7, "again");
    pump_next();
    say_recv(r1, 10, 7);
    expect_has(&relay[1], "1 > MESSAGE req 10 tag 7 total 5 FIRST LAST event 3 'again'\n");
    say_recv(r, 4, 3);
    expect_has(&next, "0 > MESSAGE req 4 tag 3 total 4 FIRST LAST event 1 'back'\n");
}

TEST(lost_and_the_lower_one_opens_links)
{
    lost_amid_messages(true);
}

TEST(lost_and_the_other_one_opens_links)
{
    lost_amid_messages(false);
}

/* Relay 0 connects to relay 1 once more, with the key that it was given. */
static void knocks(struct client *x, const struct relay_dial *dial, uint32_t incarnation,
                   uint32_t flags, const char *answer)
{
    fixture_connect(&relay[1], x, "x");
    x->hello = (struct cw_hello){
        .role = CW_ROLE_RELAY, .rank = 0, .incarnation = incarnation, .flags = flags};
    memcpy(x->key, dial->key, CW_KEY_SIZE);
    fixture_hello(x);
    expect_has(&relay[1], answer);
}

TEST(who_is_cut_off_is_fenced)
{
    struct client *x = &relay[1].other[3];
    struct relay_dial dial;

    start_covered(true);
    say_send(r0, 1, 6, "lost");
    lose_to(1, true);
    /* its session for copies is over, and no other one is opened */
    dial = relay[0].dial;
    copy_to(1);
    CU_ASSERT_TRUE(link_waits());
    CU_ASSERT_FALSE(relay_conn_has_output(out[1]->conn));
    knocks(x, &dial, 1, CW_HELLO_COPY,
           "x > REFUSED FENCED 'relay 0, incarnation 1: incarnation 2 took its place'\n");
    knocks(x, &dial, 1, CW_HELLO_RESUME,
           "x > REFUSED FENCED 'relay 0, incarnation 1: incarnation 2 took its place'\n");
    /* nor a later one with the memory that is another process's now */
    knocks(x, &dial, 2, CW_HELLO_COPY,
           "x > REFUSED FENCED 'another process has taken the place of relay 0'\n");
}

/* The successor is copied, too, and lost as well. */
TEST(lost_again)
{
    struct ledger_memory *left;
    struct client *near = &next.other[1];

    start_covered(true);
    say_send(r0, 1, 6, "covered");
    copy_to(1);
    lose_to(1, true);
    say_copy_as(&next, 1, 1, 1, 1, 0); /* for the one before: void */
    CU_ASSERT_EQUAL(next.dials, 0);
    say_copy_as(&next, 2, 2, 1, 2, 0);
    CU_ASSERT_TRUE_FATAL(next.dial.copies);
    CU_ASSERT_TRUE(ends_dial(&next, near, &relay[2], in[2]));
    ends_pump(near, in[2]);
    expect_has(&next, "d > NOTICE COVERED rank 0 'its log is copied'\n");
    say_close(&relay[2], 0, 2);
    CU_ASSERT_EQUAL_FATAL(closed.covered, 1);
    left = left_copy(relay[2].config.copies[0].memory);
    fixture_fini(&relay[0]);
    CU_ASSERT_EQUAL(fixture_init_successor(&relay[0], left, 3).jobs, 1);
}

/* A backup that is killed after it gave the copy away leaves it alone. */
TEST(given_away_for_ever)
{
    start_covered(true);
    lose_to(1, true);
    link1->stalled = false;
    CU_ASSERT_EQUAL(fixture_kill(&relay[1]).jobs, 1);
    fixture_come_back(d1);
    say_close(&relay[1], 0, 1);
    CU_ASSERT_EQUAL(closed.covered, 1);
}

TEST(close_where_there_is_no_copy)
{
    start(true);
    closed.covered = 1;
    say_close(&relay[2], 0, 1);
    CU_ASSERT_EQUAL(closed.covered, 0);
    CU_ASSERT_EQUAL(closed.relay, 0);
}

/* As relay 0. */
static void hello_for_copies(struct client *x)
{
    uint8_t under[CW_KEY_SIZE];

    fixture_connect(&relay[2], x, "x");
    x->hello = (struct cw_hello){
        .role = CW_ROLE_RELAY, .rank = 0, .incarnation = 1, .flags = CW_HELLO_COPY};
    cw_cred_job_key(under, relay[2].relay_key, relay[2].job);
    cw_cred_link_key(x->key, under, 0);
    fixture_hello(x);
    CU_ASSERT_TRUE_FATAL(x->open);
}

/* --- what cannot be -----------------------------------------------------------------------------
 */
/* The backup says so: the relay itself may have to be silent. */
TEST(no_room_at_the_backup)
{
    copy_region = 3 * sizeof(struct relay_block);
    start(true);
    copy_region = LEFT_REGION;
    say_copy(7, 1, 1, 0);
    open_copy(1);
    copy_to(1);
    forget_stories();
    for (uint32_t i = 0; i < 20; i++) /* they wait in the log of rank 0 */
        say_begin(r0, CW_SEND_TAG, 0, i, 60000, 60000);
    say_send(r0, 1, 6, "held");
    copy_to(1);
    expect_has(&relay[1], "d > NOTICE UNCOVERED rank 0 'the copy of its log: it holds more than");
    CU_ASSERT_TRUE(link_waits());
    CU_ASSERT_TRUE(held_is_left(relay[1].config.copies[0].memory, 1));
    say_copy(8, 0, 0, 0);
    CU_ASSERT_FALSE(link_waits());
}

/* Of a relay that proves who it is, but sends what is no part of a log. */
TEST(part_that_is_none)
{
    static const uint8_t body[CW_COPY_REF_SIZE + 100] = {1};
    struct client *x = &relay[2].other[2];

    start(true);
    hello_for_copies(x);
    say_frame(x, CW_FRAME_COPY_PART, body, sizeof(body));
    expect_has(&relay[2], "x > REFUSED PROTOCOL 'a part of a log that is not whole'\n");
    hello_for_copies(x);
    say_frame(x, CW_FRAME_COPY_PART, body, CW_COPY_REF_SIZE);
    expect_has(&relay[2], "x > REFUSED PROTOCOL 'COPY_PART frame of no bytes'\n");
}

TEST(copies_that_cannot_be_made)
{
    start(true);
    say_copy(1, 1, 0, 0); /* itself */
    expect_has(&relay[0], "d > REFUSED PROTOCOL 'COPY frame that does not add up'\n");
    fixture_end();
    start(true);
    say_copy(1, 1, 3, 0);
    expect_has(&relay[0], "d > REFUSED PROTOCOL 'COPY frame that does not add up'\n");
    fixture_end();
    start(true);
    say_close(&relay[0], 0, 1);
    expect_has(&relay[0], "d > REFUSED PROTOCOL 'COPY_CLOSE frame that does not add up'\n");
}
