#include "common/hello.h"
#include "common/cred.h"

#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>

static int await(struct cw_wire *wire, bool in, int timeout_ms, struct cw_err *err)
{
    struct pollfd p = {.fd = wire->fd, .events = cw_wire_sleep(wire, in, !in)};
    int n;

    do
        n = poll(&p, 1, p.events ? timeout_ms : 0);
    while (n < 0 && errno == EINTR);
    cw_wire_woke(wire, n > 0);
    if (n == 0 && p.events)
        return cw_err_set(err, CW_ETIME, "no answer for %d s; is it Causeway that listens there?",
                          timeout_ms / 1000);
    return CW_OK;
}

static int read_all(struct cw_wire *wire, uint8_t *to, size_t size, int timeout_ms,
                    struct cw_err *err)
{
    while (size > 0) {
        ssize_t n = cw_wire_recv(wire, &(struct iovec){to, size}, 1);

        if (n > 0) {
            to += n;
            size -= (size_t)n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return cw_err_set(err, CW_ECLOSED, "the connection broke: %s",
                              n < 0 ? strerror(errno) : "end of file");
        } else if (await(wire, true, timeout_ms, err) < 0) {
            return err->code;
        }
    }
    return CW_OK;
}

int cw_write_all(struct cw_wire *wire, const uint8_t *from, size_t size, int timeout_ms,
                 struct cw_err *err)
{
    while (size > 0) {
        ssize_t n = cw_wire_send(wire, &(struct iovec){(void *)from, size}, 1);

        if (n >= 0) {
            from += n;
            size -= (size_t)n;
        } else if (errno != EAGAIN && errno != EINTR) {
            return cw_err_set(err, CW_ECLOSED, "the connection broke: %s", strerror(errno));
        } else if (await(wire, false, timeout_ms, err) < 0) {
            return err->code;
        }
    }
    return CW_OK;
}

int cw_read_frame(struct cw_wire *wire, struct cw_session *session, struct cw_header *header,
                  uint8_t *body, int timeout_ms, struct cw_err *err)
{
    uint8_t bytes[CW_FRAME_HEADER];

    if (read_all(wire, bytes, sizeof(bytes), timeout_ms, err) < 0)
        return err->code;
    if (cw_frame_accept(session, bytes, header, err) < 0)
        return cw_err_wrap(err, "it speaks something else");
    if (header->length > CW_FRAME_BODY_MAX)
        return cw_err_set(err, CW_EPROTO, "it speaks something else: %s frame",
                          cw_frame_name(header->type));
    return read_all(wire, body, header->length, timeout_ms, err);
}

static int check_challenge(const struct cw_header *header, const uint8_t *body,
                           struct cw_challenge *challenge, struct cw_err *err)
{
    if (header->type != CW_FRAME_CHALLENGE || !cw_challenge_get(body, challenge))
        return cw_err_set(err, CW_EPROTO, "it speaks something else than Causeway");
    if (challenge->version != CW_PROTOCOL_VERSION)
        return cw_err_set(err, CW_EPROTO, "it speaks protocol %u, we speak %u", challenge->version,
                          CW_PROTOCOL_VERSION);
    return CW_OK;
}

/* Who is busy or full may be tried again. */
static int code_of_refusal(uint32_t code)
{
    return code == CW_REFUSED_BUSY ? CW_EBUSY : code == CW_REFUSED_LIMIT ? CW_ELIMIT : CW_EAUTH;
}

static int check_welcome(const struct cw_header *header, const uint8_t *body,
                         const struct cw_hello *hello, const struct cw_challenge *challenge,
                         const uint8_t *key, struct cw_welcome *welcome, struct cw_err *err)
{
    struct cw_notice_body refused;
    uint8_t mac[CW_MAC_SIZE];

    if (header->type == CW_FRAME_REFUSED && cw_notice_get(body, header->length, &refused))
        return cw_err_set(err, code_of_refusal(refused.code), "it refuses: %s", refused.text);
    if (header->type != CW_FRAME_WELCOME || !cw_welcome_get(body, welcome))
        return cw_err_set(err, CW_EPROTO, "expected WELCOME, got %s", cw_frame_name(header->type));
    cw_cred_mac_welcome(mac, key, welcome, hello, challenge->nonce);
    if (!cw_cred_equal(mac, welcome->mac))
        return cw_err_set(err, CW_EAUTH, "it does not know our key: not our relay");
    if (!(hello->flags & CW_HELLO_RESUME) != !(welcome->flags & CW_WELCOME_RESUMED))
        return cw_err_set(err, CW_EPROTO, "it %s the session",
                          hello->flags & CW_HELLO_RESUME ? "does not resume" : "resumes");
    return CW_OK;
}

static int shake_hands(struct cw_wire *wire, struct cw_session *session, struct cw_hello *hello,
                       const uint8_t key[CW_KEY_SIZE], int timeout_ms, struct cw_welcome *welcome,
                       struct cw_err *err)
{
    uint8_t body[CW_FRAME_BODY_MAX];
    uint8_t frame[CW_FRAME_HEADER + CW_HELLO_SIZE];
    struct cw_challenge challenge;
    struct cw_header header;

    if (cw_read_frame(wire, session, &header, body, timeout_ms, err) < 0 ||
        check_challenge(&header, body, &challenge, err) < 0)
        return err->code;
    if (wire->mode == CW_WIRE_WANTED)
        cw_wire_join(wire);
    hello->magic = CW_PROTOCOL_MAGIC;
    hello->version = CW_PROTOCOL_VERSION;
    randombytes_buf(hello->nonce, sizeof(hello->nonce));
    cw_cred_mac_hello(hello->mac, key, hello, challenge.nonce);
    cw_frame_begin(session, frame, CW_FRAME_HELLO, CW_HELLO_SIZE);
    cw_hello_put(frame + CW_FRAME_HEADER, hello);
    if (cw_write_all(wire, frame, sizeof(frame), timeout_ms, err) < 0 ||
        cw_read_frame(wire, session, &header, body, timeout_ms, err) < 0)
        return err->code;
    return check_welcome(&header, body, hello, &challenge, key, welcome, err);
}

int cw_hello_open(struct cw_wire *wire, struct cw_session *session, struct cw_hello *hello,
                  const uint8_t key[CW_KEY_SIZE], int timeout_ms, struct cw_welcome *welcome,
                  struct cw_err *err)
{
    hello->flags &= ~(uint32_t)CW_HELLO_RESUME;
    hello->received = 0;
    return shake_hands(wire, session, hello, key, timeout_ms, welcome, err);
}

int cw_hello_resume(struct cw_wire *wire, uint64_t received, struct cw_hello *hello,
                    const uint8_t key[CW_KEY_SIZE], int timeout_ms, struct cw_welcome *welcome,
                    struct cw_err *err)
{
    struct cw_session numbers = {0};

    hello->flags |= CW_HELLO_RESUME;
    hello->received = received;
    return shake_hands(wire, &numbers, hello, key, timeout_ms, welcome, err);
}
