/* A re-execution that does something else than the first one did is found out, and a rank whose
 * determinants cannot be is refused before they are kept. */
#include "common/readings.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>

SUITE_AFTER_EACH("trace of divergence", fixture_end);

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];
static struct client *const x = &f.other[0];

static void start(void)
{
    fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    fixture_start(&f, 3);
}

/* Rank 0 sent one message of two kinds, and comes again. */
static void come_again(void)
{
    start();
    say_send(r0, 1, 0x12, "abc");
    say_send_kind(r0, CW_SEND_SYNC, 1, 4, 0x13, "defg");
    fixture_close(r0, "crash");
    fixture_again(r0);
    fixture_forget(&f);
}

/* --- what it sends ---------------------------------------------------------------------------- */
static void it_diverges(const char *text)
{
    char line[512];

    snprintf(line, sizeof(line),
             "0 > REFUSED PROTOCOL rank 0 'it diverged: %s'\n"
             "0 is closed\n",
             text);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, line));
    CU_ASSERT_PTR_NULL(strstr(f.story, "RANK_LOST"));
    snprintf(line, sizeof(line),
             "d > NOTICE DIVERGED rank 0 incarnation 2 acts 2 event 0 'rank 0, incarnation 2, does "
             "not repeat what it did before: %s'\n",
             text);
    expect_has(&f, line);
    CU_ASSERT_PTR_NULL(r0->conn);
    fixture_fini(&f);
}

TEST(other_messages)
{
    come_again();
    say_check(r0, CW_SEND_TAG, 2, 0x12, 3);
    it_diverges("at send 1, expected a message of 3 bytes to rank 1 with tag 0x12, saw a message "
                "of 3 bytes to rank 2 with tag 0x12; since its start: no input");
    come_again();
    say_check(r0, CW_SEND_TAG, 1, 0x11, 3);
    it_diverges("at send 1, expected a message of 3 bytes to rank 1 with tag 0x12, saw a message "
                "of 3 bytes to rank 1 with tag 0x11; since its start: no input");
    come_again();
    say_check(r0, CW_SEND_TAG, 1, 0x12, 4);
    it_diverges("at send 1, expected a message of 3 bytes to rank 1 with tag 0x12, saw a message "
                "of 4 bytes to rank 1 with tag 0x12; since its start: no input");
    come_again();
    say_check(r0, CW_SEND_TAG, 1, 0x12, 3);
    say_check(r0, CW_SEND_AM, 1, 0x13, 4);
    it_diverges("at send 2, expected a synchronous message of 4 bytes to rank 1 with tag 0x13, saw "
                "an active message of 4 bytes to rank 1 with tag 0x13; since its start: no input");
}

TEST(too_many)
{
    come_again();
    say_check(r0, CW_SEND_TAG, 1, 0x12, 3);
    say_check(r0, CW_SEND_SYNC, 1, 0x13, 4);
    say_check(r0, CW_SEND_TAG, 1, 0x12, 3);
    it_diverges("at send 3, expected nothing more, saw a message of 3 bytes to rank 1 with tag "
                "0x12; since its start: no input");
}

TEST(too_few)
{
    come_again();
    say_check(r0, CW_SEND_TAG, 1, 0x12, 3);
    say_live(r0, 0, 0);
    it_diverges("expected 2 sends, saw 1");
}

/* --- what its messages carry ------------------------------------------------------------------ */
static void say_contents(uint64_t tag, uint64_t contents)
{
    codec_send(&r0->codec,
               &(struct cw_send){
                   .dst = 1, .kind = CW_SEND_TAG, .tag = tag, .total = 3, .contents = contents},
               "abc", 3);
    fixture_feed(r0);
}

static void check_contents(uint64_t tag, uint64_t contents, uint32_t flags)
{
    codec_check(&r0->codec, &(struct cw_send){.dst = 1,
                                              .kind = CW_SEND_TAG,
                                              .tag = tag,
                                              .total = 3,
                                              .contents = contents,
                                              .flags = flags});
    fixture_feed(r0);
}

/* Three sends, of which nobody looks at the second; events and readings between them. */
static void come_again_with_contents(void)
{
    static const uint8_t noon[READINGS_HEAD + 2] = {[READINGS_HEAD] = READING_TIME, 24};

    start();
    say_send_kind(r1, CW_SEND_AM, 0, 0, 0, "");
    say_taken(r0, 1, 2);
    say_contents(1, 0xaaa);
    for (int i = 0; i < 3; i++)
        say_send_kind(r1, CW_SEND_AM, 0, 0, 0, "");
    say_taken(r0, 3, 4);
    say_contents(2, 0);
    say_frame(r0, CW_FRAME_READINGS, noon, sizeof(noon));
    say_taken(r0, 4, 5);
    say_contents(3, 0xbbb);
    fixture_close(r0, "crash");
    fixture_again(r0);
    fixture_forget(&f);
}

static void contents_are_other(const char *text)
{
    char line[512];

    snprintf(line, sizeof(line),
             "d > NOTICE DIVERGED rank 0 incarnation 2 acts 3 event 4 'rank 0, incarnation 2, does "
             "not repeat what it did before: %s'\n",
             text);
    expect_has(&f, line);
    CU_ASSERT_PTR_NULL(r0->conn);
    fixture_fini(&f);
}

TEST(other_contents)
{
    come_again_with_contents();
    check_contents(1, 0xaab, 0);
    contents_are_other("send 1, a message of 3 bytes to rank 1 with tag 0x1, has other contents: "
                       "hash 0000000000000aab, it was 0000000000000aaa; since its start: 1 "
                       "active message");
    come_again_with_contents();
    check_contents(1, 0xaaa, 0);
    check_contents(2, 0xccc, 0);
    check_contents(3, 0xbba, 0);
    contents_are_other(
        "send 3, a message of 3 bytes to rank 1 with tag 0x3, has other contents: "
        "hash 0000000000000bba, it was 0000000000000bbb; since send 1, which agreed: "
        "1 clock reading, 3 active messages");
}

/* It is told once, and the rank goes on; also one that comes after it. */
TEST(other_contents_borne)
{
    come_again_with_contents();
    check_contents(1, 0xaab, CW_CHECK_BEARS);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "d > NOTICE DIFFERS rank 0 incarnation 2 acts 3 event 4 "
                                           "'send 1, a message of 3 bytes to rank 1 with tag 0x1, "
                                           "has other contents: hash 0000000000000aab, it was "
                                           "0000000000000aaa; since its start: 1 active message'"));
    fixture_forget(&f);
    check_contents(2, 0, CW_CHECK_BEARS);
    check_contents(3, 0xbba, CW_CHECK_BEARS);
    CU_ASSERT_PTR_NULL(strstr(f.story, "DIFFERS"));
    say_live(r0, 4, 5);
    expect_has(&f, "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 3 event 4");
    fixture_close(r0, "crash");
    fixture_again(r0);
    fixture_forget(&f);
    check_contents(1, 0xaab, CW_CHECK_BEARS);
    CU_ASSERT_PTR_NULL(strstr(f.story, "DIFFERS"));
    CU_ASSERT_PTR_NOT_NULL(r0->conn);
}

/* All else is compared as ever. */
TEST(other_message_borne)
{
    come_again_with_contents();
    check_contents(7, 0xaaa, CW_CHECK_BEARS);
    contents_are_other("at send 1, expected a message of 3 bytes to rank 1 with tag 0x1, saw a "
                       "message of 3 bytes to rank 1 with tag 0x7; since its start: 1 active "
                       "message");
}

/* Of the largest that can be, nothing is lost in what is kept. */
TEST(extreme_messages)
{
    struct client *d = &f.other[1];
    uint64_t total = CW_MESSAGE_MAX;

    start();
    f.job[0]++;
    fixture_connect(&f, d, "d");
    fixture_hello_dispatcher(d, CW_RANKS_MAX);
    fixture_connect(&f, x, "x");
    fixture_hello_rank(x, 3, 1);
    say_begin(x, CW_SEND_AM, CW_RANKS_MAX - 1, UINT64_MAX, total, 7);
    fixture_close(x, "crash");
    fixture_again(x);
    CU_ASSERT_EQUAL(x->welcome.missing, total - 7);
    fixture_forget(&f);
    say_check(x, CW_SEND_AM, CW_RANKS_MAX - 1, UINT64_MAX, total);
    say_live(x, 0, 0);
    expect_has(&f, "d > NOTICE RANK_LIVE rank 3 incarnation 2 acts 1 event 0");
    fixture_close(x, "crash");
    fixture_again(x);
    say_check(x, CW_SEND_AM, CW_RANKS_MAX - 1, UINT64_MAX, total - 1);
    expect_has(&f, "at send 1, expected an active message of 1099511627776 bytes to rank 65535 "
                   "with tag 0xffffffffffffffff, saw an active message of 1099511627775 bytes");
    fixture_close(d, "gone");
}

TEST(check_that_cannot_be_read)
{
    uint8_t body[CW_SEND_SIZE] = {0};

    come_again();
    say_frame(r0, CW_FRAME_CHECK, body, sizeof(body));
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'CHECK frame that cannot be read'\n");
}

/* --- when it is live -------------------------------------------------------------------------- */
static void live_is_refused(uint64_t event)
{
    say_live(r0, event, 50);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'LIVE before all was repeated'\n0 is closed\n"
                   "d > NOTICE RANK_LOST rank 0 incarnation 2");
    fixture_fini(&f);
}

TEST(live_too_early)
{
    for (uint64_t event = 0; event < 4; event++) {
        if (event == 2)
            continue;
        start();
        for (uint32_t i = 0; i < 3; i++)
            say_send_kind(r1, CW_SEND_AM, 0, 0, i, "");
        say_taken(r0, 2, 3);
        fixture_close(r0, "crash");
        fixture_again(r0);
        live_is_refused(event);
    }
}

/* It says that it has seen it all while the relay still has more to tell. */
TEST(live_before_all_is_told)
{
    start();
    for (uint32_t i = 0; i < 8; i++)
        say_begin(r1, CW_SEND_AM, 0, i, 100000, 100000);
    say_taken(r0, 8, 3);
    fixture_close(r0, "crash");
    fixture_connect(&f, r0, "0");
    r0->stalled = true;
    fixture_hello_rank(r0, 0, 2);
    say_live(r0, 8, 3);
    fixture_forget(&f);
    fixture_read(r0);
    CU_ASSERT_PTR_NULL(strstr(f.story, "REPLAYED"));
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'LIVE before all was repeated'\n");
}

TEST(live_twice)
{
    come_again();
    say_check(r0, CW_SEND_TAG, 1, 0x12, 3);
    say_check(r0, CW_SEND_SYNC, 1, 0x13, 4);
    say_live(r0, 0, 0);
    say_live(r0, 0, 0);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'LIVE frame is not allowed here'\n");
}

TEST(going_on_from_the_middle)
{
    static const struct cw_hello hellos[] = {{.event = 2}, {.poll_clock = 1}, {.acts = 1}};

    for (int i = 0; i < 3; i++) {
        start();
        fixture_connect(&f, x, "x");
        x->hello = hellos[i];
        x->hello.role = CW_ROLE_RANK;
        x->hello.incarnation = 2;
        fixture_rank_key(x, 0, 2);
        fixture_hello(x);
        expect_has(&f, "x > REFUSED LIMIT 'rank 0 cannot go on from event ");
        /* it has fenced nobody */
        say_recv(r0, 1, 5);
        say_send(r1, 0, 5, "on");
        expect_has(&f, "0 > MESSAGE req 1 tag 5 total 2 FIRST LAST event 1 'on'\n");
        fixture_fini(&f);
    }
}

/* --- determinants ----------------------------------------------------------------------------- */
static void taken_is_refused(uint64_t event, uint64_t clock)
{
    start();
    for (uint32_t i = 0; i < 3; i++)
        say_send_kind(r1, CW_SEND_AM, 0, 0, i, "");
    say_taken(r0, 2, 10);
    say_taken(r0, event, clock);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'TAKEN frame that does not add up'\n");
    /* what was kept before is still good */
    fixture_again(r0);
    say_live(r0, 2, 10);
    expect_has(&f, "d > NOTICE RANK_LIVE rank 0 incarnation 2 acts 0 event 2");
    fixture_fini(&f);
}

TEST(taken_that_does_not_add_up)
{
    taken_is_refused(0, 11);
    taken_is_refused(1, 11);
    taken_is_refused(2, 11);
    taken_is_refused(4, 11);
    taken_is_refused(UINT64_MAX, 11);
    taken_is_refused(3, 9);
    taken_is_refused(3, 0);
}

TEST(probe_whose_clock_goes_back)
{
    start();
    say_send(r1, 0, 5, "abc");
    r0->codec.clock = 10;
    say_probe(r0, 5, CODEC_ALL, false);
    r0->codec.clock = 9;
    say_probe(r0, 5, CODEC_ALL, false);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'PROBE frame that cannot be read'\n");
}

TEST(clocks_of_any_size)
{
    start();
    say_send_kind(r1, CW_SEND_AM, 0, 0, 5, "");
    say_send_kind(r1, CW_SEND_AM, 0, 0, 5, "");
    say_taken(r0, 1, 1);
    say_taken(r0, 2, UINT64_MAX);
    fixture_close(r0, "crash");
    fixture_again(r0);
    expect_has(&f, "0 > TAKEN event 2 clock 0xffffffffffffffff\n");
}

TEST(readings_of_nothing)
{
    start();
    say_readings(r0, "");
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'READINGS frame without readings'\n");
}

/* The largest comes back as it was, however it is cut. */
TEST(readings_of_every_size)
{
    static const uint32_t sizes[] = {1, 127, 128, 1000, CW_READINGS_MAX};
    static uint8_t bytes[CW_READINGS_MAX];

    for (enum fixture_feed feed = FEED_WHOLE; feed <= FEED_RANDOM; feed++) {
        start();
        f.feed = feed;
        for (int i = 0; i < 5; i++) {
            codec_pattern(bytes, (uint64_t)i, 0, sizes[i]);
            say_frame(r0, CW_FRAME_READINGS, bytes, sizes[i]);
        }
        fixture_close(r0, "crash");
        fixture_forget(&f);
        fixture_again(r0);
        say_live(r0, 0, 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(f.story, "0 > READINGS (127 bytes)\n"
                                               "0 > READINGS (128 bytes)\n"
                                               "0 > READINGS (1000 bytes)\n"
                                               "0 > READINGS (16384 bytes)\n"
                                               "0 > REPLAYED\n"));
        expect_has(&f, "d > NOTICE RANK_LIVE rank 0");
        fixture_fini(&f);
    }
}

/* A job without log does not want them, and takes them for what they are worth. */
TEST(determinants_in_a_job_without_log)
{
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_start(&f, 2);
    say_taken(r0, 77, 5);
    say_readings(r0, "noon");
    say_unlogged(r0, CW_UNLOGGED_THREADS);
    say_send(r0, 0, 5, "on");
    say_recv(r0, 1, 5);
    expect_has(&f, "0 > MESSAGE req 1 tag 5 total 2 FIRST LAST event 1 'on'\n");
    CU_ASSERT_EQUAL(r0->welcome.flags, 0);
}

/* --- frames of one who repeats ---------------------------------------------------------------- */
TEST(frames_while_it_repeats)
{
    static const uint8_t refused[] = {CW_FRAME_SEND,  CW_FRAME_SEND_DATA, CW_FRAME_RECV,
                                      CW_FRAME_MRECV, CW_FRAME_PROBE,     CW_FRAME_CANCEL,
                                      CW_FRAME_BYE,   CW_FRAME_TAKEN,     CW_FRAME_READINGS,
                                      CW_FRAME_HELLO, CW_FRAME_STATS_ASK};
    static const uint8_t zeros[CW_FRAME_BODY_MAX];
    char text[128];

    for (size_t i = 0; i < sizeof(refused); i++) {
        come_again();
        say_frame(r0, refused[i], zeros, cw_frame_fixed(refused[i]));
        snprintf(text, sizeof(text), "0 > REFUSED PROTOCOL rank 0 '%s frame is not allowed here'\n",
                 cw_frame_name(refused[i]));
        expect_has(&f, text);
        fixture_fini(&f);
    }
    come_again();
    say_frame(r0, CW_FRAME_ACK, (uint8_t[CW_ACK_SIZE]){0}, CW_ACK_SIZE);
    expect(&f, "0 < ACK of 3\n");
}

/* CHECK and LIVE are for those who repeat. */
TEST(check_of_one_who_does_not_repeat)
{
    start();
    say_check(r0, CW_SEND_TAG, 1, 5, 3);
    expect_has(&f, "0 > REFUSED PROTOCOL rank 0 'CHECK frame is not allowed here'\n");
}
