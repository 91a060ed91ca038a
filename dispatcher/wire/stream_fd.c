#include "dispatcher/wire/stream_fd.h"
#include "common/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static uint8_t scratch[MUX_DATA_MAX]; /* of whatever is read now */

static void on_ready(void *ctx);

static void moved(const struct stream_fd *s)
{
    if (s->config.ops->moved)
        s->config.ops->moved(s->config.ctx);
}

static bool may_pass(const struct stream_fd *s, const uint8_t *record, size_t size)
{
    return !s->config.ops->may_pass || s->config.ops->may_pass(s->config.ctx, record, size);
}

/* --- what is watched --- */

static size_t wanted(const struct stream_fd *s)
{
    return s->config.records ? s->config.record_max : 1;
}

static bool has_room(struct stream_fd *s)
{
    return mux_stream_room(&s->stream, wanted(s)) >= wanted(s);
}

bool stream_fd_is_open(const struct stream_fd *s)
{
    return mux_stream_is_open(&s->stream);
}

size_t stream_fd_unwritten(const struct stream_fd *s)
{
    return s->held.end - s->held.at;
}

/* One end that is closed is told all the time: it is not watched while nothing can be done. A
 * pipe that is only written to is: that nobody reads it is told to the other side. */
static void update(struct stream_fd *s)
{
    struct loop *loop = s->config.loop;
    bool reading = s->reads && !s->waits && has_room(s);
    bool writing = s->writes && stream_fd_unwritten(s) > 0;
    uint32_t events = (reading ? EPOLLIN : 0) | (writing ? EPOLLOUT : 0);
    bool idle = events == 0 && (s->config.reads || !s->writes);

    if (s->fd < 0)
        return;
    if (idle)
        loop_unwatch(loop, &s->watch);
    else if (s->watch.fd < 0)
        loop_watch(loop, &s->watch, s->fd, events, on_ready, s);
    else
        loop_change(loop, &s->watch, events);
}

static void check_closed(struct stream_fd *s)
{
    if (s->fd >= 0 || stream_fd_is_open(s) || s->over)
        return;
    s->over = true;
    if (s->config.ops->closed)
        s->config.ops->closed(s->config.ctx);
}

static void close_fd(struct stream_fd *s)
{
    if (s->fd < 0)
        return;
    loop_unwatch(s->config.loop, &s->watch);
    close(s->fd);
    s->fd = -1;
    free(s->held.bytes);
    s->held = (struct stream_fd_held){0};
}

static void check_over(struct stream_fd *s)
{
    if (s->reads || s->writes)
        return;
    close_fd(s);
    check_closed(s);
}

static void end_reading(struct stream_fd *s)
{
    if (!s->reads)
        return;
    s->reads = false;
    check_over(s);
    mux_stream_end(&s->stream);
}

static void end_writing(struct stream_fd *s)
{
    if (!s->writes)
        return;
    s->writes = false;
    if (s->reads && s->is_socket)
        shutdown(s->fd, SHUT_WR);
    check_over(s);
}

/* --- reading --- */

/* As of rank_io: an error may come before what was said last. */
static ssize_t receive(const struct stream_fd *s, size_t size, int flags)
{
    ssize_t n;

    if (!s->is_socket)
        return read(s->fd, scratch, size);
    n = recv(s->fd, scratch, size, MSG_DONTWAIT | flags);
    return n < 0 && errno == ECONNRESET ? recv(s->fd, scratch, size, MSG_DONTWAIT | flags) : n;
}

/* What is there is looked at, may_pass() is asked, then it is taken: that one may use `scratch`. */
static ssize_t take(struct stream_fd *s, size_t room)
{
    ssize_t n;

    if (!s->config.ops->may_pass || !s->is_socket)
        return receive(s, room, 0);
    n = receive(s, room, MSG_PEEK);
    if (n <= 0)
        return n;
    s->waits = !may_pass(s, s->config.records ? scratch : NULL, (size_t)n);
    errno = EAGAIN;
    if (s->waits)
        return -1;
    return s->config.records ? receive(s, room, 0) : receive(s, (size_t)n, 0);
}

/* Returns 1: something was read; 0: there is nothing now, or no more; -1: there is no room, or it
 * is to wait. */
static int read_once(struct stream_fd *s)
{
    size_t room = s->fd >= 0 && s->reads ? mux_stream_room(&s->stream, wanted(s)) : 0;
    ssize_t n;

    if (s->fd < 0 || !s->reads)
        return 0;
    if (room < wanted(s))
        return -1;
    n = take(s, room < sizeof(scratch) ? room : sizeof(scratch));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return s->waits ? -1 : 0;
    if (n <= 0) {
        end_reading(s);
        return 0;
    }
    s->read += (uint64_t)n;
    if (s->config.records && s->config.ops->pass)
        s->config.ops->pass(s->config.ctx, scratch, (size_t)n);
    mux_stream_send(&s->stream, scratch, (size_t)n);
    return 1;
}

bool stream_fd_pull(struct stream_fd *s)
{
    bool any = false;
    int got;

    if (s->fd < 0 || !s->reads)
        return true;
    s->waits = false;
    while ((got = read_once(s)) > 0)
        any = true;
    update(s);
    if (any || !s->reads)
        moved(s);
    return got == 0;
}

/* --- writing --- */

static bool reserve(struct stream_fd_held *h, size_t size)
{
    size_t room = h->room ? h->room : 4096;
    uint8_t *bytes;

    if (h->at > 0) {
        memmove(h->bytes, h->bytes + h->at, h->end - h->at);
        h->end -= h->at;
        h->at = 0;
    }
    while (room < h->end + size)
        room *= 2;
    if (room == h->room)
        return true;
    bytes = realloc(h->bytes, room);
    if (!bytes)
        return false;
    h->bytes = bytes;
    h->room = room;
    return true;
}

static void put(struct stream_fd_held *h, const void *bytes, size_t size)
{
    memcpy(h->bytes + h->end, bytes, size);
    h->end += size;
}

/* Whoever reads there does so no more. */
static void stop_writing(struct stream_fd *s)
{
    mux_stream_stop(&s->stream);
    s->held.at = s->held.end = 0;
    end_writing(s);
}

static ssize_t write_some(const struct stream_fd *s, const uint8_t *bytes, size_t size)
{
    return s->is_socket ? send(s->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT)
                        : write(s->fd, bytes, size);
}

/* Returns whether something was written. */
static bool write_once(struct stream_fd *s)
{
    uint64_t from_ns = cw_clock_ns();
    ssize_t n = write_some(s, s->held.bytes + s->held.at, stream_fd_unwritten(s));

    if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS))
        return false;
    if (n < 0) {
        stop_writing(s);
        return false;
    }
    s->held.at += (size_t)n;
    if (s->config.ops->wrote)
        s->config.ops->wrote(s->config.ctx, (size_t)n, from_ns, cw_clock_ns());
    mux_stream_took(&s->stream, (size_t)n);
    return true;
}

bool stream_fd_push(struct stream_fd *s)
{
    bool any = false;

    while (s->fd >= 0 && s->writes && stream_fd_unwritten(s) > 0 && write_once(s))
        any = true;
    if (stream_fd_unwritten(s) == 0) {
        free(s->held.bytes);
        s->held = (struct stream_fd_held){0};
        if (s->last_came)
            end_writing(s);
    }
    update(s);
    if (any)
        moved(s);
    return stream_fd_unwritten(s) == 0;
}

/* --- the stream --- */

static int on_data(void *ctx, const uint8_t *bytes, size_t size, struct cw_err *err)
{
    struct stream_fd *s = ctx;

    if (s->fd < 0 || !s->writes)
        return CW_OK;
    if (!reserve(&s->held, size))
        return cw_err_set(err, CW_ENOMEM, "no memory for what passes a node");
    put(&s->held, bytes, size);
    stream_fd_push(s);
    return CW_OK;
}

static void on_end(void *ctx)
{
    struct stream_fd *s = ctx;

    s->last_came = true;
    stream_fd_push(s);
}

static void on_stop(void *ctx)
{
    struct stream_fd *s = ctx;

    end_reading(s);
}

static void on_room(void *ctx)
{
    struct stream_fd *s = ctx;

    if (s->waits)
        return; /* whoever made it wait asks again */
    stream_fd_pull(s);
}

/* What has come may be still to be written. */
static void on_closed(void *ctx)
{
    check_closed(ctx);
}

static const struct mux_stream_ops stream_ops = {on_data, on_end, on_stop, on_room, on_closed};

/* --- the descriptor --- */

uint64_t stream_fd_given(const struct stream_fd *s)
{
    int unread;

    return s->fd >= 0 && ioctl(s->fd, FIONREAD, &unread) == 0 ? s->read + (uint64_t)unread
                                                              : s->read;
}

/* Of a pipe that is written to: whether nobody reads it any more. */
static bool is_broken(const struct stream_fd *s)
{
    struct pollfd p = {.fd = s->fd};

    return poll(&p, 1, 0) == 1 && p.revents & (POLLERR | POLLHUP);
}

static void on_ready(void *ctx)
{
    struct stream_fd *s = ctx;

    if (!s->config.reads && stream_fd_unwritten(s) == 0 && is_broken(s)) {
        stop_writing(s);
        return;
    }
    if (s->reads)
        stream_fd_pull(s);
    if (s->fd >= 0 && stream_fd_unwritten(s) > 0)
        stream_fd_push(s);
}

void stream_fd_init(struct stream_fd *s)
{
    *s = (struct stream_fd){.fd = -1, .watch.fd = -1, .over = true};
}

static bool is_socket(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

int stream_fd_open(struct stream_fd *s, const struct stream_fd_config *config, struct cw_err *err)
{
    *s = (struct stream_fd){.config = *config,
                            .watch.fd = -1,
                            .fd = config->fd,
                            .is_socket = is_socket(config->fd),
                            .reads = config->reads,
                            .writes = config->writes};
    if (loop_watch(config->loop, &s->watch, s->fd, 0, on_ready, s) < 0) {
        cw_err_set(err, CW_ESYS, "watching a descriptor: %s", strerror(errno));
        close(s->fd);
        s->fd = -1;
        return err->code;
    }
    mux_stream_open(config->mux, &s->stream, config->id, config->reads, config->writes, &stream_ops,
                    s);
    update(s);
    return CW_OK;
}

void stream_fd_close(struct stream_fd *s)
{
    s->reads = s->writes = false;
    close_fd(s);
    mux_stream_stop(&s->stream);
    mux_stream_end(&s->stream);
    check_closed(s);
}

void stream_fd_drop(struct stream_fd *s)
{
    s->over = true;
    close_fd(s);
    mux_stream_forget(&s->stream);
}
