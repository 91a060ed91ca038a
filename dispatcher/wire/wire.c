#include "dispatcher/wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

static _Thread_local uint8_t buffer[WIRE_BUFFER]; /* of whatever is read now */

static void flush_due(void *ctx)
{
    wire_flush(ctx);
}

void wire_init(struct wire *w, struct loop *loop, const struct wire_ops *ops, void *ctx)
{
    *w = (struct wire){.loop = loop,
                       .ops = ops,
                       .ctx = ctx,
                       .in.fd = -1,
                       .out.fd = -1,
                       .out_fd = -1,
                       .held_fd = -1};
    loop_timer_add(loop, &w->flush, flush_due, w);
}

void wire_close(struct wire *w)
{
    loop_close(w->loop, &w->in);
    loop_unwatch(w->loop, &w->out);
    if (w->out_fd >= 0)
        close(w->out_fd);
    if (w->held_fd >= 0)
        close(w->held_fd);
    w->out_fd = w->held_fd = -1;
    if (w->mux && w->in_session)
        mux_disconnect(w->mux);
    w->open = w->in_session = w->last = false;
    w->greeting_at = w->greeting_end = 0;
    sodium_memzero(w->greeting, sizeof(w->greeting));
}

void wire_hold(struct wire *w)
{
    w->held_fd = w->in.fd;
    loop_unwatch(w->loop, &w->in);
}

void wire_end(struct wire *w)
{
    wire_close(w);
    loop_timer_remove(&w->flush);
}

static void end(struct wire *w, const struct cw_err *err)
{
    if (!w->open)
        return;
    wire_close(w);
    w->ops->broke(w->ctx, err);
}

/* --- from the other side --- */

static int take(struct wire *w, const uint8_t *bytes, size_t size, struct cw_err *err)
{
    long used = 0;

    w->heard_ns = loop_now_ns(w->loop);
    if (!w->in_session) {
        used = w->ops->greeting(w->ctx, bytes, size, err);
        if (used < 0)
            return err->code;
    }
    /* the greeting may have closed it */
    if (w->in_session && (size_t)used < size)
        return mux_input(w->mux, bytes + used, size - (size_t)used, err);
    return CW_OK;
}

static void read_in(void *ctx)
{
    struct wire *w = ctx;
    struct cw_err err = {0};

    for (int i = 0; i < WIRE_READS && w->in.fd >= 0; i++) {
        ssize_t n = read(w->in.fd, buffer, sizeof(buffer));
        int failed;

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n == 0)
            cw_err_set(&err, CW_ECLOSED, "the connection was closed");
        else if (n < 0)
            cw_err_set(&err, CW_ESYS, "reading from the connection: %s", strerror(errno));
        failed = n <= 0 || take(w, buffer, (size_t)n, &err) < 0;
        if (n > 0)
            sodium_memzero(buffer, (size_t)n); /* there may be keys in it */
        if (failed) {
            end(w, &err);
            return;
        }
    }
    wire_flush(w);
}

/* --- to it --- */

static void on_writable(void *ctx)
{
    wire_flush(ctx);
}

static size_t next_bytes(struct wire *w, const uint8_t **bytes)
{
    if (w->greeting_at < w->greeting_end) {
        *bytes = w->greeting + w->greeting_at;
        return w->greeting_end - w->greeting_at;
    }
    return w->in_session ? mux_output(w->mux, bytes) : 0;
}

static void note_sent(struct wire *w, size_t size)
{
    if (w->greeting_at == w->greeting_end) {
        mux_sent(w->mux, size);
        return;
    }
    w->greeting_at += size;
    if (w->greeting_at == w->greeting_end) /* there are keys in it */
        sodium_memzero(w->greeting, w->greeting_end);
}

void wire_flush(struct wire *w)
{
    const uint8_t *bytes;
    struct cw_err err;
    size_t size;
    ssize_t n = 0;

    while (w->open && w->out_fd >= 0 && (size = next_bytes(w, &bytes)) > 0) {
        n = write(w->out_fd, bytes, size);
        if (n < 0)
            break;
        note_sent(w, (size_t)n);
    }
    if (!w->open)
        return;
    if (n >= 0) {
        loop_unwatch(w->loop, &w->out);
        if (w->last && w->out_fd >= 0) {
            close(w->out_fd);
            w->out_fd = -1;
        }
    } else if (errno != EAGAIN && errno != EINTR) {
        cw_err_set(&err, errno == EPIPE ? CW_ECLOSED : CW_ESYS, "writing to the connection: %s",
                   strerror(errno));
        end(w, &err);
    } else if (w->out.fd < 0) {
        loop_watch(w->loop, &w->out, w->out_fd, EPOLLOUT, on_writable, w);
    }
}

void wire_finish(struct wire *w)
{
    w->last = true;
    wire_flush(w);
}

void wire_flush_soon(struct wire *w)
{
    if (w->open)
        loop_timer_set(&w->flush, 0);
}

int wire_greet(struct wire *w, const void *bytes, size_t size, struct cw_err *err)
{
    if (size > sizeof(w->greeting) - w->greeting_end)
        return cw_err_set(err, CW_ELIMIT, "a greeting of more than %u bytes", WIRE_GREETING_MAX);
    memcpy(w->greeting + w->greeting_end, bytes, size);
    w->greeting_end += size;
    wire_flush_soon(w);
    return CW_OK;
}

void wire_begin(struct wire *w)
{
    w->in_session = true;
    wire_flush_soon(w);
}

/* --- the descriptors --- */

int wire_open(struct wire *w, int in_fd, int out_fd, struct cw_err *err)
{
    int own = in_fd == out_fd ? fcntl(in_fd, F_DUPFD_CLOEXEC, 3) : out_fd;

    fcntl(in_fd, F_SETFL, fcntl(in_fd, F_GETFL) | O_NONBLOCK);
    fcntl(own, F_SETFL, fcntl(own, F_GETFL) | O_NONBLOCK);
    if (own < 0 || loop_watch(w->loop, &w->in, in_fd, EPOLLIN, read_in, w) < 0) {
        cw_err_set(err, CW_ESYS, "watching a connection: %s", strerror(errno));
        close(in_fd);
        if (own >= 0)
            close(own);
        return err->code;
    }
    w->out_fd = own;
    w->open = true;
    w->in_session = false;
    w->greeting_at = w->greeting_end = 0;
    w->heard_ns = loop_now_ns(w->loop);
    return CW_OK;
}

int wire_move(struct wire *to, struct wire *from, struct cw_err *err)
{
    int in_fd = from->in.fd;
    int out_fd = from->out_fd;

    loop_unwatch(from->loop, &from->in);
    from->out_fd = -1;
    wire_close(from);
    wire_close(to);
    return wire_open(to, in_fd, out_fd, err);
}
