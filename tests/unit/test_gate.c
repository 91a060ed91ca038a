/* What waits until a relay's log has copies, and what of it may be read when. */
#include "dispatcher/wire/channel.h"
#include "dispatcher/wire/gate.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("gates");

static struct gate gate;
static unsigned wants;
static struct cw_err err;

static void on_wants(void *ctx)
{
    CU_ASSERT_PTR_EQUAL(ctx, &wants);
    wants++;
}

static void begin(void)
{
    wants = 0;
    gate_init(&gate, on_wants, &wants);
}

/* The token that is sent now; 0: none. */
static uint64_t next(void)
{
    uint64_t token = 0;

    return gate_next(&gate, &token) ? token : 0;
}

TEST(one_token_is_for_all_that_came_before)
{
    uint64_t a, b, c;

    begin();
    CU_ASSERT_EQUAL(next(), 0);
    a = gate_enter(&gate);
    b = gate_enter(&gate);
    CU_ASSERT_EQUAL(a, b);
    CU_ASSERT_EQUAL(wants, 1);
    CU_ASSERT_EQUAL(next(), a);
    CU_ASSERT_EQUAL(next(), 0);
    c = gate_enter(&gate);
    CU_ASSERT_EQUAL(wants, 1); /* the one under way comes first */
    CU_ASSERT_TRUE(c > a);
    CU_ASSERT_EQUAL(next(), 0);
    CU_ASSERT_FALSE(gate_passes(&gate, a));
    CU_ASSERT_TRUE(gate_covered(&gate, a));
    CU_ASSERT_TRUE(gate_passes(&gate, a));
    CU_ASSERT_FALSE(gate_passes(&gate, c));
    CU_ASSERT_EQUAL(next(), c);
    CU_ASSERT_TRUE(gate_covered(&gate, c));
    CU_ASSERT_TRUE(gate_passes(&gate, c));
    CU_ASSERT_EQUAL(next(), 0);
}

TEST(tokens_that_say_nothing)
{
    uint64_t a;

    begin();
    a = gate_enter(&gate);
    CU_ASSERT_FALSE(gate_covered(&gate, a)); /* it was not sent */
    CU_ASSERT_FALSE(gate_passes(&gate, a));
    CU_ASSERT_EQUAL(next(), a);
    CU_ASSERT_FALSE(gate_covered(&gate, a + 1));
    CU_ASSERT_TRUE(gate_covered(&gate, a));
    CU_ASSERT_FALSE(gate_covered(&gate, a)); /* a second time */
}

TEST(token_that_is_lost_is_sent_anew)
{
    uint64_t a, b, c;

    begin();
    a = gate_enter(&gate);
    CU_ASSERT_EQUAL(next(), a);
    gate_again(&gate);
    b = next();
    CU_ASSERT_TRUE(b > a);
    c = gate_enter(&gate);
    CU_ASSERT_TRUE(c > b);
    /* the first one may come back after all, and is as good */
    CU_ASSERT_TRUE(gate_covered(&gate, a));
    CU_ASSERT_EQUAL(next(), 0);
    CU_ASSERT_TRUE(gate_covered(&gate, b));
    CU_ASSERT_EQUAL(next(), c);
    CU_ASSERT_TRUE(gate_covered(&gate, c));
    gate_again(&gate);
    CU_ASSERT_EQUAL(next(), 0); /* nothing waits */
}

TEST(open_gate)
{
    uint64_t a;

    begin();
    a = gate_enter(&gate);
    gate_open(&gate);
    CU_ASSERT_TRUE(gate_passes(&gate, a));
    CU_ASSERT_EQUAL(next(), 0);
    CU_ASSERT_TRUE(gate_passes(&gate, gate_enter(&gate)));
    CU_ASSERT_EQUAL(wants, 1);
}

/* Against a plain account of when each byte came and which token was sent after that. */
TEST(lines_under_random_steps)
{
    enum { BYTES = 400 };
    static uint64_t sent_after[BYTES + 1]; /* the first token that was sent after the byte came */
    struct gate_line line = {0};
    uint64_t came = 0, stamped = 0, passed = 0, sent = 0, back = 0, token;
    unsigned seed = 7;

    begin();
    while (passed < BYTES) {
        unsigned what = (seed = seed * 1103515245u + 12345u) >> 16;

        if (what % 4 == 0 && came < BYTES) {
            sent_after[++came] = UINT64_MAX;
            gate_line_enter(&line, &gate, came);
        } else if (what % 4 == 1 && gate_next(&gate, &token)) {
            CU_ASSERT_TRUE(token > sent);
            for (sent = token; stamped < came; stamped++)
                sent_after[stamped + 1] = token;
        } else if (what % 4 == 2 && back < sent) {
            gate_covered(&gate, ++back);
        } else if (what % 64 == 3) {
            gate_again(&gate);
        }
        CU_ASSERT_TRUE(gate_line_passed(&line, &gate) >= passed);
        passed = gate_line_passed(&line, &gate);
        CU_ASSERT_TRUE(passed <= came);
        for (uint64_t byte = 1; byte <= passed; byte++)
            CU_ASSERT_TRUE_FATAL(sent_after[byte] <= back);
        if (came == BYTES && sent == back && stamped == came)
            CU_ASSERT_EQUAL(passed, BYTES);
    }
}

/* --- channels --- */

static char bytes[16];

static ssize_t read_of(struct channel *c)
{
    memset(bytes, 0, sizeof(bytes));
    return channel_read(c, bytes, sizeof(bytes) - 1);
}

static struct channel *new_channel(bool records)
{
    struct channel *c = channel_new(NULL, records);

    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    channel_hold(c, &gate);
    return c;
}

static void put(struct channel *c, const char *text)
{
    CU_ASSERT_EQUAL(channel_put(c, text, strlen(text), &err), CW_OK);
}

static void cover(void)
{
    CU_ASSERT_TRUE(gate_covered(&gate, next()));
}

static void done(struct channel *c)
{
    channel_close(c);
    channel_leave(c);
}

TEST(channel_is_read_as_far_as_it_passed)
{
    struct channel *c;
    uint64_t token;

    begin();
    c = new_channel(false);
    put(c, "ab");
    CU_ASSERT_EQUAL(read_of(c), -1);
    token = next();
    put(c, "cd");
    CU_ASSERT_TRUE(gate_covered(&gate, token));
    CU_ASSERT_EQUAL(channel_read(c, bytes, 1), 1);
    put(c, "e");
    channel_end(c);
    CU_ASSERT_FALSE(channel_is_over(c));
    CU_ASSERT_EQUAL(read_of(c), 1);
    CU_ASSERT_STRING_EQUAL(bytes, "b");
    CU_ASSERT_EQUAL(read_of(c), -1);
    cover();
    CU_ASSERT_TRUE(channel_is_over(c));
    CU_ASSERT_EQUAL(read_of(c), 3);
    CU_ASSERT_STRING_EQUAL(bytes, "cde");
    CU_ASSERT_EQUAL(read_of(c), 0);
    done(c);
}

/* Its end waits, too, also alone. */
TEST(end_of_a_channel_passes_last)
{
    struct channel *c;
    uint64_t token;

    begin();
    c = new_channel(false);
    put(c, "ab");
    token = next();
    channel_end(c);
    CU_ASSERT_TRUE(gate_covered(&gate, token));
    CU_ASSERT_EQUAL(read_of(c), 2);
    CU_ASSERT_EQUAL(read_of(c), -1);
    cover();
    CU_ASSERT_EQUAL(read_of(c), 0);
    done(c);
}

TEST(what_waits_of_a_lost_host_is_dropped)
{
    struct channel *c;
    uint64_t token;

    for (int records = 0; records < 2; records++) {
        begin();
        c = new_channel(records);
        put(c, "ab");
        token = next();
        put(c, "cd");
        CU_ASSERT_TRUE(gate_covered(&gate, token));
        channel_drop(c);
        CU_ASSERT_EQUAL(read_of(c), 2);
        CU_ASSERT_STRING_EQUAL(bytes, "ab");
        CU_ASSERT_EQUAL(read_of(c), 0);
        done(c);
    }
}

/* Two descriptors of a rank: what was said first to one is never read behind what followed. */
TEST(channels_keep_the_order_between_them)
{
    struct channel *pmi, *control;

    begin();
    pmi = new_channel(false);
    control = new_channel(true);
    put(control, "image");
    CU_ASSERT_EQUAL(next(), 1);
    put(pmi, "fence");
    put(control, "file");
    CU_ASSERT_TRUE(gate_covered(&gate, 1));
    CU_ASSERT_EQUAL(read_of(pmi), -1);
    CU_ASSERT_EQUAL(read_of(control), 5);
    CU_ASSERT_EQUAL(read_of(control), -1);
    cover();
    CU_ASSERT_EQUAL(read_of(pmi), 5);
    CU_ASSERT_EQUAL(read_of(control), 4);
    done(pmi);
    done(control);
}
