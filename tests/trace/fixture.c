#include "tests/trace/fixture.h"
#include "common/cred.h"

#include <CUnit/CUnit.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define IOV_MAX_FIXTURE 7

static const uint8_t nonce[CW_NONCE_SIZE] = "a relay's nonce";

void fixture_tell(struct fixture *f, const char *fmt, ...)
{
    size_t room = sizeof(f->story) - f->story_size;
    va_list ap;
    int n;

    if (f->mute)
        return;
    va_start(ap, fmt);
    n = vsnprintf(f->story + f->story_size, room, fmt, ap);
    va_end(ap);
    if (n > 0)
        f->story_size += (size_t)n < room ? (size_t)n : room - 1;
}

/* What the core asked for, as an engine does it. */
static void note_dials(struct fixture *f)
{
    struct relay_dial dial;

    while (relay_core_next_dial(f->core, &dial)) {
        struct relay_dialled failed = relay_dialled_of(&dial);

        if (dial.cancelled) {
            f->cancels++;
            continue;
        }
        f->dial = dial;
        if (f->dials++ < FIXTURE_DIALS)
            continue;
        snprintf(failed.failure, sizeof(failed.failure),
                 "too many links are being opened, or no thread can be started");
        relay_core_undialled(f->core, &failed);
    }
}

/* Those that are to be ended after a test. */
static struct fixture *started[FIXTURES];

static void note(struct fixture *f, bool is_started)
{
    for (int i = 0; i < FIXTURES; i++)
        if (started[i] == f)
            started[i] = NULL;
    for (int i = 0; i < FIXTURES && is_started; i++)
        if (!started[i]) {
            started[i] = f;
            return;
        }
}

void fixture_end(void)
{
    for (int i = 0; i < FIXTURES; i++)
        if (started[i])
            fixture_fini(started[i]);
}

static struct relay_region region_of(struct ledger_memory *left)
{
    return (struct relay_region){.start = left_region(left), .size = LEFT_REGION};
}

/* The core is still to be made. */
static void prepare(struct fixture *f, uint64_t memory_max, uint64_t log_memory, uint64_t log_disk,
                    struct ledger_memory *left)
{
    memset(f, 0, offsetof(struct fixture, story));
    f->story[0] = '\0';
    f->seed = f->disk.seed = 1;
    f->memory_max = memory_max;
    f->now_ns = 1000000000;
    memset(f->relay_key, 7, sizeof(f->relay_key));
    memcpy(f->job, "the job of tests", CW_ID_SIZE);
    f->left = left;
    f->config = (struct relay_core_config){.key = f->relay_key,
                                           .memory_max = memory_max,
                                           .log_memory = log_memory,
                                           .log_disk = log_disk,
                                           .ledger = left};
    if (left)
        f->config.region = region_of(left);
}

static void begin(struct fixture *f)
{
    f->core = relay_core_new(&f->config);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->core);
    note(f, true);
}

static void init(struct fixture *f, uint64_t memory_max, uint64_t log_memory, uint64_t log_disk,
                 struct ledger_memory *left, uint64_t journal)
{
    prepare(f, memory_max, log_memory, log_disk, left);
    f->config.journal.number = journal;
    begin(f);
}

void fixture_init(struct fixture *f, uint64_t memory_max)
{
    init(f, memory_max, memory_max, 0, NULL, 0);
}

void fixture_init_log(struct fixture *f, uint64_t memory_max, uint64_t log_memory)
{
    init(f, memory_max, log_memory, 0, NULL, 0);
    f->log = true;
}

void fixture_init_log_disk(struct fixture *f, uint64_t memory_max, uint64_t log_memory,
                           uint64_t log_disk)
{
    init(f, memory_max, log_memory, log_disk, NULL, 0);
    f->log = true;
}

void fixture_init_left(struct fixture *f, uint64_t log_memory, uint64_t log_disk)
{
    init(f, FIXTURE_MEMORY, log_memory, log_disk, left_new(), 0);
    f->log = true;
}

void fixture_init_journal(struct fixture *f)
{
    init(f, FIXTURE_MEMORY, FIXTURE_MEMORY, 0, left_new(), 1);
    f->log = true;
}

void fixture_init_channel(struct fixture *f, const struct relay_channel *channel)
{
    prepare(f, FIXTURE_MEMORY, FIXTURE_MEMORY, 0, left_new());
    f->config.journal.number = 1;
    f->config.channel = *channel;
    f->log = f->channel = true;
    begin(f);
}

static void prepare_copies(struct fixture *f, struct ledger_memory *left)
{
    prepare(f, FIXTURE_MEMORY, FIXTURE_MEMORY, 0, left);
    f->config.journal.copies = true;
    f->log = true;
}

void fixture_init_copies(struct fixture *f, uint32_t copies, uint64_t region)
{
    prepare_copies(f, left_new());
    for (uint32_t i = 0; i < copies; i++) {
        struct ledger_memory *memory = left_new();

        f->config.copies[i] =
            (struct relay_copy_memory){.memory = memory, .region = region_of(memory)};
        f->config.copies[i].region.size = region;
    }
    begin(f);
}

struct relay_returned fixture_init_successor(struct fixture *f, struct ledger_memory *left,
                                             uint32_t incarnation)
{
    struct relay_returned returned = {0};

    prepare_copies(f, left);
    f->config.incarnation = incarnation;
    begin(f);
    CU_ASSERT_TRUE_FATAL(relay_core_return(f->core, &returned));
    fixture_collect(f);
    return returned;
}

void fixture_start(struct fixture *f, uint32_t ranks)
{
    char name[8];

    fixture_connect(f, &f->dispatcher, "d");
    fixture_hello_dispatcher(&f->dispatcher, ranks);
    for (uint32_t i = 0; i < ranks; i++) {
        snprintf(name, sizeof(name), "%u", i & 0xff);
        fixture_connect(f, &f->rank[i], name);
        fixture_hello_rank(&f->rank[i], i, 1);
        CU_ASSERT_PTR_NOT_NULL(f->rank[i].conn);
    }
    fixture_forget(f);
}

static void client_fini(struct client *c)
{
    codec_fini(&c->codec);
    codec_fini(&c->saved);
    free(c->log.at);
    c->log = (struct codec_bytes){0};
    codec_inbox_fini(&c->inbox);
    c->conn = NULL;
}

void fixture_forget(struct fixture *f)
{
    f->story_size = 0;
    f->story[0] = '\0';
}

void fixture_fini(struct fixture *f)
{
    note(f, false);
    relay_core_free(f->core);
    f->core = NULL;
    left_free(f->left);
    f->left = NULL;
    for (uint32_t i = 0; i < CW_RELAYS_MAX; i++)
        left_free(f->config.copies[i].memory);
    fake_disk_fini(&f->disk);
    client_fini(&f->dispatcher);
    for (int i = 0; i < FIXTURE_RANKS; i++)
        client_fini(&f->rank[i]);
    for (int i = 0; i < FIXTURE_OTHERS; i++)
        client_fini(&f->other[i]);
}

/* --- what the relay says ---------------------------------------------------------------------- */
static void tell_whole(struct client *c, const struct codec_received *r)
{
    struct cw_message whole = {
        .req = r->req, .flags = r->flags, .event = r->event, .tag = r->tag, .total = r->total};
    struct cw_header header = {.type = CW_FRAME_MESSAGE};
    uint8_t *body = malloc(CW_MESSAGE_SIZE + r->size);
    char line[CODEC_LINE_MAX];

    CU_ASSERT_PTR_NOT_NULL_FATAL(body);
    header.length = CW_MESSAGE_SIZE + (uint32_t)r->size;
    cw_message_put(body, &whole);
    memcpy(body + CW_MESSAGE_SIZE, r->bytes, r->size);
    codec_describe(line, &header, body);
    fixture_tell(c->fixture, "%s > %s\n", c->name, line);
    free(body);
}

/* What came of a stream that does not go on: the relay begins anew behind the last whole event. */
static void begin_anew(struct client *c)
{
    c->codec.in.start = c->codec.in.end;
    c->codec.session.in_seq = (uint32_t)c->welcome.acts;
    c->saved_received = c->welcome.event;
    codec_inbox_forget_open(&c->inbox);
}

/* The session's own numbers and bytes again. The rest of what came is of its stream. */
static void go_on(struct client *c)
{
    struct codec handshake = c->codec;
    uint64_t size = codec_left(&handshake.in);

    CU_ASSERT_TRUE(c->resuming && c->welcome.flags & CW_WELCOME_RESUMED);
    CU_ASSERT_TRUE_FATAL(c->welcome.received <= c->log.end);
    c->codec = c->saved;
    c->saved = (struct codec){0};
    if (c->welcome.flags & CW_WELCOME_RETURNED)
        begin_anew(c);
    codec_receive(&c->codec, handshake.in.at + handshake.in.start, size);
    c->received = c->saved_received + size; /* the handshake is no part of it */
    codec_fini(&handshake);
    c->event = c->saved_event;
    c->resuming = false;
    c->open = true;
    /* again what was lost on the way */
    c->log.start = c->welcome.received;
}

static void take_welcome(struct client *c, const struct codec_frame *frame)
{
    uint8_t mac[CW_MAC_SIZE];

    CU_ASSERT_TRUE(cw_welcome_get(frame->body, &c->welcome));
    cw_cred_mac_welcome(mac, c->key, &c->welcome, &c->hello, c->challenge.nonce);
    CU_ASSERT_TRUE(cw_cred_equal(mac, c->welcome.mac));
    if (c->resuming)
        return;
    c->event = c->hello.event; /* what came before is not told again */
    c->open = true;
    c->received = codec_left(&c->codec.in);
}

static void client_hear(struct client *c, const struct codec_frame *frame)
{
    struct fixture *f = c->fixture;
    const struct codec_received *r = NULL;
    uint64_t event = codec_event(frame);
    char line[CODEC_LINE_MAX];

    if (event) {
        CU_ASSERT_EQUAL(event, c->event + 1);
        c->event = event;
    }
    if (frame->header.type == CW_FRAME_CHALLENGE)
        CU_ASSERT_TRUE(cw_challenge_get(frame->body, &c->challenge));
    if (frame->header.type == CW_FRAME_WELCOME)
        take_welcome(c, frame);
    if (frame->header.type == CW_FRAME_MESSAGE) {
        r = codec_inbox_take(&c->inbox, frame);
        CU_ASSERT_PTR_NOT_NULL(r);
    }
    if (frame->header.type == CW_FRAME_TRIMMED && c == &f->dispatcher) {
        CU_ASSERT_TRUE(cw_trim_get(frame->body, &f->trimmed));
        f->trims++;
    }
    if (f->on_frame)
        f->on_frame(c, frame);
    if (f->mute)
        return;
    if (r && f->merged) {
        if (r->event)
            tell_whole(c, r);
        return;
    }
    codec_describe(line, &frame->header, frame->body);
    fixture_tell(f, "%s > %s\n", c->name, line);
}

static void client_decode(struct client *c)
{
    struct codec_frame frame;
    struct cw_err err = {0};
    int n;

    while ((n = codec_next(&c->codec, &frame, &err)) > 0) {
        client_hear(c, &frame);
        if (c->resuming && frame.header.type == CW_FRAME_WELCOME)
            go_on(c);
    }
    if (n < 0)
        fixture_tell(c->fixture, "%s > ? %s\n", c->name, err.text);
    CU_ASSERT_EQUAL(n, 0);
}

/* Takes from the first vectors what a socket might take. */
static size_t take_output(struct client *c)
{
    struct fixture *f = c->fixture;
    bool random = f->feed == FEED_RANDOM;
    struct iovec iov[IOV_MAX_FIXTURE];
    int max = random ? 1 + (int)codec_random_below(&f->seed, IOV_MAX_FIXTURE) : IOV_MAX_FIXTURE;
    int n = relay_conn_output(c->conn, iov, max);
    size_t size = 0;

    CU_ASSERT_TRUE(n > 0);
    for (int i = 0; i < n; i++) {
        size_t part = iov[i].iov_len;

        if (random && i == n - 1)
            part = 1 + codec_random_below(&f->seed, part);
        if (!c->deaf) {
            codec_receive(&c->codec, iov[i].iov_base, part);
            c->received += part;
        }
        size += part;
    }
    relay_conn_written(c->conn, size);
    return size;
}

static void client_drop(struct client *c, const char *why)
{
    relay_conn_broken(c->conn, why, NULL, 0);
    c->conn = NULL;
}

static void client_drain(struct client *c)
{
    if (!c->conn || c->stalled)
        return;
    while (relay_conn_has_output(c->conn) && take_output(c) > 0)
        client_decode(c);
    if (!relay_conn_done(c->conn) || c->fixture->lazy)
        return;
    fixture_tell(c->fixture, "%s is closed\n", c->name);
    client_drop(c, "closed by the relay");
}

static void check_nothing_forgotten(const struct client *c)
{
    if (c->conn && !c->stalled)
        CU_ASSERT_FALSE(relay_conn_has_output(c->conn));
}

static void drain_all(struct fixture *f)
{
    struct relay_conn *conn;

    note_dials(f);
    while ((conn = relay_core_next_ready(f->core)))
        client_drain(relay_conn_owner(conn));
}

static void disk_take(struct fixture *f)
{
    struct relay_log_io io;

    while (relay_core_next_io(f->core, &io))
        fake_disk_take(&f->disk, &io);
}

static bool disk_done(struct fixture *f)
{
    struct relay_log_done done;

    if (!fake_disk_done(&f->disk, &done))
        return false;
    relay_core_io_done(f->core, &done);
    drain_all(f);
    disk_take(f);
    return true;
}

void fixture_collect(struct fixture *f)
{
    drain_all(f);
    if (relay_core_covers(f->core)) /* there is nothing that was not given to it */
        relay_core_looked(f->core);
    drain_all(f);
    disk_take(f);
    while (!f->disk_waits && disk_done(f))
        ;
    check_nothing_forgotten(&f->dispatcher);
    for (int i = 0; i < FIXTURE_RANKS; i++)
        check_nothing_forgotten(&f->rank[i]);
}

bool fixture_disk_one(struct fixture *f)
{
    bool any = disk_done(f);

    fixture_collect(f);
    return any;
}

void fixture_disk_all(struct fixture *f)
{
    while (fixture_disk_one(f))
        ;
}

void fixture_read(struct client *c)
{
    c->stalled = false;
    client_drain(c);
    fixture_collect(c->fixture);
}

/* --- what the clients do ---------------------------------------------------------------------- */
bool fixture_connect(struct fixture *f, struct client *c, const char *name)
{
    bool mute = f->mute;

    client_fini(c);
    memset(c, 0, sizeof(*c));
    c->fixture = f;
    snprintf(c->name, sizeof(c->name), "%s", name);
    c->conn = relay_conn_open(f->core, nonce, f->now_ns, c);
    if (!c->conn)
        return false;
    /* that every connection begins with a CHALLENGE needs no line in every story */
    f->mute = true;
    fixture_collect(f);
    f->mute = mute;
    return true;
}

void fixture_rank_key(struct client *c, uint32_t rank, uint32_t incarnation)
{
    uint8_t job_key[CW_KEY_SIZE];

    cw_cred_job_key(job_key, c->fixture->relay_key, c->fixture->job);
    cw_cred_rank_key(c->key, job_key, rank, incarnation);
}

void fixture_hello(struct client *c)
{
    if (!c->conn)
        return;
    memcpy(c->hello.job, c->fixture->job, CW_ID_SIZE);
    if (c->fixture->channel)
        c->hello.flags |= CW_HELLO_CHANNEL;
    codec_hello(&c->codec, &c->hello, c->key, &c->challenge);
    fixture_feed(c);
}

void fixture_hello_rank(struct client *c, uint32_t rank, uint32_t incarnation)
{
    c->hello = (struct cw_hello){.role = CW_ROLE_RANK, .rank = rank, .incarnation = incarnation};
    if (c->fixture)
        fixture_rank_key(c, rank, incarnation);
    fixture_hello(c);
}

void fixture_hello_dispatcher(struct client *c, uint32_t ranks)
{
    c->hello = (struct cw_hello){.role = CW_ROLE_DISPATCHER, .rank = ranks};
    c->hello.resume_ms = c->fixture ? c->fixture->resume_ms : 0;
    c->hello.event = c->fixture ? c->fixture->orphan_ms : 0;
    if (c->fixture && c->fixture->log)
        c->hello.flags = CW_HELLO_LOG | (c->fixture->images ? CW_HELLO_IMAGES : 0);
    if (c->fixture)
        cw_cred_job_key(c->key, c->fixture->relay_key, c->fixture->job);
    fixture_hello(c);
}

/* What left it and was lost goes before what it has not said yet. */
static void say_again(struct client *c)
{
    struct codec_bytes rest = c->codec.out;
    size_t lost = c->log.end - c->log.start;

    c->codec.out = (struct codec_bytes){0};
    if (lost)
        memcpy(codec_room(&c->codec.out, lost), c->log.at + c->log.start, lost);
    if (codec_left(&rest))
        memcpy(codec_room(&c->codec.out, codec_left(&rest)), rest.at + rest.start,
               codec_left(&rest));
    c->log.end = c->log.start;
    c->log.start = 0;
    free(rest.at);
    fixture_feed_some(c, codec_left(&c->codec.out));
}

void fixture_resume(struct client *c, uint64_t received)
{
    struct fixture *f = c->fixture;
    bool mute = f->mute;

    CU_ASSERT_PTR_NULL(c->conn);
    c->saved = c->codec;
    c->saved_event = c->event;
    c->saved_received = c->received;
    c->codec = (struct codec){.clock = c->saved.clock};
    c->open = c->deaf = false;
    c->resuming = true;
    c->conn = relay_conn_open(f->core, nonce, f->now_ns, c);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c->conn);
    f->mute = true;
    fixture_collect(f);
    f->mute = mute;
    c->hello.flags |= CW_HELLO_RESUME;
    c->hello.received = received;
    fixture_hello(c);
    if (c->open)
        say_again(c);
}

/* --- memory that is spent ----------------------------------------------------------------------
 */
static bool opens_job(struct fixture *f)
{
    struct client c = {0};
    bool mute = f->mute;
    bool opened;

    f->mute = true;
    f->job[0] ^= 0xff;
    CU_ASSERT_TRUE(fixture_connect(f, &c, "?"));
    fixture_hello_dispatcher(&c, 1);
    opened = c.conn && !relay_conn_done(c.conn);
    if (c.conn)
        client_drop(&c, "it was a question");
    client_fini(&c);
    f->job[0] ^= 0xff;
    f->mute = mute;
    return opened;
}

/* A job that cannot be opened says that nothing is left. */
uint64_t fixture_spend(struct fixture *f, uint64_t room)
{
    struct cw_relay_stats *stats = relay_core_stats(f->core);
    uint64_t taken = 0;

    do {
        taken += f->memory_max - stats->memory_now;
        stats->memory_now = f->memory_max;
    } while (opens_job(f));
    stats->memory_now -= room;
    return taken - room;
}

void fixture_again_from(struct client *c, const struct cw_point *point)
{
    uint32_t rank = c->hello.rank;
    uint32_t incarnation = c->hello.incarnation + 1;
    char name[sizeof(c->name)];

    memcpy(name, c->name, sizeof(name));
    CU_ASSERT_TRUE(fixture_connect(c->fixture, c, name));
    c->hello = (struct cw_hello){.role = CW_ROLE_RANK,
                                 .rank = rank,
                                 .incarnation = incarnation,
                                 .event = point->event,
                                 .poll_clock = point->clock,
                                 .acts = point->acts};
    fixture_rank_key(c, rank, incarnation);
    fixture_hello(c);
}

void fixture_again(struct client *c)
{
    fixture_again_from(c, &(struct cw_point){0});
}

void fixture_close(struct client *c, const char *why)
{
    if (!c->conn)
        return;
    fixture_tell(c->fixture, "%s ends: %s\n", c->name, why);
    client_drop(c, why);
    fixture_collect(c->fixture);
}

void fixture_tick(struct fixture *f, uint64_t ns)
{
    f->now_ns += ns;
    relay_core_tick(f->core, f->now_ns);
    fixture_collect(f);
}

static size_t piece(struct fixture *f, size_t left)
{
    if (f->feed == FEED_BYTES)
        return 1;
    if (f->feed == FEED_RANDOM)
        return 1 + codec_random_below(&f->seed, left);
    return left;
}

static void peek_said(void *ctx, size_t skip, void *to, size_t size)
{
    const struct client *c = ctx;

    CU_ASSERT_TRUE(skip + size <= codec_left(&c->codec.out));
    memcpy(to, c->codec.out.at + c->codec.out.start + skip, size);
}

/* As an engine that has both connections' memory at hand. Returns false when nothing was cut. */
static bool cut_piece(struct client *c, size_t size)
{
    const uint8_t *from = c->codec.out.at + c->codec.out.start;
    struct relay_conn *to = c->fixture->cuts ? relay_conn_cut_to(c->conn) : NULL;
    struct client *receiver = to ? relay_conn_owner(to) : NULL;
    struct relay_cut cut;

    if (!receiver || receiver->stalled)
        return false;
    cut = relay_conn_cut(c->conn, size);
    CU_ASSERT_TRUE(cut.size <= size);
    if (cut.log)
        memcpy(cut.log, from, cut.size);
    if (cut.to) {
        CU_ASSERT_PTR_EQUAL(cut.to, to);
        while (relay_conn_has_output(to))
            take_output(receiver);
        codec_receive(&receiver->codec, from, cut.size);
        client_decode(receiver);
    }
    relay_cut_done(&cut);
    codec_take(&c->codec.out, cut.size);
    return cut.size > 0;
}

static void feed_piece(struct client *c, size_t size)
{
    size_t left = codec_left(&c->codec.out);
    size_t before;
    size_t room;
    void *at;

    if (cut_piece(c, size))
        return;
    before = c->fixture->cuts ? relay_conn_before_cut(c->conn, left, peek_said, c) : 0;
    CU_ASSERT_TRUE(before <= left);
    if (before && before < size)
        size = before;

    if (relay_conn_space(c->conn, &at, &room) < 0) {
        c->codec.out.start = c->codec.out.end;
        fixture_collect(c->fixture);
        return;
    }
    CU_ASSERT_TRUE(room > 0);
    if (size > room)
        size = room;
    memcpy(at, c->codec.out.at + c->codec.out.start, size);
    if (c->open)
        memcpy(codec_room(&c->log, size), at, size);
    codec_take(&c->codec.out, size);
    relay_conn_input(c->conn, size);
}

static bool may_feed(const struct client *c)
{
    const struct fixture *f = c->fixture;

    return c->conn && (!f->disk_waits || relay_conn_wants_input(c->conn, f->now_ns));
}

void fixture_feed_some(struct client *c, size_t size)
{
    size_t stop = codec_left(&c->codec.out) - size;

    while (may_feed(c) && codec_left(&c->codec.out) > stop) {
        feed_piece(c, piece(c->fixture, codec_left(&c->codec.out) - stop));
        if (c->fixture->feed != FEED_WHOLE)
            fixture_collect(c->fixture);
    }
    if (!c->conn)
        c->codec.out.start = c->codec.out.end;
    fixture_collect(c->fixture);
}

static void tell_said(struct client *c)
{
    const uint8_t *at = c->codec.out.at + c->codec.out.start;
    struct cw_reader r = cw_reader(at, CW_FRAME_HEADER);
    struct cw_header header;
    char line[CODEC_LINE_MAX];

    header.length = cw_get_u32(&r);
    header.type = (uint8_t)cw_get_u32(&r);
    header.seq = cw_get_u32(&r);
    header.ack = cw_get_u32(&r);
    codec_describe(line, &header, at + CW_FRAME_HEADER);
    fixture_tell(c->fixture, "%s < %s\n", c->name, line);
}

void fixture_feed(struct client *c)
{
    if (!c->conn)
        return;
    if (!c->fixture->mute)
        tell_said(c);
    fixture_feed_some(c, codec_left(&c->codec.out));
}

/* --- what the test says about it -------------------------------------------------------------- */
static void print_commented(const char *what, const char *text)
{
    printf("# %s:\n", what);
    while (*text) {
        int size = (int)strcspn(text, "\n");

        printf("#     %.*s\n", size, text);
        text += size + (text[size] == '\n');
    }
}

static bool judge(struct fixture *f, bool ok, const char *text, const char *file, unsigned line)
{
    if (!ok) {
        print_commented("expected story", text);
        print_commented("story", f->story);
    }
    CU_assertImplementation(ok, line, "the story is as expected", file, "", CU_FALSE);
    fixture_forget(f);
    return ok;
}

bool fixture_expect(struct fixture *f, const char *text, const char *file, unsigned line)
{
    return judge(f, strcmp(f->story, text) == 0, text, file, line);
}

bool fixture_expect_has(struct fixture *f, const char *text, const char *file, unsigned line)
{
    return judge(f, strstr(f->story, text) != NULL, text, file, line);
}

bool fixture_received(const struct client *c, uint32_t req, uint64_t tag, size_t size)
{
    const struct codec_received *r = codec_inbox_find(&c->inbox, req);

    return r && r->event && r->tag == tag && r->size == size &&
           codec_pattern_is(r->bytes, tag, size);
}
