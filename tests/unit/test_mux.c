/* Sessions with nodes, without a connection: two sides, and what is on its way between them. */
#include "common/secret.h"
#include "dispatcher/wire/greeting.h"
#include "dispatcher/wire/node_frames.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("mux");

#define STREAMS 3
#define OTHER_FRAMES 50

static struct cw_err err;

struct side;

/* One stream at one side: bytes are taken when the test says so. */
struct flow {
    struct side *of;
    struct mux_stream stream;
    uint64_t sent;
    uint64_t came;
    uint64_t took;
    bool end_came, stopped, closed;
    int rooms;
};

struct side {
    struct mux *mux;
    struct flow flow[STREAMS];
    uint32_t frames;
    uint32_t last_frame;
};

static struct side sides[2];
static unsigned seed;

static unsigned draw(unsigned below)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 12) % below;
}

/* The byte at a position of a stream, of each direction another one. */
static uint8_t pattern(const struct flow *f, bool sender, uint64_t at)
{
    bool first = (f->of == &sides[0]) == sender;

    return (uint8_t)(at * 7 + (at >> 8) + f->stream.id * 31 + first);
}

static int on_frame(void *ctx, uint32_t type, const uint8_t *body, size_t size, struct cw_err *e)
{
    struct side *s = ctx;
    struct cw_reader r = cw_reader(body, size);

    (void)e;
    CU_ASSERT_EQUAL(type, MUX_FIRST_OTHER + 1);
    s->last_frame = cw_get_u32(&r);
    CU_ASSERT_EQUAL(s->last_frame, s->frames);
    s->frames++;
    return CW_OK;
}

static void on_output(void *ctx)
{
    (void)ctx;
}

static const struct mux_ops mux_ops = {on_frame, on_output};

static int on_data(void *ctx, const uint8_t *bytes, size_t size, struct cw_err *e)
{
    struct flow *f = ctx;
    bool good = true;

    (void)e;
    for (size_t i = 0; i < size; i++)
        good &= bytes[i] == pattern(f, false, f->came + i);
    CU_ASSERT_TRUE(good);
    f->came += size;
    return CW_OK;
}

static void on_end(void *ctx)
{
    ((struct flow *)ctx)->end_came = true;
}

static void on_stop(void *ctx)
{
    ((struct flow *)ctx)->stopped = true;
}

static void on_room(void *ctx)
{
    ((struct flow *)ctx)->rooms++;
}

static void on_closed(void *ctx)
{
    ((struct flow *)ctx)->closed = true;
}

static const struct mux_stream_ops stream_ops = {on_data, on_end, on_stop, on_room, on_closed};

static void open_both(void)
{
    memset(sides, 0, sizeof(sides));
    for (int i = 0; i < 2; i++) {
        sides[i].mux = mux_new(&mux_ops, &sides[i], &err);
        CU_ASSERT_PTR_NOT_NULL_FATAL(sides[i].mux);
        CU_ASSERT_EQUAL(mux_connect(sides[i].mux, 0, &err), CW_OK);
        for (int j = 0; j < STREAMS; j++) {
            sides[i].flow[j].of = &sides[i];
            mux_stream_open(sides[i].mux, &sides[i].flow[j].stream, (uint32_t)j * 256, true, true,
                            &stream_ops, &sides[i].flow[j]);
        }
    }
}

static void close_both(void)
{
    mux_free(sides[0].mux);
    mux_free(sides[1].mux);
}

/* Moves up to `max` bytes from one side to the other. Returns how many. */
static size_t carry(int from, size_t max)
{
    const uint8_t *bytes;
    size_t size = mux_output(sides[from].mux, &bytes);

    size = size < max ? size : max;
    if (size == 0)
        return 0;
    CU_ASSERT_EQUAL_FATAL(mux_input(sides[!from].mux, bytes, size, &err), CW_OK);
    mux_sent(sides[from].mux, size);
    return size;
}

static void carry_all(void)
{
    while (carry(0, SIZE_MAX) + carry(1, SIZE_MAX) > 0)
        ;
}

/* Bytes that were sent and have not come are gone. */
static void cut(void)
{
    for (int i = 0; i < 2; i++) {
        const uint8_t *bytes;
        size_t size = mux_output(sides[i].mux, &bytes);

        if (size > 0)
            mux_sent(sides[i].mux, draw((unsigned)size + 1));
        mux_disconnect(sides[i].mux);
        CU_ASSERT_EQUAL(mux_output(sides[i].mux, &bytes), 0);
    }
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(mux_connect(sides[i].mux, mux_received(sides[!i].mux), &err), CW_OK);
}

/* What is on its way over a connection that one side has left already. */
static struct {
    uint8_t bytes[1 << 20];
    size_t size;
} late;

static void leave_behind(void)
{
    const uint8_t *bytes;

    late.size = mux_output(sides[1].mux, &bytes);
    memcpy(late.bytes, bytes, late.size);
    mux_sent(sides[1].mux, late.size);
}

/* The second side takes another connection, for which the first one has asked by `asked`. */
static uint64_t take_another(uint64_t asked)
{
    uint64_t from = mux_acknowledged(sides[1].mux) > asked ? mux_acknowledged(sides[1].mux) : asked;

    mux_disconnect(sides[1].mux);
    CU_ASSERT_EQUAL_FATAL(mux_connect(sides[1].mux, from, &err), CW_OK);
    return from;
}

/* Another connection is made while the one before, which is slow, still carries bytes: the first
 * side asks for it, hears more meanwhile, and acknowledges that. Or it gives that connection up,
 * and asks for another one. */
static void overtake(void)
{
    uint64_t asked = mux_received(sides[0].mux), from, received;

    for (unsigned i = draw(8); i > 0; i--)
        carry((int)draw(2), 1 + draw(100000));
    leave_behind();
    from = take_another(asked);
    CU_ASSERT_EQUAL_FATAL(mux_input(sides[0].mux, late.bytes, late.size, &err), CW_OK);
    if (draw(2)) {
        leave_behind(); /* and never comes */
        from = take_another(mux_received(sides[0].mux));
    }
    received = mux_received(sides[1].mux);
    mux_disconnect(sides[0].mux);
    CU_ASSERT_EQUAL_FATAL(mux_connect(sides[0].mux, received, &err), CW_OK);
    CU_ASSERT_EQUAL_FATAL(mux_expect(sides[0].mux, from, &err), CW_OK);
}

static size_t send_some(struct flow *f, size_t most)
{
    static uint8_t bytes[MUX_DATA_MAX];
    size_t room = mux_stream_room(&f->stream, most);
    size_t size = most < room ? most : room;

    if (size == 0)
        return 0;
    for (size_t i = 0; i < size; i++)
        bytes[i] = pattern(f, true, f->sent + i);
    mux_stream_send(&f->stream, bytes, size);
    f->sent += size;
    return size;
}

static void take_some(struct flow *f, size_t most)
{
    size_t size = f->came - f->took < most ? (size_t)(f->came - f->took) : most;

    if (size > 0)
        mux_stream_took(&f->stream, size);
    f->took += size;
}

TEST(what_is_sent_comes)
{
    open_both();
    CU_ASSERT_EQUAL(send_some(&sides[0].flow[1], 1000), 1000);
    CU_ASSERT_EQUAL(send_some(&sides[1].flow[1], 1), 1);
    carry_all();
    CU_ASSERT_EQUAL(sides[1].flow[1].came, 1000);
    CU_ASSERT_EQUAL(sides[0].flow[1].came, 1);
    CU_ASSERT_EQUAL(sides[0].flow[0].came, 0);
    mux_ping(sides[0].mux);
    mux_ping(sides[1].mux);
    carry_all();
    CU_ASSERT_TRUE(mux_is_through(sides[0].mux));
    close_both();
}

TEST(connections_overtake_each_other)
{
    for (int run = 0; run < 200; run++) {
        open_both();
        for (int i = 0; i < 20; i++) {
            for (int j = 0; j < STREAMS; j++) {
                send_some(&sides[draw(2)].flow[j], 1 + draw(40000));
                take_some(&sides[draw(2)].flow[j], draw(100000));
            }
            carry((int)draw(2), 1 + draw(60000));
            if (draw(3) == 0)
                overtake();
        }
        carry_all();
        for (int j = 0; j < STREAMS; j++)
            for (int i = 0; i < 2; i++)
                CU_ASSERT_EQUAL(sides[!i].flow[j].came, sides[i].flow[j].sent);
        CU_ASSERT_EQUAL(mux_expect(sides[0].mux, mux_received(sides[0].mux) + 1, &err), CW_EPROTO);
        close_both();
    }
}

TEST(stream_that_nobody_takes)
{
    struct flow *slow = &sides[0].flow[0], *other = &sides[0].flow[2];
    uint64_t sent = 0;
    size_t n;

    open_both();
    while ((n = send_some(slow, 10000)) > 0) {
        sent += n;
        carry_all();
    }
    CU_ASSERT_EQUAL(sent, MUX_WINDOW);
    CU_ASSERT_EQUAL(sides[1].flow[0].came, MUX_WINDOW);
    for (int i = 0; i < 100; i++) {
        CU_ASSERT_EQUAL(send_some(other, 10000), 10000);
        carry_all();
        take_some(&sides[1].flow[2], SIZE_MAX);
    }
    CU_ASSERT_EQUAL(slow->rooms, 0);
    take_some(&sides[1].flow[0], SIZE_MAX);
    carry_all();
    CU_ASSERT_EQUAL(slow->rooms, 1);
    CU_ASSERT_TRUE(send_some(slow, 10000) > 0);
    close_both();
}

TEST(without_a_connection_it_waits)
{
    uint64_t sent = 0;
    size_t n;

    open_both();
    mux_disconnect(sides[0].mux);
    mux_disconnect(sides[1].mux);
    for (int i = 0; i < STREAMS; i++)
        while ((n = send_some(&sides[0].flow[i], 5000)) > 0)
            sent += n;
    CU_ASSERT_TRUE(sent <= MUX_KEPT_MAX);
    for (int i = 0; i < 2; i++)
        mux_connect(sides[i].mux, mux_received(sides[!i].mux), &err);
    carry_all();
    for (int i = 0; i < STREAMS; i++)
        CU_ASSERT_EQUAL(sides[1].flow[i].came, sides[0].flow[i].sent);
    close_both();
}

/* More than is kept without an acknowledgement. */
TEST(frames_wait_for_room)
{
    uint8_t body[4000] = {0};

    open_both();
    mux_disconnect(sides[0].mux);
    for (uint32_t i = 0; i < 1000; i++) {
        struct cw_writer w = cw_writer(body, sizeof(body));

        cw_put_u32(&w, i);
        CU_ASSERT_EQUAL(mux_send(sides[0].mux, MUX_FIRST_OTHER + 1, body, sizeof(body), &err),
                        CW_OK);
    }
    CU_ASSERT_EQUAL(send_some(&sides[0].flow[0], 100), 0);
    mux_connect(sides[0].mux, 0, &err);
    carry_all();
    CU_ASSERT_EQUAL(sides[1].frames, 1000);
    CU_ASSERT_EQUAL(sides[0].flow[0].rooms, 1);
    close_both();
}

TEST(both_directions_end)
{
    struct flow *a = &sides[0].flow[0], *b = &sides[1].flow[0];

    open_both();
    send_some(a, 10);
    mux_stream_end(&a->stream);
    carry_all();
    CU_ASSERT_TRUE(b->end_came);
    CU_ASSERT_EQUAL(b->came, 10);
    CU_ASSERT_FALSE(a->closed || b->closed);
    CU_ASSERT_EQUAL(send_some(b, 20), 20);
    mux_stream_end(&b->stream);
    CU_ASSERT_TRUE(b->closed);
    carry_all();
    CU_ASSERT_EQUAL(a->came, 20);
    CU_ASSERT_TRUE(a->closed);
    mux_stream_took(&a->stream, 20);
    mux_stream_stop(&a->stream);
    close_both();
}

TEST(who_stops_gets_an_end)
{
    struct flow *a = &sides[0].flow[0], *b = &sides[1].flow[0];

    open_both();
    mux_stream_stop(&b->stream);
    carry_all();
    CU_ASSERT_TRUE(a->stopped);
    mux_stream_end(&a->stream);
    mux_stream_end(&b->stream);
    carry_all();
    CU_ASSERT_TRUE(a->closed && b->closed);
    close_both();
}

TEST(cuts_lose_and_repeat_nothing)
{
    uint32_t frames = 0;

    open_both();
    seed = 1;
    for (int i = 0; i < 20000; i++) {
        struct flow *f = &sides[draw(2)].flow[draw(STREAMS)];
        uint8_t body[4];
        struct cw_writer w = cw_writer(body, sizeof(body));

        switch (draw(8)) {
        case 0:
        case 1:
            send_some(f, 1 + draw(20000));
            break;
        case 2:
        case 3:
            take_some(f, 1 + draw(30000));
            break;
        case 4:
            carry((int)draw(2), 1 + draw(100000));
            break;
        case 5:
            carry((int)draw(2), 1 + draw(30));
            break;
        case 6:
            cw_put_u32(&w, frames++);
            mux_send(sides[0].mux, MUX_FIRST_OTHER + 1, body, sizeof(body), &err);
            break;
        default:
            if (draw(10) == 0)
                cut();
        }
    }
    carry_all();
    CU_ASSERT_EQUAL(sides[1].frames, frames);
    for (int i = 0; i < STREAMS; i++) {
        CU_ASSERT_TRUE(sides[0].flow[i].sent > MUX_WINDOW);
        CU_ASSERT_EQUAL(sides[0].flow[i].sent, sides[1].flow[i].came);
        CU_ASSERT_EQUAL(sides[1].flow[i].sent, sides[0].flow[i].came);
    }
    close_both();
}

/* --- what is refused --- */

static void refuse(const uint8_t *frame, size_t size)
{
    uint8_t bytes[MUX_SEGMENT_HEADER + 64];
    struct cw_writer w = cw_writer(bytes, sizeof(bytes));

    open_both();
    cw_put_u32(&w, (uint32_t)size);
    cw_put_u32(&w, 0x474d5843u);
    cw_put_u64(&w, 0);
    cw_put_bytes(&w, frame, size);
    CU_ASSERT_EQUAL(mux_input(sides[0].mux, bytes, w.used, &err), CW_EPROTO);
    close_both();
}

static void refuse_frame(uint32_t length, uint32_t type, uint32_t stream, uint32_t value)
{
    uint8_t frame[32];
    struct cw_writer w = cw_writer(frame, sizeof(frame));

    cw_put_u32(&w, length);
    cw_put_u32(&w, type);
    cw_put_u32(&w, stream);
    cw_put_u32(&w, value);
    refuse(frame, w.used);
}

TEST(bad_frames)
{
    uint8_t noise[MUX_SEGMENT_HEADER] = "hello";

    refuse_frame(4, MUX_DATA, 7, 0);            /* no such stream */
    refuse_frame(0, MUX_DATA, 0, 0);            /* no bytes */
    refuse_frame(4, MUX_END, 0, 0);             /* with bytes */
    refuse_frame(0, MUX_END, 7, 0);             /* no such stream */
    refuse_frame(4, MUX_CREDIT, 0, 1);          /* more than the window */
    refuse_frame(4, MUX_CREDIT, 0, UINT32_MAX); /* likewise */
    refuse_frame(0, MUX_CREDIT, 0, 0);          /* of no size */
    refuse_frame(4, 9, 0, 0);                   /* unknown */
    refuse_frame(MUX_FRAME_MAX + 1, MUX_DATA, 0, 0);
    open_both();
    CU_ASSERT_EQUAL(mux_input(sides[0].mux, noise, sizeof(noise), &err), CW_EPROTO);
    CU_ASSERT_EQUAL(mux_connect(sides[0].mux, 1, &err), CW_EPROTO);
    close_both();
}

/* --- greetings --- */

static enum greeting_type feed(struct greeting *g, const uint8_t *bytes, size_t size, size_t piece,
                               size_t *body_size)
{
    enum greeting_type type = GREETING_NONE;

    for (size_t at = 0; at < size && type == GREETING_NONE;) {
        size_t part = size - at < piece ? size - at : piece;
        long used = greeting_take(g, bytes + at, part, &type, body_size, &err);

        if (used < 0)
            return GREETING_NONE;
        at += (size_t)used;
    }
    return type;
}

TEST(greeting_behind_noise)
{
    static const char noise[] = "Welcome to \"node1\"\n\nCAUSEWAY-NODE? no\n";
    uint8_t bytes[512 + GREETING_FRAME_MAX];
    struct greeting_hello hello = {.protocol = GREETING_PROTOCOL, .version = "1", .dir = "/d"};
    struct greeting_hello got;
    struct greeting g;
    char text[100];
    size_t size = strlen(noise), body;

    memcpy(bytes, noise, size);
    memcpy(bytes + size, GREETING_MAGIC, strlen(GREETING_MAGIC));
    size += strlen(GREETING_MAGIC);
    size += greeting_put_hello(bytes + size, &hello);
    for (size_t piece = 1; piece < size + 1; piece = 2 * piece + 1) {
        greeting_init(&g, true);
        CU_ASSERT_EQUAL_FATAL(feed(&g, bytes, size, piece, &body), GREETING_HELLO);
        CU_ASSERT_TRUE(greeting_get_hello(g.bytes + GREETING_HEADER, body, &got));
        CU_ASSERT_STRING_EQUAL(got.dir, "/d");
        CU_ASSERT_STRING_EQUAL(marker_noise(&g.marker, text, sizeof(text)),
                               "Welcome to \"node1\"  CAUSEWAY-NODE? no ");
    }
}

TEST(greeting_that_never_comes)
{
    static uint8_t bytes[MARKER_NOISE_MAX + 100];
    enum greeting_type type;
    struct greeting g;
    size_t size;

    memset(bytes, 'x', sizeof(bytes));
    greeting_init(&g, true);
    CU_ASSERT_EQUAL(greeting_take(&g, bytes, sizeof(bytes), &type, &size, &err), CW_EPROTO);
    greeting_init(&g, false);
    memset(bytes, 0xff, sizeof(bytes));
    CU_ASSERT_EQUAL(greeting_take(&g, bytes, sizeof(bytes), &type, &size, &err), CW_EPROTO);
}

TEST(greetings_of_another_protocol)
{
    uint8_t bytes[GREETING_HEADER + GREETING_FRAME_MAX];
    struct greeting_hello hello = {.protocol = 99, .version = "9.9"}, got;
    struct greeting_open open = {.protocol = GREETING_PROTOCOL, .ranks = 1, .timeout_ns = 1}, taken;
    size_t size = greeting_put_hello(bytes, &hello) - GREETING_HEADER;

    CU_ASSERT_TRUE(greeting_get_hello(bytes + GREETING_HEADER, size - 3, &got));
    CU_ASSERT_EQUAL(got.protocol, 99);
    CU_ASSERT_STRING_EQUAL(got.version, "9.9");
    size = greeting_put_open(bytes, &open) - GREETING_HEADER;
    CU_ASSERT_FALSE(greeting_get_open(bytes + GREETING_HEADER, size, &taken)); /* no period */
    open.alive_period_ns = 5;
    size = greeting_put_open(bytes, &open) - GREETING_HEADER;
    CU_ASSERT_TRUE(greeting_get_open(bytes + GREETING_HEADER, size, &taken));
    for (size_t less = 1; less < size; less++)
        CU_ASSERT_FALSE(greeting_get_open(bytes + GREETING_HEADER, size - less, &taken));
}

/* --- bodies --- */

TEST(programs)
{
    static char *const argv[] = {"a.out", "", "two words", NULL};
    static const char *const env[] = {"A=1", "B="};
    struct launch_program p = {.path = "/bin/a",
                               .argv = argv,
                               .env = env,
                               .env_count = 2,
                               .device_path = "/lib/d",
                               .restore_path = NULL};
    struct node_program got;
    size_t size;
    uint8_t *bytes = node_program_put(&p, "/home", &size);

    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    CU_ASSERT_EQUAL_FATAL(node_program_get(bytes, size, &got, &err), CW_OK);
    CU_ASSERT_STRING_EQUAL(got.of.path, "/bin/a");
    CU_ASSERT_STRING_EQUAL(got.of.wdir, "/home");
    CU_ASSERT_STRING_EQUAL(got.of.argv[1], "");
    CU_ASSERT_STRING_EQUAL(got.of.argv[2], "two words");
    CU_ASSERT_PTR_NULL(got.of.argv[3]);
    CU_ASSERT_STRING_EQUAL(got.of.env[1], "B=");
    CU_ASSERT_EQUAL(got.of.more_count, 0);
    CU_ASSERT_PTR_NULL(got.of.restore_path);
    node_program_free(&got);
    for (size_t less = 1; less <= size; less++)
        CU_ASSERT_EQUAL(node_program_get(bytes, size - less, &got, &err), CW_EPROTO);
    free(bytes);
}

TEST(order_for_a_unit)
{
    static uint8_t bytes[NODE_UNIT_MAX];
    static struct node_unit v = {.number = NODE_UNITS_MAX - 1,
                                 .kind = NODE_UNIT_IS_SERVER,
                                 .flags = NODE_UNIT_RETURNS | NODE_UNIT_KEPT | NODE_UNIT_COPIED,
                                 .copies = CW_RELAYS_MAX,
                                 .from = CW_RELAYS_MAX - 1,
                                 .bytes_max = 1ull << 40,
                                 .listen = "tcp:10.0.0.1:0"},
                            got;
    static char word[NODE_WORDS_BYTES];
    size_t size;

    memset(v.key, 3, sizeof(v.key));
    memset(v.dir, 'd', sizeof(v.dir) - 1);
    memset(word, 'w', sizeof(word) - 9);
    CU_ASSERT_TRUE(node_unit_option(&v, "--one", ""));
    CU_ASSERT_FALSE(node_unit_option(&v, "--two", word + 4)); /* its name is there now */
    CU_ASSERT_EQUAL(v.count, 3);
    CU_ASSERT_TRUE(node_unit_option(&v, word + 19, "x"));
    size = node_unit_put(bytes, &v);
    CU_ASSERT_TRUE(node_unit_get(bytes, size, &got));
    CU_ASSERT_EQUAL(memcmp(&v, &got, sizeof(v)), 0);
    for (size_t less = 1; less <= size - v.used; less++)
        CU_ASSERT_FALSE(node_unit_get(bytes, size - v.used - less, &got));
    CU_ASSERT_FALSE(node_unit_get(bytes, size - 1, &got)); /* a word without its end */
    bytes[0]++;
    CU_ASSERT_FALSE(node_unit_get(bytes, size, &got));
    v.copies++;
    CU_ASSERT_FALSE(node_unit_get(bytes, node_unit_put(bytes, &v), &got));
    v.copies--;
    v.from++;
    CU_ASSERT_FALSE(node_unit_get(bytes, node_unit_put(bytes, &v), &got));
}

TEST(more_words_of_a_unit_than_there_may_be)
{
    static uint8_t bytes[NODE_UNIT_MAX];
    static struct node_unit v, got;
    size_t size;

    for (uint32_t i = 0; i < NODE_WORDS_MAX / 2; i++)
        CU_ASSERT_TRUE(node_unit_option(&v, "--a", "b"));
    CU_ASSERT_FALSE(node_unit_option(&v, "--a", "b"));
    size = node_unit_put(bytes, &v);
    CU_ASSERT_TRUE(node_unit_get(bytes, size, &got));
    bytes[size] = '\0';
    CU_ASSERT_FALSE(node_unit_get(bytes, size + 1, &got));
}

/* The dispatcher puts its own time in the place of the host's. */
TEST(report_of_a_file)
{
    struct cw_opening opening = {.device = 1, .inode = 2, .opened_ns = 3, .writes = true};
    uint8_t record[CW_REPORT_FILE_MAX];
    char path[3 * CW_PATH_TOLD];
    struct cw_report report;
    size_t size;

    memset(path, 'p', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    size = cw_report_put_file(record, &opening, path);
    CU_ASSERT_TRUE(cw_report_get(record, size, &report));
    report.opening.opened_ns = 4;
    node_report_change(record, size, &report);
    CU_ASSERT_TRUE(cw_report_get(record, size, &report));
    CU_ASSERT_EQUAL(report.opening.opened_ns, 4);
    CU_ASSERT_EQUAL(report.opening.inode, 2);
    CU_ASSERT_EQUAL(strlen(report.text), CW_PATH_TOLD);
}

TEST(programs_that_are_sent)
{
    uint8_t bytes[NODE_STAGE_MAX];
    static struct node_stage v = {
        .number = 3,
        .program = {.dir = "/" STAGE_DIR_PREFIX "d", .name = "n", .size = 9, .mode = 0555}};
    struct node_stage got;
    size_t size;

    memset(v.program.hash, 7, sizeof(v.program.hash));
    v.program.mtime_ns = 5;
    size = node_stage_put(bytes, &v);
    CU_ASSERT_TRUE(node_stage_get(bytes, size, &got));
    CU_ASSERT_EQUAL(memcmp(&v, &got, sizeof(v)), 0);
    for (size_t less = 1; less <= size; less++)
        CU_ASSERT_FALSE(node_stage_get(bytes, size - less, &got));
    strcpy(v.program.name, "../n");
    CU_ASSERT_FALSE(node_stage_get(bytes, node_stage_put(bytes, &v), &got));
    strcpy(v.program.name, "n");
    v.number = NODE_STAGES_MAX;
    CU_ASSERT_FALSE(node_stage_get(bytes, node_stage_put(bytes, &v), &got));
}

/* Whether it can be found in memory that is dumped (proc(5): "dd" among the flags of a mapping).
 * Sanitizers have no memory that may be read like this. */
static bool is_in_dumps(const uint8_t *key, size_t size)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    char line[1024], mode[8] = "";
    uint8_t *from = NULL, *to = NULL;
    bool found = false;

    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    fclose(f);
    return false;
#endif
    while (fgets(line, sizeof(line), f)) {
        char *dash = strchr(line, '-');

        if (dash && dash < line + 17 && sscanf(dash, "-%p %7s", (void **)&to, mode) == 2) {
            sscanf(line, "%p", (void **)&from);
            continue;
        }
        if (strncmp(line, "VmFlags:", 8) == 0 && strncmp(mode, "rw", 2) == 0 &&
            !strstr(line, " dd"))
            found |= memmem(from, (size_t)(to - from), key, size) != NULL;
    }
    fclose(f);
    return found;
}

/* In what waits, in what was sent and is not acknowledged, and in what has come. */
TEST(keys_are_in_no_dump)
{
    const uint8_t *bytes;
    uint8_t *key = cw_secret_alloc(MUX_FRAME_MAX);
    size_t size;

    open_both();
    randombytes_buf(key, MUX_FRAME_MAX);
    for (int i = 0; i < 20; i++)
        CU_ASSERT_EQUAL(mux_send(sides[0].mux, NODE_START, key, MUX_FRAME_MAX, &err), CW_OK);
    size = mux_output(sides[0].mux, &bytes);
    CU_ASSERT_EQUAL(mux_input(sides[1].mux, bytes, size, &err), CW_OK);
    mux_sent(sides[0].mux, size);
    for (int at = 0; at < 20; at++)
        CU_ASSERT_FALSE(is_in_dumps(key + at * 1000, 16));
    close_both();
    cw_secret_free(key, MUX_FRAME_MAX);
}
