/* HELLO with TAKE: another dispatcher goes on with a job whose dispatcher is gone. */
#include "common/cred.h"
#include "relay/core/conn.h"
#include "tests/trace/killed.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE_AFTER_EACH("trace of taking a job over", fixture_end);

#define RESUME_MS 5000
#define TAKE_FLAGS (CW_HELLO_LOG | CW_HELLO_TAKE)

static struct fixture f;
static struct client *const d = &f.dispatcher;
static struct client *const s = &f.other[0]; /* the successor */
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];

static void start(void)
{
    fixture_init_left(&f, FIXTURE_MEMORY, 0);
    f.resume_ms = RESUME_MS;
    fixture_start(&f, 2);
}

static void take_with(uint32_t flags, uint32_t ranks)
{
    fixture_forget(&f);
    fixture_connect(&f, s, "s");
    s->hello = (struct cw_hello){
        .role = CW_ROLE_DISPATCHER, .rank = ranks, .flags = flags, .resume_ms = RESUME_MS};
    cw_cred_job_key(s->key, f.relay_key, f.job);
    fixture_hello(s);
}

static void take(uint32_t ranks)
{
    take_with(TAKE_FLAGS, ranks);
}

static void say_rank_end(struct client *c, uint32_t rank, uint32_t incarnation)
{
    uint8_t body[CW_RANK_END_SIZE];

    cw_rank_end_put(body, &(struct cw_rank_end){rank, incarnation});
    say_frame(c, CW_FRAME_RANK_END, body, sizeof(body));
}

/* --- it is let in -------------------------------------------------------------------------------
 */

/* What was queued for the one before is not for it; what comes from now on is. */
TEST(suspended)
{
    start();
    fixture_close(d, "crash");
    say_bye(r0);
    take(2);
    expect(&f, "s < HELLO dispatcher of 2 LOG TAKE\n"
               "s > WELCOME event 0\n");
    say_bye(r1);
    expect_has(&f, "s > NOTICE RANK_BYE rank 1 'done'\n");
}

/* Ranks go on where they were, and new incarnations repeat what theirs did. */
TEST(ranks_go_on)
{
    start();
    say_send(r1, 0, 5, "abc");
    fixture_close(d, "crash");
    take(2);
    say_recv(r0, 7, 5);
    expect_has(&f, "0 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n");
    say_taken(r0, 1, 4);
    say_rank_end(s, 0, 1);
    fixture_close(r0, "crash");
    expect_has(&f, "s > NOTICE RANK_LOST rank 0 incarnation 1 acts 1 event 1 'crash'\n");
    fixture_again(r0);
    expect_has(&f, "0 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n");
}

/* The relay was killed too; the job is as it was left. */
TEST(relay_that_came_back)
{
    start();
    say_send(r1, 0, 5, "abc");
    fixture_kill(&f);
    take(2);
    expect(&f, "s < HELLO dispatcher of 2 LOG TAKE\n"
               "s > WELCOME event 0\n");
    say_rank_end(s, 0, 1);
    fixture_again(r0);
    expect_has(&f, "s > NOTICE RANK_UP rank 0");
    say_recv(r0, 7, 5);
    expect_has(&f, "0 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n");
    /* and it is known to the next relay and the next dispatcher */
    fixture_close(s, "crash");
    fixture_kill(&f);
    take(2);
    expect_has(&f, "s > WELCOME");
}

/* The session before ends without the job, also when its time would be up. */
TEST(session_before_is_over)
{
    start();
    fixture_close(d, "crash");
    fixture_tick(&f, 1);
    take(2);
    expect_has(&f, "s > WELCOME");
    fixture_tick(&f, 1 + RESUME_MS * 1000000ull);
    expect(&f, "");
    fixture_resume(d, d->received);
    expect_has(&f, "d > REFUSED");
    fixture_close(s, "crash");
    fixture_tick(&f, 2 + RESUME_MS * 1000000ull);
    fixture_forget(&f);
    fixture_tick(&f, 3 + 2 * RESUME_MS * 1000000ull);
    expect_has(&f, "0 is closed\n");
}

/* Nobody else is waited for as long as a successor; a relay that comes back knows it, too. */
static void expect_orphan_for(bool killed)
{
    f.orphan_ms = 3 * RESUME_MS;
    fixture_start(&f, 2);
    if (killed) {
        fixture_kill(&f);
        fixture_connect(&f, r1, "1");
        fixture_hello_rank(r1, 1, 2);
    }
    fixture_close(d, "crash");
    fixture_close(r0, "crash");
    fixture_tick(&f, 1);
    fixture_forget(&f);
    fixture_tick(&f, 2 + RESUME_MS * 1000000ull);
    expect(&f, "");
    fixture_again(r0);
    take(2);
    expect_has(&f, "s > WELCOME");
    fixture_close(s, "crash");
    fixture_tick(&f, 1);
    fixture_tick(&f, 3 * RESUME_MS * 1000000ull);
    take(2);
    expect_has(&f, "s > WELCOME");
    fixture_close(s, "crash");
    fixture_tick(&f, 1);
    fixture_tick(&f, 1 + 3 * RESUME_MS * 1000000ull);
    take(2);
    expect_has(&f, "s > REFUSED JOB");
}

TEST(orphan)
{
    fixture_init_left(&f, FIXTURE_MEMORY, 0);
    f.resume_ms = RESUME_MS;
    expect_orphan_for(false);
}

TEST(orphan_of_a_relay_that_came_back)
{
    fixture_init_left(&f, FIXTURE_MEMORY, 0);
    f.resume_ms = RESUME_MS;
    expect_orphan_for(true);
}

/* --- it is refused ------------------------------------------------------------------------------
 */

/* The relay has not seen the old connection break yet; or there are two dispatchers, and the second
 * one is not let in until the first one's connection is ended. */
TEST(busy)
{
    struct relay_conn *old;

    start();
    old = d->conn;
    d->conn = NULL;
    f.lazy = true;
    take(2);
    expect(&f, "s < HELLO dispatcher of 2 LOG TAKE\n"
               "s > REFUSED BUSY 'the old connection of the dispatcher is being ended'\n");
    CU_ASSERT_TRUE(relay_conn_done(old));
    fixture_close(s, "refused");
    f.lazy = false;
    relay_conn_broken(old, "closed by the relay", NULL, 0);
    take(2);
    expect_has(&f, "s > WELCOME event 0\n");
}

TEST(no_such_job)
{
    start();
    f.job[0] ^= 1;
    take(2);
    expect(&f, "s < HELLO dispatcher of 2 LOG TAKE\n"
               "s > REFUSED JOB 'the relay has no such job (it may have ended)'\n"
               "s is closed\n");
    f.job[0] ^= 1;
}

TEST(job_that_ended)
{
    start();
    say_frame(d, CW_FRAME_JOB_END, NULL, 0);
    take(2);
    expect_has(&f, "s > REFUSED JOB 'the relay has no such job (it may have ended)'\n");
}

/* It ends with its dispatcher. */
TEST(job_without_resume_timeout)
{
    fixture_init_log(&f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    fixture_start(&f, 2);
    take(2);
    expect_has(&f, "s > REFUSED JOB 'the relay has no such job (it may have ended)'\n");
    /* the one that is there stays */
    say_bye(r0);
    expect_has(&f, "d > NOTICE RANK_BYE rank 0 'done'\n");
}

TEST(other_ranks)
{
    static const uint32_t others[] = {0, 1, 3, UINT32_MAX};

    start();
    fixture_close(d, "crash");
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        char text[128];

        take(others[i]);
        snprintf(text, sizeof(text), "s > REFUSED PROTOCOL 'the job has 2 ranks, not %u'\n",
                 others[i]);
        expect_has(&f, text);
    }
    take(2);
    expect_has(&f, "s > WELCOME event 0\n");
}

TEST(wrong_key)
{
    start();
    fixture_close(d, "crash");
    fixture_forget(&f);
    fixture_connect(&f, s, "s");
    s->hello = (struct cw_hello){.role = CW_ROLE_DISPATCHER, .rank = 2, .flags = TAKE_FLAGS};
    memset(s->key, 1, sizeof(s->key));
    fixture_hello(s);
    expect_has(&f, "s > REFUSED CREDENTIAL 'wrong credential for a dispatcher");
    fixture_resume(d, d->received);
    expect_has(&f, "d > WELCOME event 0 RESUMED");
}

/* TAKE is for dispatchers that have no session yet. */
TEST(with_resume)
{
    start();
    f.job[0] ^= 1;
    take_with(TAKE_FLAGS | CW_HELLO_RESUME, 2);
    expect_has(&f, "s > REFUSED JOB 'the relay has no such session (it may have ended)'\n");
    f.job[0] ^= 1;
}
