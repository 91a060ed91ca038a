#include "dispatcher/streams/input.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_pipe(struct input_pump *pump, struct cw_err *err)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return cw_err_set(err, CW_ESYS, "pipe for the standard input of rank 0: %s",
                          strerror(errno));
    pump->rank_end = fds[0];
    pump->to = fds[1];
    fcntl(pump->to, F_SETFL, O_NONBLOCK);
    return CW_OK;
}

static void close_pipe(struct input_pump *pump)
{
    if (pump->rank_end >= 0)
        close(pump->rank_end);
    if (pump->to >= 0)
        close(pump->to);
    pump->rank_end = pump->to = -1;
}

int input_open(struct input_pump *pump, bool keep, struct cw_err *err)
{
    *pump = (struct input_pump){
        .from = STDIN_FILENO, .rank_end = -1, .to = -1, .keep = keep, .room = INPUT_BUFFER};
    pump->bytes = malloc(INPUT_BUFFER);
    if (!pump->bytes)
        return cw_err_set(err, CW_ENOMEM, "no memory for the standard input of rank 0");
    return open_pipe(pump, err);
}

void input_close(struct input_pump *pump)
{
    close_pipe(pump);
    free(pump->bytes);
    pump->bytes = NULL;
    pump->size = pump->given = pump->room = 0;
}

/* In the background of a terminal, reading it would stop us. */
static bool in_background(const struct input_pump *pump)
{
    return isatty(pump->from) && tcgetpgrp(pump->from) != getpgrp();
}

/* All that came is given, and more may come. */
static bool lacks(const struct input_pump *pump)
{
    return pump->from >= 0 && pump->to >= 0 && pump->given == pump->size && !pump->paused;
}

bool input_wants_read(const struct input_pump *pump)
{
    return lacks(pump) && !in_background(pump);
}

bool input_waits(const struct input_pump *pump)
{
    return lacks(pump) && in_background(pump);
}

bool input_wants_write(const struct input_pump *pump)
{
    return pump->to >= 0 && pump->given < pump->size && !pump->paused;
}

/* All is given, and no more will come. */
static void check_end(struct input_pump *pump)
{
    if (pump->from >= 0 || pump->given < pump->size || pump->to < 0)
        return;
    close(pump->to);
    pump->to = -1;
}

uint64_t input_given(const struct input_pump *pump)
{
    return pump->base + pump->given;
}

bool input_is_unread(const struct input_pump *pump)
{
    struct pollfd p = {.fd = pump->to};

    return pump->unread || (pump->to >= 0 && poll(&p, 1, 0) == 1 && p.revents & POLLERR);
}

bool input_keeps(const struct input_pump *pump, uint64_t place)
{
    return pump->keep && place >= pump->base && place - pump->base <= pump->size;
}

int input_restart(struct input_pump *pump, uint64_t place, struct cw_err *err)
{
    assert(input_keeps(pump, place));
    close_pipe(pump);
    if (open_pipe(pump, err) < 0)
        return err->code;
    pump->unread = false;
    pump->given = (size_t)(place - pump->base);
    check_end(pump);
    return CW_OK;
}

/* The first `size` bytes, all given. */
static void forget(struct input_pump *pump, size_t size)
{
    memmove(pump->bytes, pump->bytes + size, pump->size - size);
    pump->base += size;
    pump->size -= size;
    pump->given -= size;
}

void input_let_go(struct input_pump *pump, uint64_t place)
{
    if (place > input_given(pump))
        place = input_given(pump);
    if (place > pump->base)
        forget(pump, (size_t)(place - pump->base));
}

/* Makes room for one more read: behind what is kept, or else over what was given. */
static void make_room(struct input_pump *pump)
{
    size_t wanted = 2 * pump->room;
    char *more = NULL;

    if (!pump->keep)
        forget(pump, pump->given);
    if (pump->room - pump->size >= INPUT_BUFFER)
        return;
    if (wanted <= INPUT_KEPT_MAX)
        more = realloc(pump->bytes, wanted);
    if (more) {
        pump->bytes = more;
        pump->room = wanted;
    } else {
        pump->keep = false;
        forget(pump, pump->given);
    }
}

void input_replay(struct input_pump *pump, const char *bytes, size_t size)
{
    while (size > 0) {
        size_t part = size < INPUT_BUFFER ? size : INPUT_BUFFER;

        make_room(pump);
        memcpy(pump->bytes + pump->size, bytes, part);
        pump->given = pump->size += part;
        bytes += part;
        size -= part;
        if (size == 0)
            return;
    }
    pump->from = -1;
    check_end(pump);
}

static void fill(struct input_pump *pump)
{
    ssize_t n;

    make_room(pump);
    n = read(pump->from, pump->bytes + pump->size, INPUT_BUFFER);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (pump->came)
        pump->came(pump->ctx, pump->bytes + pump->size, n > 0 ? (size_t)n : 0);
    if (n > 0)
        pump->size += (size_t)n;
    else
        pump->from = -1;
    check_end(pump);
}

static void drain(struct input_pump *pump)
{
    ssize_t n = write(pump->to, pump->bytes + pump->given, pump->size - pump->given);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        /* rank 0 does not read any more: nobody misses the rest */
        pump->unread = true;
        close(pump->to);
        pump->to = -1;
        return;
    }
    pump->given += (size_t)n;
    check_end(pump);
}

void input_move(struct input_pump *pump, bool readable)
{
    if (readable && input_wants_read(pump))
        fill(pump);
    if (input_wants_write(pump))
        drain(pump);
}
