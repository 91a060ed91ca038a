#include "dispatcher/wire/channel.h"

#include <stdlib.h>
#include <string.h>

struct channel {
    struct channels *of;
    TAILQ_ENTRY(channel) link;
    struct channel_list *listed; /* where `link` is; NULL: nowhere */
    bool records;
    bool left;   /* by who opened it */
    bool closed; /* by its reader */
    bool ended;  /* no more will come */
    loop_handler *ready;
    void *ctx;
    void (*pass)(void *ctx, uint8_t *record, size_t size); /* may be NULL */
    void *pass_ctx;
    struct mux_stream stream;
    uint8_t *bytes; /* that came; a record has its size before it; owned */
    size_t at;
    size_t end;
    size_t room;
    struct gate *gate; /* borrowed; NULL: nothing waits there */
    struct gate_line line;
    uint64_t came; /* bytes, until now; the end of the stream is one more */
};

/* --- what waits at its gate --- */

void channel_hold(struct channel *c, struct gate *gate)
{
    c->gate = gate;
}

static void note_came(struct channel *c, size_t size)
{
    c->came += size;
    if (c->gate)
        gate_line_enter(&c->line, c->gate, c->came);
}

static uint64_t waiting(const struct channel *c)
{
    return c->gate ? c->came - gate_line_passed(&c->line, c->gate) : 0;
}

/* Bytes that may be read. */
static size_t readable(const struct channel *c)
{
    uint64_t waits = waiting(c);

    if (waits && c->ended)
        waits--;
    return c->end - c->at - (size_t)waits;
}

static bool is_at_end(const struct channel *c)
{
    return c->ended && c->at == c->end && !waiting(c);
}

/* What waits was never said. */
static void drop_waiting(struct channel *c)
{
    c->end = c->at + readable(c);
    c->gate = NULL;
}

/* --- readers are told --- */

static bool has_news(const struct channel *c)
{
    return c->ready && (readable(c) || is_at_end(c));
}

static void list(struct channel *c)
{
    if (!c->of || c->listed || !has_news(c))
        return;
    c->listed = &c->of->waiting;
    TAILQ_INSERT_TAIL(c->listed, c, link);
    loop_timer_set(&c->of->timer, 0);
}

static void unlist(struct channel *c)
{
    if (c->listed)
        TAILQ_REMOVE(c->listed, c, link);
    c->listed = NULL;
}

/* A reader may close any of them. */
static void tell_readers(void *ctx)
{
    struct channels *of = ctx;
    struct channel *c;

    TAILQ_FOREACH (c, &of->waiting, link)
        c->listed = &of->turn;
    TAILQ_CONCAT(&of->turn, &of->waiting, link);
    while ((c = TAILQ_FIRST(&of->turn))) {
        unlist(c);
        list(c);
        if (has_news(c))
            c->ready(c->ctx);
    }
}

void channels_init(struct channels *of, struct loop *loop)
{
    of->loop = loop;
    TAILQ_INIT(&of->waiting);
    TAILQ_INIT(&of->turn);
    loop_timer_add(loop, &of->timer, tell_readers, of);
}

void channels_end(struct channels *of)
{
    if (of->loop)
        loop_timer_remove(&of->timer);
}

/* --- its memory --- */

bool channel_is_over(const struct channel *c)
{
    return !mux_stream_is_open(&c->stream) && !waiting(c);
}

static void free_unused(struct channel *c)
{
    if (!c->left || !c->closed || !channel_is_over(c))
        return;
    unlist(c);
    free(c->bytes);
    free(c);
}

struct channel *channel_new(struct channels *of, bool records)
{
    struct channel *c = calloc(1, sizeof(*c));

    if (c) {
        c->of = of;
        c->records = records;
    }
    return c;
}

void channel_leave(struct channel *c)
{
    if (!c)
        return;
    c->left = true;
    free_unused(c);
}

void channel_close(struct channel *c)
{
    if (!c)
        return;
    unlist(c);
    c->ready = NULL;
    c->gate = NULL;
    c->at = c->end = 0;
    mux_stream_stop(&c->stream);
    mux_stream_end(&c->stream);
    c->closed = true;
    free_unused(c);
}

/* --- what comes --- */

static bool reserve(struct channel *c, size_t size)
{
    size_t room = c->room ? c->room : 4096;
    uint8_t *bytes;

    if (c->at > 0) {
        memmove(c->bytes, c->bytes + c->at, c->end - c->at);
        c->end -= c->at;
        c->at = 0;
    }
    while (room < c->end + size)
        room *= 2;
    if (room == c->room)
        return true;
    bytes = realloc(c->bytes, room);
    if (!bytes)
        return false;
    c->bytes = bytes;
    c->room = room;
    return true;
}

static void append(struct channel *c, const void *bytes, size_t size)
{
    memcpy(c->bytes + c->end, bytes, size);
    c->end += size;
}

int channel_put(struct channel *c, const void *bytes, size_t size, struct cw_err *err)
{
    uint32_t head = (uint32_t)size;

    if (c->closed)
        return CW_OK;
    if (!reserve(c, sizeof(head) + size))
        return cw_err_set(err, CW_ENOMEM, "no memory for what passes a node");
    if (c->records)
        append(c, &head, sizeof(head));
    append(c, bytes, size);
    note_came(c, size + (c->records ? sizeof(head) : 0));
    list(c);
    return CW_OK;
}

void channel_end(struct channel *c)
{
    if (!c->ended)
        note_came(c, 1);
    c->ended = true;
    list(c);
}

void channel_look(struct channel *c)
{
    list(c);
}

static int on_data(void *ctx, const uint8_t *bytes, size_t size, struct cw_err *err)
{
    struct channel *c = ctx;
    bool kept = !c->closed;

    if (channel_put(c, bytes, size, err) < 0)
        return err->code;
    if (c->pass && kept)
        c->pass(c->pass_ctx, c->bytes + c->end - size, size);
    return CW_OK;
}

/* Where its end has come, nobody takes anything there either. */
static void on_end(void *ctx)
{
    struct channel *c = ctx;

    channel_end(c);
    mux_stream_end(&c->stream);
}

static void on_stop(void *ctx)
{
    mux_stream_end(&((struct channel *)ctx)->stream);
}

static void on_room(void *ctx)
{
    (void)ctx;
}

static void on_closed(void *ctx)
{
    free_unused(ctx);
}

static const struct mux_stream_ops stream_ops = {on_data, on_end, on_stop, on_room, on_closed};

void channel_open(struct channel *c, struct mux *mux, uint32_t id, bool sends)
{
    mux_stream_open(mux, &c->stream, id, sends, true, &stream_ops, c);
}

void channel_on_record(struct channel *c, void (*pass)(void *ctx, uint8_t *record, size_t size),
                       void *ctx)
{
    c->pass = pass;
    c->pass_ctx = ctx;
}

void channel_drop(struct channel *c)
{
    mux_stream_forget(&c->stream);
    drop_waiting(c);
    channel_end(c);
    free_unused(c);
}

/* --- reading and writing --- */

ssize_t channel_read(struct channel *c, void *bytes, size_t size)
{
    size_t left = readable(c);
    uint32_t record = 0;

    if (left == 0)
        return is_at_end(c) ? 0 : -1;
    if (c->records) {
        memcpy(&record, c->bytes + c->at, sizeof(record));
        c->at += sizeof(record);
        left = record;
    }
    size = left < size ? left : size;
    memcpy(bytes, c->bytes + c->at, size);
    c->at += c->records ? record : size;
    mux_stream_took(&c->stream, c->records ? record : size);
    return (ssize_t)size;
}

bool channel_has_ended(const struct channel *c)
{
    return c->ended;
}

bool channel_write(struct channel *c, const void *bytes, size_t size)
{
    if (mux_stream_room(&c->stream, size) < size)
        return false;
    mux_stream_send(&c->stream, bytes, size);
    return true;
}

void channel_watch(struct channel *c, loop_handler *ready, void *ctx)
{
    c->ready = ready;
    c->ctx = ctx;
    if (ready)
        list(c);
    else
        unlist(c);
}
