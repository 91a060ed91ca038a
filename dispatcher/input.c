#include "dispatcher/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int input_open(struct input_pump *pump, struct cw_err *err)
{
    int fds[2];

    memset(pump, 0, sizeof(*pump));
    pump->from = STDIN_FILENO;
    pump->rank_end = pump->to = -1;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return cw_err_set(err, CW_ESYS, "pipe for the standard input of rank 0: %s",
                          strerror(errno));
    pump->rank_end = fds[0];
    pump->to = fds[1];
    fcntl(pump->to, F_SETFL, O_NONBLOCK);
    return CW_OK;
}

void input_close(struct input_pump *pump)
{
    if (pump->rank_end >= 0)
        close(pump->rank_end);
    if (pump->to >= 0)
        close(pump->to);
    pump->rank_end = pump->to = -1;
}

/* In the background of a terminal, reading it would stop us. */
static bool in_background(const struct input_pump *pump)
{
    return isatty(pump->from) && tcgetpgrp(pump->from) != getpgrp();
}

bool input_wants_read(const struct input_pump *pump)
{
    return pump->from >= 0 && pump->to >= 0 && pump->start == pump->end && !in_background(pump);
}

bool input_wants_write(const struct input_pump *pump)
{
    return pump->to >= 0 && pump->start < pump->end;
}

static void end_of_input(struct input_pump *pump)
{
    pump->from = -1;
    if (pump->start == pump->end) {
        close(pump->to);
        pump->to = -1;
    }
}

static void fill(struct input_pump *pump)
{
    ssize_t n = read(pump->from, pump->buffer, sizeof(pump->buffer));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    pump->start = pump->end = 0;
    if (n > 0)
        pump->end = (size_t)n;
    else
        end_of_input(pump);
}

static void drain(struct input_pump *pump)
{
    ssize_t n = write(pump->to, pump->buffer + pump->start, pump->end - pump->start);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        /* rank 0 does not read any more: nobody misses the rest */
        close(pump->to);
        pump->to = -1;
        return;
    }
    pump->start += (size_t)n;
    if (pump->start == pump->end && pump->from < 0)
        end_of_input(pump);
}

void input_move(struct input_pump *pump, bool readable)
{
    if (readable && input_wants_read(pump))
        fill(pump);
    if (input_wants_write(pump))
        drain(pump);
}
