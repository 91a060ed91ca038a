/* Two relays of one job, cores both, and the link between them. Ranks 0 and 2 are at home at relay
 * 0, ranks 1 and 3 at relay 1. */
#include "common/cred.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

SUITE_AFTER_EACH("trace of links", fixture_end);

#define RANKS 4
#define LARGE 300000
#define MESSAGES 300

static struct fixture relay[2];
static struct client *ends[2]; /* of the link, one at each relay */
static uint32_t resume_ms;     /* of its jobs */

static struct client *rank(uint32_t r)
{
    return &relay[r % 2].rank[r];
}

/* --- the link --------------------------------------------------------------------------------- */
/* Moves what one end says to the other. Returns false when there was nothing. */
static bool move(struct client *from, struct client *to)
{
    struct iovec iov[4];
    size_t room;
    void *at;
    int n;

    if (!from->conn || !relay_conn_has_output(from->conn))
        return false;
    n = relay_conn_output(from->conn, iov, 4);
    CU_ASSERT_TRUE_FATAL(n > 0);
    if (to->conn && relay_conn_space(to->conn, &at, &room) == CW_OK) {
        room = iov[0].iov_len < room ? iov[0].iov_len : room;
        if (to->fixture->feed == FEED_RANDOM)
            room = 1 + codec_random_below(&to->fixture->seed, room);
        memcpy(at, iov[0].iov_base, room);
        relay_conn_written(from->conn, room);
        relay_conn_input(to->conn, room);
    } else {
        relay_conn_written(from->conn, iov[0].iov_len);
    }
    fixture_collect(from->fixture);
    fixture_collect(to->fixture);
    return true;
}

static void end_if_done(struct client *from, struct client *to)
{
    if (!from->conn || !relay_conn_done(from->conn))
        return;
    fixture_close(from, "closed by the relay");
    fixture_close(to, "its connection ended");
}

static void pump(void)
{
    while (move(ends[0], ends[1]) || move(ends[1], ends[0]))
        ;
    end_if_done(ends[0], ends[1]);
    end_if_done(ends[1], ends[0]);
}

/* --- opening ---------------------------------------------------------------------------------- */
/* Every second rank is at home at relay `home`. */
static void say_home(struct fixture *f, uint32_t self, uint32_t home)
{
    struct cw_route route = {
        .self = self, .relays = 2, .home = home, .first = home, .step = 2, .count = RANKS / 2};
    uint8_t body[CW_ROUTE_SIZE];

    cw_route_put(body, &route);
    say_frame(&f->dispatcher, CW_FRAME_ROUTE, body, sizeof(body));
}

static void say_route(struct fixture *f, uint32_t self)
{
    say_home(f, self, 0);
    say_home(f, self, 1);
}

static void open_job(struct fixture *f, uint32_t self, bool log)
{
    if (log)
        fixture_init_log(f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    else
        fixture_init(f, FIXTURE_MEMORY);
    f->resume_ms = resume_ms;
    fixture_connect(f, &f->dispatcher, "d");
    fixture_hello_dispatcher(&f->dispatcher, RANKS);
    say_route(f, self);
}

static void job_key_of(uint8_t key[CW_KEY_SIZE], const struct fixture *f)
{
    cw_cred_job_key(key, f->relay_key, f->job);
}

/* As the dispatcher says it: relay 0 is to connect to relay 1. */
static void say_link(const char *address)
{
    struct cw_link link = {.peer = 1};
    uint8_t body[CW_LINK_SIZE + CW_LINK_ADDRESS_MAX];
    uint8_t key[CW_KEY_SIZE];
    uint8_t under[CW_KEY_SIZE];

    job_key_of(key, &relay[1]);
    cw_cred_link_key(key, key, 0);
    job_key_of(under, &relay[0]);
    cw_cred_seal(link.sealed, key, under);
    snprintf(link.address, sizeof(link.address), "%s", address);
    say_frame(&relay[0].dispatcher, CW_FRAME_LINK, body, cw_link_put(body, &link));
}

/* Relay `number` of the job says hello to relay 1, under this key. */
static struct client *hello_relay(uint32_t number, const uint8_t *key)
{
    struct client *c = &relay[1].other[number];

    fixture_connect(&relay[1], c, "x");
    c->hello = (struct cw_hello){.role = CW_ROLE_RELAY, .rank = number, .incarnation = 1};
    memcpy(c->key, key, CW_KEY_SIZE);
    fixture_hello(c);
    return c;
}

/* What the dialler does, and gives back. */
static void dial(void)
{
    struct relay_dialled dialled = relay_dialled_of(&relay[0].dial);

    ends[1] = hello_relay(relay[0].dial.self, relay[0].dial.key);
    ends[0] = &relay[0].other[1];
    *ends[0] = (struct client){.fixture = &relay[0], .name = "x", .stalled = true};
    dialled.session = ends[1]->codec.session;
    ends[0]->conn = relay_conn_dialled(relay[0].core, &dialled, relay[0].now_ns, ends[0]);
    CU_ASSERT_PTR_NOT_NULL_FATAL(ends[0]->conn);
    ends[1]->stalled = true;
    fixture_collect(&relay[0]);
}

static void start_linked(bool log, enum fixture_feed feed)
{
    char name[8];

    open_job(&relay[0], 0, log);
    open_job(&relay[1], 1, log);
    say_link("unix:there");
    dial();
    for (uint32_t r = 0; r < RANKS; r++) {
        snprintf(name, sizeof(name), "%u", r % 10);
        fixture_connect(&relay[r % 2], rank(r), name);
        fixture_hello_rank(rank(r), r, 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(rank(r)->conn);
    }
    fixture_forget(&relay[0]);
    fixture_forget(&relay[1]);
    relay[0].feed = relay[1].feed = feed;
}

TEST(both_are_told)
{
    uint8_t key[CW_KEY_SIZE];

    open_job(&relay[0], 0, false);
    open_job(&relay[1], 1, false);
    fixture_forget(&relay[0]);
    fixture_forget(&relay[1]);
    say_link("unix:there");
    CU_ASSERT_EQUAL(relay[0].dials, 1);
    CU_ASSERT_EQUAL(relay[0].dial.self, 0);
    CU_ASSERT_EQUAL(relay[0].dial.peer, 1);
    CU_ASSERT_STRING_EQUAL(relay[0].dial.address, "unix:there");
    job_key_of(key, &relay[1]);
    cw_cred_link_key(key, key, 0);
    CU_ASSERT_EQUAL(memcmp(key, relay[0].dial.key, CW_KEY_SIZE), 0);
    dial();
    expect_has(&relay[0], "d > NOTICE LINKED 'linked to the 1 other relays of the job'\n");
    expect_has(&relay[1], "d > NOTICE LINKED 'linked to the 1 other relays of the job'\n");
}

TEST(dial_that_fails)
{
    struct relay_dialled dialled;

    open_job(&relay[0], 0, false);
    open_job(&relay[1], 1, false);
    say_link("unix:there");
    dialled = relay_dialled_of(&relay[0].dial);
    strcpy(dialled.failure, "nobody is there");
    fixture_forget(&relay[0]);
    memcpy(dialled.job, relay[0].job, CW_ID_SIZE);
    relay_core_undialled(relay[0].core, &dialled);
    fixture_collect(&relay[0]);
    expect(&relay[0], "d > NOTICE FATAL 'no link to relay 1 of the job: nobody is there'\n");
    /* one for a job that ended in the meantime */
    dialled.job[0] ^= 1;
    relay_core_undialled(relay[0].core, &dialled);
    fixture_collect(&relay[0]);
    expect(&relay[0], "");
    /* more than the dialler takes */
    say_link("unix:there");
    say_link("unix:there");
    expect_has(&relay[0], "d > NOTICE FATAL 'no link to relay 1 of the job: too many links are "
                          "being opened, or no thread can be started'\n");
}

TEST(strange_relays)
{
    uint8_t key[CW_KEY_SIZE];

    start_linked(false, FEED_WHOLE);
    job_key_of(key, &relay[1]);
    cw_cred_link_key(key, key, 0);
    hello_relay(2, key);
    expect_has(&relay[1], "x > REFUSED CREDENTIAL 'wrong credential for relay 2 of the job'\n");
    job_key_of(key, &relay[1]);
    cw_cred_link_key(key, key, 2);
    hello_relay(2, key);
    expect_has(&relay[1], "x > REFUSED LIMIT 'relay 2 of a job of 2 relays is not expected");
    fixture_connect(&relay[1], &relay[1].other[3], "x");
    fixture_hello_rank(&relay[1].other[3], 2, 1);
    expect_has(&relay[1],
               "x > REFUSED JOB 'the home of rank 2 is relay 0 of the job, not this one'\n");
}

/* --- messages --------------------------------------------------------------------------------- */
TEST(message_to_another_relay)
{
    start_linked(false, FEED_WHOLE);
    say_recv(rank(1), 7, 5);
    fixture_forget(&relay[1]);
    say_send(rank(0), 1, 5, "abc");
    pump();
    expect(&relay[0], "0 < SEND to 1 tag 5 total 3 'abc'\n");
    expect(&relay[1], "1 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n");
}

TEST(unexpected_and_synchronous)
{
    start_linked(false, FEED_WHOLE);
    say_send_kind(rank(0), CW_SEND_SYNC, 1, 9, 5, "abc");
    pump();
    expect(&relay[0], "0 < SEND to 1 SYNC req 9 tag 5 total 3 'abc'\n");
    expect(&relay[1], "");
    say_recv(rank(1), 7, 5);
    pump();
    expect(&relay[1], "1 < RECV req 7 tag 5\n"
                      "1 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n");
    expect(&relay[0], "0 > SENT req 9 event 1\n");
}

TEST(active_message)
{
    start_linked(false, FEED_WHOLE);
    say_send_kind(rank(3), CW_SEND_AM, 2, 0, 5, "abc");
    pump();
    expect(&relay[0], "2 > MESSAGE req 0 tag 5 total 3 FIRST LAST ACTIVE event 1 'abc'\n");
}

/* Their parts take turns on the one link. */
TEST(large_messages_of_two_ranks)
{
    start_linked(false, FEED_WHOLE);
    say_recv(rank(1), 7, 5);
    say_recv(rank(3), 8, 6);
    say_begin(rank(0), CW_SEND_TAG, 1, 5, LARGE, 100000);
    say_begin(rank(2), CW_SEND_TAG, 3, 6, LARGE, 100000);
    for (uint32_t at = 100000; at < LARGE; at += 100000) {
        say_more(rank(0), 5, at, 100000);
        say_more(rank(2), 6, at, 100000);
        pump();
    }
    CU_ASSERT_TRUE(fixture_received(rank(1), 7, 5, LARGE));
    CU_ASSERT_TRUE(fixture_received(rank(3), 8, 6, LARGE));
}

/* While much is under way to the other relay, the sender waits; the link itself is always read. */
TEST(link_that_is_behind)
{
    start_linked(false, FEED_WHOLE);
    relay[0].mute = true;
    say_begin(rank(0), CW_SEND_TAG, 1, 5, 2 * RELAY_CUT_BACKLOG_MAX, 100000);
    for (uint32_t at = 100000; at < RELAY_CUT_BACKLOG_MAX + 100000; at += 100000)
        say_more(rank(0), 5, at, 100000);
    CU_ASSERT_FALSE(relay_conn_wants_input(rank(0)->conn, relay[0].now_ns));
    CU_ASSERT_FALSE(relay_conn_wants_input(rank(0)->conn, relay[0].now_ns + (1ull << 40)));
    CU_ASSERT_TRUE(relay_conn_wants_input(rank(2)->conn, relay[0].now_ns));
    CU_ASSERT_TRUE(relay_conn_wants_input(ends[1]->conn, relay[0].now_ns));
    pump();
    CU_ASSERT_TRUE(relay_conn_wants_input(rank(0)->conn, relay[0].now_ns));
}

/* The same of messages of one frame; also while the link is down. */
static void messages_to_a_link_that_is_behind(bool down)
{
    uint64_t sent = 0;

    resume_ms = 1000;
    start_linked(true, FEED_WHOLE);
    relay[0].mute = true;
    if (down)
        relay_conn_broken(ends[0]->conn, "the way was cut", NULL, 0);
    for (; relay_conn_wants_input(rank(0)->conn, relay[0].now_ns) && sent < 1000; sent++)
        say_begin(rank(0), CW_SEND_TAG, 1, sent, 64 << 10, 64 << 10);
    CU_ASSERT_TRUE(sent >= RELAY_CUT_BACKLOG_MAX >> 16 && sent < RELAY_CUT_BACKLOG_MAX >> 15);
    CU_ASSERT_TRUE(relay_conn_wants_input(rank(2)->conn, relay[0].now_ns));
    if (!down)
        pump();
    CU_ASSERT_EQUAL(relay_conn_wants_input(rank(0)->conn, relay[0].now_ns), !down);
    if (down) {
        ends[0]->conn = NULL;
        fixture_tick(&relay[0], 1);
        fixture_tick(&relay[0], 2000000000);
        CU_ASSERT_TRUE(relay_conn_wants_input(rank(0)->conn, relay[0].now_ns));
        fixture_close(ends[1], "the way was cut");
    }
    fixture_end();
    resume_ms = 0;
}

TEST(small_messages_to_a_link_that_is_behind)
{
    messages_to_a_link_that_is_behind(false);
    messages_to_a_link_that_is_behind(true);
}

/* Every rank sends to every other, and bytes come as they like. */
TEST(many_messages)
{
    static uint64_t sizes[MESSAGES];
    uint32_t dsts[MESSAGES];
    uint64_t seed = 5;

    start_linked(true, FEED_RANDOM);
    relay[0].mute = relay[1].mute = true;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        uint32_t src = (uint32_t)codec_random_below(&seed, RANKS);

        dsts[i] = (uint32_t)codec_random_below(&seed, RANKS);
        sizes[i] = 1 + codec_random_below(&seed, i % 10 ? 3000 : 100000);
        if (i % 2)
            say_recv(rank(dsts[i]), i, i);
        say_begin(rank(src), CW_SEND_TAG, dsts[i], i, sizes[i], sizes[i]);
        if (i % 3 == 0)
            pump();
        if (i % 2 == 0)
            say_recv(rank(dsts[i]), i, i);
    }
    pump();
    for (uint32_t i = 0; i < MESSAGES; i++)
        CU_ASSERT_TRUE(fixture_received(rank(dsts[i]), i, i, sizes[i]));
}

/* --- crashes ---------------------------------------------------------------------------------- */
TEST(receiver_comes_back)
{
    start_linked(true, FEED_WHOLE);
    say_recv(rank(1), 7, 5);
    say_send(rank(0), 1, 5, "abc");
    pump();
    say_taken(rank(1), 1, 1);
    fixture_close(rank(1), "crash");
    fixture_forget(&relay[1]);
    fixture_again(rank(1));
    expect_has(&relay[1], "1 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n"
                          "1 > REPLAYED\n");
}

/* The next incarnation sends the rest, and the other relay does not notice. */
TEST(sender_comes_back)
{
    start_linked(true, FEED_WHOLE);
    say_recv(rank(1), 7, 5);
    say_begin(rank(0), CW_SEND_TAG, 1, 5, LARGE, 100000);
    pump();
    fixture_close(rank(0), "crash");
    pump();
    fixture_again(rank(0));
    CU_ASSERT_EQUAL(rank(0)->welcome.missing, LARGE - 100000);
    say_live(rank(0), 0, 0);
    say_more(rank(0), 5, 100000, 200000);
    pump();
    CU_ASSERT_TRUE(fixture_received(rank(1), 7, 5, LARGE));
}

/* It crashes between any two bytes of a frame. */
TEST(sender_comes_back_in_a_frame)
{
    static const size_t cuts[] = {1, 7, 20, 60, 61, 1000, 99999};

    for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
        struct client *c;
        uint64_t missing;

        start_linked(true, FEED_WHOLE);
        relay[0].mute = relay[1].mute = true;
        c = rank(0);
        say_recv(rank(1), 7, 5);
        say_begin(c, CW_SEND_TAG, 1, 5, LARGE, 100000);
        codec_pattern(codec_begin(&c->codec, CW_FRAME_SEND_DATA, 100000), 5, 100000, 100000);
        fixture_feed_some(c, cuts[i]);
        pump();
        fixture_close(c, "crash");
        pump();
        fixture_again(c);
        missing = c->welcome.missing;
        CU_ASSERT_EQUAL(missing, LARGE - 100000 -
                                     (cuts[i] > CW_FRAME_HEADER ? cuts[i] - CW_FRAME_HEADER : 0));
        say_live(c, 0, 0);
        say_more(c, 5, LARGE - missing, missing);
        pump();
        CU_ASSERT_TRUE(fixture_received(rank(1), 7, 5, LARGE));
        fixture_end();
    }
}

/* Without a log nobody sends the rest: the other relay lets go of what it had. */
TEST(sender_is_gone)
{
    start_linked(false, FEED_WHOLE);
    say_recv(rank(1), 7, 5);
    say_begin(rank(0), CW_SEND_TAG, 1, 5, LARGE, 100000);
    pump();
    fixture_close(rank(0), "crash");
    pump();
    CU_ASSERT_FALSE(fixture_received(rank(1), 7, 5, LARGE));
    say_recv(rank(1), 8, 6);
    say_send(rank(2), 1, 6, "abc");
    pump();
    CU_ASSERT_PTR_NOT_NULL(strstr(relay[1].story, "1 > MESSAGE req 8"));
}

TEST(link_that_breaks)
{
    start_linked(true, FEED_WHOLE);
    say_begin(rank(0), CW_SEND_TAG, 1, 5, LARGE, 100000);
    fixture_forget(&relay[0]);
    fixture_close(ends[0], "reset");
    fixture_close(ends[1], "reset");
    expect(&relay[0], "x ends: reset\n"
                      "d > NOTICE UNLINKED 'the link to relay 1 of the job broke: reset'\n");
    expect_has(&relay[1], "d > NOTICE UNLINKED 'the link to relay 0 of the job broke: reset'\n");
    say_more(rank(0), 5, 100000, 200000);
    say_send(rank(0), 1, 6, "into the void");
    CU_ASSERT_PTR_NOT_NULL(rank(0)->conn);
}

/* Relay 0, played by the test, connects to relay 1 and begins a message of 100 bytes. */
static struct client *begin_forward(size_t payload, size_t sent)
{
    struct cw_forward forward = {.src = 0, .send = {.dst = 1, .kind = CW_SEND_TAG, .total = 100}};
    struct client *c;
    uint8_t key[CW_KEY_SIZE];

    job_key_of(key, &relay[1]);
    cw_cred_link_key(key, key, 0);
    c = hello_relay(0, key);
    if (c->conn) {
        cw_forward_put(codec_begin(&c->codec, CW_FRAME_FORWARD, CW_FORWARD_SIZE + payload),
                       &forward);
        fixture_feed_some(c, CW_FRAME_HEADER + CW_FORWARD_SIZE + sent);
    }
    return c;
}

/* A message that lacks its rest is let go of with its link, whoever comes next, and wherever it
 * broke off: its receive is posted, it waits for one, or it was taken out by a probe. */
TEST(link_that_breaks_in_a_message)
{
    for (int i = 0; i < 6; i++) {
        struct client *c;

        open_job(&relay[1], 1, i % 2);
        fixture_connect(&relay[1], rank(1), "1");
        fixture_hello_rank(rank(1), 1, 1);
        if (i / 2 == 1)
            say_recv(rank(1), 7, 0);
        c = begin_forward(i % 2 ? 100 : 60, 50);
        if (i / 2 == 2)
            say_probe(rank(1), 0, CODEC_ALL, true);
        fixture_close(c, "reset");
        CU_ASSERT_PTR_NULL(begin_forward(100, 50)->conn);
        say_recv(rank(1), 8, 0);
        CU_ASSERT_FALSE(fixture_received(rank(1), 8, 0, 100));
        fixture_fini(&relay[1]);
    }
}

/* A relay links once to a job, from either side: what it said before is not begun again. */
TEST(second_link)
{
    uint8_t key[CW_KEY_SIZE];

    start_linked(false, FEED_WHOLE);
    fixture_close(ends[0], "reset");
    fixture_close(ends[1], "reset");
    job_key_of(key, &relay[1]);
    cw_cred_link_key(key, key, 0);
    fixture_forget(&relay[1]);
    hello_relay(0, key);
    expect_has(&relay[1], "x > REFUSED LIMIT 'relay 0 of a job of 2 relays is not expected: it has "
                          "been linked already, or");
    say_link("unix:there");
    dial();
    CU_ASSERT_TRUE(relay_conn_done(ends[0]->conn));
    expect_has(&relay[0], "d < LINK\n");
}

/* The link's connection breaks at both ends, and what was under way on it is lost. */
static void break_link(void)
{
    struct iovec iov[8];

    for (int i = 0; i < 2; i++) {
        size_t size = 0;

        for (int n = relay_conn_output(ends[i]->conn, iov, 8), at = 0; at < n; at++)
            size += iov[at].iov_len;
        relay_conn_written(ends[i]->conn, size);
    }
    fixture_close(ends[0], "reset");
    fixture_close(ends[1], "reset");
    fixture_collect(&relay[0]);
}

/* What the dialler does when it is to resume. */
static void dial_again(void)
{
    struct relay_dialled dialled = relay_dialled_of(&relay[0].dial);
    struct client *c = &relay[1].other[0];

    fixture_connect(&relay[1], c, "x");
    c->hello = (struct cw_hello){.role = CW_ROLE_RELAY,
                                 .rank = relay[0].dial.self,
                                 .incarnation = 1,
                                 .flags = CW_HELLO_RESUME,
                                 .received = relay[0].dial.received};
    memcpy(c->key, relay[0].dial.key, CW_KEY_SIZE);
    c->stalled = false;
    fixture_hello(c);
    CU_ASSERT_TRUE(c->welcome.flags & CW_WELCOME_RESUMED);
    dialled.received = c->welcome.received;
    ends[0]->conn = relay_conn_dialled(relay[0].core, &dialled, relay[0].now_ns, ends[0]);
    CU_ASSERT_PTR_NOT_NULL_FATAL(ends[0]->conn);
    ends[1] = c;
    ends[0]->stalled = ends[1]->stalled = true;
    fixture_collect(&relay[0]);
}

TEST(link_that_resumes)
{
    resume_ms = 5000;
    start_linked(false, FEED_WHOLE);
    CU_ASSERT_FALSE(relay[0].dial.resumes);
    say_recv(rank(1), 7, 5);
    say_begin(rank(0), CW_SEND_TAG, 1, 5, 300000, 100000);
    break_link();
    say_more(rank(0), 5, 100000, 100000);
    CU_ASSERT_TRUE_FATAL(relay[0].dial.resumes);
    CU_ASSERT_EQUAL(relay[0].dial.resume_ns, 5000000000ull);
    dial_again();
    pump();
    say_more(rank(0), 5, 200000, 100000);
    pump();
    CU_ASSERT_TRUE(fixture_received(rank(1), 7, 5, 300000));
    fixture_end();
    resume_ms = 0;
}

TEST(link_that_is_given_up)
{
    struct relay_dialled dialled;

    resume_ms = 5000;
    start_linked(false, FEED_WHOLE);
    break_link();
    dialled = relay_dialled_of(&relay[0].dial);
    strcpy(dialled.failure, "refused");
    relay_core_undialled(relay[0].core, &dialled);
    fixture_collect(&relay[0]);
    expect_has(&relay[0], "d > NOTICE UNLINKED 'the link to relay 1 of the job broke: refused'\n");
    fixture_tick(&relay[1], 1);
    fixture_tick(&relay[1], 5000000001ull);
    expect_has(&relay[1], "d > NOTICE UNLINKED 'the link to relay 0 of the job broke: reset; it "
                          "was not resumed for 5000 ms'\n");
    fixture_end();
    resume_ms = 0;
}

/* A job ends while its link is being opened, and another takes its identifier. */
TEST(link_of_the_job_before)
{
    struct relay_dialled dialled;
    struct client *c = &relay[0].other[0];

    for (uint32_t self = 0; self < 2; self++) {
        open_job(&relay[0], 0, false);
        open_job(&relay[1], 1, false);
        say_link("unix:there");
        dialled = relay_dialled_of(&relay[0].dial);
        fixture_close(&relay[0].dispatcher, "the job is over");
        fixture_connect(&relay[0], &relay[0].dispatcher, "d");
        fixture_hello_dispatcher(&relay[0].dispatcher, RANKS);
        if (self == 1)
            say_route(&relay[0], 1);
        fixture_forget(&relay[0]);
        *c = (struct client){.fixture = &relay[0], .name = "x"};
        c->conn = relay_conn_dialled(relay[0].core, &dialled, relay[0].now_ns, c);
        fixture_collect(&relay[0]);
        expect(&relay[0], "x is closed\n");
        fixture_end();
    }
}

TEST(job_that_ends)
{
    start_linked(true, FEED_WHOLE);
    say_begin(rank(0), CW_SEND_TAG, 1, 5, LARGE, 100000);
    fixture_close(&relay[0].dispatcher, "the job is over");
    pump();
    expect_has(
        &relay[1],
        "d > NOTICE UNLINKED 'the link to relay 0 of the job broke: its connection ended'\n");
}

/* --- what relays may not say ------------------------------------------------------------------ */
/* Relay 0, played by the test, says this to relay 1. */
static void refused(uint8_t type, const uint8_t *body, size_t size, const char *says)
{
    uint8_t key[CW_KEY_SIZE];
    char text[256];
    struct client *c;

    open_job(&relay[1], 1, false);
    job_key_of(key, &relay[1]);
    cw_cred_link_key(key, key, 0);
    c = hello_relay(0, key);
    fixture_forget(&relay[1]);
    say_frame(c, type, body, size);
    snprintf(text, sizeof(text), "x > REFUSED PROTOCOL '%s'\n", says);
    CU_ASSERT_PTR_NOT_NULL(strstr(relay[1].story, text));
    snprintf(text, sizeof(text), "d > NOTICE FATAL 'relay 0 of the job was refused: %s'\n", says);
    expect_has(&relay[1], text);
    fixture_fini(&relay[1]);
}

static void refused_forward(uint32_t src, uint32_t dst, uint64_t total, size_t payload,
                            const char *says)
{
    struct cw_forward forward = {.src = src,
                                 .send = {.dst = dst, .kind = CW_SEND_TAG, .total = total}};
    uint8_t body[CW_FORWARD_SIZE + 16] = {0};

    cw_forward_put(body, &forward);
    refused(CW_FRAME_FORWARD, body, CW_FORWARD_SIZE + payload, says);
}

static void refused_ref(uint8_t type, uint32_t r, size_t payload, const char *says)
{
    uint8_t body[CW_FORWARD_REF_SIZE + 16] = {0};

    cw_forward_ref_put(body, &(struct cw_forward_ref){.rank = r});
    refused(type, body, CW_FORWARD_REF_SIZE + payload, says);
}

TEST(what_relays_may_not_say)
{
    const char *not_its_own = "relay 0 speaks for rank 1, which is not its own";

    refused_forward(0, 1, 3, 4, "FORWARD frame that does not add up");
    refused_forward(0, 2, 4, 4, "FORWARD frame that does not add up");
    refused_forward(0, RANKS, 4, 4, "FORWARD frame that does not add up");
    refused_forward(1, 3, 4, 4, not_its_own);
    refused_forward(RANKS, 1, 4, 4, "relay 0 speaks for rank 4, which is not its own");
    refused_ref(CW_FRAME_FORWARD_DATA, 1, 4, not_its_own);
    refused_ref(CW_FRAME_FORWARD_DATA, 0, 4, "4 bytes of a message of which 0 are missing");
    refused_ref(CW_FRAME_FORWARD_END, 1, 0, not_its_own);
    refused_ref(CW_FRAME_FORWARD_SENT, 1, 0, "FORWARD_SENT for rank 1, whose home is elsewhere");
    refused_ref(CW_FRAME_FORWARD_SENT, RANKS, 0,
                "FORWARD_SENT for rank 4, whose home is elsewhere");
    refused(CW_FRAME_RECV, (const uint8_t[CW_RECV_SIZE]){0}, CW_RECV_SIZE,
            "RECV frame is not allowed here");
}

static void bad_route(uint32_t first, uint32_t step, uint32_t count, uint32_t home)
{
    struct cw_route route = {
        .self = 0, .relays = 2, .home = home, .first = first, .step = step, .count = count};
    uint8_t body[CW_ROUTE_SIZE];

    open_job(&relay[0], 0, false);
    cw_route_put(body, &route);
    say_frame(&relay[0].dispatcher, CW_FRAME_ROUTE, body, sizeof(body));
    expect_has(&relay[0], "d > REFUSED PROTOCOL 'ROUTE frame that does not add up'\n");
    fixture_fini(&relay[0]);
}

/* Who is at home where is settled before relays speak to each other, and before a rank speaks: two
 * may not speak for one rank. */
TEST(route_that_comes_late)
{
    for (int i = 0; i < 2; i++) {
        open_job(&relay[0], 0, false);
        open_job(&relay[1], 1, false);
        if (i == 0) {
            say_link("unix:there");
        } else {
            fixture_connect(&relay[0], rank(0), "0");
            fixture_hello_rank(rank(0), 0, 1);
        }
        say_route(&relay[0], 1);
        expect_has(&relay[0], "d > REFUSED PROTOCOL 'ROUTE frame that does not add up'\n");
        fixture_end();
    }
}

/* The dispatcher speaks to each relay over a connection of its own: another relay may be told of
 * the link, and connect, before this one has been told of all homes. */
TEST(link_amid_routes)
{
    struct fixture *f = &relay[1];
    uint8_t key[CW_KEY_SIZE];

    fixture_init(f, FIXTURE_MEMORY);
    fixture_connect(f, &f->dispatcher, "d");
    fixture_hello_dispatcher(&f->dispatcher, RANKS);
    job_key_of(key, f);
    cw_cred_link_key(key, key, 0);
    say_home(f, 1, 0);
    hello_relay(0, key);
    expect_has(f, "x > REFUSED LIMIT");
    fixture_close(&f->other[0], "closed by the relay");
    say_home(f, 1, 1);
    hello_relay(0, key);
    expect_has(f, "x > WELCOME");
}

TEST(bad_routes)
{
    bad_route(0, 1, RANKS + 1, 0);
    bad_route(RANKS, 1, 1, 0);
    bad_route(1, 2, 3, 0);
    bad_route(0, UINT32_MAX, UINT32_MAX, 0);
    bad_route(0, 0, 1, 0);
    bad_route(0, 1, 0, 0);
    bad_route(0, 1, 1, 2);
}
