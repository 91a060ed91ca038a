#include "dispatcher/wire/mux.h"
#include "common/buf.h"
#include "common/kept.h"
#include "common/secret.h"

#include <assert.h>
#include <string.h>

#define SEGMENT_MAGIC 0x474d5843u /* "CXMG" */
#define BUCKETS 256u

/* A queue of bytes that grows. Keys pass here: of cw_secret_alloc. */
struct queue {
    uint8_t *bytes;
    size_t at;
    size_t end;
    size_t room;
};

struct mux {
    const struct mux_ops *ops;
    void *ctx;
    bool connected;
    bool ping;
    bool spent; /* a frame was lost for want of memory */
    /* to the other side */
    struct cw_kept kept;
    uint64_t most;      /* of its `sent`, over any connection */
    struct queue queue; /* frames that wait for room in `kept` */
    uint8_t out[MUX_SEGMENT_HEADER + MUX_SEGMENT_MAX];
    size_t out_size;
    size_t out_done;
    /* from it */
    uint64_t received;
    uint64_t told;  /* of `received`, over this connection */
    uint64_t again; /* bytes of `received` that come once more */
    uint8_t head[MUX_SEGMENT_HEADER];
    size_t head_used;
    uint32_t segment_left;
    uint8_t frame[MUX_FRAME_HEADER + MUX_FRAME_MAX];
    size_t frame_used;
    struct mux_stream *bucket[BUCKETS];
    uint32_t streams;
    uint32_t starved; /* streams that wait for room */
    uint8_t kept_bytes[MUX_KEPT_MAX];
};

struct mux *mux_new(const struct mux_ops *ops, void *ctx, struct cw_err *err)
{
    struct mux *mux = cw_secret_alloc(sizeof(*mux)); /* keys pass in frames */

    if (!mux) {
        cw_err_set(err, CW_ENOMEM, "no memory for a session with a node");
        return NULL;
    }
    mux->ops = ops;
    mux->ctx = ctx;
    cw_kept_init(&mux->kept, mux->kept_bytes, sizeof(mux->kept_bytes));
    return mux;
}

void mux_free(struct mux *mux)
{
    if (!mux)
        return;
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (struct mux_stream *s = mux->bucket[i]; s; s = s->next)
            s->mux = NULL;
    cw_secret_free(mux->queue.bytes, mux->queue.room);
    cw_secret_free(mux, sizeof(*mux));
}

/* --- the connection --- */

/* The other side may have received what was sent over a connection before the last one. */
int mux_connect(struct mux *mux, uint64_t received, struct cw_err *err)
{
    if (received > mux->kept.sent && received <= mux->most)
        cw_kept_sent(&mux->kept, (size_t)(received - mux->kept.sent));
    if (cw_kept_rewind(&mux->kept, received) < 0)
        return cw_err_set(err, CW_EPROTO,
                          "the other side says that it has received %llu bytes, "
                          "which cannot be",
                          (unsigned long long)received);
    mux->connected = true;
    mux->again = 0;
    mux->told = mux->received;
    mux->out_size = mux->out_done = mux->head_used = mux->segment_left = 0;
    return CW_OK;
}

int mux_expect(struct mux *mux, uint64_t from, struct cw_err *err)
{
    if (from > mux->received)
        return cw_err_set(err, CW_EPROTO, "%llu bytes of the session are missing",
                          (unsigned long long)(from - mux->received));
    mux->again = mux->received - from;
    return CW_OK;
}

void mux_disconnect(struct mux *mux)
{
    mux->connected = false;
}

uint64_t mux_received(const struct mux *mux)
{
    return mux->received - mux->again;
}

uint64_t mux_acknowledged(const struct mux *mux)
{
    return mux->kept.acked;
}

void mux_ping(struct mux *mux)
{
    mux->ping = true;
    mux->ops->output(mux->ctx);
}

bool mux_is_through(const struct mux *mux)
{
    return mux->queue.at == mux->queue.end && mux->kept.acked == mux->kept.end;
}

/* --- what goes out --- */

/* Returns false without memory, or beyond the bound. */
static bool queue_reserve(struct queue *q, size_t size)
{
    size_t room = q->room ? q->room : 4096;
    uint8_t *bytes;

    if (q->at > 0 && q->end + size > q->room) {
        memmove(q->bytes, q->bytes + q->at, q->end - q->at);
        q->end -= q->at;
        q->at = 0;
    }
    if (q->end + size > MUX_QUEUE_MAX)
        return false;
    while (room < q->end + size)
        room *= 2;
    if (room == q->room)
        return true;
    bytes = cw_secret_alloc(room);
    if (!bytes)
        return false;
    if (q->end > 0)
        memcpy(bytes, q->bytes, q->end);
    cw_secret_free(q->bytes, q->room);
    q->bytes = bytes;
    q->room = room;
    return true;
}

static void queue_put(struct queue *q, const void *bytes, size_t size)
{
    if (size)
        memcpy(q->bytes + q->end, bytes, size);
    q->end += size;
}

static void move_queue(struct mux *mux)
{
    struct queue *q = &mux->queue;

    if (q->at == q->end)
        return;
    q->at += cw_kept_put(&mux->kept, q->bytes + q->at, q->end - q->at);
    if (q->at == q->end) {
        cw_secret_free(q->bytes, q->room);
        *q = (struct queue){0};
    }
}

static int put_frame(struct mux *mux, uint32_t type, uint32_t stream, const void *body, size_t size,
                     struct cw_err *err)
{
    uint8_t head[MUX_FRAME_HEADER];
    struct cw_writer w = cw_writer(head, sizeof(head));

    if (size > MUX_FRAME_MAX)
        return cw_err_set(err, CW_ELIMIT, "a frame of %zu bytes for a node is too large", size);
    cw_put_u32(&w, (uint32_t)size);
    cw_put_u32(&w, type);
    cw_put_u32(&w, stream);
    mux->ops->output(mux->ctx);
    move_queue(mux);
    if (mux->queue.at == mux->queue.end && cw_kept_room(&mux->kept) >= sizeof(head) + size) {
        cw_kept_put(&mux->kept, head, sizeof(head));
        cw_kept_put(&mux->kept, body, size);
        return CW_OK;
    }
    if (!queue_reserve(&mux->queue, sizeof(head) + size)) {
        mux->spent = true;
        return cw_err_set(err, CW_ELIMIT, "more than %u MiB wait for a connection to a node",
                          MUX_QUEUE_MAX >> 20);
    }
    queue_put(&mux->queue, head, sizeof(head));
    queue_put(&mux->queue, body, size);
    return CW_OK;
}

int mux_send(struct mux *mux, uint32_t type, const void *body, size_t size, struct cw_err *err)
{
    assert(type >= MUX_FIRST_OTHER);
    return put_frame(mux, type, 0, body, size, err);
}

static void make_segment(struct mux *mux)
{
    struct cw_writer w = cw_writer(mux->out, sizeof(mux->out));
    struct iovec iov[2] = {{0}};
    size_t left = cw_kept_left(&mux->kept);
    size_t size = left < MUX_SEGMENT_MAX ? left : MUX_SEGMENT_MAX;
    size_t first;

    cw_kept_unsent(&mux->kept, iov);
    first = iov[0].iov_len < size ? iov[0].iov_len : size;
    cw_put_u32(&w, (uint32_t)size);
    cw_put_u32(&w, SEGMENT_MAGIC);
    cw_put_u64(&w, mux_received(mux));
    cw_put_bytes(&w, iov[0].iov_base, first);
    cw_put_bytes(&w, iov[1].iov_base, size - first);
    cw_kept_sent(&mux->kept, size);
    if (mux->kept.sent > mux->most)
        mux->most = mux->kept.sent;
    mux->out_size = w.used;
    mux->out_done = 0;
    mux->told = mux->received;
    mux->ping = false;
}

size_t mux_output(struct mux *mux, const uint8_t **bytes)
{
    if (!mux->connected)
        return 0;
    move_queue(mux);
    if (mux->out_done == mux->out_size) {
        if (cw_kept_left(&mux->kept) == 0 && !mux->ping &&
            mux->received - mux->told < MUX_ACK_BYTES)
            return 0;
        make_segment(mux);
    }
    *bytes = mux->out + mux->out_done;
    return mux->out_size - mux->out_done;
}

void mux_sent(struct mux *mux, size_t size)
{
    assert(size <= mux->out_size - mux->out_done);
    mux->out_done += size;
}

/* --- streams --- */

static struct mux_stream **bucket_of(struct mux *mux, uint32_t id)
{
    return &mux->bucket[(id ^ id >> 8) % BUCKETS];
}

static struct mux_stream *find(struct mux *mux, uint32_t id)
{
    struct mux_stream *s = *bucket_of(mux, id);

    while (s && s->id != id)
        s = s->next;
    return s;
}

void mux_stream_open(struct mux *mux, struct mux_stream *s, uint32_t id, bool sends, bool takes,
                     const struct mux_stream_ops *ops, void *ctx)
{
    struct mux_stream **bucket = bucket_of(mux, id);

    assert(!find(mux, id) && (sends || takes));
    *s = (struct mux_stream){.mux = mux,
                             .next = *bucket,
                             .ops = ops,
                             .ctx = ctx,
                             .id = id,
                             .credit = sends ? MUX_WINDOW : 0,
                             .window = takes ? MUX_WINDOW : 0,
                             .ended = !sends,
                             .end_came = !takes};
    *bucket = s;
    mux->streams++;
}

bool mux_stream_is_open(const struct mux_stream *s)
{
    return s->mux;
}

void mux_stream_forget(struct mux_stream *s)
{
    struct mux_stream **at;

    if (!s->mux)
        return;
    at = bucket_of(s->mux, s->id);
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->mux->streams--;
    s->mux->starved -= s->starved;
    s->mux = NULL;
}

static void close_stream(struct mux_stream *s)
{
    mux_stream_forget(s);
    s->ops->closed(s->ctx);
}

/* Where a frame is lost, mux_input says so. */
static void tell(struct mux_stream *s, uint32_t type, const void *body, size_t size)
{
    struct cw_err err;

    put_frame(s->mux, type, s->id, body, size, &err);
}

/* Streams have what room there is beside frames that wait. */
static size_t room_of(const struct mux_stream *s)
{
    const struct mux *mux = s->mux;
    size_t room = mux->queue.at == mux->queue.end ? cw_kept_room(&mux->kept) : 0;

    room = room > MUX_FRAME_HEADER ? room - MUX_FRAME_HEADER : 0;
    room = room < s->credit ? room : s->credit;
    return room < MUX_DATA_MAX ? room : MUX_DATA_MAX;
}

size_t mux_stream_room(struct mux_stream *s, size_t wanted)
{
    size_t room;

    if (!s->mux || s->ended)
        return 0;
    room = room_of(s);
    if (room < wanted && !s->starved) {
        s->starved = true;
        s->mux->starved++;
    }
    s->seen = (uint32_t)room;
    return room;
}

void mux_stream_send(struct mux_stream *s, const void *bytes, size_t size)
{
    assert(!s->ended && size > 0 && size <= room_of(s));
    s->credit -= (uint32_t)size;
    tell(s, MUX_DATA, bytes, size);
}

void mux_stream_end(struct mux_stream *s)
{
    if (!s->mux || s->ended)
        return;
    s->ended = true;
    tell(s, MUX_END, NULL, 0);
    if (s->end_came)
        close_stream(s);
}

void mux_stream_took(struct mux_stream *s, size_t size)
{
    uint8_t body[4];
    struct cw_writer w = cw_writer(body, sizeof(body));

    if (!s->mux || s->end_came)
        return;
    s->taken += (uint32_t)size;
    assert(s->window + s->taken <= MUX_WINDOW);
    if (s->taken < MUX_CREDIT_BYTES)
        return;
    cw_put_u32(&w, s->taken);
    s->window += s->taken;
    s->taken = 0;
    tell(s, MUX_CREDIT, body, sizeof(body));
}

void mux_stream_stop(struct mux_stream *s)
{
    if (s->mux && !s->end_came)
        tell(s, MUX_STOP, NULL, 0);
}

static struct mux_stream *next_starved(struct mux_stream *s)
{
    while (s && (!s->starved || room_of(s) <= s->seen))
        s = s->next;
    return s;
}

/* Streams may be closed meanwhile, others than the one that is told. There is less room after each
 * room(), so this comes to an end. */
static void feed_starved(struct mux *mux)
{
    struct mux_stream *s;

    for (uint32_t i = 0; mux->starved > 0 && i < BUCKETS; i++)
        while ((s = next_starved(mux->bucket[i]))) {
            s->starved = false;
            mux->starved--;
            s->seen = MUX_WINDOW;
            s->ops->room(s->ctx);
        }
}

/* --- what comes in --- */

static int take_data(struct mux_stream *s, const uint8_t *body, size_t size, struct cw_err *err)
{
    if (!s || s->end_came)
        return cw_err_set(err, CW_EPROTO, "bytes of a stream that is not open");
    if (size == 0 || size > s->window)
        return cw_err_set(err, CW_EPROTO, "%zu bytes of a stream whose window is %u bytes", size,
                          s->window);
    s->window -= (uint32_t)size;
    return s->ops->data(s->ctx, body, size, err);
}

static int take_end(struct mux_stream *s, size_t size, struct cw_err *err)
{
    bool over;

    if (!s || s->end_came || size != 0)
        return cw_err_set(err, CW_EPROTO, "the end of a stream that is not open");
    s->end_came = true;
    over = s->ended;
    s->ops->end(s->ctx);
    if (over)
        close_stream(s);
    return CW_OK;
}

/* What crosses the END of this side comes when the stream is closed. */
static int take_credit(struct mux_stream *s, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct cw_reader r = cw_reader(body, size);
    uint32_t more = cw_get_u32(&r);

    if (!cw_reader_end(&r) || (s && (more > MUX_WINDOW || s->credit + more > MUX_WINDOW)))
        return cw_err_set(err, CW_EPROTO, "credit of %u bytes", more);
    if (s && !s->ended)
        s->credit += more;
    return CW_OK;
}

static int take_frame(struct mux *mux, uint32_t type, uint32_t id, const uint8_t *body, size_t size,
                      struct cw_err *err)
{
    struct mux_stream *s = find(mux, id);

    switch (type) {
    case MUX_DATA:
        return take_data(s, body, size, err);
    case MUX_END:
        return take_end(s, size, err);
    case MUX_CREDIT:
        return take_credit(s, body, size, err);
    case MUX_STOP:
        if (s && !s->ended)
            s->ops->stop(s->ctx);
        return CW_OK;
    default:
        break;
    }
    if (type < MUX_FIRST_OTHER)
        return cw_err_set(err, CW_EPROTO, "a frame of the unknown type %u", type);
    return mux->ops->frame(mux->ctx, type, body, size, err);
}

/* How many bytes are missing of the frame whose beginning has come; UINT32_MAX: it is too large. */
static size_t frame_lacks(const struct mux *mux)
{
    struct cw_reader r = cw_reader(mux->frame, sizeof(mux->frame));
    uint32_t length = cw_get_u32(&r);

    if (mux->frame_used < MUX_FRAME_HEADER)
        return MUX_FRAME_HEADER - mux->frame_used;
    return length > MUX_FRAME_MAX ? UINT32_MAX : MUX_FRAME_HEADER + length - mux->frame_used;
}

static int take_whole_frame(struct mux *mux, struct cw_err *err)
{
    struct cw_reader r = cw_reader(mux->frame, MUX_FRAME_HEADER);
    size_t size = cw_get_u32(&r);
    uint32_t type = cw_get_u32(&r);
    uint32_t id = cw_get_u32(&r);

    mux->frame_used = 0;
    return take_frame(mux, type, id, mux->frame + MUX_FRAME_HEADER, size, err);
}

static int take_bytes(struct mux *mux, const uint8_t *bytes, size_t size, struct cw_err *err)
{
    for (;;) {
        size_t lacks = frame_lacks(mux);
        size_t part = lacks < size ? lacks : size;

        if (lacks == UINT32_MAX)
            return cw_err_set(err, CW_EPROTO, "a frame that is too large");
        if (lacks == 0) {
            if (take_whole_frame(mux, err) < 0)
                return err->code;
            continue;
        }
        if (size == 0)
            return CW_OK;
        memcpy(mux->frame + mux->frame_used, bytes, part);
        mux->frame_used += part;
        bytes += part;
        size -= part;
    }
}

static int take_head(struct mux *mux, struct cw_err *err)
{
    struct cw_reader r = cw_reader(mux->head, sizeof(mux->head));
    uint32_t size = cw_get_u32(&r);
    uint32_t magic = cw_get_u32(&r);

    mux->head_used = 0;
    if (magic != SEGMENT_MAGIC || size > MUX_SEGMENT_MAX)
        return cw_err_set(err, CW_EPROTO, "something else than a segment");
    if (cw_kept_acknowledge(&mux->kept, cw_get_u64(&r)) < 0)
        return cw_err_set(err, CW_EPROTO, "what was not sent is acknowledged");
    mux->segment_left = size;
    return CW_OK;
}

int mux_input(struct mux *mux, const uint8_t *bytes, size_t size, struct cw_err *err)
{
    while (size > 0) {
        size_t part = mux->segment_left ? mux->segment_left : sizeof(mux->head) - mux->head_used;

        part = part < size ? part : size;
        if (mux->segment_left) {
            size_t again = mux->again < part ? (size_t)mux->again : part;

            mux->segment_left -= (uint32_t)part;
            mux->again -= again;
            mux->received += part - again;
            if (take_bytes(mux, bytes + again, part - again, err) < 0)
                return err->code;
        } else {
            memcpy(mux->head + mux->head_used, bytes, part);
            mux->head_used += part;
            if (mux->head_used == sizeof(mux->head) && take_head(mux, err) < 0)
                return err->code;
        }
        bytes += part;
        size -= part;
    }
    move_queue(mux);
    feed_starved(mux);
    return mux->spent ? cw_err_set(err, CW_ELIMIT, "too much waits for a connection to a node")
                      : CW_OK;
}
