/* A relay that lies, and other ranks that write anything into the channel memory: whatever they
 * say, the device takes it or ends with fatal_exit, and touches no memory that is not its own. The
 * input is a list of actions, of the program (it sends, posts, probes, polls, is started again), of
 * the relay (it says something plausible, or anything) and of the others, before the first of which
 * WELCOME may have asked for a repetition. */
#include "common/clock.h"
#include "rdevice/arena.h"
#include "rdevice/fatal.h"
#include "rdevice/inputs.h"
#include "rdevice/operation.h"
#include "rdevice/real.h"
#include "rdevice/trace.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define RELAY_BYTES (1u << 20) /* said and not yet read */
#define ALLOC_MAX (4u << 20)   /* the arena of a run, bytes at once */
#define MESSAGE_BYTES (600u << 10)
#define REQUESTS_MAX 512u
#define POLLS_MAX 64u
#define NEAR 3u              /* ranks that share the memory; there may be one more */
#define LOG_BYTES (1u << 20) /* of the memory */
#define SENDERS 5u
#define WAITS_MAX 3 /* the relay is silent so often in a row, then it says the next thing */

static struct exchange exchange;
static uint8_t readings[CW_READINGS_MAX];
struct readings_writer inputs_written = {.bytes = readings, .size = sizeof(readings)};

static jmp_buf ended;
static struct cw_reader script; /* what is still to be done */
static uint8_t said[RELAY_BYTES];
static size_t said_start;
static size_t said_end;
static struct cw_session relay; /* the relay's end */
static uint64_t told;           /* events */
static uint64_t
    arriving[SENDERS]; /* 1 + the bytes that are still to come from each; 0: no message */
static uint32_t waits;
static size_t unrepeated;
static bool full; /* the last send found no room */
static struct request *requests[REQUESTS_MAX];
static uint32_t request_count;
static uint8_t message[MESSAGE_BYTES];
static uint8_t how_begun;               /* the process, and those after it */
static struct cw_channel others_memory; /* as the others map it; none: .memory is NULL */
static struct cw_stream to_us[NEAR];
static struct cw_stream from_us[NEAR];

/* --- memory of a run -------------------------------------------------------------------------- */
struct allocation {
    struct allocation *next;
    struct allocation *prev;
};
static struct allocation allocations = {&allocations, &allocations};

static void *allocate(size_t size)
{
    struct allocation *a = malloc(sizeof(*a) + size);

    must(a);
    *a = (struct allocation){.next = allocations.next, .prev = &allocations};
    a->next->prev = a;
    allocations.next = a;
    return a + 1;
}

static void give_back(void *at)
{
    struct allocation *a = (struct allocation *)at - 1;

    a->next->prev = a->prev;
    a->prev->next = a->next;
    free(a);
}

void *arena_alloc(size_t size)
{
    if (size > ALLOC_MAX)
        fatal_exit(CW_REPORT_FATAL, "no memory");
    return allocate(size);
}

void arena_free(void *at, size_t size)
{
    (void)size;
    give_back(at);
}

void fatal_exit(uint32_t kind, const char *fmt, ...)
{
    (void)kind;
    (void)fmt;
    longjmp(ended, 1);
}

void fatal_tell(uint32_t kind, const char *text)
{
    (void)kind;
    (void)text;
}

/* --- what else the exchange stands on --------------------------------------------------------- */
bool trace_repeating;

uint64_t real_switches(void)
{
    return 0;
}

void wait_begin(struct waiter *w, struct cw_wire *wire, uint32_t ranks, uint64_t spin_ns)
{
    (void)ranks;
    (void)spin_ns;
    w->wire = wire;
}

void wait_left(struct waiter *w)
{
    (void)w;
}

static void others_act(void);

/* There may be no room, and nobody left to make some. */
void wait_wire(struct waiter *w, bool in, bool out, uint64_t since_ns)
{
    (void)w;
    (void)in;
    (void)out;
    (void)since_ns;
    if (!exchange.channel.on)
        return;
    if (script.left == 0)
        fatal_exit(CW_REPORT_FATAL, "nobody does anything any more");
    channel_goes_to_sleep(&exchange.channel);
    others_act();
    channel_woke(&exchange.channel);
}

bool wait_beside(struct waiter *w, int fd, bool in, bool out, bool *ended)
{
    (void)w;
    (void)fd;
    (void)in;
    (void)out;
    (void)ended;
    return true;
}

bool inputs_pause(bool paused)
{
    return paused;
}

const uint8_t *inputs_repeat(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = allocate(size);

    must(size <= CW_READINGS_MAX);
    if (size)
        memcpy(copy, bytes, size);
    unrepeated = size;
    return copy;
}

size_t inputs_unrepeated(void)
{
    return unrepeated;
}

/* --- what the relay says ---------------------------------------------------------------------- */
static uint8_t *say(uint32_t type, size_t there, uint32_t length)
{
    uint8_t *at = said + said_end;

    must(sizeof(said) - said_end >= CW_FRAME_HEADER + there);
    cw_frame_begin(&relay, at, (uint8_t)type, length);
    said_end += CW_FRAME_HEADER + there;
    return at + CW_FRAME_HEADER;
}

static uint64_t odd_or(uint64_t right, uint8_t how)
{
    return how & 0x80 ? right + (how & 7) - 3 : right;
}

static void say_message(uint8_t how)
{
    uint8_t which = cw_get_u8(&script);
    uint32_t size = cw_get_u16(&script);
    struct cw_message m = {.req = which & 15, .flags = how & 15, .tag = which & 3};
    uint8_t *to;

    if (cw_get_u8(&script) & 1)
        size = size * 4 % (CW_FRAME_DATA_MAX + 1);
    m.total = how & 0x40 ? size : size + cw_get_u16(&script);
    if (m.flags & CW_MESSAGE_LAST)
        m.event = odd_or(++told, cw_get_u8(&script));
    to = say(CW_FRAME_MESSAGE, CW_MESSAGE_SIZE + size, CW_MESSAGE_SIZE + size);
    cw_message_put(to, &m);
    memset(to + CW_MESSAGE_SIZE, which, size);
}

/* One whose bytes come with an MRECV, as MESSAGE. */
static void say_offer(uint8_t how)
{
    struct cw_message m = {.req = how % SENDERS,
                           .flags = CW_MESSAGE_FIRST | CW_MESSAGE_LAST | CW_MESSAGE_UNMATCHED |
                                    CW_MESSAGE_OFFERED,
                           .event = ++told,
                           .tag = how >> 4 & 3,
                           .total = cw_get_u16(&script),
                           .msg = how};

    cw_arrival_put(say(CW_FRAME_ARRIVAL, CW_ARRIVAL_SIZE, CW_ARRIVAL_SIZE), &m);
}

/* From ranks elsewhere: mostly one message after the other of each, all of it. */
static void say_arrival(uint8_t how)
{
    uint8_t which = cw_get_u8(&script);
    uint32_t size = cw_get_u16(&script);
    uint64_t *left = &arriving[which % SENDERS];
    uint8_t *to;
    struct cw_message m = {
        .req = which % SENDERS, .flags = CW_MESSAGE_UNMATCHED, .tag = which >> 4 & 3};

    if (*left == 0) {
        m.flags |= CW_MESSAGE_FIRST | (how & 2 ? 0 : how & 1 ? CW_MESSAGE_ACTIVE : CW_MESSAGE_SYNC);
        m.sync = m.flags & CW_MESSAGE_SYNC ? which : 0;
        m.total = how & 4 ? size : size * 5u;
        *left = m.total + 1;
    }
    if (how & 8 || size > *left - 1)
        size = *left - 1 < CW_FRAME_DATA_MAX ? (uint32_t)(*left - 1) : CW_FRAME_DATA_MAX;
    *left -= size;
    if (*left == 1) {
        m.flags |= CW_MESSAGE_LAST;
        m.event = odd_or(++told, how & 0x40 ? how : 0);
        *left = 0;
    }
    if ((how & 0xc0) == 0x80) { /* it lies */
        m.flags ^= 1u << (how & 7);
        m.total <<= how & 31;
    }
    to = say(CW_FRAME_ARRIVAL, CW_ARRIVAL_SIZE + size, CW_ARRIVAL_SIZE + size);
    cw_arrival_put(to, &m);
    memset(to + CW_ARRIVAL_SIZE, which, size);
}

static void say_done(uint8_t how)
{
    struct cw_done done = {.req = how & 15};

    done.event = odd_or(++told, how);
    cw_done_put(say(how & 16 ? CW_FRAME_SENT : CW_FRAME_CANCELED, CW_DONE_SIZE, CW_DONE_SIZE),
                &done);
}

static void say_probed(uint8_t how)
{
    struct cw_probed probed = {.found = how & 1,
                               .msg = how >> 4,
                               .tag = cw_get_u8(&script) & 3,
                               .total = how,
                               .unexpected = how & 2};

    probed.clock = exchange.cursor.polls + (how & 4 ? 1 : how >> 5);
    cw_probed_put(say(CW_FRAME_PROBED, CW_PROBED_SIZE, CW_PROBED_SIZE), &probed);
}

static void say_taken(uint8_t how)
{
    struct cw_taken taken = {.event = odd_or(told + 1 + (how & 3), how),
                             .clock = exchange.cursor.polls + (how >> 3 & 3)};

    cw_taken_put(say(CW_FRAME_TAKEN, CW_TAKEN_SIZE, CW_TAKEN_SIZE), &taken);
}

static void say_readings(uint8_t how)
{
    size_t size = how * 65u % (CW_READINGS_MAX + 1);

    memset(say(CW_FRAME_READINGS, size, (uint32_t)size), how, size);
}

static void say_raw(uint8_t how)
{
    size_t size = how < script.left ? how : script.left;

    must(sizeof(said) - said_end >= size);
    cw_get_copy(&script, said + said_end, size);
    said_end += size;
}

/* Any type; mostly with a length that fits. */
static void say_any(uint8_t how)
{
    uint8_t type = cw_get_u8(&script) % CW_FRAME_TYPES;
    size_t there = cw_frame_fixed(type) + (how & 0x30 ? 0 : how & 15);
    size_t given = there < script.left ? there : script.left;
    uint8_t *to = say(type, there, (uint32_t)there + (how & 0x40 ? how : 0));

    memset(to, 0, there);
    cw_get_copy(&script, to, given);
}

static void relay_speaks(void)
{
    static const uint8_t bare[] = {CW_FRAME_REPLAYED, CW_FRAME_HINT, CW_FRAME_ACK,
                                   CW_FRAME_FAREWELL};
    uint8_t what = cw_get_u8(&script);
    uint8_t how = cw_get_u8(&script);
    uint8_t type;

    switch (what & 15) {
    case 0:
        say_raw(how);
        break;
    case 1:
        say_any(how);
        break;
    case 2:
    case 3:
        say_done(how);
        break;
    case 4:
    case 5:
        say_probed(how);
        break;
    case 6:
    case 7:
        say_taken(how);
        break;
    case 8:
        say_readings(how);
        break;
    case 9:
    case 10:
        type = bare[how & 3];
        memset(say(type, cw_frame_fixed(type), 0), how, cw_frame_fixed(type));
        break;
    default:
        if (exchange.channel.on && how % 8 == 7)
            say_offer(cw_get_u8(&script));
        else if (exchange.channel.on && how % 8 != 6)
            say_arrival(how);
        else
            say_message(how);
        break;
    }
}

/* --- the socket ------------------------------------------------------------------------------- */
/* Whether there is something to read; else errno, or the end. */
static ssize_t readable(void)
{
    if (said_start == said_end) {
        said_start = said_end = 0;
        if (script.left == 0)
            return 0;
        errno = EAGAIN;
        if (++waits % WAITS_MAX != 0)
            return -1;
        relay_speaks();
    }
    return said_start < said_end ? 1 : -1;
}

static size_t take(void *to, size_t room)
{
    size_t left = said_end - said_start;
    size_t size = left < room ? left : room;

    memcpy(to, said + said_start, size);
    said_start += size;
    return size;
}

ssize_t recv(int fd, void *to, size_t room, int flags)
{
    ssize_t there = readable();

    (void)fd;
    (void)flags;
    must(room > 0);
    return there > 0 ? (ssize_t)take(to, room) : there;
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
    ssize_t there = readable();
    size_t size = 0;

    (void)fd;
    (void)flags;
    for (size_t i = 0; there > 0 && i < msg->msg_iovlen; i++)
        size += take(msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
    return there > 0 ? (ssize_t)size : there;
}

/* Takes all, or half, or nothing for a moment, at last nothing; every byte is looked at. */
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    static volatile uint8_t sum;
    size_t size = 0;

    (void)fd;
    (void)flags;
    full = !full && waits % 5 == 1;
    errno = script.left > 0 ? EAGAIN : EPIPE;
    if (full || script.left == 0)
        return -1;
    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        const uint8_t *at = msg->msg_iov[i].iov_base;

        for (size_t j = 0; j < msg->msg_iov[i].iov_len; j++)
            sum ^= at[j];
        size += msg->msg_iov[i].iov_len;
    }
    return (ssize_t)(size > 100 && waits % 3 == 1 ? size / 2 : size);
}

ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    struct iovec vector = {.iov_base = (void *)bytes, .iov_len = size};
    struct msghdr msg = {.msg_iov = &vector, .msg_iovlen = 1};

    return sendmsg(fd, &msg, flags);
}

/* --- other ranks of the host ------------------------------------------------------------------ */
/* A piece as a rank puts it: that the message ends somewhere is not said. */
static void others_put(struct cw_stream *stream, uint8_t how)
{
    struct cw_piece piece = {.type = how % CW_PIECE_TYPES, .tag = how >> 6, .req = how >> 3 & 7};
    uint32_t wanted = how & 0x80 ? cw_get_u16(&script) : how;
    int32_t room = cw_stream_room(stream, wanted);

    if (room < 0 || piece.type == CW_PIECE_NEXT)
        return;
    piece.size = (uint32_t)room;
    piece.total = odd_or((uint64_t)room + (how & 0x40 ? wanted : 0), cw_get_u8(&script));
    piece.more = how >> 5;
    cw_stream_put(stream, &piece, &(struct iovec){message, piece.size}, 0);
}

static void others_take(struct cw_stream *stream)
{
    struct cw_piece piece;

    while (cw_stream_next(stream, &piece))
        cw_stream_take(stream, &piece);
    stream->broken = false;
}

/* What a position, a number or a length may be. */
static uint64_t others_word(void)
{
    const struct channel *c = &exchange.channel;
    uint8_t how = cw_get_u8(&script);
    const struct cw_stream *of = how & 1 ? &c->decisions : &c->in[how % NEAR];

    switch (how >> 5) {
    case 0:
        return of->at + 1;
    case 1:
        return cw_get_u8(&script) % (c->memory.blocks + 2);
    case 2:
        return (uint64_t)cw_get_u8(&script) << 32 | cw_get_u8(&script) % (c->memory.blocks + 2);
    case 3:
        return cw_get_u16(&script);
    case 4:
        return (uint64_t)cw_get_u16(&script) << 32 | cw_get_u8(&script) % CW_PIECE_TYPES;
    default:
        return cw_get_u64(&script);
    }
}

/* Into what is read next, where the memory begins, at the end of a block, or anywhere. */
static void others_scribble(uint8_t how)
{
    const struct channel *c = &exchange.channel;
    const struct cw_stream *of = how & 4 ? &c->decisions : &c->in[(how >> 3) % NEAR];
    size_t block = cw_get_u8(&script) % c->memory.blocks + 1;
    size_t at = (size_t)cw_get_u16(&script) * 8;
    uint64_t word;

    if (!(how & 3) && of->block)
        at = (size_t)(of->block + of->offset - c->memory.memory) + at % sizeof(struct cw_piece);
    else if ((how & 3) == 1)
        at %= 128 + 64 * NEAR + 192 * (NEAR * NEAR + NEAR);
    else if ((how & 3) == 2)
        at = c->memory.size - block * c->memory.block_bytes - 8;
    else
        at = at * 8 % c->memory.size;
    word = others_word();
    memcpy(others_memory.memory + at, &word, sizeof(word));
}

static void others_act(void)
{
    uint8_t what = cw_get_u8(&script);
    uint8_t how = cw_get_u8(&script);

    if (!exchange.channel.on)
        return;
    if (what & 1)
        others_put(&to_us[(what >> 1) % NEAR], how);
    else if (what & 2)
        others_scribble(how);
    else
        others_take(&from_us[(what >> 2) % NEAR]);
}

/* --- what the program does -------------------------------------------------------------------- */
static void take_request_of(struct request *request)
{
    must(request->received <= request->capacity || !request->receiving);
    must(!request->busy && !request->completed);
    request->completed = true;
    if (request->target)
        give_back(request->target);
    for (uint32_t i = 0; i < request_count; i++)
        if (requests[i] == request)
            requests[i] = requests[--request_count];
    request_free(&exchange.requests, request);
}

static void progress(void)
{
    struct event *event;
    bool repeated = exchange.cursor.active;

    exchange.cursor.polls++;
    if (repeated && !cursor_poll(&exchange))
        return;
    if (!repeated) {
        exchange_flush(&exchange);
        exchange_poll(&exchange);
    }
    if (inbox_happened(&exchange.inbox) && exchange.cursor.logged && !exchange.channel.on &&
        !repeated)
        operation_taken(&exchange);
    event = inbox_take(&exchange.inbox);
    while (event) {
        struct event *next = event->next;

        if (event->active)
            give_back(event);
        else
            take_request_of((struct request *)event);
        event = next;
    }
}

static struct request *new_request(bool receiving, uint8_t how)
{
    struct request *request;

    if (request_count == REQUESTS_MAX)
        fatal_exit(CW_REPORT_FATAL, "enough");
    request = request_new(&exchange.requests, receiving);
    requests[request_count++] = request;
    request->capacity = how & 1 ? cw_get_u16(&script) * 5u : how;
    request->staged = receiving && (how & 2);
    if (receiving && !request->staged)
        request->target = allocate(request->capacity);
    return request;
}

static void send_message(uint8_t how)
{
    struct operation_target to = {.dst = (how >> 4) % (NEAR + (how_begun & 1)),
                                  .kind = CW_SEND_TAG + (how >> 1) % 3,
                                  .tag = how & 3};
    size_t total = how & 1 ? cw_get_u16(&script) * 9u : how;
    struct iovec pieces[3] = {{message, total / 3}, {message + 7, 0}, {message, total - total / 3}};
    size_t first = total < CW_FRAME_DATA_MAX ? total : CW_FRAME_DATA_MAX;

    if (to.kind == CW_SEND_SYNC)
        to.req = new_request(false, 0)->id;
    if (!(how & 0x40)) {
        operation_send(&exchange, &to, 0, pieces, 3);
        return;
    }
    operation_send(&exchange, &to, total, &(struct iovec){message, first}, 1);
    for (size_t at = first, n; at < total; at += n) {
        n = total - at < 50000 ? total - at : 50000;
        operation_send_more(&exchange, message, n);
    }
}

static void post(uint8_t type, uint8_t how)
{
    struct request *request = new_request(true, how);
    struct cw_recv recv = {.req = request->id, .capacity = request->capacity};
    struct cw_mrecv mrecv = {.req = request->id, .capacity = request->capacity};

    if (type == CW_FRAME_RECV)
        operation_recv(&exchange, &recv);
    else if (type == CW_FRAME_MRECV)
        operation_mrecv(&exchange, &mrecv);
}

static void cancel(void)
{
    operation_cancel(&exchange, &(struct cw_recv){0});
}

/* A clock is read, as libc.c does. */
static void read_clock(uint8_t how)
{
    if (unrepeated > 0)
        unrepeated -= how < unrepeated ? how : unrepeated;
    else if (!cursor_inputs(&exchange) && inputs_written.used < CW_READINGS_MAX - how)
        inputs_written.used += how;
}

/* --- processes of the rank -------------------------------------------------------------------- */
/* All zero, with a log or none. */
static void new_memory(bool logs)
{
    size_t size = cw_channel_bytes(NEAR, logs ? LOG_BYTES : 0);
    static int fd = -1;
    char number[16];

    if (fd < 0)
        fd = memfd_create("fuzz", 0);
    must(fd >= 0 && ftruncate(fd, 0) == 0 && ftruncate(fd, (off_t)size) == 0);
    snprintf(number, sizeof(number), "%d,-1", fd);
    setenv(CW_CHANNEL_ENV, number, 1);
    must(cw_channel_at(&others_memory, mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
                       size, NEAR));
    for (uint32_t i = 0; i < NEAR; i++) {
        to_us[i] = cw_channel_stream(&others_memory, i, 0, logs);
        from_us[i] = cw_channel_stream(&others_memory, 0, i, logs);
    }
}

static void begin_process(uint32_t flags)
{
    static const struct cw_hello hello;
    static struct cw_setup setup = {.address = "unix:/a/lie", .channel_rank = {0, 1, 2}};
    struct cw_welcome welcome = {.acts = how_begun & 15, .flags = flags};

    if (how_begun & 16) {
        welcome.missing = cw_get_u16(&script) * 3u;
        welcome.clock = cw_get_u8(&script);
    }
    setup.flags = others_memory.memory ? CW_SETUP_CHANNEL : 0;
    setup.ranks = NEAR + (how_begun & 1);
    setup.channel_ranks = NEAR;
    setup.mailbox_bytes = MESSAGE_BYTES;
    setup.process.incarnation++;
    memset(&exchange, 0, sizeof(exchange));
    session_begin(&exchange.session, setup.address, &hello, 0);
    request_setup(&exchange.requests, 16, NULL);
    channel_open(&exchange.channel, &setup, &exchange.inbox, &exchange.requests);
    exchange_begin(&exchange, &setup, &welcome, false);
}

/* Whatever it was at. */
static void end_process(void)
{
    if (exchange.channel.on && exchange.channel.far && exchange.channel.bell.fd >= 0)
        close(exchange.channel.bell.fd);
    if (exchange.channel.memory.memory)
        munmap(exchange.channel.memory.memory, exchange.channel.memory.size);
    exchange.channel.on = false;
    exchange.channel.memory.memory = NULL;
    while (allocations.next != &allocations)
        give_back(allocations.next + 1);
    told = 0;
    memset(arriving, 0, sizeof(arriving));
    unrepeated = 0;
    request_count = 0;
    inputs_written.used = 0;
}

/* Images, which make room; or another incarnation, which repeats. */
static void manage_log(uint8_t how)
{
    struct channel *c = &exchange.channel;

    if (how & 1) {
        channel_mark(c, exchange.cursor.polls);
        channel_trim(c, exchange.cursor.polls);
    } else if (how & 2) {
        exchange_tell_counts(&exchange);
    } else if (how & 4) {
        channel_forget(c);
    } else {
        end_process();
        begin_process(CW_WELCOME_LOG | CW_WELCOME_REPLAY);
    }
}

static void act(void)
{
    uint8_t what = cw_get_u8(&script);
    uint8_t how = cw_get_u8(&script);

    switch (what & 15) {
    case 0:
    case 1:
        send_message(how);
        break;
    case 2:
    case 3:
    case 4:
        post(CW_FRAME_RECV, how);
        break;
    case 5:
        post(CW_FRAME_MRECV, how);
        break;
    case 6:
        cancel();
        break;
    case 7:
        operation_probe(&exchange, how & 3, how & 4 ? UINT64_MAX : 0, how & 8);
        break;
    case 8:
        read_clock(how);
        break;
    case 9:
        cursor_used_up(&exchange, true);
        break;
    case 10:
    case 11:
        if (said_end < sizeof(said) / 2)
            relay_speaks();
        break;
    case 12:
    case 13:
        others_act();
        break;
    case 14:
        if (exchange.channel.on)
            manage_log(how);
        break;
    default:
        for (uint32_t i = 0; i <= how % POLLS_MAX; i++)
            progress();
        break;
    }
}

/* --- a life ----------------------------------------------------------------------------------- */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    script = cw_reader(data, size);
    said_start = said_end = 0;
    relay = (struct cw_session){0};
    waits = 0;
    full = false;
    how_begun = cw_get_u8(&script);
    if (how_begun & 32)
        new_memory(how_begun & 64);
    if (setjmp(ended) == 0) {
        begin_process(how_begun >> 6);
        while (script.left > 0)
            act();
    }
    end_process();
    if (others_memory.memory)
        munmap(others_memory.memory, others_memory.size);
    others_memory.memory = NULL;
    return 0;
}
