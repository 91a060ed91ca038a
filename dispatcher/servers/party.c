#include "dispatcher/servers/party.h"
#include "common/cred.h"
#include "common/keyfile.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- making --- */

int party_init(struct party *s, struct loop *loop, const struct party_kind *kind, void *ctx,
               size_t room, struct cw_err *err)
{
    uint8_t *bytes = malloc(room);

    s->kind = kind;
    s->loop = loop;
    s->ctx = ctx;
    s->fd = s->watch.fd = -1;
    if (!bytes)
        return cw_err_set(err, CW_ENOMEM, "no memory for the session with a %s", kind->name);
    cw_kept_init(&s->kept, bytes, room);
    return CW_OK;
}

void party_free(struct party *s)
{
    if (s->kind)
        party_break(s);
    free(s->kept.bytes);
    s->kept.bytes = NULL;
}

static int load_key(const struct party_kind *kind, const char *address, const char *file,
                    uint8_t key[CW_KEY_SIZE], struct cw_err *err)
{
    char beside[CW_ADDRESS_MAX + 8];

    if (file)
        return cw_key_load(file, key, err);
    if (strncmp(address, "unix:", 5) != 0)
        return cw_err_set(err, CW_EINVAL, "%s %s needs %s FILE, the key of that %s", kind->option,
                          address, kind->key_option, kind->name);
    snprintf(beside, sizeof(beside), "%s.key", address + 5);
    if (access(beside, F_OK) < 0)
        return cw_err_set(err, CW_ENOTFOUND, "%s %s: no key beside it (%s); is a %s running there?",
                          kind->option, address, beside, kind->name);
    return cw_key_load(beside, key, err);
}

int party_find(struct party *s, const char *address, const char *file,
               const uint8_t job[CW_ID_SIZE], struct cw_err *err)
{
    uint8_t key[CW_KEY_SIZE];

    snprintf(s->address, sizeof(s->address), "%s", address);
    if (load_key(s->kind, s->address, file, key, err) < 0)
        return err->code;
    cw_cred_job_key(s->key, key, job);
    sodium_memzero(key, sizeof(key));
    return CW_OK;
}

void party_listens(struct party *s, const char *local, const char *tcp, bool here)
{
    snprintf(s->near, sizeof(s->near), "%s", local);
    snprintf(s->far, sizeof(s->far), "%s", tcp[0] ? tcp : local);
    strcpy(s->address, here ? s->near : s->far);
}

const char *party_address_for(const struct party *s, bool is_near)
{
    const char *address = is_near ? s->near : s->far;

    return address[0] ? address : s->address;
}

bool party_dial(const struct party *at, struct opener *opener, struct cw_dial_request *request,
                const uint8_t job[CW_ID_SIZE])
{
    bool added;

    request->hello.role = CW_ROLE_DISPATCHER;
    memcpy(request->hello.job, job, CW_ID_SIZE);
    memcpy(request->key, at->key, CW_KEY_SIZE);
    snprintf(request->address, sizeof(request->address), "%s", at->address);
    added = opener_add(opener, request);
    sodium_memzero(request, sizeof(*request));
    return added;
}

/* --- what it is told --- */

/* How much may be sent before an ACK comes. */
static size_t window(const struct party *s)
{
    size_t out = (size_t)(s->kept.sent - s->kept.acked);

    return out < CW_KEPT_MAX ? CW_KEPT_MAX - out : 0;
}

/* One that does not resume acknowledges nothing. */
static void note_sent(struct party *s, size_t size)
{
    cw_kept_sent(&s->kept, size);
    if (!s->kind->resumes)
        cw_kept_acknowledge(&s->kept, s->kept.sent);
}

/* Sends what it can take; the rest once the connection is writable. */
static void pump(struct party *s)
{
    struct iovec iov[2];
    bool more;
    size_t most;
    ssize_t n = 1;

    if (s->fd < 0)
        return;
    while (n > 0 && (most = window(s)) > 0 && cw_kept_unsent(&s->kept, iov) > 0) {
        if (most > iov[0].iov_len)
            most = iov[0].iov_len;
        n = send(s->fd, iov[0].iov_base, most, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            note_sent(s, (size_t)n);
    }
    more = cw_kept_left(&s->kept) > 0 && window(s) > 0;
    loop_change(s->loop, &s->watch, EPOLLIN | (more ? EPOLLOUT : 0));
}

int party_tell(struct party *s, uint8_t type, const void *body, uint32_t size, struct cw_err *err)
{
    uint8_t frame[CW_FRAME_HEADER + CW_FRAME_BODY_MAX];

    assert(size <= CW_FRAME_BODY_MAX);
    if (cw_kept_room(&s->kept) < CW_FRAME_HEADER + size)
        return cw_err_set(err, CW_ELIMIT, "%s does not take what it is told", s->kind->subject);
    cw_frame_begin(&s->session, frame, type, size);
    if (size)
        memcpy(frame + CW_FRAME_HEADER, body, size);
    cw_kept_put(&s->kept, frame, CW_FRAME_HEADER + size);
    pump(s);
    return CW_OK;
}

/* --- what it says --- */

static void dispatch(struct party *s, const struct cw_header *header, const uint8_t *body,
                     struct cw_err *err)
{
    const struct party_kind *kind = s->kind;
    struct cw_notice_body notice;

    if (header->type == CW_FRAME_REFUSED && cw_notice_get(body, header->length, &notice)) {
        cw_err_set(err, CW_EAUTH, "%s: %s", kind->refusal, notice.text);
    } else if (kind->resumes && header->type == CW_FRAME_ACK) {
        if (cw_kept_acknowledge(&s->kept, cw_ack_get(body)) < 0)
            cw_err_set(err, CW_EPROTO, "%s acknowledges what was not sent", kind->subject);
    } else if (!kind->frame(s->ctx, header, body)) {
        cw_err_set(err, CW_EPROTO, "%s sent a %s frame, which a dispatcher does not expect",
                   kind->subject, cw_frame_name(header->type));
    }
}

/* Of the frame at `at`, or of its header, which has not come whole. */
static size_t length_at(const struct party *s, size_t at, struct cw_err *err)
{
    uint32_t length;

    if (s->used - at < CW_FRAME_HEADER)
        return CW_FRAME_HEADER;
    length = cw_frame_length(s->buffer + at);
    if (length > CW_FRAME_BODY_MAX)
        cw_err_set(err, CW_EPROTO, "%s sent a frame of %u bytes", s->kind->subject, length);
    return CW_FRAME_HEADER + length;
}

/* What is told may give the connection away, or close it. Returns how much is read next. */
static size_t take_frames(struct party *s, struct cw_err *err)
{
    struct cw_header header;
    size_t length;
    size_t at = 0;

    while (s->fd >= 0 && (length = length_at(s, at, err)) <= s->used - at && !err->code) {
        if (cw_frame_accept(&s->session, s->buffer + at, &header, err) < 0)
            break;
        dispatch(s, &header, s->buffer + at + CW_FRAME_HEADER, err);
        at += length;
    }
    memmove(s->buffer, s->buffer + at, s->used - at);
    s->used -= at;
    return s->exactly ? length_at(s, 0, err) - s->used : sizeof(s->buffer) - s->used;
}

static void acknowledge(struct party *s)
{
    uint8_t ack[CW_ACK_SIZE];
    struct cw_err err;

    if (!s->kind->resumes || !cw_session_owes_ack(&s->session, true) ||
        cw_kept_room(&s->kept) < CW_FRAME_HEADER + CW_ACK_SIZE)
        return;
    cw_ack_put(ack, &s->session);
    party_tell(s, CW_FRAME_ACK, ack, sizeof(ack), &err);
}

static void hear_all(struct party *s, struct cw_err *err)
{
    size_t most = take_frames(s, err);

    while (!err->code && s->fd >= 0) {
        ssize_t n = recv(s->fd, s->buffer + s->used, most, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            cw_err_set(err, CW_ECLOSED, "%s closed the connection%s%s", s->kind->subject,
                       n < 0 ? ": " : "", n < 0 ? strerror(errno) : "");
            return;
        }
        s->used += (size_t)n;
        s->session.received += (size_t)n;
        most = take_frames(s, err);
    }
}

void party_hear(struct party *s)
{
    struct cw_err err = {0};

    hear_all(s, &err);
    if (err.code) {
        party_break(s);
        s->kind->broke(s->ctx, &err);
    } else if (s->fd >= 0) {
        acknowledge(s);
        pump(s);
    }
}

/* --- its connection --- */

static void on_ready(void *ctx)
{
    party_hear(ctx);
}

static void use(struct party *s, int fd)
{
    s->fd = fd;
    loop_watch(s->loop, &s->watch, fd, EPOLLIN, on_ready, s);
    pump(s);
}

void party_begin(struct party *s, int fd, const struct cw_session *state)
{
    s->session = *state;
    s->used = 0;
    cw_kept_init(&s->kept, s->kept.bytes, s->kept.size);
    use(s, fd);
}

int party_resume(struct party *s, int fd, uint64_t received, struct cw_err *err)
{
    if (cw_kept_rewind(&s->kept, received) < 0) {
        close(fd);
        return cw_err_set(err, CW_EPROTO, "%s resumes where we never were", s->kind->subject);
    }
    use(s, fd);
    return CW_OK;
}

void party_break(struct party *s)
{
    int fd = party_release(s);

    if (fd >= 0)
        close(fd);
}

int party_release(struct party *s)
{
    int fd = s->fd;

    loop_unwatch(s->loop, &s->watch);
    s->fd = -1;
    return fd;
}
