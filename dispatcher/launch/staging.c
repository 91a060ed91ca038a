#include "dispatcher/launch/staging.h"
#include "dispatcher/wire/node_states.h"

#include <stdlib.h>
#include <unistd.h>

/* A program on its way to a host. */
struct transfer {
    struct staging *of;
    uint32_t host;
    uint32_t number;
    struct mux_stream stream;
    uint64_t at; /* bytes that were sent */
    bool sent;
    bool over; /* nothing of it is waited for */
    enum node_state state;
};

struct staging {
    struct nodes *nodes;
    const struct staging_source *sources;
    uint32_t count;
    const struct staging_events *events;
    void *ctx;
    struct transfer *transfer; /* `count` for each host; owned */
    bool done;
    uint32_t left;
    bool failed;
};

static const struct staging_source *source_of(const struct transfer *t)
{
    return &t->of->sources[t->number];
}

static bool has_all(const struct staging *s, uint32_t host)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (!s->transfer[host * s->count + i].over)
            return false;
    return true;
}

static void end(struct transfer *t)
{
    struct staging *s = t->of;

    if (t->over)
        return;
    t->over = true;
    if (s->done)
        return;
    s->done = --s->left == 0 && !s->failed;
    if (s->done)
        s->events->done(s->ctx);
}

/* A host that has come back is not used then. */
static void fail(struct transfer *t, struct cw_err *err)
{
    struct staging *s = t->of;

    if (t->over || s->failed)
        return;
    s->failed = !s->done;
    cw_err_wrap(err, "host %s", nodes_name(s->nodes, t->host));
    s->events->failed(s->ctx, err);
}

/* --- its bytes --- */

/* Of a file that has become shorter the node sees that it is not what was announced. */
static void on_room(void *ctx)
{
    static uint8_t bytes[MUX_DATA_MAX];
    struct transfer *t = ctx;
    size_t room;

    while ((room = mux_stream_room(&t->stream, sizeof(bytes))) > 0) {
        uint64_t left = source_of(t)->program.size - t->at;
        ssize_t n = pread(source_of(t)->fd, bytes, left < room ? left : room, (off_t)t->at);

        if (n <= 0) {
            mux_stream_end(&t->stream);
            return;
        }
        t->at += (uint64_t)n;
        mux_stream_send(&t->stream, bytes, (size_t)n);
    }
}

/* The node has said why. */
static void on_stop(void *ctx)
{
    mux_stream_end(&((struct transfer *)ctx)->stream);
}

static void on_closed(void *ctx)
{
    (void)ctx;
}

static const struct mux_stream_ops stream_ops = {
    .stop = on_stop, .room = on_room, .closed = on_closed};

static int send_it(struct transfer *t, struct cw_err *err)
{
    if (mux_stream_is_open(&t->stream))
        return cw_err_set(err, CW_EPROTO, "a program is wanted that is on its way");
    t->sent = true;
    t->at = 0;
    mux_stream_open(nodes_mux(t->of->nodes, t->host), &t->stream, node_stage_stream(t->number),
                    true, false, &stream_ops, t);
    on_room(t);
    return CW_OK;
}

/* --- what nodes say --- */

static int on_frame(void *ctx, uint32_t host, uint32_t type, const uint8_t *body, size_t size,
                    struct cw_err *err)
{
    struct staging *s = ctx;
    struct node_event event;
    struct transfer *t;
    struct cw_err why;
    bool again = s->done; /* all hosts had them before */

    if (!node_event_get(body, size, &event) || event.of >= s->count || host >= nodes_here(s->nodes))
        return cw_err_set(err, CW_EPROTO, "an event of a program that makes no sense");
    t = &s->transfer[host * s->count + event.of];
    if (node_state_take(&t->state, type, err) < 0)
        return err->code;
    if (type == NODE_STAGE_WANTED)
        return send_it(t, err);
    if (type == NODE_STAGE_FAILED) {
        cw_err_set(&why, (int)event.value, "%s", event.text);
        fail(t, &why);
    } else if (!t->over) {
        s->events->staged(s->ctx, host, event.of, t->sent);
        end(t);
        if (again && has_all(s, host))
            s->events->returned(s->ctx, host);
    }
    return CW_OK;
}

/* What it needs is told by whoever hears of its loss. To the node of this machine nothing is sent.
 */
static void on_lost(void *ctx, uint32_t host)
{
    struct staging *s = ctx;

    for (uint32_t i = 0; host < nodes_here(s->nodes) && i < s->count; i++) {
        struct transfer *t = &s->transfer[host * s->count + i];

        mux_stream_forget(&t->stream);
        t->state = NODE_IS_NOT;
        end(t);
    }
}

static const struct nodes_user nodes_user = {
    .first = NODE_STAGE, .last = NODE_STAGE_FAILED, .frame = on_frame, .lost = on_lost};

/* --- all of it --- */

struct staging *staging_new(struct nodes *nodes, const struct staging_source *sources,
                            uint32_t count, const struct staging_events *events, void *ctx,
                            struct cw_err *err)
{
    uint32_t all = nodes_here(nodes) * count;
    struct staging *s = calloc(1, sizeof(*s));

    if (s)
        s->transfer = calloc(all, sizeof(*s->transfer));
    if (!s || !s->transfer) {
        free(s);
        cw_err_set(err, CW_ENOMEM, "no memory for programs that are sent to hosts");
        return NULL;
    }
    s->nodes = nodes;
    s->sources = sources;
    s->count = count;
    s->events = events;
    s->ctx = ctx;
    s->left = all;
    for (uint32_t i = 0; i < all; i++)
        s->transfer[i] = (struct transfer){.of = s, .host = i / count, .number = i % count};
    nodes_add_user(nodes, &nodes_user, s);
    return s;
}

void staging_free(struct staging *s)
{
    if (!s)
        return;
    free(s->transfer);
    free(s);
}

static void tell(struct transfer *t)
{
    struct node_stage order = {.number = t->number, .program = source_of(t)->program};
    uint8_t body[NODE_STAGE_MAX];
    struct cw_err err;

    err.code = CW_OK;
    if (!nodes_mux(t->of->nodes, t->host))
        return;
    if (nodes_tell(t->of->nodes, t->host, NODE_STAGE, body, node_stage_put(body, &order), &err) < 0)
        fail(t, &err);
    else
        t->state = NODE_IS_ORDERED;
}

void staging_host_back(struct staging *s, uint32_t host)
{
    for (uint32_t i = 0; i < s->count; i++) {
        struct transfer *t = &s->transfer[host * s->count + i];

        t->over = t->sent = false;
        tell(t);
    }
}

void staging_begin(struct staging *s)
{
    uint32_t all = nodes_here(s->nodes) * s->count;

    for (uint32_t i = 0; i < all; i++)
        tell(&s->transfer[i]);
}
