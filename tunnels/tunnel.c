#include "tunnels/tunnel.h"
#include "common/home.h"
#include "tunnels/ssh_chain.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bytes on their way in one direction. */
struct flow {
    uint8_t *bytes; /* TUNNEL_BUFFER_BYTES */
    size_t at, end;
    bool over;   /* nothing more comes in ... */
    bool closed; /* ... and all is out, which the other side was told */
};

struct tunnel {
    struct tunnel_ends *ends;
    struct ssh_chain chain;
    LIBSSH2_CHANNEL *channel;
    struct flow there, back;
    bool moved; /* in this turn */
    bool left;  /* all is there, and nobody is here any more */
};

static int break_off(const struct tunnel *t, struct cw_err *err)
{
    return ssh_link_fail(&t->chain.link[t->chain.way->hops - 1], CW_ECLOSED,
                         "the tunnel to a relay", err);
}

/* --- there --- */

static void read_here(struct tunnel *t)
{
    struct flow *f = &t->there;
    ssize_t n;

    if (f->over || f->at < f->end)
        return;
    n = read(t->ends->in, f->bytes, TUNNEL_BUFFER_BYTES);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    f->at = 0;
    f->end = n > 0 ? (size_t)n : 0;
    f->over = n <= 0;
    t->moved = true;
}

static int write_there(struct tunnel *t, struct cw_err *err)
{
    struct flow *f = &t->there;
    ssize_t n;

    while (f->at < f->end) {
        n = libssh2_channel_write(t->channel, (const char *)f->bytes + f->at, f->end - f->at);
        if (n == LIBSSH2_ERROR_EAGAIN)
            return CW_OK;
        if (n < 0)
            return break_off(t, err);
        f->at += (size_t)n;
        t->moved = true;
    }
    if (!f->over || f->closed || libssh2_channel_send_eof(t->channel) == LIBSSH2_ERROR_EAGAIN)
        return CW_OK;
    f->closed = t->moved = true;
    return CW_OK;
}

/* --- and back --- */

static int read_there(struct tunnel *t, struct cw_err *err)
{
    struct flow *f = &t->back;
    ssize_t n;

    if (f->over || f->at < f->end)
        return CW_OK;
    n = libssh2_channel_read(t->channel, (char *)f->bytes, TUNNEL_BUFFER_BYTES);
    if (n == LIBSSH2_ERROR_EAGAIN)
        return CW_OK;
    if (n < 0)
        return break_off(t, err);
    f->at = 0;
    f->end = (size_t)n;
    f->over = libssh2_channel_eof(t->channel) != 0;
    t->moved |= n > 0 || f->over;
    return CW_OK;
}

/* False: nobody reads it any more. */
static bool write_here(struct tunnel *t)
{
    struct flow *f = &t->back;
    ssize_t n;

    while (f->at < f->end) {
        n = write(t->ends->out, f->bytes + f->at, f->end - f->at);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        f->at += (size_t)n;
        t->moved = true;
    }
    if (!f->over || f->closed)
        return true;
    shutdown(t->ends->out, SHUT_WR);
    f->closed = t->moved = true;
    return true;
}

/* --- both --- */

/* Who has left still wants to have sent what he wrote, and no more. */
static void await(struct tunnel *t)
{
    bool pending = t->back.at < t->back.end;
    struct pollfd p[] = {
        {.fd = t->chain.fd, .events = ssh_link_events(&t->chain)},
        {.fd = t->there.over || t->there.at < t->there.end ? -1 : t->ends->in, .events = POLLIN},
        {.fd = pending || t->there.closed ? t->ends->out : -1, .events = pending ? POLLOUT : 0}};

    poll(p, 3, ssh_chain_keep_alive(&t->chain));
    t->left = t->there.closed && (p[2].revents & (POLLHUP | POLLERR));
}

static int carry(struct tunnel *t, struct cw_err *err)
{
    while (!t->left && (!t->there.closed || !t->back.closed)) {
        t->moved = false;
        read_here(t);
        if (write_there(t, err) < 0 || read_there(t, err) < 0)
            return err->code;
        if (!write_here(t))
            break;
        if (!t->moved)
            await(t);
    }
    return CW_OK;
}

/* Of a few bytes: there is room. */
static void tell(const struct tunnel_ends *ends, char what, const char *text)
{
    char line[1 + CW_ERR_TEXT_MAX];

    if (ends->told)
        (void)!write(ends->out, line, (size_t)snprintf(line, sizeof(line), "%c%s", what, text));
}

/* The best way that leads there. Of several each has its part of the time. */
static int open_one_way(struct tunnel *t, const struct ssh_address *address, struct cw_err *err)
{
    char dir[PATH_MAX];

    snprintf(dir, sizeof(dir), "%s/.ssh", cw_home());
    for (uint32_t way = 0; way < address->ways; way++) {
        if (way > 0)
            ssh_chain_close(&t->chain);
        if (ssh_chain_open(&t->chain, address, way, dir, TUNNEL_OPEN_MS / address->ways, err) ==
            CW_OK)
            break;
    }
    return err->code;
}

static int open_and_carry(struct tunnel *t, const struct ssh_address *address, struct cw_err *err)
{
    if (open_one_way(t, address, err) < 0) {
        tell(t->ends, TUNNEL_FAILED, err->text);
        return err->code;
    }
    t->channel = ssh_chain_channel(&t->chain);
    t->ends->opened = true;
    tell(t->ends, TUNNEL_OPENED, "");
    fcntl(t->ends->in, F_SETFL, fcntl(t->ends->in, F_GETFL) | O_NONBLOCK);
    fcntl(t->ends->out, F_SETFL, fcntl(t->ends->out, F_GETFL) | O_NONBLOCK);
    return carry(t, err);
}

int tunnel_run(const struct ssh_address *address, struct tunnel_ends *ends, struct cw_err *err)
{
    struct tunnel t = {.ends = ends,
                       .there.bytes = malloc(TUNNEL_BUFFER_BYTES),
                       .back.bytes = malloc(TUNNEL_BUFFER_BYTES)};

    err->code = CW_OK;
    if (t.there.bytes && t.back.bytes) {
        open_and_carry(&t, address, err);
        ssh_chain_close(&t.chain);
    } else {
        cw_err_set(err, CW_ENOMEM, "no memory for a tunnel");
    }
    free(t.there.bytes);
    free(t.back.bytes);
    return err->code;
}
