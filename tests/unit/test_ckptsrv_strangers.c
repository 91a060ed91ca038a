/* Connections to a checkpoint server that have not said who they are. */
#include "ckptsrv/service.h"
#include "common/stranger.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

SUITE("strangers of a checkpoint server");

#define STRANGERS (CW_STRANGERS_MAX + 2)

static const uint8_t key[CW_KEY_SIZE] = {1};
static int strangers[STRANGERS];
static struct loop *loop;
static struct service *service;
static struct rlimit descriptors;

static void turn(void)
{
    for (int i = 0; i < 3; i++)
        loop_turn(loop, 0);
}

static void begin(void)
{
    struct cw_err err;
    struct rlimit most;

    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
    most = (struct rlimit){descriptors.rlim_max, descriptors.rlim_max};
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &most), 0);
    loop = loop_new(&err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(loop);
    service = service_new(loop, NULL, NULL, key); /* strangers get to no image */
    CU_ASSERT_PTR_NOT_NULL_FATAL(service);
}

static void end(void)
{
    service_free(service);
    loop_free(loop);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
}

static void come(int from, int count)
{
    int pair[2];

    for (int i = from; i < from + count; i++) {
        CU_ASSERT_EQUAL_FATAL(
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
        strangers[i] = pair[0];
        service_enter(service, pair[1]);
    }
    turn();
}

/* What came for it: CHALLENGE, which ..., and REFUSED with this text, or nothing more. Whether the
 * server has ended the connection. */
static bool hears(int number, const char *refused)
{
    uint8_t bytes[4 * (CW_FRAME_HEADER + CW_FRAME_BODY_MAX)];
    struct codec codec = {0};
    struct codec_frame frame;
    struct cw_notice_body notice;
    struct cw_err err;
    ssize_t n;

    while ((n = recv(strangers[number], bytes, sizeof(bytes), 0)) > 0)
        codec_receive(&codec, bytes, (size_t)n);
    CU_ASSERT_EQUAL_FATAL(codec_next(&codec, &frame, &err), 1);
    CU_ASSERT_EQUAL(frame.header.type, CW_FRAME_CHALLENGE);
    CU_ASSERT_EQUAL_FATAL(codec_next(&codec, &frame, &err), refused ? 1 : 0);
    if (refused) {
        CU_ASSERT_EQUAL(frame.header.type, CW_FRAME_REFUSED);
        CU_ASSERT_TRUE(cw_notice_get(frame.body, frame.header.length, &notice));
        CU_ASSERT_EQUAL(notice.code, CW_REFUSED_LIMIT);
        CU_ASSERT_STRING_EQUAL(notice.text, refused);
    }
    codec_fini(&codec);
    return n == 0;
}

static void leave(int from, int count)
{
    for (int i = from; i < from + count; i++)
        close(strangers[i]);
    turn();
}

/* The one that came first is told why; the others stay. */
TEST(who_came_first_is_told)
{
    begin();
    come(0, CW_STRANGERS_MAX);
    come(CW_STRANGERS_MAX, 1);
    CU_ASSERT_TRUE(hears(0, CW_STRANGER_GOES));
    CU_ASSERT_FALSE(hears(1, NULL));
    CU_ASSERT_FALSE(hears(CW_STRANGERS_MAX, NULL));
    come(CW_STRANGERS_MAX + 1, 1);
    CU_ASSERT_FALSE(hears(2, NULL));
    leave(0, STRANGERS);
    end();
}

/* One that was refused for what it said, and has not gone, has to go all the same. */
TEST(one_that_does_not_read_why)
{
    begin();
    come(0, CW_STRANGERS_MAX);
    CU_ASSERT_EQUAL(send(strangers[0], "this is no frame at all, nor the header of one", 40, 0),
                    40);
    turn();
    come(CW_STRANGERS_MAX, 1);
    turn();
    CU_ASSERT_EQUAL(send(strangers[0], "?", 1, MSG_NOSIGNAL), -1);
    CU_ASSERT_FALSE(hears(1, NULL));
    leave(0, CW_STRANGERS_MAX + 1);
    end();
}
