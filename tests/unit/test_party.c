/* The dispatcher's session with a relay, whose connection breaks. */
#include "dispatcher/servers/party.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

SUITE("the dispatcher's session");

#define ROOM 400
#define FRAME (CW_FRAME_HEADER + CW_WORD_SIZE)

static struct party mine;
static struct loop *loop;
static struct cw_session relay; /* the other side's */
static uint64_t received;       /* by it */
static int fd;                  /* its end */
static struct cw_err err;
static char told[16][CW_TEXT_MAX + 1];
static int told_count;

static bool on_frame(void *ctx, const struct cw_header *header, const uint8_t *body)
{
    struct cw_notice_body notice;

    (void)ctx;
    if (header->type != CW_FRAME_NOTICE || !cw_notice_get(body, header->length, &notice))
        return false;
    snprintf(told[told_count++], CW_TEXT_MAX + 1, "%s", notice.text);
    return true;
}

static void on_broke(void *ctx, struct cw_err *e)
{
    (void)ctx;
    CU_ASSERT_EQUAL(mine.fd, -1);
    err = *e;
}

static const struct party_kind kind = {.name = "relay",
                                       .subject = "the relay",
                                       .refusal = "the relay refuses to go on",
                                       .resumes = true,
                                       .frame = on_frame,
                                       .broke = on_broke};

/* Returns what the session says of it. */
static int hear(void)
{
    err.code = CW_OK;
    party_hear(&mine);
    return err.code;
}

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
    loop = loop_new(&err);
    received = 0;
    told_count = 0;
    CU_ASSERT_EQUAL_FATAL(party_init(&mine, loop, &kind, NULL, ROOM, &err), CW_OK);
    party_begin(&mine, connect_both(), &session);
}

static void end(void)
{
    party_free(&mine);
    loop_free(loop);
    close(fd);
}

/* The connection breaks, and the relay has received all before `from`. */
static int resume(uint64_t from)
{
    party_break(&mine);
    close(fd);
    return party_resume(&mine, connect_both(), from, &err);
}

static int tell(uint32_t what)
{
    uint8_t body[CW_WORD_SIZE];

    cw_word_put(body, what);
    return party_tell(&mine, CW_FRAME_CUT, body, sizeof(body), &err);
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
TEST(what_it_is_told)
{
    uint8_t bytes[3 * FRAME];

    for (size_t at = 0; at <= sizeof(bytes); at++) {
        begin();
        for (uint32_t i = 0; i < 3; i++)
            CU_ASSERT_EQUAL(tell(i), CW_OK);
        take(bytes, at);
        CU_ASSERT_EQUAL_FATAL(resume(received), CW_OK);
        take(bytes + at, sizeof(bytes) - at);
        for (uint32_t i = 0; i < 3; i++)
            is_told(bytes + i * FRAME, i);
        end();
    }
}

TEST(told_while_it_is_suspended)
{
    uint8_t bytes[2 * FRAME];

    begin();
    party_break(&mine);
    CU_ASSERT_EQUAL(tell(7), CW_OK);
    CU_ASSERT_EQUAL(tell(8), CW_OK);
    CU_ASSERT_EQUAL_FATAL(resume(0), CW_OK);
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

TEST(what_it_says)
{
    uint8_t bytes[512];
    size_t size = 0;

    for (size_t at = 0; size == 0 || at <= size; at++) {
        begin();
        size = notice(bytes, "one");
        size += notice(bytes + size, "two");
        CU_ASSERT_EQUAL(send(fd, bytes, at, 0), (ssize_t)at);
        CU_ASSERT_EQUAL(hear(), CW_OK);
        CU_ASSERT_EQUAL(mine.session.received, at);
        shutdown(fd, SHUT_RDWR);
        CU_ASSERT_EQUAL(hear(), CW_ECLOSED);
        CU_ASSERT_EQUAL_FATAL(resume(0), CW_OK);
        CU_ASSERT_EQUAL(send(fd, bytes + at, size - at, 0), (ssize_t)(size - at));
        CU_ASSERT_EQUAL(hear(), CW_OK);
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

TEST(a_relay_that_acknowledges_nothing)
{
    uint32_t count = 0;

    begin();
    while (tell(count) == CW_OK)
        count++;
    CU_ASSERT_EQUAL(err.code, CW_ELIMIT);
    CU_ASSERT_EQUAL(count, ROOM / FRAME);
    CU_ASSERT_EQUAL(tell(count), CW_ELIMIT);
    acknowledge(FRAME);
    CU_ASSERT_EQUAL(hear(), CW_OK);
    CU_ASSERT_EQUAL(tell(count), CW_OK);
    end();
}

TEST(a_relay_that_lies)
{
    begin();
    CU_ASSERT_EQUAL(tell(0), CW_OK);
    acknowledge(FRAME + 1);
    CU_ASSERT_EQUAL(hear(), CW_EPROTO);
    CU_ASSERT_EQUAL(resume(FRAME + 1), CW_EPROTO);
    end();
}

/* It says something that is not expected, something too long, and that it refuses. */
TEST(what_ends_it)
{
    struct cw_notice_body body = {.code = CW_REFUSED_LIMIT, .text = "enough"};
    uint8_t frame[CW_FRAME_HEADER + CW_NOTICE_SIZE + CW_TEXT_MAX];
    uint32_t size = (uint32_t)cw_notice_put(frame + CW_FRAME_HEADER, &body);

    begin();
    cw_frame_begin(&relay, frame, CW_FRAME_REFUSED, size);
    CU_ASSERT_EQUAL(send(fd, frame, CW_FRAME_HEADER + size, 0), (ssize_t)(CW_FRAME_HEADER + size));
    CU_ASSERT_EQUAL(hear(), CW_EAUTH);
    CU_ASSERT_STRING_EQUAL(err.text, "the relay refuses to go on: enough");
    end();
    begin();
    cw_frame_begin(&relay, frame, CW_FRAME_HELD_END, 0);
    CU_ASSERT_EQUAL(send(fd, frame, CW_FRAME_HEADER, 0), CW_FRAME_HEADER);
    CU_ASSERT_EQUAL(hear(), CW_EPROTO);
    CU_ASSERT_STRING_EQUAL(err.text,
                           "the relay sent a HELD_END frame, which a dispatcher does not expect");
    end();
    begin();
    cw_frame_begin(&relay, frame, CW_FRAME_NOTICE, CW_FRAME_BODY_MAX + 1);
    CU_ASSERT_EQUAL(send(fd, frame, CW_FRAME_HEADER, 0), CW_FRAME_HEADER);
    CU_ASSERT_EQUAL(hear(), CW_EPROTO);
    end();
}
