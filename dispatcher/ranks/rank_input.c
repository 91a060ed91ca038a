#include "dispatcher/ranks/rank_input.h"
#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOVES 16                   /* buffers of a file that are given to rank 0 in one turn */
#define FOREGROUND_NS 500000000ull /* between looks whether we are back in the foreground */

struct rank_input {
    struct rank_input_config config;
    int from;      /* our stdin; -1 when it ended */
    int rank_end;  /* of the pipe: what rank 0 gets */
    bool keep;     /* all that came from `base` on is in `bytes` */
    bool told;     /* that it does not any more */
    bool paused;   /* nothing is moved */
    bool unread;   /* nobody reads the pipe any more */
    uint64_t base; /* bytes that came before those in `bytes` */
    size_t given;  /* of `bytes`: what is in the pipe */
    size_t size;   /* of `bytes`: what came */
    size_t room;
    char *bytes;                   /* owned */
    struct loop_watch stdin_watch; /* of a kind that epoll takes, or not watched: a file */
    struct loop_watch pipe_watch;  /* our end, non-blocking; -1 when it is closed */
    struct loop_timer timer;
};

/* --- what is to be moved --- */

/* In the background of a terminal, reading it would stop us. */
static bool in_background(const struct rank_input *in)
{
    return isatty(in->from) && tcgetpgrp(in->from) != getpgrp();
}

static bool wants_write(const struct rank_input *in)
{
    return in->pipe_watch.fd >= 0 && in->given < in->size && !in->paused;
}

/* All that came is given, and more may come. */
static bool lacks(const struct rank_input *in)
{
    return in->from >= 0 && in->pipe_watch.fd >= 0 && in->given == in->size && !in->paused;
}

static bool wants_read(const struct rank_input *in)
{
    return lacks(in) && !in_background(in);
}

/* All is given, and no more will come. */
static void check_end(struct rank_input *in)
{
    if (in->from < 0 && in->given == in->size)
        loop_close(in->config.loop, &in->pipe_watch);
}

/* Bytes that were written into the pipe since the beginning of the input. */
static uint64_t given_of(const struct rank_input *in)
{
    return in->base + in->given;
}

/* The first `size` bytes, all given. */
static void forget(struct rank_input *in, size_t size)
{
    memmove(in->bytes, in->bytes + size, in->size - size);
    in->base += size;
    in->size -= size;
    in->given -= size;
}

/* Makes room for one more read: behind what is kept, or else over what was given. */
static void make_room(struct rank_input *in)
{
    size_t wanted = 2 * in->room;
    char *more = NULL;

    if (!in->keep)
        forget(in, in->given);
    if (in->room - in->size >= INPUT_BUFFER)
        return;
    if (wanted <= INPUT_KEPT_MAX)
        more = realloc(in->bytes, wanted);
    if (more) {
        in->bytes = more;
        in->room = wanted;
    } else {
        in->keep = false;
        forget(in, in->given);
    }
}

/* Nothing that rank 0 does with it may be known to others before. */
static void keep_input(const struct rank_input *in, ssize_t size)
{
    const struct job_state_record record = {.type = JOB_STATE_INPUT,
                                            .bytes = (const uint8_t *)in->bytes + in->size,
                                            .size = size > 0 ? (uint32_t)size : 0};

    state_file_put(in->config.state, &record);
    state_file_sync(in->config.state);
}

static void fill(struct rank_input *in)
{
    ssize_t n;

    make_room(in);
    n = read(in->from, in->bytes + in->size, INPUT_BUFFER);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    keep_input(in, n);
    if (n > 0)
        in->size += (size_t)n;
    else
        in->from = -1;
    check_end(in);
}

static void drain(struct rank_input *in)
{
    ssize_t n = write(in->pipe_watch.fd, in->bytes + in->given, in->size - in->given);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) { /* rank 0 does not read any more: nobody misses the rest */
        in->unread = true;
        loop_close(in->config.loop, &in->pipe_watch);
        return;
    }
    in->given += (size_t)n;
    check_end(in);
}

/* Moves what can be moved without waiting. `readable` says that `from` will not block. */
static void move(struct rank_input *in, bool readable)
{
    if (readable && wants_read(in))
        fill(in);
    if (wants_write(in))
        drain(in);
}

/* --- in the loop --- */

/* Watched one shot at a time, so that what rank 0 does not read yet stays where it is. A file is
 * always readable: it is moved until the pipe is full, a bounded part a turn. */
static void update(void *ctx)
{
    struct rank_input *in = ctx;
    struct loop *loop = in->config.loop;
    bool is_file = in->stdin_watch.fd < 0;

    for (int i = 0; is_file && i < MOVES && wants_read(in); i++)
        move(in, true);
    if (wants_write(in))
        loop_rearm(loop, &in->pipe_watch, EPOLLOUT);
    else if (wants_read(in) && is_file)
        loop_timer_set(&in->timer, loop_now_ns(loop));
    else if (wants_read(in))
        loop_rearm(loop, &in->stdin_watch, EPOLLIN);
    else if (lacks(in))
        loop_timer_set(&in->timer, loop_now_ns(loop) + FOREGROUND_NS);
    if (in->config.keep && !in->keep && !in->told) {
        in->told = true;
        in->config.overrun(in->config.ctx);
    }
}

static void on_stdin(void *ctx)
{
    move(ctx, true);
    update(ctx);
}

static void on_pipe(void *ctx)
{
    move(ctx, ((struct rank_input *)ctx)->stdin_watch.fd < 0);
    update(ctx);
}

/* In place of the one before. */
static int open_pipe(struct rank_input *in, struct cw_err *err)
{
    int fds[2];

    cw_close(&in->rank_end);
    loop_close(in->config.loop, &in->pipe_watch);
    if (pipe2(fds, O_CLOEXEC) < 0)
        return cw_err_set(err, CW_ESYS, "pipe for the standard input of rank 0: %s",
                          strerror(errno));
    in->rank_end = fds[0];
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    if (loop_watch(in->config.loop, &in->pipe_watch, fds[1], EPOLLONESHOT, on_pipe, in) == 0)
        return CW_OK;
    close(fds[1]);
    return cw_err_set(err, CW_ESYS, "watching the standard input of rank 0: %s", strerror(errno));
}

struct rank_input *rank_input_new(const struct rank_input_config *config, struct cw_err *err)
{
    struct rank_input *in = calloc(1, sizeof(*in));

    if (!in || !(in->bytes = malloc(INPUT_BUFFER))) {
        cw_err_set(err, CW_ENOMEM, "no memory for the standard input of rank 0");
        free(in);
        return NULL;
    }
    in->config = *config;
    in->from = STDIN_FILENO;
    in->rank_end = in->pipe_watch.fd = -1;
    in->keep = config->keep;
    in->room = INPUT_BUFFER;
    loop_timer_add(config->loop, &in->timer, update, in);
    loop_watch(config->loop, &in->stdin_watch, STDIN_FILENO, EPOLLONESHOT, on_stdin, in);
    loop_timer_set(&in->timer, 0);
    if (open_pipe(in, err) == CW_OK)
        return in;
    rank_input_free(in);
    return NULL;
}

void rank_input_free(struct rank_input *in)
{
    if (!in)
        return;
    loop_timer_remove(&in->timer);
    loop_unwatch(in->config.loop, &in->stdin_watch);
    loop_close(in->config.loop, &in->pipe_watch);
    cw_close(&in->rank_end);
    free(in->bytes);
    free(in);
}

int rank_input_end(const struct rank_input *in)
{
    return in->rank_end;
}

void rank_input_taken(struct rank_input *in)
{
    cw_close(&in->rank_end);
}

void rank_input_replay(struct rank_input *in, const struct job_state_record *record)
{
    const uint8_t *bytes = record->bytes;

    if (record->type != JOB_STATE_INPUT)
        return;
    for (size_t left = record->size, part; left > 0; left -= part, bytes += part) {
        part = left < INPUT_BUFFER ? left : INPUT_BUFFER;
        make_room(in);
        memcpy(in->bytes + in->size, bytes, part);
        in->given = in->size += part;
    }
    if (record->size == 0)
        in->from = -1;
    check_end(in);
}

/* --- images of rank 0 --- */

void rank_input_pause(struct rank_input *in)
{
    in->paused = true;
}

void rank_input_resume(struct rank_input *in)
{
    in->paused = false;
    loop_timer_set(&in->timer, 0);
}

/* Nothing will be read from the pipe any more, whatever is written. */
static bool is_unread(const struct rank_input *in)
{
    struct pollfd p = {.fd = in->pipe_watch.fd};

    return in->unread || (p.fd >= 0 && poll(&p, 1, 0) == 1 && p.revents & POLLERR);
}

bool rank_input_mark(struct rank_input *in, uint32_t number, uint64_t unread)
{
    /* how much is in the pipe does not change between the image and now, but by what is read */
    bool stands = in->paused || in->pipe_watch.fd < 0;
    uint64_t read = given_of(in);

    if (number == 0)
        return false;
    if (read > 0 && unread == UINT64_MAX && !is_unread(in))
        return false;
    if (read > 0 && unread != UINT64_MAX) {
        if (!stands || unread > read)
            return false;
        read -= unread;
    }
    places_set(in->config.places, number, PLACE_STDIN, (uint64_t[PLACE_VALUES]){read});
    return rank_input_has_place(in, number);
}

static const uint64_t *place_of(const struct rank_input *in, uint32_t number)
{
    return places_at(in->config.places, number, PLACE_STDIN);
}

bool rank_input_has_place(const struct rank_input *in, uint32_t number)
{
    const uint64_t *at = place_of(in, number);

    return in->keep && at && *at >= in->base && *at - in->base <= in->size;
}

void rank_input_let_go(struct rank_input *in, uint32_t number)
{
    const uint64_t *at = place_of(in, number);
    uint64_t until = at && *at < given_of(in) ? *at : given_of(in);

    if (at && until > in->base)
        forget(in, (size_t)(until - in->base));
}

int rank_input_restart(struct rank_input *in, uint32_t number, struct cw_err *err)
{
    if (!rank_input_has_place(in, number))
        return cw_err_set(err, CW_ELIMIT,
                          "what rank 0 read on its standard input from image %u on is not kept",
                          number);
    in->paused = in->unread = false;
    if (open_pipe(in, err) < 0)
        return err->code;
    in->given = (size_t)(*place_of(in, number) - in->base);
    check_end(in);
    loop_timer_set(&in->timer, 0);
    return CW_OK;
}
