#include "ckptsrv/guest.h"

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

struct guest {
    struct loop *loop;
    struct loop_watch watch;
    uint32_t events; /* that are watched */
    const struct guest_handler *handler;
    void *ctx;
    struct cw_session session;
    enum guest_mode mode;
    bool closing;
    bool shut; /* the other side has been told that no more comes */
    bool told_over;
    uint64_t patience_ns;
    struct loop_timer timer; /* its patience, or the time to close, is over */
    uint8_t in[IN_BYTES];
    uint32_t in_used;
    uint8_t *out; /* frames */
    size_t out_used, out_size, out_done;
    const uint8_t *lent;
    size_t lent_left;
};

static void set_deadline(struct guest *guest)
{
    loop_timer_set(&guest->timer, guest->patience_ns == LOOP_NEVER
                                      ? LOOP_NEVER
                                      : loop_now_ns(guest->loop) + guest->patience_ns);
}

static bool has_output(const struct guest *guest)
{
    return guest->out_done < guest->out_used || guest->lent_left > 0;
}

/* Something that was decided outside of handle() is to be done in it: any socket that has not
 * failed can be written to, sooner or later. */
static void watch(struct guest *guest)
{
    bool reads = guest->closing || guest->mode != GUEST_PAUSED;
    bool writes = has_output(guest) || (guest->closing && !guest->shut);
    uint32_t events = (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u);

    if (!events)
        events = EPOLLONESHOT; /* that the other side has gone is told all the same: once */
    if (events != guest->events)
        loop_change(guest->loop, &guest->watch, events);
    guest->events = events;
}

void guest_set_mode(struct guest *guest, enum guest_mode mode)
{
    guest->mode = mode;
    watch(guest);
}

void guest_set_patience(struct guest *guest, uint64_t ns)
{
    if (guest->closing)
        return;
    guest->patience_ns = ns;
    set_deadline(guest);
}

bool guest_closes(const struct guest *guest)
{
    return guest->closing;
}

void guest_abandon(struct guest *guest)
{
    guest->closing = true;
    guest->out_done = guest->out_used;
    guest->lent_left = 0;
    loop_timer_set(&guest->timer, 0);
}

void guest_close(struct guest *guest)
{
    if (guest->closing)
        return;
    guest->patience_ns = GUEST_CLOSE_NS;
    set_deadline(guest);
    guest->closing = true;
    watch(guest);
}

/* --- sending -------------------------------------------------------------------------------------
 */

static uint8_t *reserve(struct guest *guest, size_t size)
{
    size_t room = guest->out_size ? guest->out_size : OUT_FIRST;
    uint8_t *out;

    if (guest->out_done == guest->out_used)
        guest->out_done = guest->out_used = 0;
    while (room < guest->out_used + size)
        room *= 2;
    if (room > GUEST_OUT_MAX)
        return NULL;
    if (room != guest->out_size) {
        out = realloc(guest->out, room);
        if (!out)
            return NULL;
        guest->out = out;
        guest->out_size = room;
    }
    guest->out_used += size;
    return guest->out + guest->out_used - size;
}

bool guest_frame(struct guest *guest, uint8_t type, const void *body, size_t size)
{
    uint8_t *to = guest->closing ? NULL : reserve(guest, CW_FRAME_HEADER + size);

    if (!to) {
        if (!guest->closing)
            guest_abandon(guest);
        return false;
    }
    cw_frame_begin(&guest->session, to, type, (uint32_t)size);
    if (size)
        memcpy(to + CW_FRAME_HEADER, body, size);
    watch(guest);
    return true;
}

void guest_lend(struct guest *guest, const uint8_t *bytes, size_t size)
{
    guest->lent = bytes;
    guest->lent_left = size;
    watch(guest);
}

void guest_refuse(struct guest *guest, enum cw_refusal code, uint32_t rank, const char *fmt, ...)
{
    struct cw_notice_body body = {.code = code, .rank = rank};
    uint8_t bytes[CW_NOTICE_SIZE + CW_TEXT_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(body.text, sizeof(body.text), fmt, args);
    va_end(args);
    guest_frame(guest, CW_FRAME_REFUSED, bytes, cw_notice_put(bytes, &body));
    guest->lent_left = 0;
    guest_close(guest);
}

/* Returns false when the connection is broken. */
static bool send_some(struct guest *guest, const uint8_t *from, size_t size, size_t *sent)
{
    ssize_t n = send(guest->watch.fd, from, size, MSG_NOSIGNAL);

    *sent = n > 0 ? (size_t)n : 0;
    if (n > 0 && !guest->closing)
        set_deadline(guest);
    return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static bool send_all(struct guest *guest)
{
    size_t sent;

    if (guest->out_done < guest->out_used) {
        if (!send_some(guest, guest->out + guest->out_done, guest->out_used - guest->out_done,
                       &sent))
            return false;
        guest->out_done += sent;
    }
    if (guest->out_done < guest->out_used || guest->lent_left == 0)
        return true;
    if (!send_some(guest, guest->lent, guest->lent_left, &sent))
        return false;
    guest->lent += sent;
    guest->lent_left -= sent;
    if (guest->lent_left == 0)
        guest->handler->written(guest->ctx);
    return true;
}

/* --- receiving -----------------------------------------------------------------------------------
 */

static void take_frame(struct guest *guest)
{
    struct cw_header header;
    struct cw_err err = {0};
    uint32_t length = cw_frame_length(guest->in);

    if (cw_frame_accept(&guest->session, guest->in, &header, &err) < 0) {
        guest_refuse(guest, CW_REFUSED_PROTOCOL, 0, "%s", err.text);
        return;
    }
    guest->in_used = 0;
    if (length <= CW_FRAME_BODY_MAX)
        guest->handler->frame(guest->ctx, &header, guest->in + CW_FRAME_HEADER);
}

/* How many bytes of the frame at hand are still to come: no more is read, for what follows may be a
 * stream. 0: it is whole, or cannot be. */
static size_t missing(const struct guest *guest)
{
    uint32_t length;

    if (guest->in_used < CW_FRAME_HEADER)
        return CW_FRAME_HEADER - guest->in_used;
    length = cw_frame_length(guest->in);
    return length > CW_FRAME_BODY_MAX ? 0 : CW_FRAME_HEADER + length - guest->in_used;
}

/* Of a header that cannot be, the body is not waited for. */
static bool is_wrong(const struct guest *guest)
{
    struct cw_header header;
    struct cw_err err = {0};

    return guest->in_used >= CW_FRAME_HEADER && cw_frame_check(guest->in, &header, &err) < 0;
}

/* Returns as recv(2). */
static ssize_t read_some(struct guest *guest)
{
    uint8_t waste[4096];
    uint8_t *at = guest->in + guest->in_used;
    size_t size = missing(guest);
    ssize_t n;

    if (guest->closing) {
        at = waste;
        size = sizeof(waste);
    } else if (guest->mode == GUEST_STREAM) {
        guest->handler->space(guest->ctx, &at, &size);
    }
    n = recv(guest->watch.fd, at, size, 0);
    if (n <= 0 || guest->closing)
        return n;
    if (guest->mode == GUEST_STREAM) {
        set_deadline(guest);
        guest->handler->came(guest->ctx, (size_t)n);
        return n;
    }
    guest->in_used += (uint32_t)n;
    if (is_wrong(guest) || missing(guest) == 0)
        take_frame(guest);
    return n;
}

/* Returns false when there is no more. */
static bool read_all(struct guest *guest)
{
    for (int i = 0; i < READS_MAX && (guest->closing || guest->mode != GUEST_PAUSED); i++) {
        ssize_t n = read_some(guest);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (n <= 0)
            return false;
    }
    return true;
}

/* --- its life ------------------------------------------------------------------------------------
 */

static void end(struct guest *guest)
{
    if (guest->told_over)
        return;
    guest->told_over = true;
    loop_close(guest->loop, &guest->watch);
    loop_timer_remove(&guest->timer);
    guest->handler->over(guest->ctx);
}

static void handle(void *ctx)
{
    struct guest *guest = ctx;

    if (!send_all(guest)) {
        end(guest);
        return;
    }
    if (guest->closing && !guest->shut && !has_output(guest)) {
        shutdown(guest->watch.fd, SHUT_WR);
        guest->shut = true;
    }
    if ((guest->closing || guest->mode != GUEST_PAUSED) && !read_all(guest)) {
        end(guest);
        return;
    }
    watch(guest);
}

static void on_timer(void *ctx)
{
    struct guest *guest = ctx;

    if (guest->closing)
        end(guest);
    else
        guest->handler->late(guest->ctx);
}

struct guest *guest_new(struct loop *loop, int fd, const struct guest_handler *handler, void *ctx)
{
    struct guest *guest = calloc(1, sizeof(*guest));

    if (!guest || loop_watch(loop, &guest->watch, fd, EPOLLIN, handle, guest) < 0) {
        close(fd);
        free(guest);
        return NULL;
    }
    guest->loop = loop;
    guest->events = EPOLLIN;
    guest->handler = handler;
    guest->ctx = ctx;
    guest->patience_ns = LOOP_NEVER;
    loop_timer_add(loop, &guest->timer, on_timer, guest);
    return guest;
}

void guest_free(struct guest *guest)
{
    if (!guest)
        return;
    loop_close(guest->loop, &guest->watch);
    loop_timer_remove(&guest->timer);
    free(guest->out);
    free(guest);
}
