#include "tests/lib/said.h"

#include <CUnit/CUnit.h>
#include <limits.h>
#include <string.h>

#define STREAM 7

static int on_frame(void *ctx, uint32_t type, const uint8_t *body, size_t size, struct cw_err *err)
{
    (void)ctx;
    (void)body;
    (void)size;
    return cw_err_set(err, CW_EPROTO, "a frame of type %u", type);
}

static void on_event(void *ctx)
{
    (void)ctx;
}

static const struct mux_ops mux_ops = {on_frame, on_event};

static int on_data(void *ctx, const uint8_t *bytes, size_t size, struct cw_err *err)
{
    struct said *s = ctx;

    (void)err;
    CU_ASSERT_FATAL(s->got_size + size < SAID_GOT_MAX);
    memcpy(s->got + s->got_size, bytes, size);
    s->got_size += size;
    mux_stream_took(&s->stream, size);
    return CW_OK;
}

static void on_stop(void *ctx)
{
    mux_stream_end(&((struct said *)ctx)->stream);
}

static const struct mux_stream_ops stream_ops = {on_data, on_event, on_stop, on_event, on_event};

static void pump(struct said *s)
{
    const uint8_t *bytes;
    struct cw_err err;
    size_t size;

    for (int quiet = 0, from = 0; quiet < 2; from = !from, quiet++) {
        while ((size = mux_output(s->mux[from], &bytes)) > 0) {
            CU_ASSERT_EQUAL(mux_input(s->mux[!from], bytes, size, &err), CW_OK);
            mux_sent(s->mux[from], size);
            quiet = 0;
        }
    }
}

void said_open(struct said *s, struct channels *channels, bool records)
{
    struct cw_err err;

    *s = (struct said){.channel = channel_new(channels, records)};
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->channel);
    for (int i = 0; i < 2; i++) {
        s->mux[i] = mux_new(&mux_ops, s, &err);
        CU_ASSERT_PTR_NOT_NULL_FATAL(s->mux[i]);
        CU_ASSERT_EQUAL_FATAL(mux_connect(s->mux[i], 0, &err), CW_OK);
    }
    channel_open(s->channel, s->mux[0], STREAM, true);
    mux_stream_open(s->mux[1], &s->stream, STREAM, true, true, &stream_ops, s);
}

size_t said_put(struct said *s, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    size_t done = 0, room;

    pump(s);
    if (size <= PIPE_BUF && mux_stream_room(&s->stream, size) < size)
        return 0;
    while (done < size && (room = mux_stream_room(&s->stream, size - done)) > 0) {
        room = room < size - done ? room : size - done;
        mux_stream_send(&s->stream, at + done, room);
        done += room;
        pump(s);
    }
    return done;
}

void said_end(struct said *s)
{
    pump(s);
    mux_stream_end(&s->stream);
    pump(s);
}

const char *said_answers(struct said *s)
{
    pump(s);
    s->got[s->got_size] = '\0';
    s->got_size = 0;
    return s->got;
}

void said_close(struct said *s)
{
    if (!s->mux[0])
        return;
    pump(s);
    channel_drop(s->channel);
    channel_leave(s->channel);
    mux_free(s->mux[0]);
    mux_free(s->mux[1]);
    *s = (struct said){0};
}
