#include "dispatcher/state/state_link.h"
#include "common/clock.h"
#include "common/fd.h"
#include "dispatcher/state/state_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

void state_link_open(struct state_link *link, int in_fd, int out_fd, uint64_t wait_ns)
{
    *link = (struct state_link){.in_fd = in_fd, .out_fd = out_fd, .wait_ns = wait_ns};
    fcntl(in_fd, F_SETFL, O_NONBLOCK);
    fcntl(out_fd, F_SETFL, O_NONBLOCK);
    marker_init(&link->marker, STATE_COPY_MAGIC);
}

void state_link_close(struct state_link *link)
{
    cw_close(&link->in_fd);
    cw_close(&link->out_fd);
}

static int await(int fd, short events, uint64_t until_ns, struct cw_err *err)
{
    struct pollfd p = {.fd = fd, .events = events};
    uint64_t now_ns = cw_clock_ns();

    if (now_ns >= until_ns)
        return cw_err_set(err, CW_ETIME, "it does not answer in time");
    poll(&p, 1, (int)((until_ns - now_ns) / 1000000) + 1);
    return CW_OK;
}

static int broke(struct cw_err *err)
{
    return cw_err_set(err, errno == EPIPE ? CW_ECLOSED : CW_ESYS, "writing to it: %s",
                      strerror(errno));
}

static int write_all(struct state_link *link, const uint8_t *bytes, size_t size, struct cw_err *err)
{
    uint64_t until_ns = cw_clock_ns() + link->wait_ns;

    for (size_t at = 0; at < size;) {
        ssize_t n = write(link->in_fd, bytes + at, size - at);

        if (n > 0)
            at += (size_t)n;
        else if (n < 0 && errno != EAGAIN && errno != EINTR)
            return broke(err);
        else if (await(link->in_fd, POLLOUT, until_ns, err) < 0)
            return err->code;
    }
    return CW_OK;
}

int state_link_put(struct state_link *link, uint32_t type, uint64_t at, const void *bytes,
                   uint32_t size, struct cw_err *err)
{
    const struct state_copy_message message = {.type = type, .size = size, .at = at};
    uint8_t head[STATE_COPY_HEADER];

    err->code = CW_OK;
    link->unasked = true;
    state_copy_put(head, &message);
    if (write_all(link, head, sizeof(head), err) == CW_OK && size)
        write_all(link, bytes, size, err);
    return err->code;
}

static int read_one(struct state_link *link, uint8_t *byte, uint64_t until_ns, struct cw_err *err)
{
    ssize_t n;

    while ((n = read(link->out_fd, byte, 1)) < 0 && (errno == EAGAIN || errno == EINTR))
        if (await(link->out_fd, POLLIN, until_ns, err) < 0)
            return err->code;
    if (n > 0)
        return CW_OK;
    return n == 0 ? cw_err_set(err, CW_ECLOSED, "it has ended")
                  : cw_err_set(err, CW_ESYS, "reading from it: %s", strerror(errno));
}

static int read_greeting(struct state_link *link, uint64_t until_ns, struct cw_err *err)
{
    uint8_t byte;

    while (!link->greeted) {
        if (read_one(link, &byte, until_ns, err) < 0)
            return err->code;
        link->greeted = marker_take(&link->marker, byte);
        if (link->marker.noise > MARKER_NOISE_MAX)
            return cw_err_set(err, CW_EPROTO, "nothing of Causeway came from it");
    }
    return CW_OK;
}

int state_link_sync(struct state_link *link, struct cw_err *err)
{
    uint64_t until_ns = cw_clock_ns() + link->wait_ns;
    uint64_t answer = 0;

    err->code = CW_OK;
    if (!link->unasked)
        return CW_OK;
    if (state_link_put(link, STATE_COPY_SYNC, ++link->asked, NULL, 0, err) < 0 ||
        read_greeting(link, until_ns, err) < 0)
        return err->code;
    for (size_t i = 0; i < sizeof(answer); i++)
        if (read_one(link, (uint8_t *)&answer + i, until_ns, err) < 0)
            return err->code;
    if (answer != link->asked)
        return cw_err_set(err, CW_EPROTO, "it answers something else");
    link->unasked = false;
    return CW_OK;
}
