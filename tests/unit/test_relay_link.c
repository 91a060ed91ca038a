/* The dispatcher's session with a relay, whose connection breaks. */
#include "dispatcher/relays/relay_link.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM 400
#define FRAME (CW_FRAME_HEADER + CW_WORD_SIZE)

static struct relay_link session_link;
static struct cw_session relay; /* the other side's */
static uint64_t received;       /* by it */
static int fd;                  /* its end */
static struct cw_err err;
static char told[16][CW_TEXT_MAX + 1];
static int told_count;

static void on_notice(void *ctx, const struct cw_notice_body *notice)
{
    (void)ctx;
    snprintf(told[told_count++], CW_TEXT_MAX + 1, "%s", notice->text);
}

static void on_stats(void *ctx, const struct cw_stats *stats)
{
    (void)ctx;
    (void)stats;
}

static void on_grown(void *ctx, const struct cw_grown *grown)
{
    (void)ctx;
    snprintf(told[told_count++], CW_TEXT_MAX + 1, "grown %u %llu", grown->rank,
             (unsigned long long)grown->bytes);
}

static void on_trimmed(void *ctx, const struct cw_trim *trimmed)
{
    (void)ctx;
    snprintf(told[told_count++], CW_TEXT_MAX + 1, "trimmed %u %u %llu", trimmed->rank,
             trimmed->known, (unsigned long long)trimmed->point.clock);
}

static const struct relay_link_ops ops = {on_notice, on_stats, on_grown, on_trimmed};

static int connect_both(void)
{
    int fds[2];

    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    fd = fds[1];
    return fds[0];
}

static void begin(void)
{
    struct cw_session session = {0};

    memset(&relay, 0, sizeof(relay));
    received = 0;
    told_count = 0;
    CU_ASSERT_EQUAL_FATAL(relay_link_init(&session_link, ROOM, &err), CW_OK);
    relay_link_begin(&session_link, connect_both(), &session);
}

static void end(void)
{
    relay_link_free(&session_link);
    close(fd);
}

/* The connection breaks, and the relay has received all before `from`. */
static int resume(uint64_t from)
{
    relay_link_break(&session_link);
    close(fd);
    return relay_link_resume(&session_link, connect_both(), from, &err);
}

static int tell(uint32_t what)
{
    uint8_t body[CW_WORD_SIZE];

    cw_word_put(body, what);
    return relay_link_tell(&session_link, CW_FRAME_CUT, body, sizeof(body), &err);
}

/* The relay reads `size` bytes, which are there. */
static void take(uint8_t *to, size_t size)
{
    if (size > 0)
        CU_ASSERT_EQUAL_FATAL(recv(fd, to, size, 0), (ssize_t)size);
    received += size;
}

static void is_told(const uint8_t *frame, uint32_t what)
{
    struct cw_header header;

    CU_ASSERT_EQUAL_FATAL(cw_frame_accept(&relay, frame, &header, &err), CW_OK);
    CU_ASSERT_EQUAL(header.type, CW_FRAME_CUT);
    CU_ASSERT_EQUAL(cw_word_get(frame + CW_FRAME_HEADER), what);
}

/* Broken wherever it can be: each frame comes once, in order. */
static void what_it_is_told(void)
{
    uint8_t bytes[3 * FRAME];

    for (size_t at = 0; at <= sizeof(bytes); at++) {
        begin();
        for (uint32_t i = 0; i < 3; i++)
            CU_ASSERT_EQUAL(tell(i), CW_OK);
        CU_ASSERT_FALSE(relay_link_flush(&session_link));
        take(bytes, at);
        CU_ASSERT_EQUAL_FATAL(resume(received), CW_OK);
        CU_ASSERT_FALSE(relay_link_flush(&session_link));
        take(bytes + at, sizeof(bytes) - at);
        for (uint32_t i = 0; i < 3; i++)
            is_told(bytes + i * FRAME, i);
        end();
    }
}

static void told_while_it_is_suspended(void)
{
    uint8_t bytes[2 * FRAME];

    begin();
    relay_link_break(&session_link);
    CU_ASSERT_EQUAL(tell(7), CW_OK);
    CU_ASSERT_FALSE(relay_link_flush(&session_link));
    CU_ASSERT_EQUAL(tell(8), CW_OK);
    CU_ASSERT_EQUAL_FATAL(resume(0), CW_OK);
    CU_ASSERT_FALSE(relay_link_flush(&session_link));
    take(bytes, sizeof(bytes));
    is_told(bytes, 7);
    is_told(bytes + FRAME, 8);
    end();
}

static size_t notice(uint8_t *frame, const char *text)
{
    struct cw_notice_body body = {.code = CW_NOTICE_REFUSED, .rank = 1};
    uint8_t fixed[CW_NOTICE_SIZE + CW_TEXT_MAX];
    size_t size;

    snprintf(body.text, sizeof(body.text), "%s", text);
    size = cw_notice_put(fixed, &body);
    cw_frame_begin(&relay, frame, CW_FRAME_NOTICE, (uint32_t)size);
    memcpy(frame + CW_FRAME_HEADER, fixed, size);
    return CW_FRAME_HEADER + size;
}

static void what_it_says(void)
{
    uint8_t bytes[512];
    size_t size = 0;

    for (size_t at = 0; size == 0 || at <= size; at++) {
        begin();
        size = notice(bytes, "one");
        size += notice(bytes + size, "two");
        CU_ASSERT_EQUAL(send(fd, bytes, at, 0), (ssize_t)at);
        CU_ASSERT_EQUAL(relay_link_input(&session_link, &ops, NULL, &err), CW_OK);
        CU_ASSERT_EQUAL(session_link.session.received, at);
        shutdown(fd, SHUT_RDWR);
        CU_ASSERT_EQUAL(relay_link_input(&session_link, &ops, NULL, &err), CW_ECLOSED);
        CU_ASSERT_EQUAL_FATAL(resume(0), CW_OK);
        CU_ASSERT_EQUAL(send(fd, bytes + at, size - at, 0), (ssize_t)(size - at));
        CU_ASSERT_EQUAL(relay_link_input(&session_link, &ops, NULL, &err), CW_OK);
        CU_ASSERT_EQUAL_FATAL(told_count, 2);
        CU_ASSERT_STRING_EQUAL(told[0], "one");
        CU_ASSERT_STRING_EQUAL(told[1], "two");
        end();
    }
}

static void acknowledge(uint64_t position)
{
    uint8_t frame[CW_FRAME_HEADER + CW_ACK_SIZE];

    cw_frame_begin(&relay, frame, CW_FRAME_ACK, CW_ACK_SIZE);
    relay.received = position;
    cw_ack_put(frame + CW_FRAME_HEADER, &relay);
    CU_ASSERT_EQUAL(send(fd, frame, sizeof(frame), 0), (ssize_t)sizeof(frame));
}

static void a_relay_that_acknowledges_nothing(void)
{
    uint32_t count = 0;

    begin();
    while (tell(count) == CW_OK)
        count++;
    CU_ASSERT_EQUAL(err.code, CW_ELIMIT);
    CU_ASSERT_EQUAL(count, ROOM / FRAME);
    CU_ASSERT_FALSE(relay_link_flush(&session_link));
    CU_ASSERT_EQUAL(tell(count), CW_ELIMIT);
    acknowledge(FRAME);
    CU_ASSERT_EQUAL(relay_link_input(&session_link, &ops, NULL, &err), CW_OK);
    CU_ASSERT_EQUAL(tell(count), CW_OK);
    end();
}

static void a_relay_that_lies(void)
{
    begin();
    CU_ASSERT_EQUAL(tell(0), CW_OK);
    CU_ASSERT_FALSE(relay_link_flush(&session_link));
    acknowledge(FRAME + 1);
    CU_ASSERT_EQUAL(relay_link_input(&session_link, &ops, NULL, &err), CW_EPROTO);
    CU_ASSERT_EQUAL(resume(FRAME + 1), CW_EPROTO);
    end();
}

void add_relay_link_tests(void)
{
    CU_pSuite suite = CU_add_suite("the dispatcher's session", NULL, NULL);

    CU_ADD_TEST(suite, what_it_is_told);
    CU_ADD_TEST(suite, told_while_it_is_suspended);
    CU_ADD_TEST(suite, what_it_says);
    CU_ADD_TEST(suite, a_relay_that_acknowledges_nothing);
    CU_ADD_TEST(suite, a_relay_that_lies);
}
