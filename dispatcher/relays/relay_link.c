#include "dispatcher/relays/relay_link.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int relay_link_init(struct relay_link *link, size_t room, struct cw_err *err)
{
    uint8_t *bytes = malloc(room);

    link->fd = -1;
    if (!bytes)
        return cw_err_set(err, CW_ENOMEM, "no memory for the session with a relay");
    cw_kept_init(&link->kept, bytes, room);
    return CW_OK;
}

void relay_link_free(struct relay_link *link)
{
    relay_link_break(link);
    free(link->kept.bytes);
    link->kept.bytes = NULL;
}

void relay_link_begin(struct relay_link *link, int fd, const struct cw_session *session)
{
    link->fd = fd;
    link->session = *session;
    link->used = 0;
}

int relay_link_resume(struct relay_link *link, int fd, uint64_t received, struct cw_err *err)
{
    if (cw_kept_rewind(&link->kept, received) < 0) {
        close(fd);
        return cw_err_set(err, CW_EPROTO, "the relay resumes where we never were");
    }
    link->fd = fd;
    return CW_OK;
}

static void take_ack(struct relay_link *link, const uint8_t *body, struct cw_err *err)
{
    if (cw_kept_acknowledge(&link->kept, cw_ack_get(body)) < 0)
        cw_err_set(err, CW_EPROTO, "the relay acknowledges what was not sent");
}

static void dispatch(struct relay_link *link, const struct cw_header *header, const uint8_t *body,
                     const struct relay_link_ops *ops, void *ctx, struct cw_err *err)
{
    struct cw_notice_body notice;
    struct cw_stats stats;
    struct cw_grown grown;
    struct cw_trim trim;

    if (header->type == CW_FRAME_NOTICE && cw_notice_get(body, header->length, &notice))
        ops->notice(ctx, &notice);
    else if (header->type == CW_FRAME_STATS && cw_stats_get(body, &stats))
        ops->stats(ctx, &stats);
    else if (header->type == CW_FRAME_GROWN && cw_grown_get(body, &grown))
        ops->grown(ctx, &grown);
    else if (header->type == CW_FRAME_TRIMMED && cw_trim_get(body, &trim))
        ops->trimmed(ctx, &trim);
    else if (header->type == CW_FRAME_REFUSED && cw_notice_get(body, header->length, &notice))
        cw_err_set(err, CW_EAUTH, "the relay refuses to go on: %s", notice.text);
    else if (header->type == CW_FRAME_ACK)
        take_ack(link, body, err);
    else
        cw_err_set(err, CW_EPROTO, "the relay sent a %s frame, which a dispatcher does not expect",
                   cw_frame_name(header->type));
}

static int take_frames(struct relay_link *link, const struct relay_link_ops *ops, void *ctx,
                       struct cw_err *err)
{
    size_t at = 0;

    while (link->used - at >= CW_FRAME_HEADER) {
        struct cw_reader r = cw_reader(link->buffer + at, CW_FRAME_HEADER);
        uint32_t length = cw_get_u32(&r);
        struct cw_header header;

        if (length > CW_FRAME_BODY_MAX)
            return cw_err_set(err, CW_EPROTO, "the relay sent a frame of %u bytes", length);
        if (link->used - at < CW_FRAME_HEADER + length)
            break;
        if (cw_frame_accept(&link->session, link->buffer + at, &header, err) < 0)
            return err->code;
        dispatch(link, &header, link->buffer + at + CW_FRAME_HEADER, ops, ctx, err);
        if (err->code)
            return err->code;
        at += CW_FRAME_HEADER + length;
    }
    memmove(link->buffer, link->buffer + at, link->used - at);
    link->used -= at;
    return CW_OK;
}

int relay_link_tell(struct relay_link *link, uint8_t type, const void *body, uint32_t size,
                    struct cw_err *err)
{
    uint8_t frame[CW_FRAME_HEADER + CW_FRAME_BODY_MAX];

    assert(size <= CW_FRAME_BODY_MAX);
    if (cw_kept_room(&link->kept) < CW_FRAME_HEADER + size)
        return cw_err_set(err, CW_ELIMIT, "the relay does not take what it is told");
    cw_frame_begin(&link->session, frame, type, size);
    if (size)
        memcpy(frame + CW_FRAME_HEADER, body, size);
    cw_kept_put(&link->kept, frame, CW_FRAME_HEADER + size);
    return CW_OK;
}

/* How much may be sent before an ACK comes. */
static size_t window(const struct relay_link *link)
{
    size_t out = (size_t)(link->kept.sent - link->kept.acked);

    return out < CW_KEPT_MAX ? CW_KEPT_MAX - out : 0;
}

bool relay_link_flush(struct relay_link *link)
{
    struct iovec iov[2];
    size_t most;
    ssize_t n = 1;

    while (link->fd >= 0 && n > 0 && (most = window(link)) > 0 &&
           cw_kept_unsent(&link->kept, iov) > 0) {
        if (most > iov[0].iov_len)
            most = iov[0].iov_len;
        n = send(link->fd, iov[0].iov_base, most, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            cw_kept_sent(&link->kept, (size_t)n);
    }
    return link->fd >= 0 && cw_kept_left(&link->kept) > 0 && window(link) > 0;
}

int relay_link_input(struct relay_link *link, const struct relay_link_ops *ops, void *ctx,
                     struct cw_err *err)
{
    uint8_t ack[CW_ACK_SIZE];

    for (;;) {
        ssize_t n = recv(link->fd, link->buffer + link->used, sizeof(link->buffer) - link->used,
                         MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n <= 0)
            return cw_err_set(err, CW_ECLOSED, "the relay closed the connection%s%s",
                              n < 0 ? ": " : "", n < 0 ? strerror(errno) : "");
        link->used += (size_t)n;
        link->session.received += (size_t)n;
        err->code = CW_OK;
        if (take_frames(link, ops, ctx, err) < 0)
            return err->code;
    }
    if (!cw_session_owes_ack(&link->session, true) ||
        cw_kept_room(&link->kept) < CW_FRAME_HEADER + CW_ACK_SIZE)
        return CW_OK;
    cw_ack_put(ack, &link->session);
    return relay_link_tell(link, CW_FRAME_ACK, ack, sizeof(ack), err);
}

void relay_link_break(struct relay_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
}
