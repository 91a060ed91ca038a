#include "dispatcher/relay_link.h"
#include "common/cred.h"
#include "common/hello.h"
#include "common/transport.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HANDSHAKE_MS 10000

int relay_link_open(struct relay_link *link, const char *address, const uint8_t job[CW_ID_SIZE],
                    uint32_t ranks, uint32_t flags, const uint8_t relay_key[CW_KEY_SIZE],
                    struct cw_err *err)
{
    struct cw_hello hello = {.role = CW_ROLE_DISPATCHER, .rank = ranks, .flags = flags};
    struct cw_welcome welcome;
    uint8_t key[CW_KEY_SIZE];
    struct cw_address parsed;

    memset(link, 0, sizeof(*link));
    link->fd = -1;
    if (cw_address_parse(&parsed, address, err) < 0)
        return err->code;
    link->fd = cw_connect(&parsed, err);
    if (link->fd < 0)
        return cw_err_wrap(err, "the relay is not reachable");
    memcpy(hello.job, job, CW_ID_SIZE);
    cw_cred_job_key(key, relay_key, job);
    if (cw_hello_open(&(struct cw_wire){.fd = link->fd}, &link->session, &hello, key, HANDSHAKE_MS,
                      &welcome, err) < 0) {
        relay_link_close(link);
        return cw_err_wrap(err, "relay %s", address);
    }
    return CW_OK;
}

static void dispatch(const struct cw_header *header, const uint8_t *body,
                     const struct relay_link_ops *ops, void *ctx, struct cw_err *err)
{
    struct cw_notice_body notice;
    struct cw_stats stats;

    if (header->type == CW_FRAME_NOTICE && cw_notice_get(body, header->length, &notice))
        ops->notice(ctx, &notice);
    else if (header->type == CW_FRAME_STATS && cw_stats_get(body, &stats))
        ops->stats(ctx, &stats);
    else if (header->type == CW_FRAME_REFUSED && cw_notice_get(body, header->length, &notice))
        cw_err_set(err, CW_ECLOSED, "the relay refuses to go on: %s", notice.text);
    else if (header->type != CW_FRAME_ACK)
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
        dispatch(&header, link->buffer + at + CW_FRAME_HEADER, ops, ctx, err);
        if (err->code)
            return err->code;
        at += CW_FRAME_HEADER + length;
    }
    memmove(link->buffer, link->buffer + at, link->used - at);
    link->used -= at;
    return CW_OK;
}

int relay_link_tell(struct relay_link *link, uint8_t type, const uint8_t *body, uint32_t size,
                    struct cw_err *err)
{
    uint8_t frame[CW_FRAME_HEADER + CW_FRAME_BODY_MAX];

    assert(size <= CW_FRAME_BODY_MAX);
    cw_frame_begin(&link->session, frame, type, size);
    if (size)
        memcpy(frame + CW_FRAME_HEADER, body, size);
    if (cw_write_all(&(struct cw_wire){.fd = link->fd}, frame, CW_FRAME_HEADER + size, HANDSHAKE_MS,
                     err) < 0)
        return cw_err_wrap(err, "telling the relay");
    return CW_OK;
}

int relay_link_input(struct relay_link *link, const struct relay_link_ops *ops, void *ctx,
                     struct cw_err *err)
{
    for (;;) {
        ssize_t n = recv(link->fd, link->buffer + link->used, sizeof(link->buffer) - link->used,
                         MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n <= 0)
            return cw_err_set(err, CW_ECLOSED, "the relay closed the connection%s%s",
                              n < 0 ? ": " : "", n < 0 ? strerror(errno) : "");
        link->used += (size_t)n;
        err->code = CW_OK;
        if (take_frames(link, ops, ctx, err) < 0)
            return err->code;
    }
    if (cw_session_owes_ack(&link->session))
        return relay_link_tell(link, CW_FRAME_ACK, NULL, 0, err);
    return CW_OK;
}

int relay_link_ask_stats(struct relay_link *link, struct cw_err *err)
{
    return relay_link_tell(link, CW_FRAME_STATS_ASK, NULL, 0, err);
}

void relay_link_close(struct relay_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
}
