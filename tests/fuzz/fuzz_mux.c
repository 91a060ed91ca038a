/* What comes from the other side of a session with a node, in pieces: reading stays inside it,
 * and bodies of frames that are taken can be put again. The first byte says what the input is. */
#include "dispatcher/wire/greeting.h"
#include "dispatcher/wire/node_frames.h"
#include "tests/fuzz/fuzz.h"

#define STREAMS 3

/* --- bodies --- */

static void read_start(const uint8_t *body, size_t size)
{
    static uint8_t again[NODE_START_MAX];
    static struct node_start start;

    if (node_start_get(body, size, &start))
        must(node_start_put(again, &start) == size);
}

static void read_stage(const uint8_t *body, size_t size)
{
    uint8_t again[NODE_STAGE_MAX];
    char path[STAGE_PATH_MAX];
    struct node_stage order;

    if (!node_stage_get(body, size, &order))
        return;
    must(node_stage_put(again, &order) == size && memcmp(again, body, size) == 0);
    stage_program_path(&order.program, path);
    must(strlen(path) == strlen(order.program.dir) + strlen(order.program.name) + 1);
}

static void read_unit(const uint8_t *body, size_t size)
{
    static uint8_t again[NODE_UNIT_MAX];
    static struct node_unit order;

    if (node_unit_get(body, size, &order))
        must(node_unit_put(again, &order) == size && memcmp(again, body, size) == 0);
}

static void read_blob(const uint8_t *body, size_t size)
{
    struct node_program program;
    struct node_part part;
    struct cw_err err;

    if (node_part_get(body, size, &part))
        must(part.part <= part.size);
    if (node_program_get(body, size, &program, &err) < 0)
        return;
    for (size_t i = 0; program.of.argv[i]; i++)
        must(strlen(program.of.argv[i]) < size);
    for (uint32_t i = 0; i < program.of.env_count; i++)
        must(strlen(program.of.env[i]) < size);
    node_program_free(&program);
}

static int on_frame(void *ctx, uint32_t type, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct node_event event;

    (void)ctx;
    (void)err;
    must(type >= MUX_FIRST_OTHER);
    if (type == NODE_START)
        read_start(body, size);
    else if (type == NODE_BLOB)
        read_blob(body, size);
    else if (type == NODE_STAGE)
        read_stage(body, size);
    else if (type == NODE_UNIT_START)
        read_unit(body, size);
    else if (node_event_get(body, size, &event))
        must(strlen(event.text) < sizeof(event.text));
    return CW_OK;
}

static void on_output(void *ctx)
{
    (void)ctx;
}

static const struct mux_ops mux_ops = {on_frame, on_output};

/* --- streams --- */

struct flow {
    struct mux_stream stream;
    size_t came;
    bool ended;
};

static int on_data(void *ctx, const uint8_t *bytes, size_t size, struct cw_err *err)
{
    struct flow *f = ctx;

    (void)bytes;
    (void)err;
    must(!f->ended && size > 0);
    f->came += size;
    must(f->came <= MUX_WINDOW);
    if (f->came > MUX_WINDOW / 2) {
        mux_stream_took(&f->stream, f->came);
        f->came = 0;
    }
    return CW_OK;
}

static void on_end(void *ctx)
{
    struct flow *f = ctx;

    must(!f->ended);
    f->ended = true;
}

static void on_stop(void *ctx)
{
    mux_stream_end(&((struct flow *)ctx)->stream);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static const struct mux_stream_ops stream_ops = {on_data, on_end, on_stop, nothing, nothing};

static void send_some(struct flow *f, size_t wanted)
{
    static uint8_t bytes[MUX_DATA_MAX];
    size_t room = mux_stream_room(&f->stream, wanted);

    must(room <= MUX_WINDOW);
    if (room > 0)
        mux_stream_send(&f->stream, bytes, room < wanted ? room : wanted);
}

static void session(const uint8_t *data, size_t size)
{
    struct flow flow[STREAMS] = {0};
    struct cw_err err;
    struct mux *mux = mux_new(&mux_ops, NULL, &err);
    const uint8_t *out;
    size_t piece = 1;

    must(mux && mux_connect(mux, 0, &err) == CW_OK);
    for (uint32_t i = 0; i < STREAMS; i++)
        mux_stream_open(mux, &flow[i].stream, i, i != 1, i != 2, &stream_ops, &flow[i]);
    for (size_t at = 0; at < size; at += piece, piece = piece * 2 % 97 + 1) {
        size_t part = size - at < piece ? size - at : piece;

        send_some(&flow[0], piece);
        if (mux_input(mux, data + at, part, &err) < 0)
            break;
        mux_sent(mux, mux_output(mux, &out));
    }
    mux_free(mux);
}

static void greetings(const uint8_t *data, size_t size, bool magic)
{
    struct greeting g;
    struct greeting_open open;
    struct greeting_attach attach;
    struct greeting_hello hello;
    enum greeting_type type;
    char why[GREETING_TEXT_MAX + 1];
    struct greeting_attached attached;
    size_t body;
    struct cw_err err;

    greeting_init(&g, magic);
    while (size > 0) {
        long used = greeting_take(&g, data, size, &type, &body, &err);

        if (used < 0 || type == GREETING_NONE)
            return;
        must(used > 0 && (size_t)used <= size && body <= GREETING_FRAME_MAX);
        greeting_get_open(g.bytes + GREETING_HEADER, body, &open);
        greeting_get_attach(g.bytes + GREETING_HEADER, body, &attach);
        greeting_get_hello(g.bytes + GREETING_HEADER, body, &hello);
        greeting_get_attached(g.bytes + GREETING_HEADER, body, &attached);
        greeting_get_refused(g.bytes + GREETING_HEADER, body, why);
        data += used;
        size -= (size_t)used;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cw_err err;

    if (size < 2)
        return 0;
    if (data[0] == 0)
        session(data + 1, size - 1);
    else if (data[0] == 1)
        greetings(data + 1, size - 1, data[1] & 1);
    else
        on_frame(NULL, MUX_FIRST_OTHER + data[0] % 24, data + 1, size - 1, &err);
    return 0;
}
