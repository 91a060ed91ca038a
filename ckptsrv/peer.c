#include "ckptsrv/peer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READS_MAX 8 /* in one turn of the loop */
#define IN_BYTES (CW_FRAME_HEADER + CW_FRAME_BODY_MAX)
#define OUT_FIRST 1024u

struct peer {
    struct loop *loop;
    struct loop_watch watch;
    uint32_t events; /* that are watched */
    const struct peer_handler *handler;
    void *ctx;
    struct cw_session session;
    enum peer_mode mode;
    bool closing;
    bool shut;      /* the other side has been told that no more comes */
    bool abandoned; /* over at the next occasion */
    bool told_over;
    uint64_t patience_ns;
    uint64_t deadline_ns;
    uint8_t in[IN_BYTES];
    uint32_t in_used;
    uint8_t *out; /* frames */
    size_t out_used, out_size, out_done;
    const uint8_t *lent;
    size_t lent_left;
};

static void set_deadline(struct peer *peer)
{
    uint64_t now = loop_now_ns(peer->loop);

    peer->deadline_ns = peer->patience_ns == LOOP_NEVER ? LOOP_NEVER : now + peer->patience_ns;
}

static bool has_output(const struct peer *peer)
{
    return peer->out_done < peer->out_used || peer->lent_left > 0;
}

/* Something that was decided outside of peer_handle is to be done in it: any socket that has not
 * failed can be written to, sooner or later. */
static void watch(struct peer *peer)
{
    bool reads = peer->closing || peer->mode != PEER_PAUSED;
    bool writes = has_output(peer) || peer->abandoned || (peer->closing && !peer->shut);
    uint32_t events = (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u);

    if (!events)
        events = EPOLLONESHOT; /* that the other side has gone is told all the same: once */
    if (events != peer->events)
        loop_change(peer->loop, &peer->watch, events);
    peer->events = events;
}

void peer_set_mode(struct peer *peer, enum peer_mode mode)
{
    peer->mode = mode;
    watch(peer);
}

void peer_set_patience(struct peer *peer, uint64_t ns)
{
    if (peer->closing)
        return;
    peer->patience_ns = ns;
    set_deadline(peer);
}

bool peer_closes(const struct peer *peer)
{
    return peer->closing;
}

void peer_abandon(struct peer *peer)
{
    peer->closing = peer->abandoned = true;
    watch(peer);
}

void peer_close(struct peer *peer)
{
    if (peer->closing)
        return;
    peer->patience_ns = PEER_CLOSE_NS;
    set_deadline(peer);
    peer->closing = true;
    watch(peer);
}

/* --- sending -------------------------------------------------------------------------------------
 */

static uint8_t *reserve(struct peer *peer, size_t size)
{
    size_t room = peer->out_size ? peer->out_size : OUT_FIRST;
    uint8_t *out;

    if (peer->out_done == peer->out_used)
        peer->out_done = peer->out_used = 0;
    while (room < peer->out_used + size)
        room *= 2;
    if (room > PEER_OUT_MAX)
        return NULL;
    if (room != peer->out_size) {
        out = realloc(peer->out, room);
        if (!out)
            return NULL;
        peer->out = out;
        peer->out_size = room;
    }
    peer->out_used += size;
    return peer->out + peer->out_used - size;
}

uint8_t *peer_frame(struct peer *peer, uint8_t type, uint32_t length)
{
    uint8_t *to = peer->closing ? NULL : reserve(peer, CW_FRAME_HEADER + length);

    if (!to) {
        if (!peer->closing)
            peer_abandon(peer);
        return NULL;
    }
    cw_frame_begin(&peer->session, to, type, length);
    watch(peer);
    return to + CW_FRAME_HEADER;
}

void peer_lend(struct peer *peer, const uint8_t *bytes, size_t size)
{
    peer->lent = bytes;
    peer->lent_left = size;
    watch(peer);
}

void peer_refuse(struct peer *peer, enum cw_refusal code, uint32_t rank, const char *fmt, ...)
{
    struct cw_notice_body body = {.code = code, .rank = rank};
    uint8_t bytes[CW_NOTICE_SIZE + CW_TEXT_MAX];
    uint8_t *to;
    size_t size;
    va_list args;

    va_start(args, fmt);
    vsnprintf(body.text, sizeof(body.text), fmt, args);
    va_end(args);
    size = cw_notice_put(bytes, &body);
    to = peer_frame(peer, CW_FRAME_REFUSED, (uint32_t)size);
    if (to)
        memcpy(to, bytes, size);
    peer->lent_left = 0;
    peer_close(peer);
}

/* Returns false when the connection is broken. */
static bool send_some(struct peer *peer, const uint8_t *from, size_t size, size_t *sent)
{
    ssize_t n = send(peer->watch.fd, from, size, MSG_NOSIGNAL);

    *sent = n > 0 ? (size_t)n : 0;
    if (n > 0 && !peer->closing)
        set_deadline(peer);
    return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static bool send_all(struct peer *peer)
{
    size_t sent;

    if (peer->out_done < peer->out_used) {
        if (!send_some(peer, peer->out + peer->out_done, peer->out_used - peer->out_done, &sent))
            return false;
        peer->out_done += sent;
    }
    if (peer->out_done < peer->out_used || peer->lent_left == 0)
        return true;
    if (!send_some(peer, peer->lent, peer->lent_left, &sent))
        return false;
    peer->lent += sent;
    peer->lent_left -= sent;
    if (peer->lent_left == 0)
        peer->handler->written(peer->ctx);
    return true;
}

/* --- receiving -----------------------------------------------------------------------------------
 */

static void take_frame(struct peer *peer)
{
    struct cw_header header;
    struct cw_err err = {0};
    uint32_t length = cw_frame_length(peer->in);

    if (cw_frame_accept(&peer->session, peer->in, &header, &err) < 0) {
        peer_refuse(peer, CW_REFUSED_PROTOCOL, 0, "%s", err.text);
        return;
    }
    peer->in_used = 0;
    if (length <= CW_FRAME_BODY_MAX)
        peer->handler->frame(peer->ctx, &header, peer->in + CW_FRAME_HEADER);
}

/* How many bytes of the frame at hand are still to come: no more is read, for what follows may be a
 * stream. 0: it is whole, or cannot be. */
static size_t missing(const struct peer *peer)
{
    uint32_t length;

    if (peer->in_used < CW_FRAME_HEADER)
        return CW_FRAME_HEADER - peer->in_used;
    length = cw_frame_length(peer->in);
    return length > CW_FRAME_BODY_MAX ? 0 : CW_FRAME_HEADER + length - peer->in_used;
}

/* Of a header that cannot be, the body is not waited for. */
static bool is_wrong(const struct peer *peer)
{
    struct cw_header header;
    struct cw_err err = {0};

    return peer->in_used >= CW_FRAME_HEADER && cw_frame_check(peer->in, &header, &err) < 0;
}

/* Returns as recv(2). */
static ssize_t read_some(struct peer *peer)
{
    uint8_t waste[4096];
    uint8_t *at = peer->in + peer->in_used;
    size_t size = missing(peer);
    ssize_t n;

    if (peer->closing) {
        at = waste;
        size = sizeof(waste);
    } else if (peer->mode == PEER_STREAM) {
        peer->handler->space(peer->ctx, &at, &size);
    }
    n = recv(peer->watch.fd, at, size, 0);
    if (n <= 0 || peer->closing)
        return n;
    if (peer->mode == PEER_STREAM) {
        set_deadline(peer);
        peer->handler->came(peer->ctx, (size_t)n);
        return n;
    }
    peer->in_used += (uint32_t)n;
    if (is_wrong(peer) || missing(peer) == 0)
        take_frame(peer);
    return n;
}

/* Returns false when there is no more. */
static bool read_all(struct peer *peer)
{
    for (int i = 0; i < READS_MAX && (peer->closing || peer->mode != PEER_PAUSED); i++) {
        ssize_t n = read_some(peer);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (n <= 0)
            return false;
    }
    return true;
}

/* --- its life ------------------------------------------------------------------------------------
 */

static void end(struct peer *peer)
{
    if (peer->told_over)
        return;
    peer->told_over = true;
    loop_close(peer->loop, &peer->watch);
    peer->handler->over(peer->ctx);
}

static void handle(void *ctx)
{
    struct peer *peer = ctx;

    if (peer->abandoned || !send_all(peer)) {
        end(peer);
        return;
    }
    if (peer->closing && !peer->shut && !has_output(peer)) {
        shutdown(peer->watch.fd, SHUT_WR);
        peer->shut = true;
    }
    if ((peer->closing || peer->mode != PEER_PAUSED) && !read_all(peer)) {
        end(peer);
        return;
    }
    watch(peer);
}

void peer_tick(struct peer *peer)
{
    if (loop_now_ns(peer->loop) < peer->deadline_ns)
        return;
    if (peer->closing)
        end(peer);
    else
        peer->handler->late(peer->ctx);
}

struct peer *peer_new(struct loop *loop, int fd, const struct peer_handler *handler, void *ctx)
{
    struct peer *peer = calloc(1, sizeof(*peer));

    if (!peer || loop_watch(loop, &peer->watch, fd, EPOLLIN, handle, peer) < 0) {
        close(fd);
        free(peer);
        return NULL;
    }
    peer->loop = loop;
    peer->events = EPOLLIN;
    peer->handler = handler;
    peer->ctx = ctx;
    peer->patience_ns = peer->deadline_ns = LOOP_NEVER;
    return peer;
}

void peer_free(struct peer *peer)
{
    if (!peer)
        return;
    loop_close(peer->loop, &peer->watch);
    free(peer->out);
    free(peer);
}
