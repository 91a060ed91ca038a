/* A relay that is killed and comes back, and the rest of the job: the dispatcher, other relays,
 * ranks that repeat themselves, logs that are on disk or given up; and steps that were not done. */
#include "relay/core/conn.h"
#include "relay/core/job.h"
#include "tests/trace/killed.h"
#include "tests/trace/say.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE_AFTER_EACH("trace of jobs whose relay returns", fixture_end);

#define RESUME_MS 5000
#define TOTAL 60000u
#define PART 20000u

static struct fixture f;
static struct client *const d = &f.dispatcher;
static struct client *const r0 = &f.rank[0];
static struct client *const r1 = &f.rank[1];

static void start_with(uint64_t log_memory, uint64_t log_disk)
{
    fixture_init_left(&f, log_memory, log_disk);
    f.resume_ms = RESUME_MS;
    fixture_start(&f, 2);
}

static void start(void)
{
    start_with(FIXTURE_MEMORY, 0);
}

static void check_returned(struct relay_returned returned, uint32_t sessions)
{
    CU_ASSERT_EQUAL(returned.jobs, 1);
    CU_ASSERT_EQUAL(returned.sessions, sessions);
    CU_ASSERT_EQUAL(returned.lost, 0);
    CU_ASSERT_STRING_EQUAL(returned.why, "");
}

static uint32_t times_told(const char *text)
{
    uint32_t times = 0;

    for (const char *at = f.story; (at = strstr(at, text)); at++)
        times++;
    return times;
}

/* --- ranks that repeat themselves ---------------------------------------------------------------
 */
static void start_repeating(void)
{
    start();
    say_recv(r0, 7, 5);
    say_send(r1, 0, 5, "abc");
    say_send(r0, 1, 6, "def");
    say_taken(r0, 1, 3);
    fixture_close(r0, "crash");
    fixture_again(r0);
    CU_ASSERT_EQUAL(r0->welcome.flags, CW_WELCOME_LOG | CW_WELCOME_REPLAY);
}

/* Its session is not there any more; its next incarnation repeats all. */
TEST(rank_that_repeats_is_started_again)
{
    start_repeating();
    check_returned(fixture_kill(&f), 2);
    fixture_come_back(d);
    fixture_forget(&f);
    fixture_come_back(r0);
    expect_has(&f, "0 > REFUSED JOB 'the relay has no such session (it may have ended)'\n");
    fixture_again(r0);
    CU_ASSERT_EQUAL(r0->hello.incarnation, 3);
    expect_has(&f, "0 > TAKEN event 1 clock 3\n"
                   "0 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n"
                   "0 > REPLAYED\n");
    say_live(r0, 1, 3);
    fixture_come_back(r1);
    fixture_forget(&f);
    say_recv(r1, 8, 6);
    expect_has(&f, "1 > MESSAGE req 8 tag 6 total 3 FIRST LAST event 1 'def'\n");
}

TEST(rank_that_repeated_goes_on)
{
    start_repeating();
    say_live(r0, 1, 3);
    check_returned(fixture_kill(&f), 3);
    fixture_all_come_back(&f, 2);
    fixture_forget(&f);
    say_recv(r0, 9, 5);
    say_send(r1, 0, 5, "ghi");
    expect_has(&f, "0 > MESSAGE req 9 tag 5 total 3 FIRST LAST event 2 'ghi'\n");
}

/* Older incarnations are refused, as before. */
TEST(fence_outlives_the_relay)
{
    start_repeating();
    check_returned(fixture_kill(&f), 2);
    fixture_connect(&f, &f.other[0], "x");
    fixture_hello_rank(&f.other[0], 0, 1);
    expect_has(&f, "x > REFUSED FENCED");
    fixture_connect(&f, &f.other[0], "x");
    fixture_hello_rank(&f.other[0], 0, 2);
    expect_has(&f, "x > REFUSED DUPLICATE");
}

/* --- the dispatcher -----------------------------------------------------------------------------
 */
static void say_ack(struct client *c)
{
    uint8_t body[CW_ACK_SIZE];

    cw_ack_put(body, &(struct cw_session){.received = c->received});
    say_frame(c, CW_FRAME_ACK, body, sizeof(body));
}

/* What it has not received comes once, and nothing else. */
TEST(notices_come_once)
{
    start();
    say_ack(d);
    d->deaf = true;
    say_bye(r0);
    fixture_close(r1, "crash");
    check_returned(fixture_kill(&f), 2);
    fixture_forget(&f);
    fixture_come_back(d);
    CU_ASSERT_EQUAL(d->welcome.flags, CW_WELCOME_RESUMED);
    CU_ASSERT_EQUAL(d->welcome.received, d->log.end);
    CU_ASSERT_EQUAL(times_told("NOTICE RANK_BYE"), 1);
    CU_ASSERT_EQUAL(times_told("NOTICE"), 1);
    say_ack(d);
    check_returned(fixture_kill(&f), 2);
    fixture_forget(&f);
    fixture_come_back(d);
    CU_ASSERT_EQUAL(times_told("NOTICE"), 0);
    fixture_forget(&f);
    fixture_come_back(r1);
    say_bye(r1);
    CU_ASSERT_EQUAL(times_told("d > NOTICE RANK_BYE rank 1"), 1);
}

/* It has received a part of what was not acknowledged, to the byte. */
TEST(dispatcher_goes_on_at_any_byte)
{
    for (size_t part = 0; part < 100; part++) {
        struct iovec iov;

        start();
        f.mute = true;
        d->stalled = true;
        say_bye(r0);
        CU_ASSERT_EQUAL_FATAL(relay_conn_output(d->conn, &iov, 1), 1);
        part = part < iov.iov_len ? part : 100;
        if (part < iov.iov_len) {
            codec_receive(&d->codec, iov.iov_base, part);
            d->received += part;
        }
        relay_conn_written(d->conn, iov.iov_len);
        check_returned(fixture_kill(&f), 2);
        d->stalled = f.mute = false;
        fixture_forget(&f);
        fixture_come_back(d);
        CU_ASSERT_EQUAL(times_told("d > NOTICE RANK_BYE rank 0 'done'\n"), 1);
        fixture_fini(&f);
    }
}

TEST(dispatcher_that_lies)
{
    start();
    check_returned(fixture_kill(&f), 3);
    fixture_forget(&f);
    fixture_resume(d, d->received + 1);
    expect_has(&f, "d > REFUSED PROTOCOL");
}

/* --- logs ---------------------------------------------------------------------------------------
 */
static void job_is_lost(void (*spoil)(void), const char *why, bool unread)
{
    struct relay_returned returned;

    start();
    say_send(r1, 0, 5, "abc");
    spoil();
    returned = fixture_kill(&f);
    CU_ASSERT_EQUAL(returned.jobs, 0);
    CU_ASSERT_EQUAL(returned.lost, 1);
    CU_ASSERT_EQUAL(returned.unread, unread);
    CU_ASSERT_STRING_EQUAL(returned.why, why);
    fixture_forget(&f);
    fixture_come_back(d);
    expect_has(&f, "d > REFUSED JOB");
    /* and another one can be opened in its place */
    fixture_connect(&f, d, "d");
    fixture_hello_dispatcher(d, 2);
    expect_has(&f, "d > WELCOME");
    check_returned(fixture_kill(&f), 1);
    fixture_fini(&f);
}

static void give_log_up(void)
{
    say_unlogged(r0, 1);
}

static void forget_dispatcher(void)
{
    const struct relay_conn *conn = d->conn;
    struct ledger_cell *cell = &f.left->cells[conn->entry.cell];

    cell->copy[0].kind = cell->copy[1].kind = LEDGER_FREE;
}

/* A block of it is marked as somebody else's. */
static void lose_block(void)
{
    const struct relay_mailbox *mailbox = &r0->conn->rank->mailbox;

    mailbox->log.records.segments[0]->block->mark.chain++;
}

/* It holds what no relay has written. */
static void spoil_record(void)
{
    const struct relay_mailbox *mailbox = &r0->conn->rank->mailbox;

    mailbox->log.records.segments[0]->bytes[0] = 0xff;
}

TEST(logs_that_are_gone)
{
    job_is_lost(give_log_up, "rank 0: its log had been given up", false);
    job_is_lost(lose_block, "rank 0: its log is not whole, or there is no memory for it", true);
    job_is_lost(spoil_record, "rank 0: its log cannot be read", true);
    job_is_lost(forget_dispatcher, "its dispatcher had gone", false);
}

/* Much of what comes again is on disk, or was on its way there. */
static void logs_on_disk(bool waits)
{
    start_with(4 * STORE_SEGMENT_BYTES, FIXTURE_MEMORY);
    f.mute = true;
    f.disk_waits = waits;
    for (uint32_t i = 0; i < 40; i++) {
        say_begin(r1, CW_SEND_TAG, 0, i, PART + 70000, PART + 70000);
        if (waits && i % 3 == 0)
            fixture_disk_one(&f);
    }
    f.disk_waits = false;
    check_returned(fixture_kill(&f), 3);
    fixture_all_come_back(&f, 2);
    for (uint32_t i = 0; i < 40; i++) {
        if (i == 20) {
            check_returned(fixture_kill(&f), 3);
            fixture_all_come_back(&f, 2);
        }
        say_recv(r0, i, i);
        CU_ASSERT_TRUE(fixture_received(r0, i, i, PART + 70000));
    }
    fixture_close(r0, "crash");
    check_returned(fixture_kill(&f), 3);
    fixture_come_back(d);
    fixture_again(r0);
    CU_ASSERT_EQUAL(r0->welcome.event, 40);
    fixture_fini(&f);
}

TEST(logs_that_are_on_disk)
{
    logs_on_disk(false);
    logs_on_disk(true);
}

/* --- steps that were not done -------------------------------------------------------------------
 */
/* The last thing that a client says is lost with the step; it says it again. */
static void amid(struct client *c)
{
    check_returned(fixture_kill_amid(c), 3);
    fixture_forget(&f);
    fixture_all_come_back(&f, 2);
}

TEST(receive_is_posted_again)
{
    start();
    codec_recv(&r0->codec, CW_FRAME_RECV, 7, 5, CODEC_ALL, CODEC_ALL);
    amid(r0);
    say_send(r1, 0, 5, "abc");
    expect_has(&f, "0 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n");
}

static void put_send(struct client *c, uint32_t kind, uint64_t tag, const char *text)
{
    const struct cw_send send = {.kind = kind,
                                 .dst = c == r0 ? 1 : 0,
                                 .req = kind == CW_SEND_SYNC ? 9 : 0,
                                 .tag = tag,
                                 .total = strlen(text)};

    codec_send(&c->codec, &send, text, send.total);
}

static void message_is_sent_again(bool posted, uint32_t kind)
{
    start();
    if (posted)
        say_recv(r0, 7, 5);
    put_send(r1, kind, 5, "abc");
    amid(r1);
    if (!posted && kind != CW_SEND_AM)
        say_recv(r0, 7, 5);
    CU_ASSERT_EQUAL(times_told("0 > MESSAGE req"), 1);
    CU_ASSERT_EQUAL(times_told("1 > SENT req 9 event 1\n"), kind == CW_SEND_SYNC);
    CU_ASSERT_EQUAL(r0->event, 1);
    fixture_fini(&f);
}

TEST(messages_are_sent_again)
{
    for (int posted = 0; posted < 2; posted++) {
        message_is_sent_again(posted, CW_SEND_TAG);
        message_is_sent_again(posted, CW_SEND_SYNC);
        message_is_sent_again(posted, CW_SEND_AM);
    }
}

/* In any part of it; what came in the steps before was done. */
static void part_is_sent_again(bool posted, size_t before)
{
    start();
    f.mute = true;
    if (posted)
        say_recv(r0, 7, 5);
    cw_send_put(codec_begin(&r1->codec, CW_FRAME_SEND, CW_SEND_SIZE + TOTAL),
                &(struct cw_send){.kind = CW_SEND_TAG, .dst = 0, .tag = 5, .total = TOTAL});
    codec_pattern(r1->codec.out.at + r1->codec.out.end - TOTAL, 5, 0, TOTAL);
    fixture_feed_some(r1, before);
    amid(r1);
    if (!posted)
        say_recv(r0, 7, 5);
    CU_ASSERT_TRUE(fixture_received(r0, 7, 5, TOTAL));
    CU_ASSERT_EQUAL(r0->inbox.complete, 1);
    fixture_fini(&f);
}

TEST(parts_are_sent_again)
{
    static const size_t before[] = {0, 1, 56, 57, 100, PART, TOTAL};

    for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++) {
        part_is_sent_again(true, before[i]);
        part_is_sent_again(false, before[i]);
    }
}

TEST(requests_are_made_again)
{
    start();
    say_send(r1, 0, 5, "abc");
    say_recv(r0, 8, 77);
    codec_probe(&r0->codec, 5, CODEC_ALL, true);
    amid(r0);
    CU_ASSERT_EQUAL(times_told("0 > PROBED tag 5 total 3 msg 0"), 1);
    codec_mrecv(&r0->codec, 7, 0, CODEC_ALL);
    amid(r0);
    CU_ASSERT_EQUAL(times_told("0 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n"), 1);
    codec_recv(&r0->codec, CW_FRAME_CANCEL, 8, 77, CODEC_ALL, CODEC_ALL);
    amid(r0);
    CU_ASSERT_EQUAL(times_told("0 > CANCELED req 8 event 2\n"), 1);
    codec_taken(&r0->codec, CW_FRAME_TAKEN, 2);
    amid(r0);
    codec_bye(&r0->codec);
    amid(r0);
    CU_ASSERT_EQUAL(times_told("d > NOTICE RANK_BYE rank 0"), 1);
    CU_ASSERT_EQUAL(times_told("0 > FAREWELL"), 1);
}

/* The step was done, but nobody was told of what followed from it. */
TEST(answers_that_were_not_written)
{
    start();
    say_recv(r0, 7, 5);
    put_send(r1, CW_SEND_SYNC, 5, "abc");
    check_returned(fixture_kill_after(r1), 3);
    fixture_forget(&f);
    fixture_all_come_back(&f, 2);
    CU_ASSERT_EQUAL(times_told("0 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'\n"), 1);
    CU_ASSERT_EQUAL(times_told("1 > SENT req 9 event 1\n"), 1);
    codec_bye(&r0->codec);
    check_returned(fixture_kill_after(r0), 2);
    fixture_forget(&f);
    fixture_come_back(d);
    CU_ASSERT_EQUAL(times_told("d > NOTICE RANK_BYE rank 0"), 1);
}
