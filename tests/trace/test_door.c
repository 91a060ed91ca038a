/* Who has not said who they are: what they take, how many there may be, and what they may say. */
#include "common/stranger.h"
#include "tests/trace/fixture.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE_AFTER_EACH("trace of strangers", fixture_end);

#define STRANGERS (CW_STRANGERS_MAX + 2) /* beside a job of 2 ranks */

static struct fixture f;
static struct client *const x = &f.other[0];
static struct client strangers[STRANGERS + 1];

/* It is challenged, and says the first byte of a HELLO. */
static void stranger_comes(struct client *c)
{
    fixture_connect(&f, c, "s");
    c->hello = (struct cw_hello){.role = CW_ROLE_RANK, .rank = 1, .incarnation = 2};
    memcpy(c->hello.job, f.job, CW_ID_SIZE);
    fixture_rank_key(c, 1, 2);
    codec_hello(&c->codec, &c->hello, c->key, &c->challenge);
    fixture_feed_some(c, 1);
}

/* They take nothing from jobs, and keep nobody out: the oldest has to go. */
TEST(strangers_without_end)
{
    uint64_t before;

    fixture_init_log(&f, RELAY_MEMORY_MIN, RELAY_MEMORY_MIN);
    fixture_start(&f, 2);
    before = relay_core_stats(f.core)->memory_now;
    for (uint32_t i = 0; i < STRANGERS; i++)
        stranger_comes(&strangers[i]);
    for (uint32_t i = 0; i < STRANGERS; i++)
        CU_ASSERT_PTR_NOT_NULL(strangers[i].conn);
    CU_ASSERT_EQUAL(relay_core_stats(f.core)->memory_now, before);
    stranger_comes(&strangers[STRANGERS]);
    CU_ASSERT_PTR_NULL(strangers[0].conn);
    CU_ASSERT_PTR_NOT_NULL(strangers[STRANGERS].conn);
    fixture_forget(&f);
    fixture_feed(&strangers[1]);
    fixture_close(&strangers[2], "gone");
    expect_has(&f, "s > WELCOME event 0 LOG\n");
    stranger_comes(&strangers[0]);
    stranger_comes(&strangers[2]);
    CU_ASSERT_PTR_NOT_NULL(strangers[3].conn);
    for (uint32_t i = 0; i <= STRANGERS; i++)
        codec_fini(&strangers[i].codec);
}

TEST(stranger_is_told_why)
{
    fixture_init(&f, FIXTURE_MEMORY);
    fixture_connect(&f, x, "x");
    fixture_forget(&f);
    for (uint32_t i = 0; i < CW_STRANGERS_MAX; i++) {
        x->stalled = true;
        fixture_connect(&f, &strangers[i], "s");
    }
    CU_ASSERT_PTR_NOT_NULL(x->conn);
    fixture_read(x);
    expect_has(&f, "x > REFUSED LIMIT 'too many connections have not said who they are, and this "
                   "one has had the most time; try again'\nx is closed\n");
    for (uint32_t i = 0; i < CW_STRANGERS_MAX; i++)
        codec_fini(&strangers[i].codec);
}

/* What cannot be a HELLO is refused by its header: the rest is not waited for. */
TEST(frames_of_strangers)
{
    for (uint8_t type = 1; type < CW_FRAME_TYPES; type++) {
        if (type == CW_FRAME_HELLO || strcmp(cw_frame_name(type), "?") == 0)
            continue;
        fixture_init(&f, FIXTURE_MEMORY);
        fixture_connect(&f, x, "x");
        codec_begin(&x->codec, type, cw_frame_fixed(type));
        fixture_feed_some(x, CW_FRAME_HEADER);
        expect_has(&f, "frame is not allowed here'\nx is closed\n");
        fixture_fini(&f);
    }
}
