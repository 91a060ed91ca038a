#include "dispatcher/streams/rank_input.h"
#include "dispatcher/places/places.h"
#include "dispatcher/streams/input.h"

#include <stdlib.h>
#include <unistd.h>

#define MOVES 16                   /* buffers of a file that are given to rank 0 in one turn */
#define FOREGROUND_NS 500000000ull /* between looks whether we are back in the foreground */

struct rank_input {
    struct rank_input_config config;
    struct input_pump pump;
    struct places places;          /* each one value: bytes that the rank had read */
    bool told;                     /* that it does not keep all any more */
    struct loop_watch stdin_watch; /* of a kind that epoll takes, or not watched: a file */
    struct loop_watch pipe_watch;
    struct loop_timer timer;
};

/* Watched one shot at a time, so that what rank 0 does not read yet stays where it is. A file is
 * always readable: it is moved until the pipe is full, a bounded part a turn. */
static void update(struct rank_input *input)
{
    struct loop *loop = input->config.loop;
    bool is_file = input->stdin_watch.fd < 0;

    for (int i = 0; is_file && i < MOVES && input_wants_read(&input->pump); i++)
        input_move(&input->pump, true);
    if (input_wants_write(&input->pump))
        loop_rearm(loop, &input->pipe_watch, EPOLLOUT);
    else if (input_wants_read(&input->pump) && is_file)
        loop_timer_set(&input->timer, loop_now_ns(loop));
    else if (input_wants_read(&input->pump))
        loop_rearm(loop, &input->stdin_watch, EPOLLIN);
    else if (input_waits(&input->pump))
        loop_timer_set(&input->timer, loop_now_ns(loop) + FOREGROUND_NS);
    if (input->config.keep && !input->pump.keep && !input->told) {
        input->told = true;
        input->config.overrun(input->config.ctx);
    }
}

static void on_timer(void *ctx)
{
    update(ctx);
}

static void on_stdin(void *ctx)
{
    struct rank_input *input = ctx;

    input_move(&input->pump, true);
    update(input);
}

static void on_pipe(void *ctx);

/* The pump closes its end of the pipe by itself; closing it ends the watch. */
static void watch_pipe(struct rank_input *input)
{
    input->pipe_watch.fd = -1;
    if (input->pump.to >= 0)
        loop_watch(input->config.loop, &input->pipe_watch, input->pump.to, EPOLLONESHOT, on_pipe,
                   input);
}

static void on_pipe(void *ctx)
{
    struct rank_input *input = ctx;

    input_move(&input->pump, input->stdin_watch.fd < 0);
    update(input);
}

/* Nothing that rank 0 does with it may be known to others before. */
static void on_came(void *ctx, const char *bytes, size_t size)
{
    const struct rank_input *input = ctx;
    const struct job_state_record record = {
        .type = JOB_STATE_INPUT, .bytes = (const uint8_t *)bytes, .size = (uint32_t)size};

    state_file_put(input->config.state, &record);
    state_file_sync(input->config.state);
}

struct rank_input *rank_input_new(const struct rank_input_config *config, struct cw_err *err)
{
    struct rank_input *input = calloc(1, sizeof(*input));

    if (!input || input_open(&input->pump, config->keep, err) < 0) {
        if (!input)
            cw_err_set(err, CW_ENOMEM, "no memory for the standard input of rank 0");
        free(input);
        return NULL;
    }
    input->config = *config;
    input->pump.came = config->state ? on_came : NULL;
    input->pump.ctx = input;
    loop_timer_add(config->loop, &input->timer, on_timer, input);
    loop_watch(config->loop, &input->stdin_watch, STDIN_FILENO, EPOLLONESHOT, on_stdin, input);
    watch_pipe(input);
    loop_timer_set(&input->timer, 0);
    return input;
}

void rank_input_free(struct rank_input *input)
{
    if (!input)
        return;
    loop_timer_remove(input->config.loop, &input->timer);
    loop_unwatch(input->config.loop, &input->stdin_watch);
    input_close(&input->pump);
    free(input);
}

/* --- images of rank 0 --- */

void rank_input_pause(struct rank_input *input)
{
    input->pump.paused = true;
}

void rank_input_resume(struct rank_input *input)
{
    input->pump.paused = false;
    loop_timer_set(&input->timer, 0);
}

/* How much is in the pipe does not change between the image and now, but by what the rank reads. */
static bool stands(const struct input_pump *pump)
{
    return pump->paused || pump->to < 0;
}

bool rank_input_mark(struct rank_input *input, uint32_t number, uint64_t unread)
{
    const struct input_pump *pump = &input->pump;
    struct place place = {.number = number, .at = {input_given(pump)}};

    if (number == 0)
        return false;
    if (place.at[0] > 0 && unread == UINT64_MAX && !input_is_unread(pump))
        return false;
    if (place.at[0] > 0 && unread != UINT64_MAX) {
        if (!stands(pump) || unread > place.at[0])
            return false;
        place.at[0] -= unread;
    }
    places_add(&input->places, &place);
    return rank_input_has_place(input, number);
}

uint64_t rank_input_place(const struct rank_input *input, uint32_t number)
{
    const struct place *place = places_find(&input->places, number);

    return place ? place->at[0] : JOB_STATE_NO_INPUT;
}

void rank_input_replay(struct rank_input *input, const struct job_state_record *record)
{
    struct place place = {.number = record->number, .at = {record->place.input}};

    if (record->type == JOB_STATE_INPUT)
        input_replay(&input->pump, (const char *)record->bytes, record->size);
    else if (record->rank != 0)
        return;
    else if (record->type == JOB_STATE_PLACE && record->number > 0 &&
             place.at[0] <= input_given(&input->pump))
        places_add(&input->places, &place);
    else if (record->type == JOB_STATE_TRIMMED)
        rank_input_forget_before(input, record->number);
}

bool rank_input_has_place(const struct rank_input *input, uint32_t number)
{
    const struct place *place = places_find(&input->places, number);

    return place && input_keeps(&input->pump, place->at[0]);
}

void rank_input_forget_before(struct rank_input *input, uint32_t number)
{
    const struct place *place = places_find(&input->places, number);

    if (place)
        input_let_go(&input->pump, place->at[0]);
    places_forget_before(&input->places, number);
}

int rank_input_restart(struct rank_input *input, uint32_t number, struct cw_err *err)
{
    const struct place *place = places_find(&input->places, number);

    if (!rank_input_has_place(input, number))
        return cw_err_set(err, CW_ELIMIT,
                          "what rank 0 read on its standard input from image %u on is not kept",
                          number);
    if (input->pump.to >= 0)
        loop_unwatch(input->config.loop, &input->pipe_watch);
    input->pump.paused = false;
    if (input_restart(&input->pump, place->at[0], err) < 0)
        return err->code;
    watch_pipe(input);
    loop_timer_set(&input->timer, 0);
    return CW_OK;
}

int rank_input_end(const struct rank_input *input)
{
    return input->pump.rank_end;
}

void rank_input_taken(struct rank_input *input)
{
    close(input->pump.rank_end);
    input->pump.rank_end = -1;
}
