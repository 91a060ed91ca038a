/* The opener's side of a handshake, against a relay of a few lines in a thread: a session that is
 * opened or resumed, and all that can go wrong meanwhile. */
#include "common/cred.h"
#include "common/hello.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

SUITE("hello");

#define PATIENCE_MS 5000
#define SHORT_MS 20
#define RECEIVED (5ull << 32)

enum trouble {
    NO_TROUBLE,
    WRONG_FLAG,     /* resumes a session that is to be opened, or the other way round */
    CHANGED_ON_WAY, /* the WELCOME */
    REFUSES,
    IS_BUSY,
    IS_FULL,
    CLOSES,
    IS_SILENT,
};

/* The relay's side. */
static struct {
    int fd;
    enum trouble trouble;
    bool resumed;
    struct cw_hello hello; /* as it came */
    struct cw_header header;
} relay;

static const uint8_t key[CW_KEY_SIZE] = "the key that both sides know";
static const uint8_t nonce[CW_NONCE_SIZE] = "the relay's own";
static struct cw_session session;
static struct cw_welcome welcome;
static struct cw_hello hello;
static struct cw_err err;

static void say(struct cw_session *numbers, uint8_t type, const uint8_t *body, uint32_t size)
{
    uint8_t frame[CW_FRAME_HEADER + CW_FRAME_BODY_MAX];

    cw_frame_begin(numbers, frame, type, size);
    memcpy(frame + CW_FRAME_HEADER, body, size);
    (void)!write(relay.fd, frame, CW_FRAME_HEADER + size);
}

static void challenge(struct cw_session *numbers)
{
    struct cw_challenge c = {.magic = CW_PROTOCOL_MAGIC, .version = CW_PROTOCOL_VERSION};
    uint8_t body[CW_CHALLENGE_SIZE];

    memcpy(c.nonce, nonce, sizeof(nonce));
    cw_challenge_put(body, &c);
    say(numbers, CW_FRAME_CHALLENGE, body, sizeof(body));
}

static void say_welcome(struct cw_session *numbers)
{
    struct cw_welcome w = {.acts = 3, .received = RECEIVED};
    uint8_t body[CW_WELCOME_SIZE];

    w.flags = relay.resumed != (relay.trouble == WRONG_FLAG) ? CW_WELCOME_RESUMED : 0;
    cw_cred_mac_welcome(w.mac, key, &w, &relay.hello, nonce);
    cw_welcome_put(body, &w);
    if (relay.trouble == CHANGED_ON_WAY)
        body[CW_WELCOME_SIZE - 1] ^= 1;
    say(numbers, CW_FRAME_WELCOME, body, sizeof(body));
}

static void refuse(struct cw_session *numbers, uint32_t code)
{
    struct cw_notice_body n = {.code = code, .text = "for a reason"};
    uint8_t body[CW_NOTICE_SIZE + CW_TEXT_MAX];

    say(numbers, CW_FRAME_REFUSED, body, (uint32_t)cw_notice_put(body, &n));
}

static void *relay_main(void *arg)
{
    uint8_t frame[CW_FRAME_HEADER + CW_HELLO_SIZE];
    struct cw_session numbers = {0};
    struct cw_err unread;
    char more;

    challenge(&numbers);
    if (recv(relay.fd, frame, sizeof(frame), MSG_WAITALL) == sizeof(frame) &&
        cw_frame_accept(&numbers, frame, &relay.header, &unread) == CW_OK)
        cw_hello_get(frame + CW_FRAME_HEADER, &relay.hello);
    if (relay.trouble == REFUSES)
        refuse(&numbers, CW_REFUSED_JOB);
    else if (relay.trouble == IS_BUSY)
        refuse(&numbers, CW_REFUSED_BUSY);
    else if (relay.trouble == IS_FULL)
        refuse(&numbers, CW_REFUSED_LIMIT);
    else if (relay.trouble == IS_SILENT)
        (void)!read(relay.fd, &more, 1);
    else if (relay.trouble != CLOSES)
        say_welcome(&numbers);
    close(relay.fd);
    return arg;
}

static int shake(bool resume, enum trouble trouble)
{
    int timeout_ms = trouble == IS_SILENT ? SHORT_MS : PATIENCE_MS;
    struct cw_wire wire = {0};
    pthread_t thread;
    int fds[2];
    int code;

    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    memset(&relay, 0, sizeof(relay));
    relay.fd = fds[0];
    relay.trouble = trouble;
    relay.resumed = resume;
    wire.fd = fds[1];
    hello.role = CW_ROLE_RANK;
    hello.rank = 4;
    hello.incarnation = 2;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, relay_main, NULL), 0);
    if (resume)
        code = cw_hello_resume(&wire, RECEIVED + 1, &hello, key, timeout_ms, &welcome, &err);
    else
        code = cw_hello_open(&wire, &session, &hello, key, timeout_ms, &welcome, &err);
    close(wire.fd);
    pthread_join(thread, NULL);
    return code;
}

static bool hello_is_proven(void)
{
    uint8_t mac[CW_MAC_SIZE];

    cw_cred_mac_hello(mac, key, &relay.hello, nonce);
    return cw_cred_equal(mac, relay.hello.mac);
}

TEST(a_session_is_opened)
{
    session = (struct cw_session){0};
    CU_ASSERT_EQUAL(shake(false, NO_TROUBLE), CW_OK);
    CU_ASSERT_TRUE(hello_is_proven());
    CU_ASSERT_EQUAL(relay.hello.flags, 0);
    CU_ASSERT_EQUAL(relay.hello.received, 0);
    CU_ASSERT_EQUAL(welcome.acts, 3);
    CU_ASSERT_EQUAL(session.in_seq, 2);
    CU_ASSERT_EQUAL(session.out_seq, 1);
    CU_ASSERT_EQUAL(session.received, 0);
}

/* The frames of the handshake are numbered for themselves. */
TEST(a_session_is_resumed)
{
    hello.flags = CW_HELLO_LOG;
    CU_ASSERT_EQUAL(shake(true, NO_TROUBLE), CW_OK);
    CU_ASSERT_TRUE(hello_is_proven());
    CU_ASSERT_EQUAL(relay.hello.flags, CW_HELLO_LOG | CW_HELLO_RESUME);
    CU_ASSERT_EQUAL(relay.hello.received, RECEIVED + 1);
    CU_ASSERT_EQUAL(relay.header.seq, 1);
    CU_ASSERT_EQUAL(relay.header.ack, 1);
    CU_ASSERT_EQUAL(welcome.received, RECEIVED);
    CU_ASSERT_EQUAL(shake(true, NO_TROUBLE), CW_OK);
    session = (struct cw_session){0};
    CU_ASSERT_EQUAL(shake(false, NO_TROUBLE), CW_OK);
    CU_ASSERT_EQUAL(relay.hello.flags, CW_HELLO_LOG);
    CU_ASSERT_EQUAL(relay.hello.received, 0);
    hello.flags = 0;
}

TEST(what_can_be_tried_again)
{
    CU_ASSERT_EQUAL(shake(true, IS_BUSY), CW_EBUSY);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "for a reason"));
    CU_ASSERT_EQUAL(shake(true, IS_FULL), CW_ELIMIT);
    CU_ASSERT_EQUAL(shake(true, CLOSES), CW_ECLOSED);
    CU_ASSERT_EQUAL(shake(true, IS_SILENT), CW_ETIME);
}

TEST(what_is_final)
{
    CU_ASSERT_EQUAL(shake(true, REFUSES), CW_EAUTH);
    CU_ASSERT_EQUAL(shake(true, CHANGED_ON_WAY), CW_EAUTH);
    CU_ASSERT_EQUAL(shake(true, WRONG_FLAG), CW_EPROTO);
    session = (struct cw_session){0};
    CU_ASSERT_EQUAL(shake(false, WRONG_FLAG), CW_EPROTO);
}
