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
    bool left;  /* all is there, and nobody is here any more */
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

static int read_there(struct carried *t, struct cw_err *err)
{
    struct flow *f = &t->back;
    ssize_t n;

    if (f->over || f->at < f->end)
        return CW_OK;
    n = libssh2_channel_read(t->link->channel, (char *)f->bytes, TUNNEL_BUFFER_BYTES);
    if (n == LIBSSH2_ERROR_EAGAIN)
        return CW_OK;
    if (n < 0)
        return break_off(t, err);
    f->at = 0;
    f->end = (size_t)n;
    f->over = libssh2_channel_eof(t->link->channel) != 0;
    t->moved |= n > 0 || f->over;
    return CW_OK;
}

/* False: nobody reads it any more. */
static bool write_here(struct carried *t)
{
    struct flow *f = &t->back;
    ssize_t n;

    while (f->at < f->end) {
        n = write(t->out, f->bytes + f->at, f->end - f->at);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        f->at += (size_t)n;
        t->moved = true;
    }
    if (!f->over || f->closed)
        return true;
    shutdown(t->out, SHUT_WR);
    f->closed = t->moved = true;
    return true;
}

/* --- both --- */

/* Who has left still wants to have sent what he wrote, and no more. */
static void await(struct carried *t)
{
    bool pending = t->back.at < t->back.end;
    struct pollfd p[] = {
        {.fd = t->chain->fd, .events = ssh_link_events(t->chain)},
        {.fd = t->there.over || t->there.at < t->there.end ? -1 : t->in, .events = POLLIN},
        {.fd = pending || t->there.closed ? t->out : -1, .events = pending ? POLLOUT : 0}};

    poll(p, 3, ssh_chain_keep_alive(t->chain));
    t->left = t->there.closed && (p[2].revents & (POLLHUP | POLLERR));
}

static int carry(struct carried *t, struct cw_err *err)
{
    while (!t->left && (!t->there.closed || !t->back.closed)) {
        t->moved = false;
        read_here(t);
        if (write_there(t, err) < 0 || (!ssh_link_is_sending(t->link) && read_there(t, err) < 0))
            return err->code;
        if (!write_here(t))
            break;
        if (!t->moved)
            await(t);
    }
    return CW_OK;
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
    if (t.there.bytes && t.back.bytes)
        carry(&t, err);
    else
        cw_err_set(err, CW_ENOMEM, "no memory for a tunnel");
    free(t.there.bytes);
    free(t.back.bytes);
    return err->code;
}
