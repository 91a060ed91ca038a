/* Active messages: to the rank as they come, in order, also before the rank is there. */
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of active messages", fixture_end);

static struct fixture f;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];

static void tell_in_order(void)
{
    say_recv_mask(r1, 7, 0, 0, CODEC_ALL);
    say_send_kind(r0, CW_SEND_AM, 1, 0, 5, "one");
    say_send_kind(r0, CW_SEND_AM, 1, 0, 6, "");
    say_send(r0, 1, 5, "tagged");
    say_send_kind(r0, CW_SEND_AM, 1, 0, 7, "three");
    expect(&f, "1 < RECV req 7 tag 0 mask 0x0\n"
               "0 < SEND to 1 AM tag 5 total 3 'one'\n"
               "1 > MESSAGE req 0 tag 5 total 3 FIRST LAST ACTIVE event 1 'one'\n"
               "0 < SEND to 1 AM tag 6 total 0\n"
               "1 > MESSAGE req 1 tag 6 total 0 FIRST LAST ACTIVE event 2\n"
               "0 < SEND to 1 tag 5 total 6 'tagged'\n"
               "1 > MESSAGE req 7 tag 5 total 6 FIRST LAST event 3 'tagged'\n"
               "0 < SEND to 1 AM tag 7 total 5 'three'\n"
               "1 > MESSAGE req 2 tag 7 total 5 FIRST LAST ACTIVE event 4 'three'\n");
}

TEST(in_order)
{
    for (enum fixture_feed feed = FEED_WHOLE; feed <= FEED_RANDOM; feed++) {
        fixture_init(&f, FIXTURE_MEMORY);
        f.feed = feed;
        f.merged = true;
        fixture_start(&f, 2);
        tell_in_order();
        fixture_fini(&f);
    }
}

/* A large one is cut through under a stream number of its own; another sender's comes between. */
TEST(large)
{
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_start(&f, 3);
    say_begin(r0, CW_SEND_AM, 1, 5, 100000, 50000);
    say_send_kind(&f.rank[2], CW_SEND_AM, 1, 0, 6, "between");
    say_more(r0, 5, 50000, 50000);
    expect(&f, "0 < SEND to 1 AM tag 5 total 100000 (50000 bytes)\n"
               "1 > MESSAGE req 0 tag 5 total 100000 FIRST ACTIVE (50000 bytes)\n"
               "2 < SEND to 1 AM tag 6 total 7 'between'\n"
               "1 > MESSAGE req 1 tag 6 total 7 FIRST LAST ACTIVE event 1 'between'\n"
               "0 < SEND_DATA (50000 bytes)\n"
               "1 > MESSAGE req 0 LAST ACTIVE event 2 (50000 bytes)\n");
    CU_ASSERT_EQUAL(r1->inbox.count, 2);
    CU_ASSERT_TRUE(codec_pattern_is(r1->inbox.of[0].bytes, 5, 100000));
}

/* They wait for the rank to connect, in order; one whose bytes still come goes on live. */
TEST(before_the_rank_connects)
{
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_connect(&f, &f.dispatcher, "d");
    fixture_hello_dispatcher(&f.dispatcher, 2);
    fixture_connect(&f, r0, "0");
    fixture_hello_rank(r0, 0, 1);
    say_send_kind(r0, CW_SEND_AM, 1, 0, 5, "one");
    say_send(r0, 1, 9, "tagged");
    say_begin(r0, CW_SEND_AM, 1, 6, 300000, 100000);
    say_more(r0, 6, 100000, 150000);
    fixture_forget(&f);
    fixture_connect(&f, r1, "1");
    fixture_hello_rank(r1, 1, 1);
    say_more(r0, 6, 250000, 50000);
    say_send_kind(r0, CW_SEND_AM, 1, 0, 7, "three");
    expect(&f, "1 < HELLO rank 1 incarnation 1\n"
               "1 > WELCOME event 0\n"
               "1 > MESSAGE req 0 tag 5 total 3 FIRST LAST ACTIVE event 1 'one'\n"
               "1 > MESSAGE req 1 tag 6 total 300000 FIRST ACTIVE (100000 bytes)\n"
               "1 > MESSAGE req 1 ACTIVE (150000 bytes)\n"
               "d > NOTICE RANK_UP rank 1 'connected'\n"
               "0 < SEND_DATA (50000 bytes)\n"
               "1 > MESSAGE req 1 LAST ACTIVE event 2 (50000 bytes)\n"
               "0 > ACK of 6\n"
               "0 < SEND to 1 AM tag 7 total 5 'three'\n"
               "1 > MESSAGE req 2 tag 7 total 5 FIRST LAST ACTIVE event 3 'three'\n");
    CU_ASSERT_TRUE(codec_pattern_is(r1->inbox.of[1].bytes, 6, 300000));
}

/* Its sender is gone before its end: what is there is told, the rest never comes. */
TEST(early_one_of_a_lost_sender)
{
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_connect(&f, &f.dispatcher, "d");
    fixture_hello_dispatcher(&f.dispatcher, 2);
    fixture_connect(&f, r0, "0");
    fixture_hello_rank(r0, 0, 1);
    say_begin(r0, CW_SEND_AM, 1, 6, 300000, 100000);
    fixture_close(r0, "crash");
    fixture_forget(&f);
    fixture_connect(&f, r1, "1");
    fixture_hello_rank(r1, 1, 1);
    expect(&f, "1 < HELLO rank 1 incarnation 1\n"
               "1 > WELCOME event 0\n"
               "1 > MESSAGE req 0 tag 6 total 300000 FIRST ACTIVE (100000 bytes)\n"
               "d > NOTICE RANK_UP rank 1 'connected'\n");
}

TEST(early_ones_go_with_the_job)
{
    fixture_init(&f, FIXTURE_MEMORY);
    f.mute = true;
    fixture_connect(&f, &f.dispatcher, "d");
    fixture_hello_dispatcher(&f.dispatcher, 2);
    fixture_connect(&f, r0, "0");
    fixture_hello_rank(r0, 0, 1);
    say_send_kind(r0, CW_SEND_AM, 1, 0, 5, "one");
    say_begin(r0, CW_SEND_AM, 1, 6, 300000, 100000);
    fixture_close(&f.dispatcher, "gone");
    CU_ASSERT_PTR_NULL(r0->conn);
}
