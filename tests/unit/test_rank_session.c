/* The rank's end of a session against a relay that breaks connections wherever it can: in
 * handshakes, in either stream, with bytes under way. Both streams must come whole. */
#include "common/cred.h"
#include "rdevice/arena.h"
#include "rdevice/session.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("session of a rank");

#define STREAM_BYTES (4u << 20) /* each way: more than may be kept */
#define PIECE_MAX (100u << 10)
#define CUT_MAX (700u << 10) /* bytes of a connection, both ways */
#define RESUME_MS 60000

enum place {
    PLACE_NONE,
    PLACE_BEFORE_CHALLENGE,
    PLACE_IN_CHALLENGE,
    PLACE_AFTER_HELLO,
    PLACE_BUSY,
    PLACES
};

static uint8_t key[CW_KEY_SIZE] = "of a rank that is restless";

/* The relay's end; its thread's, but for `received` and `stops`. */
static struct {
    int listener;
    bool rings;
    _Atomic bool refuses; /* ... to resume: the session is over */
    unsigned seed;
    _Atomic uint64_t received;
    uint64_t sent;
    _Atomic bool stops;
    unsigned resumed;
    bool wrong;
} relay;

static struct session session;
static struct cw_address address;

void *arena_alloc(size_t size)
{
    void *at = malloc(size);

    if (!at)
        abort();
    return at;
}

void arena_free(void *at, size_t size)
{
    (void)size;
    free(at);
}

static uint8_t up(uint64_t position)
{
    return (uint8_t)(position * 7 + position / 251);
}

static uint8_t down(uint64_t position)
{
    return (uint8_t)(position * 11 + position / 241);
}

static void fill(uint8_t *to, size_t size, uint64_t position, uint8_t (*of)(uint64_t))
{
    for (size_t i = 0; i < size; i++)
        to[i] = of(position + i);
}

static bool is(const uint8_t *bytes, size_t size, uint64_t position, uint8_t (*of)(uint64_t))
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != of(position + i))
            return false;
    return true;
}

/* --- the relay -----------------------------------------------------------------------------------
 */

static size_t below(size_t bound)
{
    return (size_t)rand_r(&relay.seed) % bound;
}

static bool await(struct cw_wire *wire, bool in, bool out)
{
    struct pollfd p = {.fd = wire->fd, .events = cw_wire_sleep(wire, in, out)};
    bool readable = p.events && poll(&p, 1, 10) > 0 && (p.revents & (POLLIN | POLLHUP));

    cw_wire_woke(wire, readable);
    return !relay.stops;
}

static bool put(struct cw_wire *wire, const void *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = cw_wire_send(wire, &(struct iovec){(void *)bytes, size}, 1);

        if (n < 0 && errno != EAGAIN)
            return false;
        if (n < 0 && !await(wire, false, true))
            return false;
        if (n > 0) {
            bytes = (const uint8_t *)bytes + n;
            size -= (size_t)n;
        }
    }
    return true;
}

static bool get(struct cw_wire *wire, uint8_t *to, size_t size)
{
    while (size > 0) {
        ssize_t n = cw_wire_recv(wire, &(struct iovec){to, size}, 1);

        if (n == 0 || (n < 0 && errno != EAGAIN))
            return false;
        if (n < 0 && !await(wire, true, false))
            return false;
        if (n > 0) {
            to += n;
            size -= (size_t)n;
        }
    }
    return true;
}

static bool say_busy(struct cw_wire *wire, struct cw_session *numbers, uint32_t code)
{
    struct cw_notice_body refused = {.code = code, .text = "not now"};
    uint8_t body[CW_NOTICE_SIZE + CW_TEXT_MAX];
    uint8_t frame[CW_FRAME_HEADER + sizeof(body)];
    size_t size = cw_notice_put(body, &refused);

    cw_frame_begin(numbers, frame, CW_FRAME_REFUSED, (uint32_t)size);
    memcpy(frame + CW_FRAME_HEADER, body, size);
    put(wire, frame, CW_FRAME_HEADER + size);
    return false;
}

static bool welcome(struct cw_wire *wire, struct cw_session *numbers, const struct cw_hello *hello,
                    const struct cw_challenge *challenge)
{
    uint8_t frame[CW_FRAME_HEADER + CW_WELCOME_SIZE];
    struct cw_welcome w = {.flags = hello->flags & CW_HELLO_RESUME ? CW_WELCOME_RESUMED : 0,
                           .received = hello->flags & CW_HELLO_RESUME ? relay.received : 0};

    cw_cred_mac_welcome(w.mac, key, &w, hello, challenge->nonce);
    cw_frame_begin(numbers, frame, CW_FRAME_WELCOME, CW_WELCOME_SIZE);
    cw_welcome_put(frame + CW_FRAME_HEADER, &w);
    if (hello->flags & CW_HELLO_RESUME)
        relay.resumed++;
    if (hello->received > relay.sent)
        relay.wrong = true;
    relay.sent = hello->received;
    return put(wire, frame, sizeof(frame));
}

/* Returns whether the session goes on over this connection. */
static bool shake_hands(struct cw_wire *wire, enum place breaks)
{
    struct cw_challenge challenge = {.magic = CW_PROTOCOL_MAGIC, .version = CW_PROTOCOL_VERSION};
    uint8_t frame[CW_FRAME_HEADER + CW_HELLO_SIZE];
    struct cw_session numbers = {0};
    struct cw_header header;
    struct cw_hello hello;
    struct cw_err err;

    if (breaks == PLACE_BEFORE_CHALLENGE)
        return false;
    cw_frame_begin(&numbers, frame, CW_FRAME_CHALLENGE, CW_CHALLENGE_SIZE);
    cw_challenge_put(frame + CW_FRAME_HEADER, &challenge);
    if (!put(wire, frame, breaks == PLACE_IN_CHALLENGE ? 9 : CW_FRAME_HEADER + CW_CHALLENGE_SIZE) ||
        breaks == PLACE_IN_CHALLENGE || !get(wire, frame, sizeof(frame)) ||
        breaks == PLACE_AFTER_HELLO)
        return false;
    if (cw_frame_accept(&numbers, frame, &header, &err) < 0 ||
        !cw_hello_get(frame + CW_FRAME_HEADER, &hello)) {
        relay.wrong = true;
        return false;
    }
    if (breaks == PLACE_BUSY)
        return say_busy(wire, &numbers, CW_REFUSED_BUSY);
    if (relay.refuses && (hello.flags & CW_HELLO_RESUME))
        return say_busy(wire, &numbers, CW_REFUSED_PROTOCOL);
    return welcome(wire, &numbers, &hello, &challenge);
}

/* Moves `left` bytes at most, then the connection breaks, with whatever is under way. */
static void exchange(struct cw_wire *wire, size_t left)
{
    static uint8_t bytes[PIECE_MAX];

    while (left > 0 && !relay.stops) {
        size_t size = 1 + below(left < PIECE_MAX ? left : PIECE_MAX);
        ssize_t in = cw_wire_recv(wire, &(struct iovec){bytes, size}, 1);
        ssize_t out = -1;

        if (in == 0 || (in < 0 && errno != EAGAIN))
            return;
        if (in > 0) {
            relay.wrong |= !is(bytes, (size_t)in, relay.received, up);
            relay.received += (uint64_t)in;
        }
        if (size > STREAM_BYTES - relay.sent)
            size = STREAM_BYTES - relay.sent;
        fill(bytes, size, relay.sent, down);
        if (size)
            out = cw_wire_send(wire, &(struct iovec){bytes, size}, 1);
        if (size && out < 0 && errno != EAGAIN)
            return;
        if (out > 0)
            relay.sent += (uint64_t)out;
        if (in <= 0 && out <= 0)
            await(wire, true, size > 0);
        left -= in > 0 && (size_t)in < left ? (size_t)in : in > 0 ? left : 0;
        left -= out > 0 && (size_t)out < left ? (size_t)out : out > 0 ? left : 0;
    }
}

/* Where the handshake at hand breaks; most do not. */
static enum place some_place(void)
{
    return below(4) ? PLACE_NONE : (enum place)below(PLACES);
}

static void *run_relay(void *unused)
{
    bool first = true;

    while (!relay.stops) {
        struct pollfd p = {.fd = relay.listener, .events = POLLIN};
        struct cw_wire wire = {.fd = -1};

        if (poll(&p, 1, 10) <= 0 || (wire.fd = cw_accept(relay.listener, &address)) < 0)
            continue;
        if (relay.rings && below(4))
            cw_wire_offer(&wire);
        if (shake_hands(&wire, first ? PLACE_NONE : some_place())) {
            first = false;
            exchange(&wire, 1 + below(below(2) ? CUT_MAX : 60));
        }
        cw_wire_close(&wire);
        close(wire.fd);
    }
    return unused;
}

/* --- the rank ------------------------------------------------------------------------------------
 */

/* The relay's ACK, which is not in the stream here. */
static void hear_ack(void)
{
    struct cw_session told = {.received = relay.received};
    uint8_t body[CW_ACK_SIZE];

    cw_ack_put(body, &told);
    CU_ASSERT_TRUE_FATAL(session_on_ack(&session, body));
}

static uint64_t send_some(uint64_t position)
{
    static uint8_t bytes[PIECE_MAX];
    size_t size = PIECE_MAX < STREAM_BYTES - position ? PIECE_MAX : STREAM_BYTES - position;
    struct iovec vectors[2] = {{bytes, size / 3}, {bytes + size / 3, size - size / 3}};
    struct iovec *at = vectors;
    size_t left = 0;
    int count = 2;
    int error;

    if (session_wants_ack(&session))
        hear_ack();
    fill(bytes, size, position, up);
    if (!session_write(&session, &at, &count, &error) && error)
        session_lost(&session, error);
    for (int i = 0; i < count; i++)
        left += at[i].iov_len;
    return position + size - left;
}

static void exchange_all(void)
{
    uint8_t *bytes = malloc(STREAM_BYTES);
    uint64_t sent = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    session.sink = bytes;
    session.sink_left = STREAM_BYTES;
    while (sent < STREAM_BYTES || session.sink_left > 0 || relay.received < STREAM_BYTES) {
        if (sent < STREAM_BYTES)
            sent = send_some(sent);
        session_fill(&session);
        session_take_payload(&session);
    }
    CU_ASSERT_TRUE(is(bytes, STREAM_BYTES, 0, down));
    free(bytes);
}

static pthread_t begin(bool rings, unsigned seed)
{
    static const struct cw_hello hello = {.role = CW_ROLE_RANK, .incarnation = 1};
    struct cw_welcome welcomed;
    struct cw_err err;
    pthread_t thread;

    memset(&relay, 0, sizeof(relay));
    relay.seed = seed;
    relay.rings = rings;
    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, "tcp:127.0.0.1:0", &err), CW_OK);
    if (rings)
        CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, "unix:build/rank_session.socket", &err),
                              CW_OK);
    relay.listener = cw_listen(&address, &err);
    CU_ASSERT_TRUE_FATAL(relay.listener >= 0);
    pthread_create(&thread, NULL, run_relay, NULL);
    session_begin(&session, address.text, &hello, RESUME_MS);
    session_open(&session, key, &welcomed);
    return thread;
}

static void end(pthread_t thread)
{
    session_close(&session);
    relay.stops = true;
    pthread_join(thread, NULL);
    cw_unlisten(relay.listener, &address);
    free(session.in);
    free(session.out);
    free(session.kept.bytes);
    CU_ASSERT_FALSE(relay.wrong);
}

static void survive(bool rings, unsigned seed)
{
    pthread_t thread = begin(rings, seed);

    exchange_all();
    end(thread);
    CU_ASSERT_TRUE(relay.resumed > 10);
    CU_ASSERT_EQUAL(session.connections, relay.resumed + 1);
}

TEST(breaks_of_sockets)
{
    survive(false, 1);
}

TEST(breaks_of_rings)
{
    survive(true, 2);
}

/* The relay has ended the session, and its FAREWELL was lost: it refuses to resume. */
/* The relay says why it ends the session, and closes, while bytes are to be sent again. */
TEST(last_words)
{
    static const char words[] = "the reason";
    struct cw_hello hello = {.role = CW_ROLE_RANK};
    int pair[2];

    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    session_begin(&session, "unix:/nowhere", &hello, 0);
    session.wire.fd = pair[0];
    CU_ASSERT_EQUAL(cw_kept_put(&session.kept, "unsent", 6), 6);
    CU_ASSERT_EQUAL(send(pair[1], words, sizeof(words), 0), (ssize_t)sizeof(words));
    close(pair[1]);
    CU_ASSERT_TRUE(session_fill(&session));
    CU_ASSERT_EQUAL(session.in_end, sizeof(words));
    session_close(&session);
    free(session.in);
    free(session.out);
    free(session.kept.bytes);
}

TEST(a_farewell_is_lost)
{
    pthread_t thread = begin(false, 3);

    relay.refuses = true;
    session.ending = true;
    session_lost(&session, EPIPE);
    CU_ASSERT_TRUE(session.over);
    CU_ASSERT_FALSE(session_is_open(&session));
    end(thread);
}
