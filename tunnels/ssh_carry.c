#include "tunnels/ssh_carry.h"
#include "tunnels/ssh_chain.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bytes on their way in one direction. */
struct flow {
    uint8_t *bytes; /* TUNNEL_BUFFER_BYTES */
    size_t at, end;
    bool over;   /* nothing more comes in ... */
    bool closed; /* ... and all is out, which the other side was told */
};

struct carried {
    struct ssh_chain *chain;
    struct ssh_link *link;
    int in, out;
    struct flow there, back;
    bool moved; /* in this turn */
    bool left;  /* nobody is here any more who reads */
};

static int break_off(const struct carried *t, struct cw_err *err)
{
    return ssh_link_fail(t->link, CW_ECLOSED, "the tunnel to a relay", err);
}

/* --- there --- */

static void read_here(struct carried *t)
{
    struct flow *f = &t->there;
    ssize_t n;

    if (f->over || f->at < f->end)
        return;
    n = read(t->in, f->bytes, TUNNEL_BUFFER_BYTES);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    f->at = 0;
    f->end = n > 0 ? (size_t)n : 0;
    f->over = n <= 0;
    t->moved = true;
}

static int write_there(struct carried *t, struct cw_err *err)
{
    struct flow *f = &t->there;
    ssize_t n;

    while (f->at < f->end) {
        n = libssh2_channel_write(t->link->channel, (const char *)f->bytes + f->at, f->end - f->at);
        if (n == LIBSSH2_ERROR_EAGAIN)
            return CW_OK;
        if (n < 0)
            return break_off(t, err);
        f->at += (size_t)n;
        t->moved = true;
    }
    if (!f->over || f->closed || libssh2_channel_send_eof(t->link->channel) == LIBSSH2_ERROR_EAGAIN)
        return CW_OK;
    f->closed = t->moved = true;
    return CW_OK;
}

/* --- and back --- */

/* Also where there is no room for bytes: what else comes (windows, answers) is taken in. */
static int read_there(struct carried *t, struct cw_err *err)
{
    struct flow *f = &t->back;
    size_t room = f->over || f->at < f->end ? 0 : TUNNEL_BUFFER_BYTES;
    ssize_t n = libssh2_channel_read(t->link->channel, (char *)f->bytes, room);

    if (n < 0 && n != LIBSSH2_ERROR_EAGAIN)
        return break_off(t, err);
    if (n < 0 || room == 0)
        return CW_OK;
    f->at = 0;
    f->end = (size_t)n;
    f->over = libssh2_channel_eof(t->link->channel) != 0;
    t->moved |= n > 0 || f->over;
    return CW_OK;
}

/* Who does not read any more may still have said something: of a socket until its end comes. */
static void leave(struct carried *t)
{
    t->left = t->moved = true;
    t->there.over |= t->in != t->out;
}

static void write_here(struct carried *t)
{
    struct flow *f = &t->back;
    ssize_t n;

    while (f->at < f->end && !t->left) {
        n = write(t->out, f->bytes + f->at, f->end - f->at);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0)
            leave(t);
        else
            f->at += (size_t)n;
        t->moved = true;
    }
    if (t->left)
        f->at = f->end;
    if (!f->over || f->closed)
        return;
    shutdown(t->out, SHUT_WR);
    f->closed = t->moved = true;
}

/* --- both --- */

/* Who has left still wants to have sent what he wrote, and no more. */
static int await(struct carried *t, struct cw_err *err)
{
    bool pending = t->back.at < t->back.end;
    struct pollfd p[] = {
        {.fd = t->chain->fd, .events = ssh_link_events(t->chain)},
        {.fd = t->there.over || t->there.at < t->there.end ? -1 : t->in, .events = POLLIN},
        {.fd = pending || (t->there.closed && !t->left) ? t->out : -1,
         .events = pending ? POLLOUT : 0}};
    int next_ms = ssh_chain_keep_alive(t->chain, err);

    if (next_ms < 0)
        return next_ms;
    poll(p, 3, next_ms);
    t->left |= t->there.closed && (p[2].revents & (POLLHUP | POLLERR));
    return CW_OK;
}

static int carry(struct carried *t, struct cw_err *err)
{
    while (!t->there.closed || !(t->left || t->back.closed)) {
        t->moved = false;
        read_here(t);
        if (write_there(t, err) < 0 || (!ssh_link_is_sending(t->link) && read_there(t, err) < 0))
            return err->code;
        write_here(t);
        if (!t->moved && await(t, err) < 0)
            return err->code;
    }
    return CW_OK;
}

/* The session takes along what a gateway still holds when it ends. The other side closes the
 * channel when all of that is where it leads (RFC 4254 5.3), however slowly it is read there. */
static int close_there(struct carried *t)
{
    LIBSSH2_CHANNEL *channel = t->link->channel;
    ssize_t n = libssh2_channel_close(channel);

    if (n < 0)
        return (int)n;
    do
        n = libssh2_channel_read(channel, (char *)t->back.bytes, TUNNEL_BUFFER_BYTES);
    while (n > 0);
    if (n == 0 && libssh2_channel_eof(channel))
        return libssh2_channel_wait_closed(channel);
    return n < 0 ? (int)n : LIBSSH2_ERROR_EAGAIN;
}

static int finish(struct carried *t, struct cw_err *err)
{
    struct pollfd p = {.fd = t->chain->fd};
    int result, next_ms;

    while ((result = close_there(t)) == LIBSSH2_ERROR_EAGAIN) {
        next_ms = ssh_chain_keep_alive(t->chain, err);
        if (next_ms < 0)
            return next_ms;
        p.events = ssh_link_events(t->chain);
        poll(&p, 1, next_ms);
    }
    return result < 0 ? break_off(t, err) : CW_OK;
}

int ssh_carry(struct ssh_chain *chain, int in, int out, struct cw_err *err)
{
    struct carried t = {.chain = chain,
                        .link = ssh_chain_last(chain),
                        .in = in,
                        .out = out,
                        .there.bytes = malloc(TUNNEL_BUFFER_BYTES),
                        .back.bytes = malloc(TUNNEL_BUFFER_BYTES)};

    err->code = CW_OK;
    fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
    fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
    if (!t.there.bytes || !t.back.bytes)
        cw_err_set(err, CW_ENOMEM, "no memory for a tunnel");
    else if (carry(&t, err) == CW_OK)
        finish(&t, err);
    free(t.there.bytes);
    free(t.back.bytes);
    return err->code;
}
