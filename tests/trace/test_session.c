/* Opening, keeping and ending a session: who is let in, what may be said when, and what is not
 * forgiven. */
#include "common/stranger.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>

SUITE_AFTER_EACH("trace of sessions", fixture_end);

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static struct client *const x = &f.other[0];

static void start(uint32_t ranks)
{
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_start(&f, ranks);
}

TEST(job_opens)
{
    for (enum fixture_feed feed = FEED_WHOLE; feed <= FEED_RANDOM; feed++) {
        fixture_init(&f, FIXTURE_MEMORY);
        f.feed = feed;
        fixture_connect(&f, &f.dispatcher, "d");
        fixture_hello_dispatcher(&f.dispatcher, 2);
        fixture_connect(&f, r1, "1");
        fixture_hello_rank(r1, 1, 1);
        expect(&f, "d < HELLO dispatcher of 2\n"
                   "d > WELCOME event 0\n"
                   "1 < HELLO rank 1 incarnation 1\n"
                   "1 > WELCOME event 0\n"
                   "d > NOTICE RANK_UP rank 1 'connected'\n");
        fixture_fini(&f);
    }
}

/* What the dispatcher and other relays are told may be in a log, of which a ring is no part. */
TEST(rings_are_for_ranks)
{
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_connect(&f, &f.dispatcher, "d");
    relay_conn_set_rings(f.dispatcher.conn);
    fixture_hello_dispatcher(&f.dispatcher, 2);
    expect(&f, "d < HELLO dispatcher of 2\n"
               "d > REFUSED PROTOCOL 'rings are for ranks: decline them'\n"
               "d is closed\n");
}

/* Its messages to others stay; what comes for it is kept and never asked for. */
TEST(bye)
{
    start(2);
    say_recv(r0, 1, 4);
    say_send(r0, 1, 5, "last words");
    say_bye(r0);
    say_send(r1, 0, 4, "too late");
    say_recv(r1, 7, 5);
    expect(&f, "0 < RECV req 1 tag 4\n"
               "0 < SEND to 1 tag 5 total 10 'last words'\n"
               "0 < BYE\n"
               "0 > FAREWELL\n"
               "0 is closed\n"
               "d > NOTICE RANK_BYE rank 0 'done'\n"
               "1 < SEND to 0 tag 4 total 8 'too late'\n"
               "1 < RECV req 7 tag 5\n"
               "1 > MESSAGE req 7 tag 5 total 10 FIRST LAST event 1 'last words'\n");
}

TEST(bye_in_the_middle_of_a_message)
{
    start(2);
    say_begin(r0, CW_SEND_TAG, 1, 5, 1000, 500);
    say_bye(r0);
    expect(&f, "0 < SEND to 1 tag 5 total 1000 (500 bytes)\n"
               "0 < BYE\n"
               "0 > REFUSED PROTOCOL rank 0 'BYE in the middle of a message'\n"
               "0 is closed\n"
               "d > NOTICE RANK_LOST rank 0 'refused by its relay: BYE in the middle of a "
               "message'\n");
}

TEST(nothing_is_heard_after_bye)
{
    start(2);
    f.lazy = true;
    say_recv(r1, 7, 5);
    say_bye(r0);
    fixture_forget(&f);
    say_send(r0, 1, 5, "ghost");
    say_bye(r0);
    expect(&f, "0 < SEND to 1 tag 5 total 5 'ghost'\n"
               "0 < BYE\n");
    CU_ASSERT_TRUE(relay_conn_done(r0->conn));
    CU_ASSERT_FALSE(relay_conn_wants_input(r0->conn, f.now_ns));
}

TEST(connection_is_lost)
{
    start(2);
    fixture_close(r0, "its connection ended");
    fixture_connect(&f, x, "x");
    fixture_close(x, "nobody knows who that was");
    expect(&f, "0 ends: its connection ended\n"
               "d > NOTICE RANK_LOST rank 0 'its connection ended'\n"
               "x ends: nobody knows who that was\n");
}

TEST(rank_connects_twice)
{
    start(2);
    fixture_connect(&f, x, "x");
    fixture_hello_rank(x, 0, 1);
    say_recv(r0, 1, 5);
    say_send(r1, 0, 5, "abc");
    expect(&f, "x < HELLO rank 0 incarnation 1\n"
               "x > REFUSED DUPLICATE 'rank 0, incarnation 1, has connected already'\n"
               "x is closed\n"
               "d > NOTICE REFUSED rank 0 'a second connection for rank 0 was refused'\n"
               "0 < RECV req 1 tag 5\n"
               "1 < SEND to 0 tag 5 total 3 'abc'\n"
               "0 > MESSAGE req 1 tag 5 total 3 FIRST LAST event 1 'abc'\n");
}

/* An older incarnation is refused for ever, also when no connection of the newer one is there. */
TEST(newer_incarnation_takes_the_place)
{
    fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    fixture_start(&f, 2);
    fixture_connect(&f, x, "x");
    fixture_hello_rank(x, 0, 3);
    say_recv(x, 1, 5);
    say_send(r1, 0, 5, "abc");
    expect(&f, "x < HELLO rank 0 incarnation 3\n"
               "0 > REFUSED FENCED rank 0 'rank 0: incarnation 3 takes its place'\n"
               "0 is closed\n"
               "x > WELCOME event 0 LOG\n"
               "d > NOTICE RANK_UP rank 0 incarnation 3 acts 0 event 0 'connected'\n"
               "x < RECV req 1 tag 5\n"
               "1 < SEND to 0 tag 5 total 3 'abc'\n"
               "x > MESSAGE req 1 tag 5 total 3 FIRST LAST event 1 'abc'\n");
    fixture_connect(&f, r0, "0");
    fixture_hello_rank(r0, 0, 2);
    expect(&f, "0 < HELLO rank 0 incarnation 2\n"
               "0 > REFUSED FENCED 'rank 0, incarnation 2: incarnation 3 took its place'\n"
               "0 is closed\n");
    fixture_close(x, "crash");
    fixture_connect(&f, r0, "0");
    fixture_hello_rank(r0, 0, 3);
    expect(&f, "x ends: crash\n"
               "d > NOTICE RANK_LOST rank 0 incarnation 3 acts 1 event 0 'crash'\n"
               "0 < HELLO rank 0 incarnation 3\n"
               "0 > REFUSED DUPLICATE 'rank 0, incarnation 3, has connected already'\n"
               "0 is closed\n"
               "d > NOTICE REFUSED rank 0 incarnation 3 acts 1 event 0 'a second connection for "
               "rank 0 was refused'\n");
}

/* Where nothing was kept of what it did, nobody can do it again; who is there stays. */
TEST(newer_incarnation_in_a_job_without_log)
{
    start(2);
    fixture_connect(&f, x, "x");
    fixture_hello_rank(x, 0, 2);
    say_recv(r0, 1, 5);
    say_send(r1, 0, 5, "abc");
    fixture_close(r0, "crash");
    fixture_connect(&f, x, "x");
    fixture_hello_rank(x, 0, 2);
    expect(&f, "x < HELLO rank 0 incarnation 2\n"
               "x > REFUSED LIMIT 'rank 0 cannot be started again: nothing was kept of what it "
               "did'\n"
               "x is closed\n"
               "0 < RECV req 1 tag 5\n"
               "1 < SEND to 0 tag 5 total 3 'abc'\n"
               "0 > MESSAGE req 1 tag 5 total 3 FIRST LAST event 1 'abc'\n"
               "0 ends: crash\n"
               "d > NOTICE RANK_LOST rank 0 'crash'\n"
               "x < HELLO rank 0 incarnation 2\n"
               "x > REFUSED LIMIT 'rank 0 cannot be started again: nothing was kept of what it "
               "did'\n"
               "x is closed\n");
}

/* What came before its first process came, and needs no log, is no reason to refuse that one. */
TEST(first_process_may_be_a_later_incarnation)
{
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_connect(&f, &f.dispatcher, "d");
    fixture_hello_dispatcher(&f.dispatcher, 2);
    fixture_connect(&f, r0, "0");
    fixture_hello_rank(r0, 0, 1);
    say_send_kind(r0, CW_SEND_AM, 1, 0, 5, "early");
    fixture_forget(&f);
    fixture_connect(&f, r1, "1");
    fixture_hello_rank(r1, 1, 2);
    expect(&f, "1 < HELLO rank 1 incarnation 2\n"
               "1 > WELCOME event 0\n"
               "1 > MESSAGE req 0 tag 5 total 5 FIRST LAST ACTIVE event 1 'early'\n"
               "d > NOTICE RANK_UP rank 1 incarnation 2 acts 0 event 0 'connected'\n");
}

/* The fenced one had half a message under way: nothing that it still says is heard. */
TEST(fenced_in_the_middle_of_a_message)
{
    fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    fixture_start(&f, 2);
    f.lazy = true;
    say_recv(r1, 7, 5);
    say_begin(r0, CW_SEND_TAG, 1, 5, 1000, 500);
    fixture_connect(&f, x, "x");
    fixture_hello_rank(x, 0, 2);
    fixture_forget(&f);
    say_more(r0, 5, 500, 500);
    fixture_close(r0, "gone");
    say_live(x, 0, 0);
    say_more(x, 5, 500, 500);
    expect(&f, "0 < SEND_DATA (500 bytes)\n"
               "0 ends: gone\n"
               "x < LIVE event 0 clock 0\n"
               "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 1 event 0 'repeated 0 events'\n"
               "x < SEND_DATA (500 bytes)\n"
               "1 > MESSAGE req 7 LAST event 1 (500 bytes)\n");
    CU_ASSERT_TRUE(fixture_received(r1, 7, 5, 1000));
}

TEST(wrong_credentials)
{
    start(2);
    fixture_connect(&f, x, "x");
    x->hello = (struct cw_hello){.role = CW_ROLE_RANK, .rank = 0, .incarnation = 2};
    fixture_rank_key(x, 1, 2);
    fixture_hello(x);
    expect(&f, "x < HELLO rank 0 incarnation 2\n"
               "x > REFUSED CREDENTIAL 'wrong credential for rank 0, incarnation 2'\n"
               "x is closed\n"
               "d > NOTICE REFUSED rank 0 'a connection for rank 0 with a wrong credential was "
               "refused'\n");
    fixture_connect(&f, x, "x");
    x->hello = (struct cw_hello){.role = CW_ROLE_DISPATCHER, .rank = 2};
    fixture_rank_key(x, 0, 1);
    f.job[0]++;
    fixture_hello(x);
    expect(&f, "x < HELLO dispatcher of 2\n"
               "x > REFUSED CREDENTIAL 'wrong credential for a dispatcher: use this relay's key "
               "file'\n"
               "x is closed\n");
}

/* A HELLO that was overheard is of no use on another connection: its nonce differs. */
TEST(hello_of_another_connection)
{
    start(1);
    fixture_connect(&f, x, "x");
    x->challenge.nonce[0] ^= 1;
    fixture_hello_rank(x, 0, 2);
    expect_has(&f, "x > REFUSED CREDENTIAL");
}

TEST(unknown_job)
{
    start(1);
    f.job[3]++;
    fixture_connect(&f, x, "x");
    fixture_hello_rank(x, 0, 1);
    expect(&f, "x < HELLO rank 0 incarnation 1\n"
               "x > REFUSED JOB 'the relay has no such job (it may have ended)'\n"
               "x is closed\n");
}

TEST(two_dispatchers)
{
    start(1);
    fixture_connect(&f, x, "x");
    fixture_hello_dispatcher(x, 1);
    expect(&f, "x < HELLO dispatcher of 1\n"
               "x > REFUSED DUPLICATE 'this job has a dispatcher already'\n"
               "x is closed\n");
}

/* Two jobs share a relay and nothing else. */
TEST(two_jobs)
{
    struct client *d = &f.other[1];

    start(1);
    f.job[0]++;
    fixture_connect(&f, d, "D");
    fixture_hello_dispatcher(d, 1);
    fixture_connect(&f, x, "x");
    fixture_hello_rank(x, 0, 1);
    fixture_forget(&f);
    say_recv(r0, 1, 5);
    say_send(x, 0, 5, "other");
    fixture_close(&f.dispatcher, "gone");
    say_recv(x, 1, 5);
    expect(&f, "0 < RECV req 1 tag 5\n"
               "x < SEND to 0 tag 5 total 5 'other'\n"
               "d ends: gone\n"
               "0 is closed\n"
               "x < RECV req 1 tag 5\n"
               "x > MESSAGE req 1 tag 5 total 5 FIRST LAST event 1 'other'\n");
}

/* After its dispatcher a job has nobody to answer for it: the ranks are let go. */
TEST(dispatcher_leaves)
{
    start(2);
    say_recv(r0, 1, 5);
    say_send(r0, 1, 6, "kept");
    fixture_close(&f.dispatcher, "gone");
    fixture_connect(&f, x, "x");
    fixture_hello_rank(x, 0, 2);
    expect(&f, "0 < RECV req 1 tag 5\n"
               "0 < SEND to 1 tag 6 total 4 'kept'\n"
               "d ends: gone\n"
               "1 is closed\n"
               "0 is closed\n"
               "x < HELLO rank 0 incarnation 2\n"
               "x > REFUSED JOB 'the relay has no such job (it may have ended)'\n"
               "x is closed\n");
    fixture_connect(&f, &f.dispatcher, "d");
    fixture_hello_dispatcher(&f.dispatcher, 2);
    expect(&f, "d < HELLO dispatcher of 2\n"
               "d > WELCOME event 0\n");
}

TEST(sizes_of_jobs)
{
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_connect(&f, x, "x");
    fixture_hello_dispatcher(x, 0);
    expect_has(&f, "x > REFUSED LIMIT 'a job of 0 ranks: 1 to 65536 are possible'\nx is closed\n");
    fixture_connect(&f, x, "x");
    fixture_hello_dispatcher(x, CW_RANKS_MAX + 1);
    expect_has(&f, "x > REFUSED LIMIT 'a job of 65537 ranks: 1 to 65536 are possible'\n");
    fixture_connect(&f, x, "x");
    fixture_hello_dispatcher(x, CW_RANKS_MAX);
    expect_has(&f, "x > WELCOME");
    fixture_connect(&f, r0, "last");
    fixture_hello_rank(r0, CW_RANKS_MAX - 1, 1);
    expect_has(&f, "last > WELCOME event 0\nx > NOTICE RANK_UP rank 65535 'connected'\n");
    fixture_connect(&f, r1, "1");
    fixture_hello_rank(r1, CW_RANKS_MAX, 1);
    expect_has(&f, "1 > REFUSED LIMIT 'rank 65536, incarnation 1, in a job of 65536 ranks'\n");
    fixture_connect(&f, r1, "1");
    fixture_hello_rank(r1, 1, 0);
    expect_has(&f, "1 > REFUSED LIMIT 'rank 1, incarnation 0, in a job of 65536 ranks'\n");
}

TEST(number_of_jobs)
{
    static struct client clients[RELAY_JOBS_MAX + 1];

    fixture_init(&f, 1u << 30);
    for (int i = 0; i <= RELAY_JOBS_MAX; i++) {
        f.job[0] = (uint8_t)i;
        f.job[1] = (uint8_t)(i >> 8);
        fixture_forget(&f);
        fixture_connect(&f, &clients[i], "d");
        fixture_hello_dispatcher(&clients[i], 1);
        if (i < RELAY_JOBS_MAX)
            CU_ASSERT_PTR_NOT_NULL(clients[i].conn);
    }
    expect(&f, "d < HELLO dispatcher of 1\n"
               "d > REFUSED LIMIT 'the relay has its 256 jobs; try again later'\n"
               "d is closed\n");
    for (int i = 0; i <= RELAY_JOBS_MAX; i++) {
        fixture_close(&clients[i], "gone");
        codec_fini(&clients[i].codec);
    }
}

TEST(strange_hellos)
{
    start(1);
    fixture_connect(&f, x, "x");
    x->hello.version = 1;
    x->hello.role = CW_ROLE_RANK;
    fixture_hello(x);
    expect_has(&f, "x > REFUSED VERSION 'protocol version 1, the relay speaks 16'\nx is closed\n");
    fixture_connect(&f, x, "x");
    x->hello.role = 5;
    fixture_hello(x);
    expect_has(&f, "x > REFUSED PROTOCOL 'HELLO of something else than Causeway'\nx is closed\n");
    fixture_connect(&f, x, "x");
    x->hello.role = CW_ROLE_IMAGE;
    fixture_hello(x);
    expect_has(&f, "x > REFUSED PROTOCOL '");
    fixture_connect(&f, x, "x");
    x->hello = (struct cw_hello){.role = CW_ROLE_RANK, .incarnation = 1, .flags = CW_HELLO_RESUME};
    fixture_rank_key(x, 0, 1);
    fixture_hello(x);
    expect_has(
        &f, "x > REFUSED JOB 'the relay has no such session (it may have ended)'\nx is closed\n");
}

/* --- what may be said when -------------------------------------------------------------------- */
static const uint8_t rank_types[] = {
    CW_FRAME_ACK,      CW_FRAME_SEND,   CW_FRAME_SEND_DATA, CW_FRAME_RECV,  CW_FRAME_MRECV,
    CW_FRAME_PROBE,    CW_FRAME_CANCEL, CW_FRAME_BYE,       CW_FRAME_TAKEN, CW_FRAME_READINGS,
    CW_FRAME_UNLOGGED, CW_FRAME_POINT,  CW_FRAME_COUNTED};
static const uint8_t dispatcher_types[] = {
    CW_FRAME_ACK,  CW_FRAME_STATS_ASK, CW_FRAME_ROUTE,   CW_FRAME_LINK,
    CW_FRAME_CUT,  CW_FRAME_RANK_END,  CW_FRAME_JOB_END, CW_FRAME_CHECKPOINT,
    CW_FRAME_TRIM, CW_FRAME_COPY,      CW_FRAME_COVER,   CW_FRAME_COPY_CLOSE};
static const uint8_t new_types[] = {CW_FRAME_HELLO};

static bool is_one_of(uint8_t type, const uint8_t *types, size_t count)
{
    return memchr(types, type, count) != NULL;
}

/* Says one frame of every type that is not in `allowed`, each on a connection of its own. */
static void refuse_others(void (*open)(struct client *c), const uint8_t *allowed, size_t count)
{
    static const uint8_t zeros[CW_FRAME_BODY_MAX];
    char text[128];

    for (uint32_t type = 0; type < 256; type++) {
        bool known = type < CW_FRAME_TYPES && strcmp(cw_frame_name((uint8_t)type), "?") != 0;

        if (is_one_of((uint8_t)type, allowed, count))
            continue;
        fixture_init(&f, FIXTURE_MEMORY);
        fixture_connect(&f, &f.dispatcher, "d");
        fixture_hello_dispatcher(&f.dispatcher, 2);
        fixture_connect(&f, x, "x");
        open(x);
        fixture_forget(&f);
        say_frame(x, (uint8_t)type, zeros, cw_frame_fixed((uint8_t)type));
        if (known)
            snprintf(text, sizeof(text), "'%s frame is not allowed here'\nx is closed\n",
                     cw_frame_name((uint8_t)type));
        else
            snprintf(text, sizeof(text), "'frame of unknown type %u'\nx is closed\n", type);
        expect_has(&f, text);
        CU_ASSERT_PTR_NULL(x->conn);
        fixture_fini(&f);
    }
}

static void open_nothing(struct client *c)
{
    (void)c;
}

static void open_rank(struct client *c)
{
    fixture_hello_rank(c, 1, 1);
}

static void open_dispatcher(struct client *c)
{
    f.job[0]++;
    fixture_hello_dispatcher(c, 2);
}

TEST(frames_before_hello)
{
    refuse_others(open_nothing, new_types, sizeof(new_types));
}

TEST(frames_of_a_rank)
{
    refuse_others(open_rank, rank_types, sizeof(rank_types));
}

TEST(frames_of_a_dispatcher)
{
    refuse_others(open_dispatcher, dispatcher_types, sizeof(dispatcher_types));
}

/* Rank 1 says this, and is refused with a reason that has `text` in it. */
static void refused(const void *frame, size_t size, const char *text)
{
    char refusal[256];
    char notice[256];

    start(2);
    memcpy(codec_room(&r1->codec.out, size), frame, size);
    r1->codec.session.out_seq++; /* the relay may acknowledge it */
    fixture_feed_some(r1, size);
    snprintf(refusal, sizeof(refusal), "1 > REFUSED PROTOCOL rank 1 '%s'\n1 is closed\n", text);
    snprintf(notice, sizeof(notice), "d > NOTICE RANK_LOST rank 1 'refused by its relay: %s'\n",
             text);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, notice));
    expect_has(&f, refusal);
    CU_ASSERT_PTR_NULL(r1->conn);
    /* the others are not concerned */
    say_recv(r0, 1, 5);
    say_send(r0, 0, 5, "on");
    expect_has(&f, "0 > MESSAGE req 1 tag 5 total 2 FIRST LAST event 1 'on'\n");
    fixture_fini(&f);
}

static void header(uint8_t *to, uint32_t length, uint32_t type, uint32_t seq, uint32_t ack)
{
    struct cw_writer w = cw_writer(to, CW_FRAME_HEADER);

    cw_put_u32(&w, length);
    cw_put_u32(&w, type);
    cw_put_u32(&w, seq);
    cw_put_u32(&w, ack);
}

/* HELLO was frame 1 of the rank; CHALLENGE and WELCOME were 1 and 2 of the relay. */
TEST(headers_that_do_not_fit)
{
    uint8_t frame[CW_FRAME_HEADER + CW_HELLO_SIZE] = {0};

    header(frame, 0, CW_FRAME_ACK | 0x100, 2, 2);
    refused(frame, CW_FRAME_HEADER, "frame of unknown type 261");
    header(frame, 1, CW_FRAME_ACK, 2, 2);
    refused(frame, CW_FRAME_HEADER, "ACK frame of 1 bytes, expected 8 to 8");
    header(frame, CW_RECV_SIZE - 1, CW_FRAME_RECV, 2, 2);
    refused(frame, CW_FRAME_HEADER + CW_RECV_SIZE, "RECV frame of 39 bytes, expected 40 to 40");
    /* before the rest of what cannot be a frame is waited for */
    refused(frame, CW_FRAME_HEADER, "RECV frame of 39 bytes, expected 40 to 40");
    header(frame, UINT32_MAX, CW_FRAME_SEND, 2, 2);
    refused(frame, CW_FRAME_HEADER + CW_SEND_SIZE,
            "SEND frame of 4294967295 bytes, expected 48 to 262192");
    header(frame, CW_ACK_SIZE, CW_FRAME_ACK, 1, 2);
    refused(frame, CW_FRAME_HEADER + CW_ACK_SIZE, "ACK frame numbered 1, expected 2");
    header(frame, CW_ACK_SIZE, CW_FRAME_ACK, 3, 2);
    refused(frame, CW_FRAME_HEADER + CW_ACK_SIZE, "ACK frame numbered 3, expected 2");
    header(frame, CW_ACK_SIZE, CW_FRAME_ACK, 2, 3);
    refused(frame, CW_FRAME_HEADER + CW_ACK_SIZE, "ACK frame acknowledges 3, last sent was 2");
    header(frame, CW_ACK_SIZE, CW_FRAME_ACK, 2, UINT32_MAX);
    refused(frame, CW_FRAME_HEADER + CW_ACK_SIZE,
            "ACK frame acknowledges 4294967295, last sent was 2");
}

/* One SEND of rank 1 with `size` bytes. */
static void send_refused(struct cw_send send, size_t size, const char *text)
{
    static uint8_t frame[CW_FRAME_HEADER + CW_SEND_SIZE + 256];

    header(frame, (uint32_t)(CW_SEND_SIZE + size), CW_FRAME_SEND, 2, 2);
    cw_send_put(frame + CW_FRAME_HEADER, &send);
    refused(frame, CW_FRAME_HEADER + CW_SEND_SIZE + size, text);
}

TEST(sends_that_do_not_add_up)
{
    struct cw_send good = {.dst = 0, .kind = CW_SEND_TAG, .total = 10};
    struct cw_send send = good;

    send_refused(good, 11, "SEND frame that does not add up");
    send_refused(good, 0, "SEND frame that does not add up");
    send.kind = 0;
    send_refused(send, 10, "SEND frame that does not add up");
    send.kind = CW_SEND_AM + 1;
    send_refused(send, 10, "SEND frame that does not add up");
    send = good;
    send.total = CW_MESSAGE_MAX + 1;
    send_refused(send, 10, "SEND frame that does not add up");
    send = good;
    send.dst = 2;
    send_refused(send, 10, "SEND to rank 2 in a job of 2 ranks");
    send.dst = UINT32_MAX;
    send_refused(send, 10, "SEND to rank 4294967295 in a job of 2 ranks");
}

TEST(data_that_does_not_fit)
{
    start(2);
    say_more(r0, 5, 0, 10);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 '10 bytes of a message of which 0 are missing'\n");
    fixture_fini(&f);
    start(2);
    say_begin(r0, CW_SEND_TAG, 1, 5, 1000, 400);
    say_more(r0, 5, 400, 601);
    expect_has(&f,
               "0 > REFUSED PROTOCOL rank 0 '601 bytes of a message of which 600 are missing'\n");
    fixture_fini(&f);
    start(2);
    say_begin(r0, CW_SEND_TAG, 1, 5, 1000, 400);
    say_frame(r0, CW_FRAME_SEND_DATA, NULL, 0);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 '0 bytes of a message of which 600 are missing'\n");
    fixture_fini(&f);
    start(2);
    say_begin(r0, CW_SEND_TAG, 1, 5, 1000, 400);
    say_send(r0, 1, 6, "another");
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'SEND frame that does not add up'\n");
}

TEST(probe_with_an_unknown_wish)
{
    struct cw_probe probe = {.remove = 2};
    uint8_t body[CW_PROBE_SIZE];

    start(1);
    cw_probe_put(body, &probe);
    say_frame(r0, CW_FRAME_PROBE, body, sizeof(body));
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'PROBE frame that cannot be read'\n");
}

/* --- keeping it ------------------------------------------------------------------------------- */
TEST(handshake_in_time)
{
    start(1);
    fixture_connect(&f, x, "x");
    fixture_tick(&f, CW_STRANGER_NS);
    expect(&f, "");
    fixture_connect(&f, r1, "late");
    fixture_tick(&f, 1);
    expect(&f, "x > REFUSED PROTOCOL 'no HELLO for 10 s'\n"
               "x is closed\n");
    fixture_hello_dispatcher(r1, 1);
    expect_has(&f, "late > REFUSED DUPLICATE");
    fixture_tick(&f, 100 * CW_STRANGER_NS);
    expect(&f, "");
    say_send(r0, 0, 5, "alive");
    expect(&f, "0 < SEND to 0 tag 5 total 5 'alive'\n");
}

/* A connection that was refused and does not read why is not kept for ever. */
TEST(refused_and_not_reading)
{
    start(1);
    r0->stalled = true;
    say_more(r0, 5, 0, 10);
    fixture_forget(&f);
    CU_ASSERT_FALSE(relay_conn_done(r0->conn));
    fixture_tick(&f, CW_STRANGER_NS);
    CU_ASSERT_FALSE(relay_conn_done(r0->conn));
    fixture_tick(&f, 1 + CW_STRANGER_NS);
    CU_ASSERT_TRUE(relay_conn_done(r0->conn));
    fixture_read(r0);
    expect(&f, "0 is closed\n");
}

/* REFUSED is the last frame, whatever happens until it is written. */
TEST(nothing_follows_refused)
{
    start(2);
    say_probe(r0, 5, CODEC_ALL, false);
    r0->stalled = true;
    say_recv(r0, 1, 7);
    say_mrecv(r0, 2, 0, CODEC_ALL);
    say_send(r1, 0, 6, "unexpected");
    say_send(r1, 0, 7, "expected");
    say_send_kind(r1, CW_SEND_AM, 0, 0, 8, "active");
    fixture_forget(&f);
    fixture_read(r0);
    expect(&f, "0 > REFUSED PROTOCOL rank 0 'MRECV of a message that no probe took out'\n"
               "0 is closed\n");
}

TEST(frames_are_acknowledged)
{
    start(2);
    /* HELLO was the first of them, and was answered */
    for (uint32_t i = 0; i < CW_ACK_EVERY - 1; i++)
        say_send(r0, 1, i, "");
    CU_ASSERT_PTR_NULL(strstr(f.story, "0 > "));
    fixture_forget(&f);
    say_send(r0, 1, 0, "");
    say_send(r0, 1, 0, "");
    expect(&f, "0 < SEND to 1 tag 0 total 0\n"
               "0 > ACK of 1025\n"
               "0 < SEND to 1 tag 0 total 0\n");
}

TEST(acknowledgements_need_no_answer)
{
    start(1);
    say_frame(r0, CW_FRAME_ACK, (uint8_t[CW_ACK_SIZE]){0}, CW_ACK_SIZE);
    say_frame(&f.dispatcher, CW_FRAME_ACK, (uint8_t[CW_ACK_SIZE]){0}, CW_ACK_SIZE);
    expect(&f, "0 < ACK of 2\n"
               "d < ACK of 3\n");
}

TEST(statistics)
{
    start(3);
    say_recv_mask(r0, 1, 5, CODEC_ALL, 2);
    say_send(r1, 0, 5, "abc");
    say_send(r1, 0, 5, "defg");
    say_bye(r1);
    fixture_forget(&f);
    say_frame(&f.dispatcher, CW_FRAME_STATS_ASK, NULL, 0);
    expect(&f, "d < STATS_ASK\n"
               "d > STATS rank 0 sent 0 (0 bytes) received 1 (2 bytes) unexpected 1 polls 0 "
               "events 1 taken 0 replayed 0 acts 1 incarnation 1\n"
               "d > STATS rank 1 sent 2 (7 bytes) received 0 (0 bytes) unexpected 0 polls 11 "
               "events 0 taken 0 replayed 0 acts 2 incarnation 1\n"
               "d > STATS rank 2 sent 0 (0 bytes) received 0 (0 bytes) unexpected 0 polls 0 "
               "events 0 taken 0 replayed 0 acts 0 incarnation 1\n");
}
