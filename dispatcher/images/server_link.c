#include "dispatcher/images/server_link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void server_link_begin(struct server_link *link, int fd, const struct cw_session *session)
{
    link->fd = fd;
    link->session = *session;
    link->used = link->first = link->end = 0;
}

/* Returns whether a stream follows. */
static bool dispatch(const struct cw_header *header, const uint8_t *body,
                     const struct server_link_ops *ops, void *ctx, struct cw_err *err)
{
    struct cw_notice_body notice;
    struct cw_stored stored;

    if (header->type == CW_FRAME_STORED && ops->stored && cw_stored_get(body, &stored)) {
        ops->stored(ctx, &stored);
    } else if (header->type == CW_FRAME_HELD && ops->held && cw_stored_get(body, &stored)) {
        ops->held(ctx, &stored);
    } else if (header->type == CW_FRAME_HELD_END && ops->held_end) {
        ops->held_end(ctx);
    } else if (header->type == CW_FRAME_IMAGE && ops->image) {
        ops->image(ctx);
        return true;
    } else if (header->type == CW_FRAME_REFUSED && cw_notice_get(body, header->length, &notice)) {
        cw_err_set(err, CW_EAUTH, "refused: %s", notice.text);
    } else {
        cw_err_set(err, CW_EPROTO, "it sent a %s frame, which a dispatcher does not expect",
                   cw_frame_name(header->type));
    }
    return false;
}

/* How many bytes are missing to the frame at hand: of its header first. */
static uint32_t missing(const struct server_link *link, struct cw_err *err)
{
    uint32_t length;

    if (link->used < CW_FRAME_HEADER)
        return CW_FRAME_HEADER - link->used;
    length = cw_frame_length(link->in);
    if (length > CW_FRAME_BODY_MAX) {
        cw_err_set(err, CW_EPROTO, "it sent a frame of %u bytes", length);
        return 0;
    }
    return CW_FRAME_HEADER + length - link->used;
}

static bool take_frame(struct server_link *link, const struct server_link_ops *ops, void *ctx,
                       struct cw_err *err)
{
    struct cw_header header;

    link->used = 0;
    if (cw_frame_accept(&link->session, link->in, &header, err) < 0)
        return false;
    return dispatch(&header, link->in + CW_FRAME_HEADER, ops, ctx, err);
}

/* Frame by frame, for what follows the last one may be another's to read. */
int server_link_input(struct server_link *link, const struct server_link_ops *ops, void *ctx,
                      struct cw_err *err)
{
    bool stream = false;

    err->code = CW_OK;
    while (!stream && err->code == CW_OK && link->fd >= 0) {
        uint32_t size = missing(link, err);
        ssize_t n;

        if (err->code)
            break;
        if (size == 0) {
            stream = take_frame(link, ops, ctx, err);
            continue;
        }
        n = recv(link->fd, link->in + link->used, size, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n <= 0)
            return cw_err_set(err, CW_ECLOSED, "it closed the connection%s%s", n < 0 ? ": " : "",
                              n < 0 ? strerror(errno) : "");
        link->used += (uint32_t)n;
        link->session.received += (uint64_t)n;
    }
    return err->code;
}

int server_link_tell(struct server_link *link, uint8_t type, const struct cw_image_ref *ref,
                     struct cw_err *err)
{
    if (link->first > 0) {
        memmove(link->out, link->out + link->first, link->end - link->first);
        link->end -= link->first;
        link->first = 0;
    }
    if (sizeof(link->out) - link->end < CW_FRAME_HEADER + CW_IMAGE_REF_SIZE)
        return cw_err_set(err, CW_ELIMIT, "it does not take what it is told");
    cw_frame_begin(&link->session, link->out + link->end, type, CW_IMAGE_REF_SIZE);
    cw_image_ref_put(link->out + link->end + CW_FRAME_HEADER, ref);
    link->end += CW_FRAME_HEADER + CW_IMAGE_REF_SIZE;
    return CW_OK;
}

bool server_link_flush(struct server_link *link)
{
    while (link->fd >= 0 && link->first < link->end) {
        ssize_t n = send(link->fd, link->out + link->first, link->end - link->first,
                         MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n <= 0)
            return errno == EAGAIN || errno == EINTR;
        link->first += (uint32_t)n;
    }
    return false;
}

int server_link_release(struct server_link *link)
{
    int fd = link->fd;

    link->fd = -1;
    return fd;
}

void server_link_close(struct server_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
}
